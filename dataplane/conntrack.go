package dataplane

import (
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
)

// track runs a ct() action, behind which come those of after in its list. It
// returns the table to jump to, as goto_table does, or -1.
func (k *walk) track(a *track, after []flow.Action) int {
	k.releaseHeld()
	if k.collects() {
		k.collect(a, after)
		return -1
	}
	k.ready(a)
	if k.ct.State == 0 && k.w.cache != nil {
		k.w.cache.warming.zone = k.request.Zone
	}
	return k.answered(a, k.ask(&k.request), len(after) > 0)
}

// answered goes on as conntrack's verdict says. With a table the packet
// continues there with its ct_state, mark and label; what follows in the same
// list sees an untracked packet, though its bytes keep the translation, as in
// Open vSwitch.
//
// When nothing follows the action, here or in an enclosing list, the table is
// returned to be jumped to; else the packet goes there on a copy, and -1 is
// returned.
func (k *walk) answered(a *track, v conntrack.Verdict, more bool) int {
	switch {
	case v.Drop != conntrack.DropNone:
		k.drop(conntrackDrops[v.Drop])
		k.stopped = true
		return -1
	case a.Table == flow.NoTable:
		k.clearKey()
		return -1
	case !more && len(k.rests) == 0:
		k.putTracked(v)
		return int(a.Table)
	}
	k.branch(more, func() {
		k.putTracked(v)
		k.walkTable(a.Table)
	})
	k.clearKey()
	return -1
}

// putTracked shows the key what conntrack said and did.
func (k *walk) putTracked(v conntrack.Verdict) {
	if v.Rewritten {
		flow.Readdress(k.frame, &k.layers, &k.key)
	}
	k.putConntrack()
}

// ask lets conntrack, or the trace in its place, answer.
func (k *walk) ask(req *conntrack.Request) conntrack.Verdict {
	if k.dry() {
		return k.trace.ask(k, req)
	}
	v := k.w.sw.conntrack.Track(k.frame, &k.layers, &k.ct, req, k.w.now)
	k.w.rec.answer(k.frame, &k.ct, req, v)
	if k.trace != nil {
		k.trace.answered(k, req)
	}
	return v
}

// ready fills in the request of a ct() action with what is the packet's own.
func (k *walk) ready(a *track) {
	r := &k.request
	*r = a.request
	r.InPort, r.Near = k.inPort, k.near
	if a.ZoneSrc != nil {
		r.Zone = uint16(a.ZoneSrc.Get(&k.key).Lo)
	}
	for _, x := range a.moves {
		if m, ok := x.(*moveToMark); ok {
			m.write(r, &k.key)
		} else {
			writes(r, x, &k.key)
		}
	}
}

// putConntrack shows the key what conntrack said.
func (k *walk) putConntrack() {
	m, o := &k.ct, &k.original
	m.Original(o)
	var c flow.Conntrack // filled in place: a literal is made elsewhere and copied
	c.State, c.Zone, c.Mark = uint32(m.State), m.Zone, m.Mark
	c.Label.Hi, c.Label.Lo = m.Label.Hi, m.Label.Lo
	c.IPv6, c.Proto, c.SrcPort, c.DstPort = o.IPv6, o.Proto, o.SrcPort, o.DstPort
	c.Src.Hi, c.Src.Lo, c.Dst.Hi, c.Dst.Lo = o.Src.Hi, o.Src.Lo, o.Dst.Hi, o.Dst.Lo
	k.key.SetConntrack(&c)
}

// clearKey makes the packet look untracked to the entries, while the datapath
// still knows its connection.
func (k *walk) clearKey() { k.key.SetConntrack(&flow.Conntrack{}) }

// clearConntrack is ct_clear: the packet's connection is forgotten too.
func (k *walk) clearConntrack() {
	k.ct = conntrack.Meta{}
	k.clearKey()
}

// natRequest is nat() in conntrack's terms.
func natRequest(n *flow.NAT) conntrack.NAT {
	return conntrack.NAT{
		Source:      n.Type == flow.NATSource,
		Destination: n.Type == flow.NATDestination,
		AddrMin:     n.AddrMin, AddrMax: n.AddrMax,
		PortMin: n.PortMin, PortMax: n.PortMax,
	}
}
