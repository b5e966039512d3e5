package switchd

import (
	"fmt"
	"os"
	"testing"

	"github.com/antrail/antrail/door"
	"golang.org/x/sys/unix"
)

// TestHeldDescriptors: a confined switch holds descriptors with a value for the next controller.
// It gives copies of exactly these files, and closes those that others replace.
func TestHeldDescriptors(t *testing.T) {
	g := newGiving(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	before := g.open(t)
	both := []int{int(r.Fd()), int(w.Fd())}
	if err := g.client.GiveHeld("pipe", []string{"first"}, both[:1]); err != nil {
		t.Fatal(err)
	}
	if err := g.client.GiveHeld("pipe", []string{"second"}, both); err != nil {
		t.Fatal(err)
	}
	g.wantOpen(t, before+2, "a second value")
	var value []string
	lent, err := door.Dial(g.socket).LendHeld("pipe", &value)
	if err != nil || len(lent) != 2 || fmt.Sprint(value) != "[second]" {
		t.Fatalf("lent %v, %v, %v", lent, value, err)
	}
	for i, fd := range lent {
		var here, there unix.Stat_t
		if err := unix.Fstat(both[i], &here); err != nil || unix.Fstat(fd, &there) != nil || here.Ino != there.Ino {
			t.Errorf("descriptor %d is of another file: %v", i, err)
		}
	}
	door.CloseDescriptors(lent)
	if fds, err := g.client.LendHeld("nothing", &value); err != nil || fds != nil {
		t.Errorf("under a free name: %v, %v", fds, err)
	}
	if err := g.client.GiveHeld("pipe", nil, nil); err != nil {
		t.Fatal(err)
	}
	g.wantOpen(t, before, "the name is free")
	for i := range 17 {
		if err := g.client.GiveHeld(fmt.Sprint(i), nil, both[:1]); (err == nil) != (i < 16) {
			t.Errorf("name %d: %v", i, err)
		}
	}
}
