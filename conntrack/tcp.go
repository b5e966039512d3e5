package conntrack

import "github.com/antrail/antrail/packet"

// TCP: each side of a connection has a state and a window of sequence numbers
// it may send, followed from the packets of both directions (RFC 9293; the
// idea is van Rooij's "Real Stateful TCP Packet Filtering", which Open vSwitch
// follows too).
//
//	tcpClosed ──first segment──▶ tcpSynSent ──acknowledged──▶ tcpEstablished
//	   ──FIN──▶ tcpClosing ──acknowledged──▶ tcpFinWait2;  an exact RST puts
//	both sides into tcpTimeWait
//
// Where being strict would cut a connection that the two ends still believe
// in, the packet passes and the state stays: data outside the window (D3), a
// RST inside the window at another than the exact next number (D4; RFC 5961,
// section 3), a SYN on an established connection (D5; RFC 5961, section 4).

// tcpState is the state of one side.
type tcpState uint8

const (
	tcpClosed tcpState = iota // nothing seen from this side
	tcpSynSent
	tcpEstablished
	tcpClosing  // FIN sent
	tcpFinWait2 // … and acknowledged
	tcpTimeWait // reset
)

// peer is what is known of one side.
type peer struct {
	next   uint32 // the sequence number after the last one it used
	limit  uint32 // one past the last it may use, by the other's window
	window uint32 // the largest window it offered, bytes
	state  tcpState
	scale  uint8 // its window scale
	scaled scaling
}

// scaling says how sure peer.scale is.
type scaling uint8

const (
	unscaled     scaling = iota // no Window Scale option in its SYN
	offered                     // the option was there
	unknownScale                // its SYN was never seen
)

// farAck is how far an acknowledgement may lie from what was seen: a full
// window without scaling, and a segment.
const farAck = 0xffff + 1500

// maxScale is the largest window scale (RFC 7323, section 2.3).
const maxScale = 14

// segment is what the tracker reads of a TCP segment.
type segment struct {
	seq, ack uint32
	length   uint32 // payload, bytes
	window   uint32 // as it stands in the header
	flags    uint16
	scale    uint8
	scaled   scaling
}

// readSegment reads a TCP packet that is Valid.
func readSegment(h packet.TCP) segment {
	g := segment{
		seq: h.Seq(), ack: h.Ack(), length: uint32(len(h.Payload())),
		window: uint32(h.Window()), flags: h.Flags(),
	}
	if g.has(packet.TCPSyn) {
		if shift, ok := h.Options().WindowScale(); ok {
			g.scale, g.scaled = shift, offered
		}
	}
	return g
}

func (g *segment) has(flag uint16) bool { return g.flags&flag != 0 }

// end is the sequence number after the segment; SYN and FIN count one each.
func (g *segment) end() uint32 {
	end := g.seq + g.length
	if g.has(packet.TCPSyn) {
		end++
	}
	if g.has(packet.TCPFin) {
		end++
	}
	return end
}

// empty says whether the segment takes no sequence number.
func (g *segment) empty() bool { return g.end() == g.seq }

// sane says whether the flags make sense together (CT-9).
func (g *segment) sane() bool {
	syn, ack, rst := g.has(packet.TCPSyn), g.has(packet.TCPAck), g.has(packet.TCPRst)
	switch {
	case syn && g.has(packet.TCPRst|packet.TCPFin):
		return false
	case !syn && !ack && !rst:
		return false
	}
	return ack || !g.has(packet.TCPFin|packet.TCPPsh|packet.TCPUrg)
}

// opens says whether the segment may begin a connection: a SYN, or a bare ACK
// of a connection that was there before the switch (CT-11, D2).
func (g *segment) opens() bool {
	if !g.sane() || g.has(packet.TCPRst|packet.TCPFin) {
		return false
	}
	return g.has(packet.TCPSyn) != g.has(packet.TCPAck)
}

// before and after compare sequence numbers modulo 2^32 (RFC 9293, 3.4).
func before(a, b uint32) bool { return int32(a-b) < 0 }
func after(a, b uint32) bool  { return int32(a-b) > 0 }

