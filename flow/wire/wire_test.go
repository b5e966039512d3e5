package wire_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/wire"
	"github.com/antrail/antrail/internal/wiretest"
)

// newFiller fills entries and groups with matches and actions that have a text.
func newFiller(t testing.TB, seed uint64) *wiretest.Filler {
	f := wiretest.New(t, seed)
	f.How[reflect.TypeFor[flow.Minimatch]()] = func() any { return flow.Minimatch{} } // the entry gets one below
	f.How[reflect.TypeFor[flow.GroupType]()] = func() any { return []flow.GroupType{flow.GroupAll, flow.GroupSelect}[f.IntN(2)] }
	f.How[reflect.TypeFor[[]flow.Action]()] = func() any { return fillActions(f) }
	f.After[reflect.TypeFor[flow.Entry]()] = func(p any) {
		e := p.(*flow.Entry)
		e.Table = uint8(f.IntN(flow.NoTable))
		// A dump's text has no field without its prerequisites.
		var m flow.Match
		m.Add(flow.Reg0+flow.FieldID(f.IntN(16)), flow.Value{Lo: 5}, flow.Value{Lo: 7})
		e.Match = m.Mini()
	}
	f.After[reflect.TypeFor[flow.Group]()] = func(p any) {
		g := p.(*flow.Group)
		g.ID = uint32(f.IntN(0xffffff00))
		if len(g.Buckets) == 0 {
			g.Buckets = nil
		}
		for i := range g.Buckets {
			b := &g.Buckets[i]
			b.ID, b.WatchPort = uint32(2*i), b.WatchPort%flow.MaxPort
			if g.Type != flow.GroupSelect {
				b.Weight = 0
			}
		}
	}
	return f
}

// fillActions is nil, a few actions, or many conjunctions.
func fillActions(f *wiretest.Filler) (all []flow.Action) {
	if f.Chance(20) {
		for i := range 90 + f.IntN(300) {
			all = append(all, flow.Conjunction{ID: uint32(i + 1), Clause: 1, N: 2})
		}
		return all
	}
	for range f.IntN(4) {
		a := []flow.Action{flow.Output{Port: 7}, flow.CTClear{}, flow.Load{Dst: flow.Subfield{Field: flow.Reg0, Ofs: 4, N: 4}, Value: flow.Value{Lo: 9}}, flow.Normal{}, flow.GroupAction{ID: 5},
			flow.SetField{Field: flow.Reg0, Value: flow.Value{Lo: 0x10}, Mask: flow.Value{Lo: 0xf0}}, flow.Resubmit{InPort: flow.PortInPort, Table: 9, CT: false},
			flow.Move{Src: flow.Subfield{Field: flow.Reg0, Ofs: 0, N: 4}, Dst: flow.Subfield{Field: flow.Reg0 + 1, Ofs: 4, N: 4}}}
		all = append(all, a[f.IntN(len(a))])
	}
	return all
}

// TestValuesCross: every entry and group arrives as it was sent.
func TestValuesCross(t *testing.T) {
	f := newFiller(t, 11)
	for range 300 {
		wiretest.Same(t, wiretest.Value[wire.Entry](f))
		wiretest.Same(t, wiretest.Value[wire.Group](f))
		wiretest.Same(t, wiretest.Value[[]wire.Group](f))
	}
}

// TestLongLines: an entry or group too long for a line crosses as several.
func TestLongLines(t *testing.T) {
	e := &flow.Entry{Table: 3, Priority: 7, Cookie: 9}
	g := &flow.Group{ID: 1, Type: flow.GroupSelect}
	for i := range 5000 {
		e.Actions = append(e.Actions, flow.Conjunction{ID: uint32(1<<31 + i), Clause: 2, N: 3})
		g.Buckets = append(g.Buckets, flow.Bucket{ID: uint32(i), Weight: 1, Actions: []flow.Action{flow.SetField{Field: flow.Reg0, Value: flow.Value{Lo: 1}, Mask: flow.Ones(32)}, flow.Resubmit{InPort: flow.PortInPort, Table: 9, CT: false}}})
	}
	if len(e.Text(flow.Format{})) <= 65535 || len(g.Text(nil)) <= 65535 {
		t.Fatal("they fit in a line")
	}
	wiretest.Same(t, wire.Entry{e})
	wiretest.Same(t, wire.Group{g})
}

