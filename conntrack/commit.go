package conntrack

import (
	"time"

	"github.com/antrail/antrail/packet"
)

// begin is a packet without a connection: invalid when it cannot begin one,
// else new, and made an entry when the action commits. Only a packet that must
// not go on gets a reason.
func (v *visit) begin() DropReason {
	v.m.State = New
	if v.related || !v.opens() {
		v.m.State = Invalid
		return DropNone
	}
	if !v.r.Commit {
		return DropNone
	}
	return v.commit()
}

// opens says whether the packet may begin a connection of its protocol.
func (v *visit) opens() bool {
	p := v.f.Bytes()[v.l4:v.end]
	switch v.key.proto {
	case packet.ProtoTCP:
		g := readSegment(packet.TCP(p))
		return g.opens()
	case packet.ProtoSCTP:
		return opensSCTP(packet.SCTP(p))
	case packet.ProtoICMP, packet.ProtoICMPv6:
		return icmpRequest(v.key.proto, v.key.icmpType())
	}
	return true
}

// commit makes the packet's connection: limits, NAT, then both keys in one
// step. A reply key that is free *is* the port that NAT allocates (CT-30).
func (v *visit) commit() DropReason {
	if drop := v.t.refuses(v.key.zone, v.now); drop != DropNone {
		return drop
	}
	back, flags, ok := v.t.chooseReply(&v.key, v.r.NAT, v.now)
	if !ok {
		return DropNATExhausted
	}
	v.slot, v.e = v.t.insert(v.key, back)
	v.dir = original
	v.e.flags |= flags
	v.t.touch(v.e, v.open(), v.now)
	v.t.stats.Created++
	return DropNone
}

// open takes the first packet into the protocol's state and says how long to
// wait for the next.
func (v *visit) open() time.Duration {
	p, t := v.f.Bytes()[v.l4:v.end], &v.t.timeouts
	switch v.key.proto {
	case packet.ProtoTCP:
		g := readSegment(packet.TCP(p))
		v.e.openTCP(&g)
		return t.TCPSynSent
	case packet.ProtoSCTP:
		v.e.openSCTP(packet.SCTP(p))
		return t.sctp(v.e.state)
	}
	return t.other(v.key.proto, v.e.flags)
}