// first takes over what a side's first segment says about it.
func (p *peer) first(other *peer, g *segment) {
	if g.has(packet.TCPSyn) && p.scaled != unknownScale {
		p.scale, p.scaled = g.scale, g.scaled
	}
	p.state = tcpSynSent
	p.next = g.end()
	p.limit = p.next + max(other.window, 1)
	p.window = max(p.offer(g, other), 1)
}

// shift is how a side's windows are scaled: only when both offered it, and by
// the largest scale when it is not known.
func (p *peer) shift(other *peer) uint8 {
	switch {
	case p.scaled == unknownScale || other.scaled == unknownScale:
		return maxScale
	case p.scaled == offered && other.scaled == offered:
		return p.scale
	}
	return 0
}

// offer is the window in bytes that a segment of p offers; in a SYN it is
// never scaled.
func (p *peer) offer(g *segment, other *peer) uint32 {
	if g.has(packet.TCPSyn) {
		return g.window
	}
	return g.window << p.shift(other)
}

// openTCP begins tracking with an original direction's first segment.
func (e *entry) openTCP(g *segment) {
	src, dst := &e.tcp[original], &e.tcp[reply]
	if !g.has(packet.TCPSyn) {
		e.flags |= pickedUp
		src.scaled, dst.scaled = unknownScale, unknownScale
		dst.next = g.ack
	}
	src.first(dst, g)
}

// outcome is what a protocol says about a packet of a known connection.
type outcome uint8

const (
	outcomeNew outcome = iota // seen, still without an answer
	outcomeEstablished
	outcomeInvalid
	outcomeStartOver // the connection is over; the packet begins another
)

// outcome is new until the reply direction was seen (D1).
func (e *entry) outcome() outcome {
	if e.flags&replied != 0 {
		return outcomeEstablished
	}
	return outcomeNew
}

// updateTCP runs the state machine for a segment in direction dir.
func (t *Table) updateTCP(e *entry, dir int, g *segment, now int64) outcome {
	src, dst := &e.tcp[dir], &e.tcp[1-dir]
	switch {
	case !g.sane():
		return outcomeInvalid
	case g.has(packet.TCPRst):
		return t.updateReset(e, dir, g, now)
	case g.has(packet.TCPSyn) && !g.has(packet.TCPAck):
		return t.updateSyn(e, dir, g, now)
	case e.answersAnnotated(dir, g):
		e.restart(dir, g)
	case src.state == tcpClosed:
		src.answer(dst, g)
	case !t.seqCheck.Load() || src.inWindow(dst, g):
		src.advance(dst, g)
	default:
		t.counts.outOfWindow.Add(1)
		if t.strict {
			return outcomeInvalid
		}
		return e.outcome()
	}
	e.saw(dir)
	src.acknowledge(dst, g)
	t.touch(e, t.timeouts.tcp(src.state, dst.state), now)
	return e.outcome()
}

// saw notes that a packet of a direction was accepted.
func (e *entry) saw(dir int) {
	if dir == reply {
		e.flags |= replied
	}
}

// updateSyn is a SYN without ACK: one more of a handshake, the start of the
// next connection when this one is over, or D5.
func (t *Table) updateSyn(e *entry, dir int, g *segment, now int64) outcome {
	src, dst := &e.tcp[dir], &e.tcp[1-dir]
	switch {
	case src.state >= tcpFinWait2 && dst.state >= tcpFinWait2:
		return outcomeStartOver
	case src.state <= tcpSynSent && dst.state <= tcpSynSent && e.flags&pickedUp == 0:
		src.first(dst, g)
		e.saw(dir)
		t.touch(e, t.timeouts.TCPSynSent, now)
		return outcomeNew
	}
	if before(g.seq, src.next) && before(src.next-src.window-1, g.seq) {
		return e.outcome() // sent again
	}
	e.isn = g.seq
	e.flags &^= annotated | annotatedReply
	e.flags |= annotation(dir)
	return e.outcome()
}

// annotation is the flag that says that side dir sent entry.isn.
func annotation(dir int) entryFlags {
	if dir == reply {
		return annotatedReply
	}
	return annotated
}

// answersAnnotated says whether a segment in direction dir is the SYN/ACK to
// the SYN that entry.isn remembers: the two ends have agreed on a new
// connection.
func (e *entry) answersAnnotated(dir int, g *segment) bool {
	return e.flags&annotation(1-dir) != 0 && g.has(packet.TCPSyn) && g.ack == e.isn+1
}

