package agent

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/switchd"
)

// What a switch has seen of the two ends of a question: the answer says what would
// become of their next connection, and this whether there was one.

// WhySeen is of all Nodes that were asked together.
type WhySeen struct {
	Connections int `json:"connections"` // that are tracked now; 0 or more
	// Dropped is how many of the packets that are kept as dropped (LostPackets) went
	// from the first end to the second, ARP for it included.
	Dropped     int       `json:"dropped"`
	LastDropped time.Time `json:"lastDropped,omitzero"`
	LastReason  string    `json:"lastReason,omitempty"` // of that one, with table or port
}

// WhyMet is what the entry that a packet ends at has counted, of whatever packets.
type WhyMet struct {
	Packets uint64        `json:"packets"`
	AgeNS   time.Duration `json:"ageNS"`  // since it was installed
	IdleNS  time.Duration `json:"idleNS"` // since the last packet
}

// hadTraffic says whether a packet ever came: a pipeline that runs nowhere has seen
// nothing.
func (p *pipeline) hadTraffic() bool {
	return slices.ContainsFunc(p.sw.Ports(), func(s dataplane.PortStats) bool { return s.RxPackets > 0 })
}

// look says what this Node has seen of packets to some places: the second end, or the
// endpoints of it. Nil where nothing ever came.
func (q *asking) look(places []netip.AddrPort) *WhySeen {
	if !q.p.hadTraffic() {
		return nil
	}
	s := &WhySeen{}
	known := map[conntrack.Tuple]bool{} // one connection may be in several zones
	for c := range q.p.ct.Dump(conntrack.Filter{Address: netip.PrefixFrom(q.src, q.src.BitLen())}) {
		t := c.Orig.Tuple
		if !known[t] && q.meant(&packetin.Flight{Src: t.Src, Dst: t.Dst, Proto: t.Proto, DstPort: t.DstPort}, places) {
			known[t] = true
			s.Connections++
		}
	}
	all, _, _ := q.p.lost.since(0, func(l *LostPacket) bool {
		frame := wholeOf(l.Frame, l.Length)
		f, ok := packetin.FlightOf(frame)
		if l.Forged != "" && l.Port.Pod == q.from.String() {
			f.Src = q.src // it came from there, whatever address it has
		}
		return ok && q.meant(&f, places) || q.meantARP(frame, places)
	})
	if s.Dropped = len(all); s.Dropped > 0 {
		last := &all[len(all)-1]
		s.LastDropped, s.LastReason = last.Time, last.how()
	}
	return s
}

// meant says whether a packet goes from the first end to one of the places.
func (q *asking) meant(f *packetin.Flight, places []netip.AddrPort) bool {
	if f.Src != q.src || f.Proto != q.proto {
		return false
	}
	return slices.ContainsFunc(places, func(to netip.AddrPort) bool {
		return to.Addr() == f.Dst && (to.Port() == f.DstPort || f.Proto == packet.ProtoICMP || f.Proto == packet.ProtoICMPv6)
	})
}

// meantARP says whether a frame is ARP from the first end for one of the places: without
// it no packet goes there.
func (q *asking) meantARP(frame []byte, places []netip.AddrPort) bool {
	if len(frame) < packet.EthernetLen {
		return false
	}
	l := packet.ParseLayers(frame)
	if l.L3 == 0 || l.EtherType != packet.EtherTypeARP {
		return false
	}
	a := packet.ARP(frame[l.L3:])
	return a.SPA() == q.src && slices.ContainsFunc(places, func(to netip.AddrPort) bool { return to.Addr() == a.TPA() })
}

// places are the second end and the endpoints of the ways.
func (q *asking) places(chosen *dataplane.Step) []netip.AddrPort {
	all := []netip.AddrPort{netip.AddrPortFrom(q.dst, q.to.port)}
	if chosen == nil {
		return all
	}
	for i := range chosen.Group.Buckets {
		if a, ok := switchd.EndpointOf(&chosen.Group.Buckets[i]); ok {
			all = append(all, a)
		}
	}
	return all
}

// met is what the entry that a packet ended at has counted; nil where nothing ever
// came, and for a table-miss.
func (r teller) met() *WhyMet {
	last := r.lastEntry()
	if last == nil || !r.p.hadTraffic() {
		return nil
	}
	for _, s := range r.p.sw.FlowsIn(last.Table) {
		if s.Entry == last.Entry {
			return &WhyMet{Packets: s.Packets, AgeNS: s.Duration, IdleNS: s.Idle}
		}
	}
	return nil
}

// lastEntry is the last step of a trace that a table gave an entry in; nil for none.
func (r teller) lastEntry() *dataplane.Step {
	for i := len(r.t.Steps) - 1; i >= 0; i-- {
		if s := &r.t.Steps[i]; s.Kind == dataplane.StepEntry {
			if s.Entry == nil {
				return nil
			}
			return s
		}
	}
	return nil
}

// and is what both have seen. The Nodes of a connection's way each track it.
func (s *WhySeen) and(o *WhySeen) *WhySeen {
	if s == nil || o == nil {
		return cmp.Or(s, o)
	}
	sum := &WhySeen{Connections: max(s.Connections, o.Connections), Dropped: s.Dropped + o.Dropped, LastDropped: s.LastDropped, LastReason: s.LastReason}
	if o.LastDropped.After(sum.LastDropped) {
		sum.LastDropped, sum.LastReason = o.LastDropped, o.LastReason
	}
	return sum
}

// text is the line of an answer.
func (s *WhySeen) text() string {
	text := count(s.Connections, "such connection is", "such connections are") + " tracked now"
	if s.Dropped == 0 {
		return text + ", and of their packets none is kept as dropped"
	}
	return fmt.Sprintf("%s, and of their packets %s kept as dropped, the last one at %s: %s",
		text, count(s.Dropped, "is", "are"), clockText(s.LastDropped), s.LastReason)
}

func (m *WhyMet) text() string {
	if m.Packets == 0 {
		return fmt.Sprintf("no packet has met the entry in the %v that it is there", seconds(m.AgeNS))
	}
	return fmt.Sprintf("%s met the entry in the %v that it is there, the last one %v ago", count(int(m.Packets), "packet has", "packets have"), seconds(m.AgeNS), seconds(m.IdleNS))
}

func seconds(d time.Duration) time.Duration { return d.Round(time.Second) }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
