package switchd

import (
	"context"
	"net/netip"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/switchd/reject"
)

// Packets that the switch answers in the controller's place, whether one is connected or
// not. Workers never wait for it: packet-ins and frames that are too long come by queues
// of bounded length.

// packetIn answers a packet-in that asks for an answer, and hands it on.
func (s *Switch) packetIn(pi *telemetry.PacketIn) {
	s.answerer.PacketIn(pi)
	if s.packetIns != nil {
		s.packetIns(pi)
	}
}

// Answers implements door.Packets.
func (s *Switch) Answers() door.AnswerCounters { return s.answerer.Counters() }

// RunTooLong answers the senders of frames that were too long for a tunnel, as a router
// does, until ctx ends. mtu is the inner MTU of the way to a Node.
// Between two answers lies a pause; while the channel of frames is full, the tunnel drops
// further frames and copies nothing. TCP, and every sender that discovers the MTU of a
// path, goes on with shorter packets.
func (s *Switch) RunTooLong(ctx context.Context, longs <-chan underlay.Long, mtu func(netip.Addr) int) {
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-longs:
			s.answerer.TooLong(l.Frame, mtu(l.Node))
			time.Sleep(reject.Pause)
		}
	}
}
