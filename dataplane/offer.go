package dataplane

import (
	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/dataplane/offload"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
)

// defaultOffloadAfter is how many packets an entry of the cache must have replayed before
// it is offered to the kernel. A connection of few packets is not worth an offload entry.
const defaultOffloadAfter = 32

// mostOffers is how often the packets until the next offer are doubled.
const mostOffers = 8

// warmUp counts a packet that was replayed, and offers its entry if that is due.
func (k *walk) warmUp(e *flowcache.Entry, p *path, f *packet.Frame, inPort uint32) {
	t := k.w.sw.offload
	if t == nil || !k.dueToOffer(e, f) {
		return
	}
	e.SinceOffer, e.Offers = 0, min(e.Offers+1, mostOffers)
	if o, ok := k.offerOf(e, p, f, inPort); ok {
		t.Offer(o)
	}
}

// dueToOffer counts a packet, and says whether its entry should be offered: after enough
// packets, and, if that was in vain, after twice as many.
//
//  1. A frame that is to be cut counts as its segments, so a bulk stream leaves after a frame.
//  2. The first packet is enough if the connection is offloaded. Its entries differ in their
//     TCP flags. Packets that the kernel forwards would overtake those of the switch.
func (k *walk) dueToOffer(e *flowcache.Entry, f *packet.Frame) bool {
	n := int(e.SinceOffer) + 1
	if f.Offload.SegmentSize != 0 {
		n += packet.SegmentCount(f) - 1
	}
	if n >= int(k.w.sw.offloadAfter)<<e.Offers || e.Offers == 0 && e.Steps == 1 && k.w.sw.conntrack.Offloaded(&e.CT[0]) {
		return true
	}
	e.SinceOffer = uint16(n)
	return false
}

// offerOf is an entry as an offer, for frames that begin as f: those of one flow label,
// which offload entries tell apart always. It is not ok for a path that no offload entry
// can replace. Such a path is neither TCP nor UDP, or not between two ports of the kernel's,
// or from one tunnel into another. Or it is of no or several connections, or leaves with options
// of Geneve.
func (k *walk) offerOf(e *flowcache.Entry, p *path, f *packet.Frame, inPort uint32) (offload.Offer, bool) {
	c, b := k.w.cache, f.Bytes()
	in := c.ports.byNumber[inPort]
	switch l := &k.layers; {
	case l.Proto != packet.ProtoTCP && l.Proto != packet.ProtoUDP,
		in == nil || in.kernel.Link == 0 || p.out == nil || p.out.kernel.Link == 0,
		e.Steps != 1 || !e.CT[0].Settled(l.Proto),
		c.Sig.Marked() && in.kernel.Stack == nil, f.Tunnel.Trace != 0,
		in.tunnel && (in.kernel.Tunnel == nil || p.out.tunnel || !f.Tunnel.Src.IsValid()),
		p.out.tunnel && (p.out.kernel.Tunnel == nil || p.tunnel.Options != ""),
		!in.tunnel && f.Tunnel != packet.Tunnel{}:
		return offload.Offer{}, false
	}
	o := offload.Offer{
		Key: c.Sig.OffloadKey(in.kernel.Link, b, f.Tunnel.Src), Seen: e.CT[0], Change: e.Change, Layers: k.layers,
		Path: p, In: &in.kernel, Out: &p.out.kernel,
		Tunnel: f.Tunnel, Marks: [2]uint32{f.Mark, p.mark}, Made: offload.State{Program: c.prog, Ports: c.ports, Learners: c.learners},
		Learned: p.learned,
	}
	if p.out.tunnel {
		o.Tunnel = p.tunnel
	}
	if o.Layers.EtherType == packet.EtherTypeIPv6 {
		o.Change.IP = o.Change.FirstIPv6(b)
	}
	return o, true
}

// offloadState is what walks depend on now.
func (s *Switch) offloadState() offload.State {
	return offload.State{Program: s.program.Load(), Ports: s.ports.Load(), Learners: s.learners.Load()}
}

// Offload returns what the kernel forwards by itself.
func (s *Switch) OffloadStats() telemetry.OffloadStats { return s.offload.Stats() }
