package conntrack

import "github.com/antrail/antrail/packet"

// TCP of the model (CT-10 to CT-15, D1 to D5).

func (m *model) openTCP(c *modelled, g *segment) {
	src, dst := &c.sides[original], &c.sides[reply]
	if !g.has(packet.TCPSyn) {
		c.picked, src.unseen, dst.unseen = true, true, true
		dst.next = g.ack
	}
	src.speakFirst(dst, g)
	m.expireTCP(c)
}

// speakFirst is a side's first segment.
func (s *side) speakFirst(other *side, g *segment) {
	s.state = tcpSynSent
	if g.has(packet.TCPSyn) && !s.unseen {
		s.scale, s.offered = g.scale, g.scaled == offered
	}
	s.next = g.end()
	s.limit = s.next + max(1, other.window)
	s.window = max(1, s.bytes(other, g))
}

// factor is the power of two that windows are scaled by.
func (s *side) factor(other *side) uint {
	if s.unseen || other.unseen {
		return 14
	}
	if s.offered && other.offered {
		return uint(s.scale)
	}
	return 0
}

// bytes is the window that a segment offers.
func (s *side) bytes(other *side, g *segment) uint32 {
	if g.has(packet.TCPSyn) {
		return g.window
	}
	return g.window << s.factor(other)
}

// distance is how far a lies behind b, modulo 2^32.
func distance(a, b uint32) int64 { return int64(int32(b - a)) }

func (m *model) runTCP(c *modelled, dir int, g *segment) outcome {
	src, dst := &c.sides[dir], &c.sides[1-dir]
	syn, ack, rst := g.has(packet.TCPSyn), g.has(packet.TCPAck), g.has(packet.TCPRst)
	switch {
	case !g.sane():
		return outcomeInvalid
	case rst:
		return m.reset(c, dir, g)
	case syn && !ack:
		return m.syn(c, dir, g)
	case syn && c.synBy == 1-dir && g.ack == c.isn+1: // the answer to a new SYN: start over in place
		*src, *dst = side{unseen: true}, side{unseen: true, state: tcpSynSent, next: g.ack, limit: g.ack, window: 65535}
		c.synBy, c.picked = -1, false
		src.speakFirst(dst, g)
		dst.allow(src, g)
	case src.state == tcpClosed:
		src.speakFirst(dst, g)
		dst.allow(src, g)
	case !src.fits(dst, g):
		return c.outcome() // D3
	default:
		src.window = max(src.window, src.bytes(dst, g))
		if g.end() != g.seq && distance(src.next, g.end()) > 0 {
			src.next = g.end()
		}
		dst.allow(src, g)
	}
	c.replied = c.replied || dir == reply
	if g.has(packet.TCPFin) && src.state < tcpClosing {
		src.state = tcpClosing
	}
	if ack && dst.state == tcpSynSent {
		dst.state = tcpEstablished
	} else if ack && dst.state == tcpClosing && distance(dst.next, g.ack) >= 0 {
		dst.state = tcpFinWait2
	}
	m.expireTCP(c)
	return c.outcome()
}

// allow is what a segment of from lets s send.
func (s *side) allow(from *side, g *segment) {
	if !g.has(packet.TCPAck) {
		return
	}
	limit := g.ack + max(1, from.bytes(s, g))
	if s.state == tcpClosed || distance(s.limit, limit) > 0 {
		s.limit = limit
	}
}

// fits says whether a segment lies in the window; one that takes no sequence
// number lies everywhere.
func (s *side) fits(other *side, g *segment) bool {
	if g.end() != g.seq && !s.sequenceFits(other, g) {
		return false
	}
	if other.state == tcpClosed || !g.has(packet.TCPAck) {
		return true
	}
	ahead := distance(other.next, g.ack)
	return ahead <= 65535+1500 && ahead >= -(65535+1500)<<s.factor(other)
}

func (s *side) sequenceFits(other *side, g *segment) bool {
	if other.state == tcpClosed {
		from := distance(s.next, g.seq)
		return from >= -(65535+1500) && from+distance(g.seq, g.end()) <= 65535+1500
	}
	return distance(s.limit, g.seq)+distance(g.seq, g.end()) <= 0 && distance(s.next-other.window, g.seq) >= 0
}

// reset is CT-13.
func (m *model) reset(c *modelled, dir int, g *segment) outcome {
	src, dst := &c.sides[dir], &c.sides[1-dir]
	exact := g.seq == src.next
	if src.state == tcpClosed {
		exact = c.picked && exact
		if g.has(packet.TCPAck) {
			exact = g.ack == dst.next
		}
	}
	switch {
	case exact:
		src.state, dst.state = tcpTimeWait, tcpTimeWait
		c.replied = c.replied || dir == reply
		m.expireTCP(c)
	case src.state == tcpClosed || !src.sequenceFits(dst, g):
		return outcomeInvalid
	}
	return c.outcome()
}

// syn is a SYN without ACK.
func (m *model) syn(c *modelled, dir int, g *segment) outcome {
	src, dst := &c.sides[dir], &c.sides[1-dir]
	low := func(s *side) bool { return s.state == tcpClosed || s.state == tcpSynSent }
	switch {
	case src.state >= tcpFinWait2 && dst.state >= tcpFinWait2:
		return outcomeStartOver
	case low(src) && low(dst) && !c.picked:
		src.speakFirst(dst, g)
		c.replied = c.replied || dir == reply
		c.expires = m.now + int64(m.timeouts.TCPSynSent)
		return outcomeNew
	case distance(g.seq, src.next) > 0 && distance(src.next-src.window-1, g.seq) > 0:
		return c.outcome() // sent again
	}
	c.isn, c.synBy = g.seq, dir
	return c.outcome()
}

// expireTCP is the column "ours" of the table of timeouts.
func (m *model) expireTCP(c *modelled) {
	t, a, b := &m.timeouts, c.sides[0].state, c.sides[1].state
	both := func(s tcpState) bool { return a >= s && b >= s }
	d := t.TCPEstablished
	switch {
	case a == tcpTimeWait:
		d = t.TCPReset
	case both(tcpFinWait2):
		d = t.TCPClosed
	case both(tcpClosing):
		d = t.TCPLastAck
	case a == tcpClosed || b == tcpClosed:
		d = t.TCPSynSent
	case !both(tcpEstablished):
		d = t.TCPSynReceived
	case a >= tcpClosing || b >= tcpClosing:
		d = t.TCPHalfClosed
	}
	c.expires = m.now + int64(d)
}
