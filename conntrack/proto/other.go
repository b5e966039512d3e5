package proto

import (
	"time"

	"github.com/antrail/antrail/packet"
)

// UDP, ICMP and each protocol without its own state machine. A connection is new until a reply
// was seen, then established (CT-16, CT-17, CT-19).

// updateOther updates the state for a packet in direction dir.
func (m *Machine) updateOther(s *State, proto uint8, dir int, now int64) (Outcome, Change) {
	flags := s.Flags
	s.markReplied(dir)
	s.Touch(m.Timeouts.Other(proto, s.Flags), now)
	if s.Flags != flags {
		return s.Outcome(), ChangedState
	}
	return s.Outcome(), ChangedExpiry
}

// Other is the timeout of a protocol without states. It depends on whether a reply was seen.
func (t *Timeouts) Other(proto uint8, flags Flags) time.Duration {
	single, both := t.OtherSingle, t.OtherReplied
	switch proto {
	case packet.ProtoUDP:
		single, both = t.UDPSingle, t.UDPReplied
	case packet.ProtoICMP, packet.ProtoICMPv6:
		single, both = t.ICMPSingle, t.ICMPReplied
	}
	if flags&Replied != 0 {
		return both
	}
	return single
}
