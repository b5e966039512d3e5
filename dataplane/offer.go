package dataplane

import (
	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/dataplane/offload"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
)

// defaultOffloadAfter is how many packets a cache entry must have replayed before it is offered
// to the kernel. A connection of few packets is not worth an offload entry.
const defaultOffloadAfter = 32

// mostOffers limits how often the number of packets until the next offer doubles.
const mostOffers = 8

// warmUp counts a replayed packet, and offers its entry if that is due.
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

// dueToOffer counts a packet, and says whether to offer its entry. That is after enough packets.
// Each unsuccessful offer doubles the number.
//
//  1. A coalesced frame counts as its segments, so a bulk stream is offered after one frame.
//  2. If the connection is already offloaded, the first packet is enough. The connection's cache
//     entries differ in TCP flags. Otherwise packets that the kernel forwards would overtake
//     those of the switch.
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

// offerOf makes an offer of an entry, for frames that begin as f. These have one flow label,
// because offload entries always compare it. ok is false for a path that no offload entry can
// replace:
//
//   - neither TCP nor UDP
//   - not between two kernel ports, or from a tunnel into a tunnel
//   - of no connection, or of several
//   - with Geneve options on output
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

// offloadState is the state that walks depend on now.
func (s *Switch) offloadState() offload.State {
	return offload.State{Program: s.program.Load(), Ports: s.ports.Load(), Learners: s.learners.Load()}
}

// OffloadStats counts the kernel's offload entries and packets.
func (s *Switch) OffloadStats() telemetry.OffloadStats { return s.offload.Stats() }
