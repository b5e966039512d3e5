package ports_test

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/antrail/antrail/ports"
)

// TestAwake: while processors are kept awake the kernel says that none may take any
// time to wake, and otherwise what it said before.
func TestAwake(t *testing.T) {
	a, err := ports.OpenAwake()
	if os.Geteuid() != 0 || !exists("/dev/cpu_dma_latency") {
		if err == nil {
			t.Fatal("opened without root, or without the kernel's file")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	before := wakeLatency(t)
	for _, awake := range []bool{true, false, true} {
		if err := a.Keep(awake); err != nil {
			t.Fatal(err)
		}
		if got := wakeLatency(t); awake && got != 0 || !awake && got != before {
			t.Errorf("awake %v: %d µs; %d before", awake, got, before)
		}
	}
	if err := a.Close(); err != nil || wakeLatency(t) != before {
		t.Errorf("closed: %d µs, %v; %d before", wakeLatency(t), err, before)
	}
}

// wakeLatency is how many microseconds the kernel lets a processor take to wake.
func wakeLatency(t *testing.T) int32 {
	t.Helper()
	f, err := os.Open("/dev/cpu_dma_latency")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [4]byte
	if _, err := f.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	return int32(binary.NativeEndian.Uint32(b[:]))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
