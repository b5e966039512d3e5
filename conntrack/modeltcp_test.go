package conntrack

import (
	"time"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// TCP of the model (CT-10 to CT-15, D1 to D5).

// modelSegment is a segment of TCP.
type modelSegment struct {
	seq, ack, length, window uint32
	flags                    uint16
	scale                    uint8
	offered                  bool // a window scale
}

func (g *modelSegment) hasFlag(flag uint16) bool { return g.flags&flag != 0 }

// end is the sequence number behind the segment.
func (g *modelSegment) end() uint32 {
	taken := g.length
	for _, flag := range []uint16{packet.TCPSyn, packet.TCPFin} {
		if g.hasFlag(flag) {
			taken++
		}
	}
	return g.seq + taken
}

// sane says whether the flags go together (CT-9).
func (g *modelSegment) sane() bool {
	if g.hasFlag(packet.TCPSyn) && g.hasFlag(packet.TCPRst|packet.TCPFin) {
		return false
	}
	if g.hasFlag(packet.TCPAck) {
		return true
	}
	return g.hasFlag(packet.TCPSyn|packet.TCPRst) && !g.hasFlag(packet.TCPFin|packet.TCPPsh|packet.TCPUrg)
}

func (c *modelled) openTCP(g *modelSegment) {
	src, dst := &c.sides[tuple.Original], &c.sides[tuple.Reply]
	if !g.hasFlag(packet.TCPSyn) {
		c.picked, src.unseen, dst.unseen, dst.next = true, true, true, g.ack
	}
	src.speakFirst(dst, g)
}

// speakFirst is a side's first segment.
func (s *side) speakFirst(other *side, g *modelSegment) {
	s.state = proto.TCPSynSent
	if g.hasFlag(packet.TCPSyn) && !s.unseen {
		s.scale, s.offered = g.scale, g.offered
	}
	s.next = g.end()
	s.limit = s.next + max(1, other.window)
	s.window = max(1, s.bytes(other, g))
}

// factor is the power of two that windows are scaled by.
func (s *side) factor(other *side) uint {
	switch {
	case s.unseen || other.unseen:
		return 14
	case s.offered && other.offered:
		return uint(s.scale)
	}
	return 0
}

// bytes is the window that a segment offers; a SYN's is not scaled.
func (s *side) bytes(other *side, g *modelSegment) uint32 {
	if g.hasFlag(packet.TCPSyn) {
		return g.window
	}
	return g.window << s.factor(other)
}

// allow is what a segment of from lets s send.
func (s *side) allow(from *side, g *modelSegment) {
	limit := g.ack + max(1, from.bytes(s, g))
	if g.hasFlag(packet.TCPAck) && (s.state == proto.TCPClosed || distance(s.limit, limit) > 0) {
		s.limit = limit
	}
}

// distance is how far b lies ahead of a, modulo 2^32.
func distance(a, b uint32) int64 { return int64(int32(b - a)) }

// slack is how far a segment may be off where nothing better is known.
const slack = 65535 + 1500

// fits says whether a segment lies in the window; one that takes no sequence
// number lies everywhere.
func (s *side) fits(other *side, g *modelSegment) bool {
	ahead := distance(other.next, g.ack)
	return (g.end() == g.seq || s.sequenceFits(other, g)) &&
		(other.state == proto.TCPClosed || !g.hasFlag(packet.TCPAck) || ahead <= slack && ahead >= -slack<<s.factor(other))
}

func (s *side) sequenceFits(other *side, g *modelSegment) bool {
	length := distance(g.seq, g.end())
	if other.state == proto.TCPClosed {
		from := distance(s.next, g.seq)
		return from >= -slack && from+length <= slack
	}
	return distance(s.limit, g.seq)+length <= 0 && distance(s.next-other.window, g.seq) >= 0
}

// runTCP is a segment of a known connection; 0 when the connection is over.
func (m *model) runTCP(c *modelled, dir int, g *modelSegment) State {
	src, dst := &c.sides[dir], &c.sides[1-dir]
	syn, ack := g.hasFlag(packet.TCPSyn), g.hasFlag(packet.TCPAck)
	switch {
	case !g.sane():
		return Invalid
	case g.hasFlag(packet.TCPRst):
		return m.reset(c, dir, g)
	case syn && !ack:
		return m.syn(c, dir, g)
	case syn && c.synBy == 1-dir && g.ack == c.isn+1: // the answer to a new SYN: start over in place
		*src, *dst = side{unseen: true}, side{unseen: true, state: proto.TCPSynSent, next: g.ack, limit: g.ack, window: 65535}
		c.synBy, c.picked = -1, false
		src.speakFirst(dst, g)
	case src.state == proto.TCPClosed:
		src.speakFirst(dst, g)
	case !src.fits(dst, g):
		return c.state() // D3
	default:
		src.window = max(src.window, src.bytes(dst, g))
		if g.end() != g.seq && distance(src.next, g.end()) > 0 {
			src.next = g.end()
		}
	}
	dst.allow(src, g)
	c.replied = c.replied || dir == tuple.Reply
	if g.hasFlag(packet.TCPFin) && src.state < proto.TCPClosing {
		src.state = proto.TCPClosing
	}
	if ack && dst.state == proto.TCPSynSent {
		dst.state = proto.TCPEstablished
	} else if ack && dst.state == proto.TCPClosing && distance(dst.next, g.ack) >= 0 {
		dst.state = proto.TCPFinWait2 // D16
	}
	m.expire(c)
	return c.state()
}

// reset is a RST (CT-13, D4, D17).
func (m *model) reset(c *modelled, dir int, g *modelSegment) State {
	src, dst := &c.sides[dir], &c.sides[1-dir]
	exact := g.seq == src.next
	if src.state == proto.TCPClosed {
		exact = c.picked && exact
		if g.hasFlag(packet.TCPAck) {
			exact = g.ack == dst.next
		}
	}
	switch {
	case exact:
		src.state, dst.state = proto.TCPTimeWait, proto.TCPTimeWait
		c.replied = c.replied || dir == tuple.Reply
		m.expire(c)
	case src.state == proto.TCPClosed || !src.sequenceFits(dst, g):
		return Invalid
	}
	return c.state()
}

// syn is a SYN without ACK (CT-14, D5).
func (m *model) syn(c *modelled, dir int, g *modelSegment) State {
	src, dst := &c.sides[dir], &c.sides[1-dir]
	switch {
	case src.state >= proto.TCPFinWait2 && dst.state >= proto.TCPFinWait2:
		return 0
	case max(src.state, dst.state) <= proto.TCPSynSent && !c.picked:
		src.speakFirst(dst, g)
		c.replied = c.replied || dir == tuple.Reply
		c.expires = m.now + int64(m.timeouts.TCPSynSent)
		return New
	case distance(g.seq, src.next) > 0 && distance(src.next-src.window-1, g.seq) > 0: // sent again
	default:
		c.isn, c.synBy = g.seq, dir
	}
	return c.state()
}

// waitTCP is how long a connection lasts whose sides are in states a and b.
func (m *model) waitTCP(a, b proto.TCPState) time.Duration {
	t := &m.timeouts
	switch low, high := min(a, b), max(a, b); {
	case a == proto.TCPTimeWait:
		return t.TCPReset
	case low >= proto.TCPFinWait2:
		return t.TCPClosed
	case low >= proto.TCPClosing:
		return t.TCPLastAck
	case low == proto.TCPClosed:
		return t.TCPSynSent
	case low < proto.TCPEstablished:
		return t.TCPSynReceived
	case high >= proto.TCPClosing:
		return t.TCPHalfClosed
	}
	return t.TCPEstablished
}
