package proto

import (
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// Packet is the part of a packet that the state machines read.
type Packet struct {
	Protocol uint8
	Segment  Segment     // of TCP
	SCTP     packet.SCTP // the header and all chunks
}

// Read reads a packet from its transport header and the bytes behind it. The caller has checked
// that a TCP or SCTP header is Valid.
func (p *Packet) Read(protocol uint8, transport []byte) {
	p.Protocol = protocol
	switch protocol {
	case packet.ProtoTCP:
		p.Segment = ReadSegment(packet.TCP(transport))
	case packet.ProtoSCTP:
		p.SCTP = packet.SCTP(transport)
	}
}

// Stateful says whether the packet's protocol has its own state machine.
func (p *Packet) Stateful() bool {
	return p.Protocol == packet.ProtoTCP || p.Protocol == packet.ProtoSCTP
}

// Opens says whether a packet with key k may begin a connection of its protocol.
func Opens(k *tuple.Key, p *Packet) bool {
	switch k.Proto {
	case packet.ProtoTCP:
		return p.Segment.opens()
	case packet.ProtoSCTP:
		return opensSCTP(p.SCTP)
	case packet.ProtoICMP, packet.ProtoICMPv6:
		return tuple.ICMPRequest(k.Proto, k.ICMPType())
	}
	return true
}

// Open sets the state of a new connection by its first packet, which Opens accepts.
func (m *Machine) Open(s *State, p *Packet, now int64) {
	d := time.Duration(0)
	switch p.Protocol {
	case packet.ProtoTCP:
		s.openTCP(&p.Segment)
		d = m.Timeouts.TCPSynSent
	case packet.ProtoSCTP:
		s.openSCTP(p.SCTP)
		d = m.Timeouts.ofSCTP(s.SCTP)
	default:
		d = m.Timeouts.Other(p.Protocol, s.Flags)
	}
	s.Touch(d, now)
}

// Update runs the state machine for a packet in direction dir of a known connection. It returns
// the packet's outcome, and which part of s it has changed.
func (m *Machine) Update(s *State, p *Packet, dir int, now int64) (Outcome, Change) {
	switch p.Protocol {
	case packet.ProtoTCP:
		return m.updateTCP(s, dir, &p.Segment, now)
	case packet.ProtoSCTP:
		return m.updateSCTP(s, dir, p.SCTP, now)
	}
	return m.updateOther(s, p.Protocol, dir, now)
}

// Outcome is the outcome of an accepted packet: new until a reply was seen (D1).
func (s *State) Outcome() Outcome {
	if s.Flags&Replied != 0 {
		return OutcomeEstablished
	}
	return OutcomeNew
}

// Missed says whether an end would miss the connection: both ends took part in it, and it is
// not over.
func (s *State) Missed(proto uint8) bool {
	if s.Flags&Replied == 0 {
		return false
	}
	switch proto {
	case packet.ProtoTCP:
		low := min(s.TCP[tuple.Original].State, s.TCP[tuple.Reply].State)
		return low >= TCPEstablished && low < TCPFinWait2
	case packet.ProtoSCTP:
		return s.SCTP >= sctpEstablished && s.SCTP < sctpHeartbeatSent
	}
	return true
}

// Name is the state as a dump shows it ("ESTABLISHED"). It is empty for protocols without
// states. As in Open vSwitch without -m, one name stands for both ends of TCP.
func (s *State) Name(proto uint8) string {
	switch proto {
	case packet.ProtoTCP:
		return max(s.TCP[tuple.Original].State, s.TCP[tuple.Reply].State).String()
	case packet.ProtoSCTP:
		return s.SCTP.String()
	}
	return ""
}

// StateNames are the names that states can have, sorted.
func StateNames() []string {
	var all []string
	for s := TCPClosed; s <= TCPTimeWait; s++ {
		all = append(all, s.String())
	}
	for s := sctpClosed; s <= sctpHeartbeatSent; s++ {
		all = append(all, s.String())
	}
	slices.SortFunc(all, strings.Compare)
	return slices.Compact(all)
}
