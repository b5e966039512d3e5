package offload

import (
	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// An offload entry may lead into the Node's stack or a tunnel, or begin in a tunnel. The tunnel's
// port is asked under the table's lock, when the entry is made. If its answer changes, the switch
// withdraws all entries afterwards (ports.OffloadTunnel). So no entry outlives the answer that it
// was made with.

// way is the way on which the packets of an offer leave, or the outer headers that they must
// have. ok is false if the tunnel's port has to carry the packets itself.
func (o *Offer) way() (way ports.OffloadWay, ok bool) {
	if o.Out.Tunnel != nil {
		return o.Out.Tunnel.OffloadWay(o.after(), &o.Tunnel)
	}
	ok = true
	if o.In.Tunnel != nil {
		way, ok = o.In.Tunnel.OffloadFrom(flowcache.FrameOfKey(&o.Key), &o.Tunnel)
	}
	way.Link, way.MaxFrame = o.Out.Link, ports.MaxFrame(o.Out.MTU)
	return way, ok
}

// after is the headers of the packets as the walk leaves them.
func (o *Offer) after() []byte {
	f := packet.FrameOf(flowcache.FrameOfKey(&o.Key))
	l := packet.ParseLayers(f.Bytes())
	o.Change.Apply(f, &l)
	return f.Bytes()
}

// complete adds the parts of an offload entry that depend on its ends.
//
//  1. If outer headers are added, they include both inner Ethernet addresses.
//  2. If outer headers are removed, both addresses are always written, because the outer ones are
//     in their place.
//  3. If packets enter or leave the Node's stack, the source address shows their mark. The walk
//     saw another source address.
func (o *Offer) complete(to *ports.OffloadEntry, way *ports.OffloadWay) {
	to.Parts |= way.Parts
	to.Hop, to.Outer = way.Hop, way.Outer
	if o.In.Tunnel != nil || o.shown() != o.Key {
		o.writeEth(to)
	}
	switch {
	case o.Out.Tunnel != nil:
		to.Parts &^= ports.OffloadEth
	case o.Out.Stack != nil:
		o.showMark(to)
		to.Parts |= ports.OffloadInto
	}
}

// writeEth makes an offload entry write both Ethernet addresses, changed or not.
func (o *Offer) writeEth(to *ports.OffloadEntry) {
	if to.Parts&ports.OffloadEth == 0 {
		copy(to.Eth[:], flowcache.FrameOfKey(&o.Key))
	}
	to.Parts |= ports.OffloadEth
}

// shown is the key that the kernel compares. Packets of the Node's stack show their mark in it.
func (o *Offer) shown() ports.OffloadKey {
	if o.In.Stack == nil {
		return o.Key
	}
	source := [6]byte(flowcache.FrameOfKey(&o.Key)[6:])
	return flowcache.ShowSource(o.Key, o.In.Stack.OffloadSource(source, o.Marks[0]))
}

// showMark writes the mark of the packets into their source address, as the port does.
func (o *Offer) showMark(to *ports.OffloadEntry) {
	src := [6]byte(o.after()[6:])
	if shown := o.Out.Stack.OffloadSource(src, o.Marks[1]); shown != src {
		o.writeEth(to)
		copy(to.Eth[6:], shown[:])
	}
}
