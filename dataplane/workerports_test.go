package dataplane_test

import (
	"testing"

	"github.com/antrail/antrail/ports/memory"
)

// TestPauseReceiving: while receiving is paused, frames wait in their ports. So packets to a
// port that is added last are delivered, whatever the order of the ports. The last of two
// pauses counts, and each ends once.
func TestPauseReceiving(t *testing.T) {
	const frames = 100
	r := newRig(t, "table=0,priority=1,in_port=1 actions=output:5")
	first, second := r.sw.PauseReceiving(), r.sw.PauseReceiving()
	inject := func() {
		for i := range uint32(frames) {
			if r.ports[1].Inject(udp(1, 5, i)) != 1 {
				t.Fatalf("port 1 does not take frame %d", i)
			}
		}
	}
	inject()
	for range 2 { // of one pause
		first()
		r.sw.Poll()
		if n := r.ports[1].Stats().RxPackets; n != 0 {
			t.Fatalf("the switch has received %d frames in a pause", n)
		}
	}
	r.addPort(5, memory.Options{})
	second()
	r.sw.Poll()
	if n := len(r.ports[5].CollectAll()); n != frames || len(r.drops()) != 0 {
		t.Errorf("%d of %d frames have left, drops %v", n, frames, r.drops())
	}
	defer r.sw.PauseReceiving()()
	r.check(r.sw.RemovePort(5)) // which publishes the others again
	inject()
	r.sw.Poll()
	if len(r.drops()) != 0 {
		t.Errorf("drops in a pause: %v", r.drops())
	}
}
