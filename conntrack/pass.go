package conntrack

import (
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// Passing. For most packets of a connection, a ct() gives the same result as for the previous
// packet, advances the windows and restarts the timeout. A flow cache keeps the result (Seen),
// and calls Pass for the next packet, without a lookup.
//
//  1. Pass does the same as Track, or nothing. It refuses if Track would give another result,
//     change a state, or count or make something.
//  2. Track may follow for the same packet, because advancing twice has the effect of advancing
//     once.

// Seen is the result of one ct(): the packet's connection, or that there is none. It holds no
// pointers. The connection may have ended since.
type Seen struct {
	at    store.Handle
	label Label
	mark  uint32
	zone  uint16
	dir   uint8
	flags seenFlags
}

type seenFlags uint8

const (
	seenEstablished seenFlags = 1 << iota
	seenAgain                 // an earlier ct() of the packet had found the connection
	seenNone                  // there was no connection
)

// Seen is the result of the last ct(). It reports false if Pass cannot give that result. Then
// the packet was not sound, is an ICMP error, or is invalid for its connection.
func (m *Meta) Seen() (Seen, bool) {
	if !m.sound || m.State&Related != 0 {
		return Seen{}, false
	}
	if m.at.Slot == 0 {
		return Seen{zone: m.Zone, flags: seenNone}, true
	}
	if m.State&Invalid != 0 || m.State&(New|Established) == 0 {
		return Seen{}, false
	}
	s := Seen{at: m.at, label: m.Label, mark: m.Mark, zone: m.Zone, dir: m.dir}
	if m.State&Established != 0 {
		s.flags |= seenEstablished
	}
	if m.again {
		s.flags |= seenAgain
	}
	return s, true
}

// Follows compares s with an earlier result for the same packet. covered says that Pass for the
// earlier result also suffices for this one. apart says that this one needs its own Pass. If
// neither is true, the connection alone does not determine the result.
func (s *Seen) Follows(earlier *Seen) (covered, apart bool) {
	if s.zone != earlier.zone {
		return false, true
	}
	if (s.flags|earlier.flags)&seenNone != 0 {
		return s.flags == earlier.flags, false
	}
	covered = s.flags&seenAgain != 0 && s.at == earlier.at && s.mark == earlier.mark && s.label == earlier.label
	return covered, false
}

// Began says whether the last ct() began a connection, after an earlier one of the same packet
// had the result s: no connection.
func (m *Meta) Began(s *Seen) bool {
	return s.flags&seenNone != 0 && m.at.Slot != 0 && m.Zone == s.zone
}

// AsRequested says whether the last ct() has the same result as one that begins a connection by
// r. It has found or begun a connection. The packet is not translated, or translated by the only
// outcome of r.NAT (NAT.single).
func (m *Meta) AsRequested(r *Request) bool {
	state, to := New|Tracked, m.orig
	if r.NAT != nil {
		if !r.NAT.single(&m.orig) {
			return false
		}
		state, to.Dst, to.DstPort = New|Tracked|DNATed, tuple.AddressOf(r.NAT.AddrMin), r.NAT.PortMin
	}
	return m.State == state && m.seen.Equal(&to) && m.Mark == r.Mark&r.MarkMask &&
		m.Label == Label{r.Label.Hi & r.LabelMask.Hi, r.Label.Lo & r.LabelMask.Lo}
}

// Known says whether there was a connection. If there was none, the packet for Pass must have
// the tuple that it had for that ct().
func (s *Seen) Known() bool { return s.flags&seenNone == 0 }

// Plain says whether a packet of a protocol, with these TCP flags, can Pass.
func Plain(proto uint8, tcpFlags uint16) bool {
	switch proto {
	case packet.ProtoTCP:
		return tcpFlags&packet.TCPAck != 0 && tcpFlags&(packet.TCPSyn|packet.TCPFin|packet.TCPRst) == 0
	case packet.ProtoUDP, packet.ProtoICMP, packet.ProtoICMPv6:
		return true
	}
	return false
}

// Passing is a packet during its Pass calls.
type Passing struct {
	frame  *packet.Frame
	layers *packet.Layers
	packet proto.Packet
	key    tuple.Key // without a zone; valid if keyed
	keyed  bool
}

// Read reads a packet that may Pass. It reports false if a checksum is wrong. The packet must be
// whole and have its transport header. If it has connections, it must be Plain.
func (p *Passing) Read(f *packet.Frame, l *packet.Layers) bool {
	if !tuple.ChecksumsValid(f, l) {
		return false
	}
	p.frame, p.layers, p.keyed = f, l, false
	p.packet.Read(l.Proto, f.Bytes()[l.L4:l.End])
	return true
}

// Pass is a ct() with the result s, on the packet in p. It reports false, and changes nothing,
// if the result would be another one, or if the packet changes more than windows and expiry
// (advance.go).
func (t *Table) Pass(s *Seen, p *Passing, now int64) bool {
	if !s.Known() {
		return t.unknown(p, s.zone)
	}
	c := t.arena.At(s.at.Slot)
	if !p.packet.Stateful() {
		return t.restart(c, s, p, now)
	}
	var state proto.State
	for range passTries {
		head := c.Head()
		if uint32(head) != s.at.Gen {
			return false
		}
		c.LoadState(&state, p.packet.Protocol)
		ok := s.matches(c.Says())
		switch {
		case head&store.Locked != 0 || c.Head() != head: // the copy may be torn
			continue
		case !ok || state.Expires <= now:
			return false
		case state.Flags&store.Offloaded != 0:
			return t.passLocked(s, p, now)
		}
		outcome, change, committed := t.advance(c, head, &state, &p.packet, int(s.dir), now)
		switch {
		case outcome > proto.OutcomeEstablished || change == proto.ChangedState:
			return false
		case committed:
			return true
		case change == proto.ChangedWindow:
			return t.passLocked(s, p, now)
		}
	}
	return false
}

// restart is Pass for a protocol without states. Nothing advances: if the result is the same, the
// packet only restarts the timeout.
func (t *Table) restart(c *store.Cell, s *Seen, p *Passing, now int64) bool {
	for range passTries {
		head, expires := c.Head(), c.Expires()
		markAndFlags, hi, lo := c.Says()
		flags := proto.Flags(markAndFlags >> 32)
		switch {
		case uint32(head) != s.at.Gen:
			return false
		case head&store.Locked != 0 || c.Head() != head: // the copy may be torn
			continue
		case expires <= now || !s.matches(markAndFlags, hi, lo):
			return false
		case flags&store.Offloaded != 0:
			return t.passLocked(s, p, now)
		}
		next := now + int64(t.machine.Timeouts.Other(p.packet.Protocol, flags))
		if expires == next || c.Postpone(expires, next) {
			return true
		}
	}
	return false
}

// passLocked is Pass with the lock.
func (t *Table) passLocked(s *Seen, p *Passing, now int64) bool {
	var e store.Entry
	if !t.lock(s.at, &e, now) {
		return false
	}
	c := t.arena.At(s.at.Slot)
	if s.matches(c.Says()) {
		outcome, change, _ := t.advance(c, store.Locked, &e.State, &p.packet, int(s.dir), now)
		if outcome <= proto.OutcomeEstablished && change != proto.ChangedState {
			t.unlock(s.at, &e, now)
			return true
		}
	}
	c.Unlock(s.at.Gen)
	return false
}

// unknown says whether the packet has no connection in a zone. An expired one counts as a
// connection, because Track would remove it.
func (t *Table) unknown(p *Passing, zone uint16) bool {
	if !p.keyed {
		var shown tuple.Packet
		p.keyed = shown.Read(p.frame.Bytes(), p.layers, 0)
		p.key = shown.Key
	}
	k := p.key
	k.Zone = zone
	w := k.Words()
	_, _, found := t.index.Find(t.arena, t.chain(&w, nil), &w)
	return p.keyed && !found
}

// matches says whether a connection still has the seen mark, label and answer. The words are
// those of Cell.Says. The caller holds the cell's lock, or checks the head before and after.
func (s *Seen) matches(markAndFlags, hi, lo uint64) bool {
	seen := proto.Flags(markAndFlags>>32)&proto.Replied != 0
	return uint32(markAndFlags) == s.mark &&
		seen == (s.flags&seenEstablished != 0) && (seen || s.dir == tuple.Original) &&
		hi == s.label.Hi && lo == s.label.Lo
}
