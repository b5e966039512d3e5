package conntrack

import (
	"time"

	"github.com/antrail/antrail/packet"
)

// UDP, ICMP and every protocol without a state machine of its own: new until
// the reply direction was seen, then established (CT-16, CT-17, CT-19).

// updateOther takes note of a packet in direction dir.
func (t *Table) updateOther(e *entry, dir int, now int64) outcome {
	e.saw(dir)
	t.touch(e, t.timeouts.other(e.keys[original].proto, e.flags), now)
	return e.outcome()
}

// other is the timeout of a protocol without states, by whether it was
// replied to.
func (t *Timeouts) other(proto uint8, flags entryFlags) time.Duration {
	single, both := t.OtherSingle, t.OtherReplied
	switch proto {
	case packet.ProtoUDP:
		single, both = t.UDPSingle, t.UDPReplied
	case packet.ProtoICMP, packet.ProtoICMPv6:
		single, both = t.ICMPSingle, t.ICMPReplied
	}
	if flags&replied != 0 {
		return both
	}
	return single
}
