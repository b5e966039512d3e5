package ofserver

import (
	"errors"
	"hash/maphash"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// stage has the switch's entries, groups and meters as they will be after some requests. It lists
// those of the switch only when a request needs them. Added entries need none, and a hundred
// thousand of them are the usual bundle.
type stage struct {
	sw     driven
	seed   maphash.Seed
	slots  []*slot
	index  map[uint64][]*slot // by the hash of the identity
	loaded bool               // all entries of the switch have a slot
	groups *numbered[flow.Group]
	meters *numbered[flow.Meter]
	text   *door.BundleText // entries to add, in place of all the above; nil for none

	// watched says that flow monitors get the changes in told. message and xid are those
	// of the flow mod that is put on the stage.
	watched bool
	told    []flowChange
	message int
	xid     uint32
}

// slot is the place of an entry: the old entry and the new one.
type slot struct {
	table    uint8
	priority uint16
	match    flow.Minimatch
	now      *flow.Entry // nil: nothing
	before   *flow.Entry // nil: nothing, or not known yet
	changed  bool
	fresh    bool                   // counters begin at 0
	last     *telemetry.FlowStats   // of the old entry; nil if unknown
	why      openflow.RemovedReason // if it is removed
}

func newStage(sw driven) *stage {
	return &stage{
		sw: sw, seed: maphash.MakeSeed(), index: map[uint64][]*slot{},
		groups: &numbered[flow.Group]{changed: map[uint32]bool{}}, meters: &numbered[flow.Meter]{changed: map[uint32]bool{}},
	}
}

// begin says which message is put on the stage. Flow monitors get its changes together.
func (st *stage) begin(message []byte) {
	st.message++
	st.xid = openflow.XID(message)
}

// tell keeps a change for flow monitors. old is nil if it is not known.
func (st *stage) tell(event openflow.FlowEvent, e, old *flow.Entry) {
	if st.watched {
		st.told = append(st.told, flowChange{FlowUpdate: openflow.FlowUpdate{Event: event, Entry: e}, old: old, own: true, xid: st.xid, message: st.message})
	}
}

// slot finds or makes the place of an entry.
func (st *stage) slot(e *flow.Entry) *slot {
	h := maphash.Comparable(st.seed, e.Match) ^ uint64(e.Priority)<<8 ^ uint64(e.Table)
	for _, p := range st.index[h] {
		if p.table == e.Table && p.priority == e.Priority && p.match == e.Match {
			return p
		}
	}
	p := &slot{table: e.Table, priority: e.Priority, match: e.Match}
	st.slots = append(st.slots, p)
	st.index[h] = append(st.index[h], p)
	return p
}

// load gives each entry of the switch a slot.
func (st *stage) load() error {
	if st.loaded {
		return nil
	}
	all, err := listed(st.sw, st.sw.Flows)
	if err != nil {
		return err
	}
	for i := range all {
		p := st.slot(all[i].Entry)
		p.before, p.last = all[i].Entry, &all[i]
		if !p.changed {
			p.now = p.before
		}
	}
	st.loaded = true
	return nil
}

// put installs an entry, in the place of one with its identity.
func (st *stage) put(e *flow.Entry, fresh bool) {
	p := st.slot(e)
	deleted := p.changed && p.now == nil
	p.now, p.changed, p.fresh = e, true, p.fresh || fresh || deleted
}

// remove removes the entry of a slot.
func (st *stage) remove(p *slot, why openflow.RemovedReason) {
	if st.watched {
		st.tell(openflow.EventRemoved, p.now, nil)
		last := &st.told[len(st.told)-1]
		last.Reason, last.own = why, why == openflow.RemovedDelete
	}
	p.now, p.changed, p.why = nil, true, why
}

// removed are the entries that the stage removes and that controllers must learn of. Their
// counters are those at the time of the request.
func (st *stage) removed() (all []*openflow.FlowRemoved) {
	for _, p := range st.slots {
		if p.changed && p.now == nil && p.last != nil && p.before.SendFlowRem {
			all = append(all, &openflow.FlowRemoved{FlowStats: flowStats(p.last), Reason: p.why})
		}
	}
	return all
}

// bundle is what leads from the switch's entries to those of the stage.
func (st *stage) bundle() *flow.Bundle {
	b := &flow.Bundle{}
	for _, p := range st.slots {
		switch {
		case !p.changed:
		case p.now == nil && p.before != nil:
			b.Delete = append(b.Delete, p.before)
		case p.now != nil:
			b.Add = append(b.Add, p.now)
			if p.fresh {
				b.Delete = append(b.Delete, p.now)
			}
		}
	}
	b.Groups, b.DeleteGroups = st.groups.difference()
	b.Meters, b.DeleteMeters = st.meters.difference()
	return b
}

// apply makes the switch what the stage is, whole or not at all.
func (st *stage) apply() error {
	var err error
	if b := st.bundle(); !b.Empty() {
		err = st.sw.Apply(b)
	} else if st.text != nil && st.text.Size() > 0 {
		err = st.sw.ApplyText(st.text)
	}
	if wrong, ok := errors.AsType[*openflow.Error](err); ok {
		return wrong
	}
	if err != nil {
		return openflow.Fail(openflow.FlowModUnknown, "the switch refuses the change: %v", err)
	}
	return nil
}

// numbered is groups or meters by their number.
type numbered[T any] struct {
	now     map[uint32]*T // nil before they are listed
	changed map[uint32]bool
	order   []uint32 // of the changed ones
	before  map[uint32]bool
}

// fill takes what the switch has.
func (n *numbered[T]) fill(all []*T, id func(*T) uint32) {
	n.now, n.before = map[uint32]*T{}, map[uint32]bool{}
	for _, x := range all {
		n.now[id(x)], n.before[id(x)] = x, true
	}
}

// set puts x at a number; nil removes the old value.
func (n *numbered[T]) set(id uint32, x *T) {
	if !n.changed[id] {
		n.changed[id] = true
		n.order = append(n.order, id)
	}
	if x == nil {
		delete(n.now, id)
		return
	}
	n.now[id] = x
}

func (n *numbered[T]) difference() (add []*T, del []uint32) {
	for _, id := range n.order {
		if x := n.now[id]; x != nil {
			add = append(add, x)
		} else if n.before[id] {
			del = append(del, id)
		}
	}
	return add, del
}

// loadGroups lists the groups of the switch.
func (st *stage) loadGroups() (map[uint32]*flow.Group, error) {
	if st.groups.now == nil {
		all, err := listed(st.sw, st.sw.Groups)
		if err != nil {
			return nil, err
		}
		st.groups.fill(valuesOf(all, func(g *telemetry.GroupStats) *flow.Group { return g.Group }), func(g *flow.Group) uint32 { return g.ID })
	}
	return st.groups.now, nil
}

// loadMeters lists the meters of the switch.
func (st *stage) loadMeters() (map[uint32]*flow.Meter, error) {
	if st.meters.now == nil {
		all, err := listed(st.sw, st.sw.Meters)
		if err != nil {
			return nil, err
		}
		st.meters.fill(valuesOf(all, func(m *telemetry.MeterStats) *flow.Meter { return m.Meter }), func(m *flow.Meter) uint32 { return m.ID })
	}
	return st.meters.now, nil
}

func valuesOf[T, V any](all []T, value func(*T) V) (values []V) {
	for i := range all {
		values = append(values, value(&all[i]))
	}
	return values
}