// restart begins the connection anew from a SYN/ACK in direction dir. The
// windows of the new connection are learned from here on.
func (e *entry) restart(dir int, g *segment) {
	src, dst := &e.tcp[dir], &e.tcp[1-dir]
	*src, *dst = peer{scaled: unknownScale}, peer{scaled: unknownScale}
	dst.state, dst.next, dst.window = tcpSynSent, g.ack, 1<<16-1
	dst.limit = dst.next
	src.answer(dst, g)
	e.flags &^= annotated | annotatedReply | pickedUp
}

// answer is the first segment of a side whose other side was seen.
func (p *peer) answer(other *peer, g *segment) {
	p.first(other, g)
	p.grant(other, g)
}

// grant moves the other side's limit by the acknowledgement and window of a
// segment of p.
func (p *peer) grant(other *peer, g *segment) {
	if !g.has(packet.TCPAck) {
		return
	}
	limit := g.ack + max(p.offer(g, other), 1)
	if other.state == tcpClosed || after(limit, other.limit) {
		other.limit = limit
	}
}

// inWindow says whether a segment of p lies where the other side expects it:
// not beyond its window, not further back than a window, and acknowledging
// nothing that is far from what was sent. Where an empty segment lies says
// nothing: its sequence number is not looked at, as in Open vSwitch and Linux.
func (p *peer) inWindow(other *peer, g *segment) bool {
	return (g.empty() || p.seqInWindow(other, g)) && p.ackInWindow(other, g)
}

func (p *peer) seqInWindow(other *peer, g *segment) bool {
	low, high := p.next-other.window, p.limit
	if other.state == tcpClosed { // its window is not known
		low, high = p.next-farAck, p.next+farAck
	}
	// The end alone could lie half the sequence space ahead, which is behind.
	return !before(g.seq, low) && !after(g.seq, high) && !after(g.end(), high)
}

func (p *peer) ackInWindow(other *peer, g *segment) bool {
	if other.state == tcpClosed || !g.has(packet.TCPAck) {
		return true
	}
	ahead := int64(int32(g.ack - other.next))
	return ahead <= farAck && -ahead <= farAck<<p.shift(other)
}

// advance takes over sequence number and window of an accepted segment.
func (p *peer) advance(other *peer, g *segment) {
	p.window = max(p.window, p.offer(g, other))
	if !g.empty() && after(g.end(), p.next) {
		p.next = g.end()
	}
	p.grant(other, g)
}

// acknowledge moves both states by an accepted segment's FIN and ACK.
func (p *peer) acknowledge(other *peer, g *segment) {
	if g.has(packet.TCPFin) && p.state < tcpClosing {
		p.state = tcpClosing
	}
	if !g.has(packet.TCPAck) {
		return
	}
	switch {
	case other.state == tcpSynSent:
		other.state = tcpEstablished
	case other.state == tcpClosing && !before(g.ack, other.next):
		other.state = tcpFinWait2
	}
}

// updateReset is a RST: it ends the connection when it is exact, passes when
// it is only in the window (CT-13).
func (t *Table) updateReset(e *entry, dir int, g *segment, now int64) outcome {
	src, dst := &e.tcp[dir], &e.tcp[1-dir]
	switch {
	case !t.seqCheck.Load() || e.exactReset(dir, g):
		src.state, dst.state = tcpTimeWait, tcpTimeWait
		e.saw(dir)
		t.touch(e, t.timeouts.TCPReset, now)
		return e.outcome()
	case src.state != tcpClosed && src.seqInWindow(dst, g):
		return e.outcome()
	}
	return outcomeInvalid
}

// exactReset says whether a RST carries the next sequence number of its side.
// From a side not seen yet, it refuses the other's SYN by acknowledging it
// (RFC 9293, section 3.10.7.3), or answers a picked-up segment at the number
// that it acknowledged.
func (e *entry) exactReset(dir int, g *segment) bool {
	src, dst := &e.tcp[dir], &e.tcp[1-dir]
	switch {
	case src.state != tcpClosed:
		return g.seq == src.next
	case g.has(packet.TCPAck):
		return g.ack == dst.next
	}
	return e.flags&pickedUp != 0 && g.seq == src.next
}
