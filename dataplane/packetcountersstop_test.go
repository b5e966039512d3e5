package dataplane_test

import (
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
)

// held is a port that keeps its worker in the middle of a round.
type held struct {
	*memory.Port
	in, out chan struct{}
}

func (h *held) Receive(batch []*packet.Frame) int {
	select {
	case h.in <- struct{}{}:
		<-h.out
	default:
	}
	return h.Port.Receive(batch)
}

// TestRunningPacketCountersStopNobody: sums are had while a worker is in the middle of a round,
// which those that agree wait for.
func TestRunningPacketCountersStopNobody(t *testing.T) {
	h := &held{memory.New("p", memory.Options{}), make(chan struct{}), make(chan struct{})}
	r := run(t, 1, "table=0 actions=drop", map[uint32]ports.Port{1: h})
	h.Inject(udp(1, 9, 1))
	<-h.in // and stays there
	if s := r.sw.RunningPacketCounters(); len(s.Ports) != 1 || s.Total.Received > 1 {
		t.Errorf("%+v", s)
	}
	exact := make(chan error)
	go func() { exact <- r.sw.PacketCounters().Check() }()
	select {
	case <-exact:
		t.Error("sums that agree did not wait for the round")
	case <-time.After(20 * time.Millisecond):
	}
	h.out <- struct{}{}
	for done := false; !done; {
		select {
		case err := <-exact:
			r.check(err)
			done = true
		case <-h.in:
			h.out <- struct{}{}
		}
	}
}
