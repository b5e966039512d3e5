package offload

import (
	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// An offload entry may lead into a tunnel or begin in one. The tunnel's port is asked under
// the table's lock, when the entry is made. After it says another thing, it has the switch
// withdraw all entries (ports.OffloadTunnel). So no entry outlives what it was made by.

// way is how the packets of an offer leave, or what outer headers they must show. It is false
// if a tunnel's port has to carry them itself.
func (o *Offer) way() (way ports.OffloadWay, ok bool) {
	if o.Out.Tunnel != nil {
		return o.Out.Tunnel.OffloadWay(o.after(), &o.Tunnel)
	}
	way.Link, way.MaxFrame, ok = o.Out.Link, ports.MaxFrame(o.Out.MTU), true
	if o.In.Tunnel != nil {
		way.Hop, ok = o.In.Tunnel.OffloadFrom(flowcache.FrameOfKey(&o.Key), &o.Tunnel)
	}
	return way, ok
}

// after is the headers of the packets as the walk leaves them.
func (o *Offer) after() []byte {
	head := flowcache.FrameOfKey(&o.Key)
	f := packet.NewFrame(make([]byte, packet.Headroom+len(head)), nil)
	f.SetBytes(head)
	l := packet.ParseLayers(f.Bytes())
	o.Change.Apply(f, &l)
	return f.Bytes()
}

// tunnel completes an offload entry with what its tunnel takes. The inner Ethernet addresses
// are part of the outer headers that are written. Where those are taken off, both addresses
// are written in any case, because the outer ones are in their place.
func (o *Offer) tunnel(to *ports.OffloadEntry, way *ports.OffloadWay) {
	to.Hop, to.Outer = way.Hop, way.Outer
	switch {
	case o.Out.Tunnel != nil:
		to.Parts = to.Parts&^ports.OffloadEth | ports.OffloadWrap
		if way.GRE {
			to.Parts |= ports.OffloadGRE
		}
	case o.In.Tunnel != nil:
		if to.Parts&ports.OffloadEth == 0 {
			copy(to.Eth[:], flowcache.FrameOfKey(&o.Key))
		}
		to.Parts |= ports.OffloadEth | ports.OffloadUnwrap
	}
}
