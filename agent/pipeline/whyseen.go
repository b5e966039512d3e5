package pipeline

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/switchd"
)

// What a switch has seen of the two ends of a question: the answer says what would
// become of their next connection, and this whether there was one.

// hadTraffic says whether a packet ever came: a pipeline that runs nowhere has seen
// nothing.
func (p *Pipeline) hadTraffic() bool {
	return slices.ContainsFunc(p.Switch.Ports(), func(s telemetry.PortStats) bool { return s.RxPackets > 0 })
}

// look says what this Node has seen of packets to some places: the second end, or the
// endpoints of it. Nil where nothing ever came.
func (q *asking) look(places []netip.AddrPort) *api.WhySeen {
	if !q.p.hadTraffic() {
		return nil
	}
	s := &api.WhySeen{}
	known := map[conntrack.Tuple]bool{} // one connection may be in several zones
	for c := range q.p.Connections.Dump(conntrack.Filter{Address: netip.PrefixFrom(q.src, q.src.BitLen())}) {
		t := c.Orig.Tuple
		if !known[t] && q.meant(&packetin.Flight{Src: t.Src, Dst: t.Dst, Proto: t.Proto, DstPort: t.DstPort}, places) {
			known[t] = true
			s.Connections++
		}
	}
	all, _, _ := q.p.Drops.Since(0, func(l *api.DroppedPacket) bool {
		frame := wholeOf(l.Frame, l.Length)
		f, ok := packetin.FlightOf(frame)
		if l.Forged != "" && l.Port.Pod == q.from.String() {
			f.Src = q.src // it came from there, whatever address it has
		}
		return ok && q.meant(&f, places) || q.meantARP(frame, places)
	})
	if s.Dropped = len(all); s.Dropped > 0 {
		last := &all[len(all)-1]
		s.LastDropped, s.LastReason = last.Time, last.How()
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
func (q *asking) places(chosen *telemetry.Step) []netip.AddrPort {
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
func (r teller) met() *api.WhyMet {
	last := r.lastEntry()
	if last == nil || !r.p.hadTraffic() {
		return nil
	}
	for _, s := range r.p.Switch.FlowsIn(last.Table) {
		if s.Entry == last.Entry {
			return &api.WhyMet{Packets: s.Packets, AgeNS: s.Duration, IdleNS: s.Idle}
		}
	}
	return nil
}

// lastEntry is the last step of a trace that a table gave an entry in; nil for none.
func (r teller) lastEntry() *telemetry.Step {
	for i := len(r.t.Steps) - 1; i >= 0; i-- {
		if s := &r.t.Steps[i]; s.Kind == telemetry.StepEntry {
			if s.Entry == nil {
				return nil
			}
			return s
		}
	}
	return nil
}
