package pipeline

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/switchd/local"
)

// Earlier packets of the two ends of a question, as a switch has seen them. The rest of the answer is about their
// next connection; this part is about earlier ones.

// hadTraffic says whether any packet came. A pipeline without an agent has none.
func (p *Pipeline) hadTraffic() bool {
	return slices.ContainsFunc(p.Switch.Ports(), func(s telemetry.PortStats) bool { return s.RxPackets > 0 })
}

// Sought selects the connections and dropped packets of a question.
type Sought struct {
	Src   netip.Addr
	Proto uint8
	// Places are the second end, and its endpoints.
	Places []netip.AddrPort
	// Pod is the first end as namespace/name, whatever source its packets have; "" for none.
	Pod string
}

// Seen reports what this switch has seen of these packets; nil if it has seen no packet at all.
func (p *Pipeline) Seen(q *Sought) *api.WhySeen {
	if !p.hadTraffic() {
		return nil
	}
	s := &api.WhySeen{}
	known := map[conntrack.Tuple]bool{} // one connection may be in several zones
	for c := range p.Connections.Dump(conntrack.Filter{Address: netip.PrefixFrom(q.Src, q.Src.BitLen())}) {
		t := c.Orig.Tuple
		if !known[t] && q.meant(&packetin.Flight{Src: t.Src, Dst: t.Dst, Proto: t.Proto, DstPort: t.DstPort}) {
			known[t] = true
			s.Connections++
		}
	}
	all, _, _ := p.Drops.Since(0, func(l *api.DroppedPacket) bool {
		frame := WholeFrame(l)
		f, ok := packetin.FlightOf(frame)
		if l.Forged != "" && l.Port.Pod == q.Pod {
			f.Src = q.Src // the Pod sent it, with another source address
		}
		return ok && q.meant(&f) || q.meantARP(frame)
	})
	if s.Dropped = len(all); s.Dropped > 0 {
		last := &all[len(all)-1]
		s.LastDropped, s.LastReason = last.Time, last.How()
	}
	return s
}

// meant says whether a packet goes from the first end to one of the places.
func (q *Sought) meant(f *packetin.Flight) bool {
	if f.Src != q.Src || f.Proto != q.Proto {
		return false
	}
	return slices.ContainsFunc(q.Places, func(to netip.AddrPort) bool {
		return to.Addr() == f.Dst && (to.Port() == f.DstPort || f.Proto == packet.ProtoICMP || f.Proto == packet.ProtoICMPv6)
	})
}

// meantARP says whether a frame is ARP from the first end for one of the places. Without ARP no
// packet goes there.
func (q *Sought) meantARP(frame []byte) bool {
	if len(frame) < packet.EthernetLen {
		return false
	}
	l := packet.ParseLayers(frame)
	if l.L3 == 0 || l.EtherType != packet.EtherTypeARP {
		return false
	}
	a := packet.ARP(frame[l.L3:])
	return a.SPA() == q.Src && slices.ContainsFunc(q.Places, func(to netip.AddrPort) bool { return to.Addr() == a.TPA() })
}

// sought selects the packets of the question. Its places include the endpoints of the chosen
// group.
func (q *asking) sought(chosen *telemetry.Step) *Sought {
	return &Sought{Src: q.src, Proto: q.proto, Places: PlacesOf(netip.AddrPortFrom(q.dst, q.to.port), chosen), Pod: q.from.String()}
}

// PlacesOf are the second end of a question, and the endpoints in the buckets of a group.
// chosen may be nil.
func PlacesOf(to netip.AddrPort, chosen *telemetry.Step) []netip.AddrPort {
	all := []netip.AddrPort{to}
	if chosen == nil {
		return all
	}
	for i := range chosen.Group.Buckets {
		if a, ok := local.EndpointOf(&chosen.Group.Buckets[i]); ok {
			all = append(all, a)
		}
	}
	return all
}

// Met has the counters of an installed entry; nil without an entry, and if no packet ever came.
func (p *Pipeline) Met(e *flow.Entry) *api.WhyMet {
	if e == nil || !p.hadTraffic() {
		return nil
	}
	for _, s := range p.Switch.FlowsIn(e.Table) {
		if s.Entry == e || s.Entry.Identity() == e.Identity() {
			return &api.WhyMet{Packets: s.Packets, AgeNS: s.Duration, IdleNS: s.Idle}
		}
	}
	return nil
}

// lastEntry is the entry of the walk's last table; nil if that table had none.
func (r teller) lastEntry() *flow.Entry {
	for i := len(r.t.Steps) - 1; i >= 0; i-- {
		if s := &r.t.Steps[i]; s.Kind == telemetry.StepEntry {
			return s.Entry
		}
	}
	return nil
}
