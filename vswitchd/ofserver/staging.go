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
// those of the switch only when a request needs them. A request that adds an entry does not, and
// the usual bundle adds a hundred thousand.
type stage struct {
	sw     drivenSwitch
	seed   maphash.Seed
	slots  []*slot
	index  map[uint64][]*slot // by the hash of the identity
	loaded bool               // all entries of the switch have a slot
	groups *numbered[flow.Group]
	meters *numbered[flow.Meter]
	text   *door.BundleText // entries to add, in place of all the above; nil for none

	// watched is set if there are flow monitors, which get the changes in monitored. message and xid
	// are the number and the transaction of the message that is put on the stage.
	watched   bool
	monitored []flowChange
	message   int
	xid       uint32
}

// slot is the place of an entry: the old entry and the new one.
type slot struct {
	flow.Identity
	now     *flow.Entry // nil: none
	before  *flow.Entry // nil: none, or not known yet
	changed bool
	fresh   bool                   // counters begin at 0
	last    *telemetry.FlowStats   // of the old entry; nil if unknown
	why     openflow.RemovedReason // if it is removed
}

func newStage(sw drivenSwitch) *stage {
	return &stage{
		sw: sw, seed: maphash.MakeSeed(), index: map[uint64][]*slot{},
		groups: &numbered[flow.Group]{changed: map[uint32]bool{}}, meters: &numbered[flow.Meter]{changed: map[uint32]bool{}},
	}
}

// beginMessage begins the changes of a message, which flow monitors get together.
func (st *stage) beginMessage(message []byte) {
	st.message++
	st.xid = openflow.XID(message)
}

// recordChange records a change for flow monitors. old is nil if it is not known.
func (st *stage) recordChange(event openflow.FlowEvent, e, old *flow.Entry) {
	if st.watched {
		st.monitored = append(st.monitored, flowChange{FlowUpdate: openflow.FlowUpdate{Event: event, Entry: e}, old: old, own: true, xid: st.xid, message: st.message})
	}
}

// slot finds or makes the place of an entry.
func (st *stage) slot(e *flow.Entry) *slot {
	h := maphash.Comparable(st.seed, e.Match) ^ uint64(e.Priority)<<8 ^ uint64(e.Table)
	for _, p := range st.index[h] {
		if p.Identity == e.Identity() {
			return p
		}
	}
	p := &slot{Identity: e.Identity()}
	st.slots = append(st.slots, p)
	st.index[h] = append(st.index[h], p)
	return p
}

// loadFlows gives each entry of the switch a slot.
func (st *stage) loadFlows() error {
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

// putEntry adds an entry, in place of one with its identity. If fresh is set, its counters begin at
// 0.
func (st *stage) putEntry(e *flow.Entry, fresh bool) {
	p := st.slot(e)
	deleted := p.changed && p.now == nil
	p.now, p.changed, p.fresh = e, true, p.fresh || fresh || deleted
}

// removeEntry removes the entry of a slot.
func (st *stage) removeEntry(p *slot, why openflow.RemovedReason) {
	if st.watched {
		st.recordChange(openflow.EventRemoved, p.now, nil)
		last := &st.monitored[len(st.monitored)-1]
		last.Reason, last.own = why, why == openflow.RemovedDelete
	}
	p.now, p.changed, p.why = nil, true, why
}

// removed are the removed entries with send_flow_rem. Their counters are those at the time of the
// request.
func (st *stage) removed() (all []*openflow.FlowRemoved) {
	for _, p := range st.slots {
		if p.changed && p.now == nil && p.last != nil && p.before.SendFlowRem {
			all = append(all, &openflow.FlowRemoved{FlowStats: flowStats(p.last), Reason: p.why})
		}
	}
	return all
}

// bundle is the difference from the switch's entries, groups and meters to those of the stage.
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

// apply applies the stage to the switch, whole or not at all.
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

// numbered has groups or meters by their number.
type numbered[T any] struct {
	now     map[uint32]*T // nil before they are listed
	changed map[uint32]bool
	order   []uint32 // of the changed ones
	before  map[uint32]bool
}

// fill stores the groups or meters of the switch.
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

// remove removes the value of a number, or all if id is all. It returns the removed numbers.
func (n *numbered[T]) remove(id, all uint32) map[uint32]bool {
	gone := map[uint32]bool{}
	for k := range n.now {
		if k == id || id == all {
			gone[k] = true
		}
	}
	for k := range gone {
		n.set(k, nil)
	}
	return gone
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
