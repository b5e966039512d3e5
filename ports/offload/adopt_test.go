package offload

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/confinetest"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/porttest"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { confinetest.Main(m) }

// TestAdoptConfined: a process without any capability uses programs and maps of another
// one.
func TestAdoptConfined(t *testing.T) {
	if confinetest.Inside() {
		insideAdopt(t)
		return
	}
	node := nstest.New(t)
	k, err := Open(64)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	confinetest.Start(t, node, "TestAdoptConfined", porttest.Copies(t, k.Descriptors())).Wait(t)
	var place uint32
	if err := k.keys.Lookup((&ports.OffloadKey{1})[:], &place); err != nil || place != 7 {
		t.Errorf("the key leads to %d, %v", place, err)
	}
	if out := k.OffloadEntry(7).Out; out != 9 {
		t.Errorf("the offload entry leads to %d", out)
	}
}

// insideAdopt writes what the other process reads.
func insideAdopt(t *testing.T) {
	t.Helper()
	var fds []int
	for fd := 3; fd < 3+descriptors; fd++ {
		fds = append(fds, fd)
	}
	k, err := Adopt(fds)
	if err != nil {
		t.Fatal(err)
	}
	if k.Room() != 64 || k.lines < 1 {
		t.Errorf("room %d, %d processors", k.Room(), k.lines)
	}
	k.OffloadEntry(7).Out = 9
	if err := k.Put(&ports.OffloadKey{1}, 7); err != nil {
		t.Error(err)
	}
	if err := k.Put(&ports.OffloadKey{2}, 7); err != nil {
		t.Error(err)
	}
	if err := k.Delete(&ports.OffloadKey{2}); err != nil {
		t.Error(err)
	}
	k.Settle()
	if err := k.grace.Put(uint32(0), k.inner[1]); err != nil {
		t.Error(err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

// TestAdoptRefusals: what are no programs and maps of a Kernel is closed.
func TestAdoptRefusals(t *testing.T) {
	nstest.New(t) // which needs root, as the programs do
	k, err := Open(64)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	all := k.Descriptors()
	swapped := append([]int{}, all...)
	entries := len(k.programs()) + 1 // and connections behind them
	swapped[entries], swapped[entries+1] = all[entries+1], all[entries]
	for want, fds := range map[string][]int{
		"8 descriptors, want 14": all[:8], "0 descriptors": nil, "another layout": swapped,
	} {
		given := porttest.Copies(t, fds)
		if _, err := Adopt(given); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		for _, fd := range given {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				t.Errorf("%s: a descriptor is open", want)
			}
		}
	}
}