// TestWrongJSON: unreadable JSON is refused, and the error names the place.
func TestWrongJSON(t *testing.T) {
	for _, x := range []struct {
		into       any
		text, want string
	}{
		{new(wire.Entry), `"table=4,tcpp actions=drop"`, `entry: column 9: unknown field "tcpp"`},
		{new(wire.Entry), `["table=4 actions=conjunction(1,1/2)","table=5 actions=conjunction(2,1/2)"]`, "entry, line 2:"},
		{new(wire.Entry), `["table=4 actions=conjunction(1,1/2)","table=4,cookie=1 actions=conjunction(2,1/2)"]`, "entry, line 2:"},
		{new(wire.Entry), `["table=4 actions=conjunction(1,1/2)","table=4 actions=output:1"]`, "entry, line 2:"},
		{new(wire.Entry), `[]`, "entry: expected a text or a list of texts"},
		{new(wire.Entry), `{"table":4}`, "entry: expected a text or a list of texts"},
		{new(wire.Group), `"group_id=1,type=salect"`, "group: column 17:"},
		{new(wire.Group), `["group_id=1,type=all,bucket=drop","group_id=2,type=all,bucket=drop"]`, "group, line 2:"},
		{new(wire.Group), `["group_id=1,type=all,bucket=bucket_id:0,drop","group_id=1,type=all,bucket=bucket_id:0,drop"]`, "group 1:"},
		{new(wire.Action), `"output:1,output:2"`, "expected one action, not 2"},
		{new(wire.Action), `"drop"`, "expected one action, not 0"},
		{new(wire.Action), `"outptu:1"`, `action "outptu:1": column 1:`},
	} {
		before := fmt.Sprintf("%+v", x.into)
		err := json.Unmarshal([]byte(x.text), x.into)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v; expected %s", x.text, err, x.want)
		}
		if after := fmt.Sprintf("%+v", x.into); after != before {
			t.Errorf("%s was refused and left %s", x.text, after)
		}
	}
}

// FuzzUnmarshalEntry: no text makes the decoder panic, and an accepted value
// prints as text that reads the same.
func FuzzUnmarshalEntry(f *testing.F) {
	f.Add([]byte(`"table=4,priority=7,ip,nw_src=10.0.0.0/8 actions=load:1->NXM_NX_REG0[0],output:1"`))
	f.Add([]byte(`["table=4 actions=conjunction(1,1/2)","table=4 actions=conjunction(2,1/2)"]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var e wire.Entry
		if json.Unmarshal(text, &e) != nil || e.Entry == nil {
			return
		}
		if got := wiretest.Cross(t, e); got.Text(flow.Format{}) != e.Text(flow.Format{}) {
			t.Fatalf("%s arrives as %s", e, got)
		}
	})
}

// FuzzUnmarshalGroup: likewise.
func FuzzUnmarshalGroup(f *testing.F) {
	f.Add([]byte(`"group_id=1,type=select,bucket=bucket_id:3,weight:2,actions=output:1"`))
	f.Add([]byte(`["group_id=1,type=all,bucket=bucket_id:0,actions=drop","group_id=1,type=all,bucket=bucket_id:1,actions=drop"]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var g wire.Group
		if json.Unmarshal(text, &g) != nil || g.Group == nil {
			return
		}
		if got := wiretest.Cross(t, g); got.Text(nil) != g.Text(nil) {
			t.Fatalf("%s arrives as %s", g, got)
		}
	})
}

// FuzzUnmarshalAction: likewise.
func FuzzUnmarshalAction(f *testing.F) {
	f.Add("learn(table=1,NXM_OF_VLAN_TCI[0..11],load:1->NXM_NX_REG0[])")
	f.Fuzz(func(t *testing.T, text string) {
		var a wire.Action
		if a.UnmarshalText([]byte(text)) != nil {
			return
		}
		sent := flow.ActionsText([]flow.Action{a.Action}, flow.Format{})
		if got := flow.ActionsText([]flow.Action{wiretest.Cross(t, a).Action}, flow.Format{}); got != sent {
			t.Fatalf("%s arrives as %s", sent, got)
		}
	})
}
