package ofserver

import (
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// groupMod puts a change of groups on the stage.
func (st *stage) groupMod(m *openflow.GroupMod) error {
	groups, err := st.loadGroups()
	if err != nil {
		return err
	}
	g := m.Group
	old := groups[g.ID]
	switch {
	case m.Command == openflow.GroupAdd && old != nil:
		return openflow.Fail(openflow.GroupExists, "group %d is there already", g.ID)
	case m.Command == openflow.GroupDelete:
		return st.deleteGroups(g.ID)
	case m.Command != openflow.GroupAdd && m.Command != openflow.GroupAddOrModify && old == nil:
		return openflow.Fail(openflow.UnknownGroup, "there is no group %d", g.ID)
	case m.Command == openflow.GroupInsertBucket || m.Command == openflow.GroupRemoveBucket:
		if g, err = editBuckets(old, m); err != nil {
			return err
		}
	}
	for i := range g.Buckets {
		if err := st.checkBucketReferences(&g, g.Buckets[i].Actions); err != nil {
			return err
		}
	}
	if err := g.Check(); err != nil {
		return openflow.Fail(openflow.BadBucket, "group %d: %v", g.ID, err)
	}
	st.groups.set(g.ID, &g)
	return nil
}

// checkBucketReferences is checkReferences for a bucket, which may not send to its own group.
func (st *stage) checkBucketReferences(g *flow.Group, actions []flow.Action) error {
	if anyAction(actions, func(a flow.Action) bool { return a == flow.Action(flow.GroupAction{ID: g.ID}) }) {
		return openflow.Fail(openflow.BadOutGroup, "group %d sends to itself", g.ID)
	}
	return st.checkReferences(actions)
}

// editBuckets inserts buckets into a group, or removes some.
func editBuckets(old *flow.Group, m *openflow.GroupMod) (flow.Group, error) {
	g := flow.Group{ID: old.ID, Type: old.Type, Buckets: slices.Clone(old.Buckets)}
	at := slices.IndexFunc(g.Buckets, func(b flow.Bucket) bool { return b.ID == m.Bucket })
	first, last := 0, len(g.Buckets)
	if m.Command == openflow.GroupRemoveBucket {
		switch {
		case m.Bucket == openflow.BucketAll:
			g.Buckets = nil
			return g, nil
		case m.Bucket == openflow.BucketFirst && last > 0:
			at = first
		case m.Bucket == openflow.BucketLast && last > 0:
			at = last - 1
		case at < 0:
			return g, openflow.Fail(openflow.UnknownBucket, "group %d has no bucket %d", g.ID, m.Bucket)
		}
		g.Buckets = slices.Delete(g.Buckets, at, at+1)
		return g, nil
	}
	switch {
	case m.Bucket == openflow.BucketFirst:
		at = first
	case m.Bucket == openflow.BucketLast:
		at = last
	case at < 0:
		return g, openflow.Fail(openflow.UnknownBucket, "group %d has no bucket %d", g.ID, m.Bucket)
	default:
		at++ // behind the bucket
	}
	for _, b := range m.Group.Buckets {
		if slices.ContainsFunc(g.Buckets, func(have flow.Bucket) bool { return have.ID == b.ID }) {
			return g, openflow.Fail(openflow.BucketExists, "group %d has a bucket %d already", g.ID, b.ID)
		}
		if g.Type != flow.GroupSelect {
			b.Weight = 0
		}
		g.Buckets = slices.Insert(g.Buckets, at, b)
		at++
	}
	return g, nil
}

// deleteGroups removes a group, or all, with the entries that send to it. A missing group is not
// an error.
func (st *stage) deleteGroups(id uint32) error {
	gone := st.groups.remove(id, openflow.AllGroups)
	if len(gone) == 0 {
		return nil
	}
	return st.deleteFlowsWith(openflow.RemovedGroupDelete, func(a flow.Action) bool {
		to, ok := a.(flow.GroupAction)
		return ok && gone[to.ID]
	})
}

// deleteFlowsWith removes the entries with a wanted action.
func (st *stage) deleteFlowsWith(why openflow.RemovedReason, wanted func(flow.Action) bool) error {
	if err := st.loadFlows(); err != nil {
		return err
	}
	for _, p := range st.slots {
		if p.now != nil && anyAction(p.now.Actions, wanted) {
			st.removeEntry(p, why)
		}
	}
	return nil
}

// meterMod puts a change of meters on the stage.
func (st *stage) meterMod(m *openflow.MeterMod) error {
	meters, err := st.loadMeters()
	if err != nil {
		return err
	}
	id := m.Meter.ID
	switch {
	case m.Command == openflow.MeterDelete:
		return st.deleteMeters(id)
	case m.Command == openflow.MeterAdd && meters[id] != nil:
		return openflow.Fail(openflow.MeterExists, "meter %d is there already", id)
	case m.Command == openflow.MeterModify && meters[id] == nil:
		return openflow.Fail(openflow.UnknownMeter, "there is no meter %d", id)
	}
	st.meters.set(id, &m.Meter)
	return nil
}

// deleteMeters removes a meter, or all, with the entries that use it.
func (st *stage) deleteMeters(id uint32) error {
	gone := st.meters.remove(id, openflow.AllMeters)
	if len(gone) == 0 {
		return nil
	}
	return st.deleteFlowsWith(openflow.RemovedMeterDelete, func(a flow.Action) bool {
		switch a := a.(type) {
		case flow.MeterAction:
			return gone[a.ID]
		case flow.Controller:
			return a.MeterID != 0 && gone[a.MeterID]
		}
		return false
	})
}
