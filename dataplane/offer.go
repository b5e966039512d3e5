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

// warmUp counts a packet that was replayed, and offers its entry when it is
// time, and, if that was in vain, after twice as many.
func (k *walk) warmUp(e *flowcache.Entry, p *path, f *packet.Frame, inPort uint32) {
	t := k.w.sw.offload
	if t == nil {
		return
	}
	if e.SinceOffer++; e.SinceOffer < k.w.sw.offloadAfter<<e.Offers {
		return
	}
	e.SinceOffer, e.Offers = 0, min(e.Offers+1, mostOffers)
	if o, ok := k.offerOf(e, p, f, inPort); ok {
		t.Offer(o)
	}
}

// offerOf is an entry as an offer, for frames that begin as f: those of one flow label,
// which offload entries tell apart always. It is not ok for a path that no offload entry
// can replace. Such a path is neither TCP nor UDP, or not between two ports of the kernel's,
// or from one tunnel into another. Or it is of no or several connections, or depends on
// learned entries.
func (k *walk) offerOf(e *flowcache.Entry, p *path, f *packet.Frame, inPort uint32) (offload.Offer, bool) {
	c, b := k.w.cache, f.Bytes()
	in := c.ports.byNumber[inPort]
	switch l := &k.layers; {
	case l.Proto != packet.ProtoTCP && l.Proto != packet.ProtoUDP,
		in == nil || in.kernel.Link == 0 || p.out == nil || p.out.kernel.Link == 0,
		e.Steps != 1 || !e.CT[0].Settled(),
		p.learned != 0,
		c.Sig.Marked() && in.kernel.Stack == nil, f.Tunnel.Trace != 0,
		in.tunnel && (in.kernel.Tunnel == nil || p.out.tunnel || !f.Tunnel.Src.IsValid()),
		p.out.tunnel && p.out.kernel.Tunnel == nil,
		!in.tunnel && f.Tunnel != packet.Tunnel{}:
		return offload.Offer{}, false
	}
	o := offload.Offer{
		Key: c.Sig.OffloadKey(in.kernel.Link, b, f.Tunnel.Src), Seen: e.CT[0], Change: e.Change, Layers: k.layers,
		Path: p, In: &in.kernel, Out: &p.out.kernel,
		Tunnel: f.Tunnel, Marks: [2]uint32{f.Mark, p.mark}, Made: offload.State{Program: c.prog, Ports: c.ports, Learners: c.learners},
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
