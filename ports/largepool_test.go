package ports

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
)

// mapped is the kilobytes of this process's address space, and those in memory.
func mapped(t *testing.T) (size, resident int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var fields [2]int
	for i, f := range strings.Fields(string(b))[:2] {
		for _, c := range f {
			fields[i] = 10*fields[i] + int(c-'0')
		}
	}
	page := os.Getpagesize() / 1024
	return fields[0] * page, fields[1] * page
}

// covers says whether memory around an address, of at least a size in kilobytes,
// is mapped in one piece. The size of the whole address space does not tell:
// other threads, the C library and the runtime map and keep memory too.
func covers(t *testing.T, address uint64, kilobytes int) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if from <= address && address < to {
			return to-from >= uint64(kilobytes)<<10
		}
	}
	return false
}

// A pool costs what is used of it, and is given back when a frame that is held
// is too.
func TestLargePool(t *testing.T) {
	const frames = 4096 // 265 MB
	const kilobytes = frames * packet.LargeBuffer / 1024
	size, resident := mapped(t)
	one := make([]*packet.Frame, 1)
	func() {
		p, err := LargePool(frames)
		if err != nil {
			t.Fatal(err)
		}
		if p.Free() != frames || p.Get(one) != 1 || !one[0].SetLen(65535+packet.EthernetLen) {
			t.Fatalf("%d frames free, the first takes %d bytes", p.Free(), one[0].Tailroom())
		}
	}()
	if s, r := mapped(t); s-size < kilobytes || r-resident > kilobytes/4 {
		t.Errorf("%d kB mapped and %d kB used, want %d and next to nothing", s-size, r-resident, kilobytes)
	}
	var address uint64
	if _, err := fmt.Sscanf(fmt.Sprintf("%p", one[0].Bytes()), "0x%x", &address); err != nil || !covers(t, address, kilobytes/2) {
		t.Fatalf("the frame at %#x is not in the pool's memory: %v", address, err)
	}
	runtime.GC()
	time.Sleep(10 * time.Millisecond)
	one[0].Bytes()[1000] = 1 // still there
	packet.Release(one)
	one[0] = nil
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		if !covers(t, address, kilobytes/2) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the memory is not given back")
		}
	}
}
