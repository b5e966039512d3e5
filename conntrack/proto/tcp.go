package proto

import (
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// TCP: each side of a connection has a state, and a window of sequence numbers that it may
// send. Both follow from the packets of both directions (RFC 9293). The idea is van Rooij's
// "Real Stateful TCP Packet Filtering", which Open vSwitch uses too.
//
//	TCPClosed ──first segment──▶ TCPSynSent ──acknowledged──▶ TCPEstablished
//	   ──FIN──▶ TCPClosing ──acknowledged──▶ TCPFinWait2
//	any state ──exact RST──▶ TCPTimeWait, for both sides
//
// A strict check would end connections that both ends still consider alive. So these packets
// pass, and the state stays:
//
//  - data outside the window (D3)
//  - a RST inside the window that does not have the exact next number (D4; RFC 5961, section 3)
//  - a SYN on an established connection (D5; RFC 5961, section 4)
//
// Nearly every segment changes two numbers of a direction: Next of the sending side, and Limit of
// the receiving side. They are the direction's Sequence (pack.go).

// TCPState is the state of one side.
type TCPState uint8

// The states, in the order in which a side passes through them.
const (
	TCPClosed TCPState = iota // nothing seen from this side
	TCPSynSent
	TCPEstablished
	TCPClosing  // FIN sent
	TCPFinWait2 // … and acknowledged
	TCPTimeWait // reset
)

// String is the state's name in a dump. As in Open vSwitch without -m, FIN_WAIT_2 has the
// name TIME_WAIT.
func (s TCPState) String() string {
	return [...]string{"CLOSED", "SYN_SENT", "ESTABLISHED", "CLOSING", "TIME_WAIT", "TIME_WAIT"}[s]
}

// Peer is the tracked state of one side.
type Peer struct {
	Next   uint32 // the sequence number after the last one that it used
	Limit  uint32 // one past the last number that it may use, by the other side's window
	Window uint32 // the largest window that it offered, bytes
	State  TCPState
	scale  uint8 // its window scale
	scaled scaling
}

// scaling says how certain Peer.scale is.
type scaling uint8

const (
	unscaled     scaling = iota // no Window Scale option in its SYN
	offered                     // the option was there
	unknownScale                // its SYN was never seen
)

// farAck is how far an acknowledgement may lie from the seen numbers: a full window without
// scaling, plus a segment.
const farAck = 0xffff + 1500

// maxScale is the largest window scale (RFC 7323, section 2.3).
const maxScale = 14

// Segment is the part of a TCP segment that the state machine reads.
type Segment struct {
	Seq, Ack uint32
	Length   uint32 // payload, bytes
	Window   uint32 // as in the header, unscaled
	Flags    uint16
	scale    uint8
	scaled   scaling
}

// ReadSegment reads a TCP segment that is Valid.
func ReadSegment(h packet.TCP) Segment {
	g := Segment{
		Seq: h.Seq(), Ack: h.Ack(), Length: uint32(len(h.Payload())),
		Window: uint32(h.Window()), Flags: h.Flags(),
	}
	if g.hasFlag(packet.TCPSyn) {
		if shift, ok := h.Options().WindowScale(); ok {
			g.scale, g.scaled = shift, offered
		}
	}
	return g
}

func (g *Segment) hasFlag(flag uint16) bool { return g.Flags&flag != 0 }

// end is the sequence number after the segment; SYN and FIN count one each.
func (g *Segment) end() uint32 {
	end := g.Seq + g.Length
	if g.hasFlag(packet.TCPSyn) {
		end++
	}
	if g.hasFlag(packet.TCPFin) {
		end++
	}
	return end
}

// empty says whether the segment uses no sequence number.
func (g *Segment) empty() bool { return g.end() == g.Seq }

// sane says whether the combination of flags is valid (CT-9).
func (g *Segment) sane() bool {
	syn, ack, rst := g.hasFlag(packet.TCPSyn), g.hasFlag(packet.TCPAck), g.hasFlag(packet.TCPRst)
	switch {
	case syn && g.hasFlag(packet.TCPRst|packet.TCPFin):
		return false
	case !syn && !ack && !rst:
		return false
	}
	return ack || !g.hasFlag(packet.TCPFin|packet.TCPPsh|packet.TCPUrg)
}

// opens says whether the segment may begin a connection. A SYN may, and so may a plain ACK, whose
// connection may be older than the switch (CT-11, D2).
func (g *Segment) opens() bool {
	if !g.sane() || g.hasFlag(packet.TCPRst|packet.TCPFin) {
		return false
	}
	return g.hasFlag(packet.TCPSyn) != g.hasFlag(packet.TCPAck)
}

// before says whether a lies before b, modulo 2^32 (RFC 9293, section 3.4).
func before(a, b uint32) bool { return int32(a-b) < 0 }

// After says whether the sequence number a lies after b, modulo 2^32.
func After(a, b uint32) bool { return int32(a-b) > 0 }

// first sets a side's state by its first segment.
func (p *Peer) first(other *Peer, g *Segment) {
	if g.hasFlag(packet.TCPSyn) && p.scaled != unknownScale {
		p.scale, p.scaled = g.scale, g.scaled
	}
	p.State = TCPSynSent
	p.Next = g.end()
	p.Limit = p.Next + max(other.Window, 1)
	p.Window = max(p.offer(g, other), 1)
}

// Shift is the shift of a side's windows, in bits. It is 0 unless both sides offered scaling, and
// maxScale if a scale is unknown.
func (p *Peer) Shift(other *Peer) uint8 {
	switch {
	case p.scaled == unknownScale || other.scaled == unknownScale:
		return maxScale
	case p.scaled == offered && other.scaled == offered:
		return p.scale
	}
	return 0
}

// offer is the window that a segment of p offers, in bytes. A SYN's window is never scaled.
func (p *Peer) offer(g *Segment, other *Peer) uint32 {
	if g.hasFlag(packet.TCPSyn) {
		return g.Window
	}
	return g.Window << p.Shift(other)
}

// openTCP sets the state by the first segment of the original direction.
func (s *State) openTCP(g *Segment) {
	src, dst := &s.TCP[tuple.Original], &s.TCP[tuple.Reply]
	if !g.hasFlag(packet.TCPSyn) {
		s.Flags |= pickedUp
		src.scaled, dst.scaled = unknownScale, unknownScale
		dst.Next = g.Ack
	}
	src.first(dst, g)
}

// updateTCP runs the state machine for a segment in direction dir.
func (m *Machine) updateTCP(s *State, dir int, g *Segment, now int64) (Outcome, Change) {
	src, dst := &s.TCP[dir], &s.TCP[1-dir]
	flags, states, window := s.Flags, [2]TCPState{src.State, dst.State}, src.Window
	switch {
	case !g.sane():
		return OutcomeInvalid, ChangedExpiry
	case g.hasFlag(packet.TCPRst):
		return m.updateReset(s, dir, g, now), ChangedState
	case g.hasFlag(packet.TCPSyn) && !g.hasFlag(packet.TCPAck):
		return m.updateSyn(s, dir, g, now), ChangedState
	case s.answersAnnotated(dir, g):
		s.restart(dir, g)
	case src.State == TCPClosed:
		src.answer(dst, g)
	case !m.SeqCheck.Load() || src.inWindow(dst, g):
		src.advance(dst, g)
	default:
		return OutcomeOutside, ChangedExpiry
	}
	s.markReplied(dir)
	src.acknowledge(dst, g)
	s.Touch(m.Timeouts.OfTCP(src.State, dst.State), now)
	switch {
	case s.Flags != flags || src.State != states[0] || dst.State != states[1]:
		return s.Outcome(), ChangedState
	case src.Window != window:
		return s.Outcome(), ChangedWindow
	}
	return s.Outcome(), ChangedSequence
}

// updateSyn runs the state machine for a SYN without ACK. The SYN belongs to the handshake,
// begins the next connection if this one is over, or is a SYN on an established connection (D5).
func (m *Machine) updateSyn(s *State, dir int, g *Segment, now int64) Outcome {
	src, dst := &s.TCP[dir], &s.TCP[1-dir]
	switch {
	case src.State >= TCPFinWait2 && dst.State >= TCPFinWait2:
		return OutcomeStartOver
	case src.State <= TCPSynSent && dst.State <= TCPSynSent && s.Flags&pickedUp == 0:
		src.first(dst, g)
		s.markReplied(dir)
		s.Touch(m.Timeouts.TCPSynSent, now)
		return OutcomeNew
	}
	if before(g.Seq, src.Next) && before(src.Next-src.Window-1, g.Seq) {
		return s.Outcome() // a retransmission
	}
	s.ISN = g.Seq
	s.Flags &^= annotated | annotatedReply
	s.Flags |= annotation(dir)
	return s.Outcome()
}

// annotation is the flag of a State.ISN from side dir.
func annotation(dir int) Flags {
	if dir == tuple.Reply {
		return annotatedReply
	}
	return annotated
}

// answersAnnotated says whether a segment in direction dir is the SYN/ACK to the SYN with the
// number State.ISN. Then the two ends have agreed on a new connection.
func (s *State) answersAnnotated(dir int, g *Segment) bool {
	return s.Flags&annotation(1-dir) != 0 && g.hasFlag(packet.TCPSyn) && g.Ack == s.ISN+1
}

// restart begins a new connection by a SYN/ACK in direction dir. Its windows are learned from
// then on.
func (s *State) restart(dir int, g *Segment) {
	src, dst := &s.TCP[dir], &s.TCP[1-dir]
	*src, *dst = Peer{scaled: unknownScale}, Peer{scaled: unknownScale}
	dst.State, dst.Next, dst.Window = TCPSynSent, g.Ack, 1<<16-1
	dst.Limit = dst.Next
	src.answer(dst, g)
	s.Flags &^= annotated | annotatedReply | pickedUp
}

// answer sets a side's state by its first segment, after the other side was seen.
func (p *Peer) answer(other *Peer, g *Segment) {
	p.first(other, g)
	p.grant(other, g)
}

// grant raises the other side's limit by the acknowledgement and window of a segment of p.
func (p *Peer) grant(other *Peer, g *Segment) {
	if !g.hasFlag(packet.TCPAck) {
		return
	}
	limit := g.Ack + max(p.offer(g, other), 1)
	if other.State == TCPClosed || After(limit, other.Limit) {
		other.Limit = limit
	}
}

// inWindow says whether a segment of p is in the other side's window.
//
//  1. It must not lie beyond the window, nor more than one window back.
//  2. It must not acknowledge a number that is far from those sent.
//  3. As in Open vSwitch and Linux, the sequence number of an empty segment does not matter.
func (p *Peer) inWindow(other *Peer, g *Segment) bool {
	return (g.empty() || p.seqInWindow(other, g)) && p.ackInWindow(other, g)
}

func (p *Peer) seqInWindow(other *Peer, g *Segment) bool {
	low, high := p.Next-other.Window, p.Limit
	if other.State == TCPClosed { // its window is unknown
		low, high = p.Next-farAck, p.Next+farAck
	}
	// The end alone could be half the sequence space ahead, which compares as behind.
	return !before(g.Seq, low) && !After(g.Seq, high) && !After(g.end(), high)
}

func (p *Peer) ackInWindow(other *Peer, g *Segment) bool {
	if other.State == TCPClosed || !g.hasFlag(packet.TCPAck) {
		return true
	}
	ahead := int64(int32(g.Ack - other.Next))
	return ahead <= farAck && -ahead <= farAck<<p.Shift(other)
}

// advance updates next, window and the other side's limit by an accepted segment.
func (p *Peer) advance(other *Peer, g *Segment) {
	p.Window = max(p.Window, p.offer(g, other))
	if !g.empty() && After(g.end(), p.Next) {
		p.Next = g.end()
	}
	p.grant(other, g)
}

// acknowledge updates both states by the FIN and ACK of an accepted segment.
func (p *Peer) acknowledge(other *Peer, g *Segment) {
	if g.hasFlag(packet.TCPFin) && p.State < TCPClosing {
		p.State = TCPClosing
	}
	if !g.hasFlag(packet.TCPAck) {
		return
	}
	switch {
	case other.State == TCPSynSent:
		other.State = TCPEstablished
	case other.State == TCPClosing && !before(g.Ack, other.Next):
		other.State = TCPFinWait2
	}
}

// ForgetWindows clears the windows of a TCP connection. The first segment of each side sets them
// again, as for a picked-up connection.
func (s *State) ForgetWindows() {
	s.Flags |= pickedUp
	for dir := range s.TCP {
		s.TCP[dir].State = TCPClosed
	}
}

// updateReset runs the state machine for a RST. An exact RST ends the connection. A RST that is
// only inside the window passes (CT-13).
func (m *Machine) updateReset(s *State, dir int, g *Segment, now int64) Outcome {
	src, dst := &s.TCP[dir], &s.TCP[1-dir]
	switch {
	case !m.SeqCheck.Load() || s.exactReset(dir, g):
		src.State, dst.State = TCPTimeWait, TCPTimeWait
		s.markReplied(dir)
		s.Touch(m.Timeouts.TCPReset, now)
		return s.Outcome()
	case src.State != TCPClosed && src.seqInWindow(dst, g):
		return s.Outcome()
	}
	return OutcomeInvalid
}

// exactReset says whether a RST has the next sequence number of its side. A side without packets
// so far refuses the other side's SYN by acknowledging it (RFC 9293, section 3.10.7.3). Or it
// answers a picked-up segment, at the number which that segment acknowledged.
func (s *State) exactReset(dir int, g *Segment) bool {
	src, dst := &s.TCP[dir], &s.TCP[1-dir]
	switch {
	case src.State != TCPClosed:
		return g.Seq == src.Next
	case g.hasFlag(packet.TCPAck):
		return g.Ack == dst.Next
	}
	return s.Flags&pickedUp != 0 && g.Seq == src.Next
}
