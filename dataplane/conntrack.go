package dataplane

import (
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// track runs a ct() action; after are the actions behind it in its list. It returns the table to
// jump to, as goto_table does, or -1.
func (k *walk) track(a *program.Track, after []flow.Action) int {
	k.releaseHeld()
	if k.collects() {
		k.collect(a, after)
		return -1
	}
	k.ready(a)
	if k.ct.State == 0 && k.w.cache != nil {
		k.w.cache.warming.Zone = k.request.Zone
	}
	return k.answered(a, k.askConntrack(&k.request), len(after) > 0)
}

// answered continues the walk with conntrack's verdict. If the action names a table, the packet
// continues there with its ct_state, mark and label. Later actions of the same list see an
// untracked packet, though its bytes keep the translation, as in Open vSwitch.
//
// If nothing follows the action, here or in an enclosing list, answered returns the table to jump
// to. Otherwise the packet goes there on a copy, and answered returns -1.
func (k *walk) answered(a *program.Track, v conntrack.Verdict, more bool) int {
	switch {
	case v.Drop != conntrack.DropNone:
		k.drop(telemetry.ConntrackDrops[v.Drop])
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

// putTracked writes conntrack's state, and the addresses that it translated, to the key.
func (k *walk) putTracked(v conntrack.Verdict) {
	if v.Rewritten {
		flow.Readdress(k.frame, &k.layers, &k.key)
	}
	program.PutMeta(&k.key, &k.ct, &k.original)
}

// askConntrack gets the verdict of conntrack, or of the trace in its place.
func (k *walk) askConntrack(req *conntrack.Request) conntrack.Verdict {
	if k.dry() {
		return k.trace.answerCT(k, req)
	}
	v := k.w.sw.conntrack.Track(k.frame, &k.layers, &k.ct, req, k.w.now)
	k.noteAnswer(req, v)
	return v
}

// ready fills in the request of a ct() action with the packet's own values.
func (k *walk) ready(a *program.Track) {
	r := &k.request
	*r = a.Request
	r.InPort, r.Near = k.inPort, k.near
	if a.ZoneSrc != nil {
		r.Zone = uint16(a.ZoneSrc.Get(&k.key).Lo)
	}
	for _, x := range a.Moves {
		if m, ok := x.(*program.MoveToMark); ok {
			m.Write(r, &k.key)
		} else {
			program.AddExec(r, x, &k.key)
		}
	}
}

// clearKey makes the packet look untracked to the entries. The walk still knows its connection.
func (k *walk) clearKey() { k.key.SetConntrack(&flow.Conntrack{}) }

// clearConntrack is ct_clear: the walk forgets the packet's connection too.
func (k *walk) clearConntrack() {
	k.ct = conntrack.Meta{}
	k.clearKey()
}
