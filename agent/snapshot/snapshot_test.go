package snapshot

import (
	"reflect"
	"testing"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// TestSnapshotLongLines: what does not fit into a line of ovs-ofctl goes over
// several.
func TestSnapshotLongLines(t *testing.T) {
	g, e := &flow.Group{ID: 9, Type: flow.GroupSelect}, &flow.Entry{Table: 3, Priority: 7}
	for i := range uint32(5001) {
		g.Buckets = append(g.Buckets, flow.Bucket{ID: i, Weight: 100, Actions: []flow.Action{flow.Output{Port: 1 + i}}})
		e.Actions = append(e.Actions, flow.Conjunction{ID: 1 + i, Clause: 1, N: 2})
	}
	was := &Snapshot{Head: Head{Memory: &control.Memory{}}, Entries: []*flow.Entry{e}, Groups: []*flow.Group{g, {ID: 10}}}
	text, err := was.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s.Entries, was.Entries) || len(s.Groups) != 2 || !reflect.DeepEqual(s.Groups[0], g) {
		t.Errorf("%d entries and %d groups of %d actions and buckets", len(s.Entries), len(s.Groups), len(s.Entries[0].Actions)+len(s.Groups[0].Buckets))
	}
}

// TestSnapshotLoads: set_field takes no mask for nw_tos and nw_ttl, so an entry or a
// group that writes a part of them is kept as load.
func TestSnapshotLoads(t *testing.T) {
	e, err := parse.Entry("table=3,ip actions=load:5->NXM_OF_IP_TOS[2..7],output:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := parse.Group("group_id=1,type=all,bucket=actions=load:1->NXM_NX_IP_TTL[0],output:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &Snapshot{Head: Head{Memory: &control.Memory{}}, Entries: []*flow.Entry{e}, Groups: []*flow.Group{g}}
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Entries, s.Entries) || !reflect.DeepEqual(again.Groups, s.Groups) {
		t.Errorf("%v %v is kept as %v %v", s.Entries, s.Groups, again.Entries, again.Groups)
	}
}
