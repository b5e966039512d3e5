package flow

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/wiretest"
)

// newFiller fills entries and groups with matches and actions that text can say.
func newFiller(t testing.TB, seed uint64) *wiretest.Filler {
	f := wiretest.New(t, seed)
	f.How[reflect.TypeFor[Key]()] = func() any { return fillKey(f) }
	f.How[reflect.TypeFor[Match]()] = func() any { return fillMatch(f) }
	f.How[reflect.TypeFor[FieldID]()] = func() any { return FieldID(f.IntN(int(numFields))) }
	f.How[reflect.TypeFor[GroupType]()] = func() any { return []GroupType{GroupAll, GroupSelect}[f.IntN(2)] }
	f.How[reflect.TypeFor[[]Action]()] = func() any { return fillActions(f) }
	f.After[reflect.TypeFor[Entry]()] = func(p any) {
		e := p.(*Entry)
		e.Table = uint8(f.IntN(NoTable))
		e.Match = Match{} // a dump's text says no field without its prerequisites
		e.Match.Add(Reg0+FieldID(f.IntN(16)), Value{Lo: 5}, Value{Lo: 7})
	}
	f.After[reflect.TypeFor[Group]()] = func(p any) {
		g := p.(*Group)
		g.ID = uint32(f.IntN(maxGroup))
		if len(g.Buckets) == 0 {
			g.Buckets = nil
		}
		for i := range g.Buckets {
			b := &g.Buckets[i]
			b.ID, b.WatchPort = uint32(2*i), b.WatchPort%maxPort
			if g.Type != GroupSelect {
				b.Weight = 0
			}
		}
	}
	return f
}

func fillKey(f *wiretest.Filler) (k Key) {
	for i := range fields {
		if f.Chance(30) && fields[i].Bits > 0 {
			fields[i].Put(&k, Value{f.Uint64(), f.Uint64()}, Ones(128))
		}
	}
	return k
}

func fillMatch(f *wiretest.Filler) (m Match) {
	for i := range fields {
		if f.Chance(30) && fields[i].Bits > 0 {
			mask := Ones(128)
			if f.Chance(50) {
				mask = Value{f.Uint64(), f.Uint64()}
			}
			m.Add(FieldID(i), Value{f.Uint64(), f.Uint64()}.And(mask), mask)
		}
	}
	return m
}

// fillActions is nil, a few actions, or many conjunctions.
func fillActions(f *wiretest.Filler) (all []Action) {
	if f.Chance(20) {
		for i := range 90 + f.IntN(300) {
			all = append(all, Conjunction{ID: uint32(i + 1), Clause: 1, N: 2})
		}
		return all
	}
	for range f.IntN(4) {
		a := []Action{Output{7}, CTClear{}, Load{Subfield{Reg0, 4, 4}, Value{Lo: 9}}, Normal{}, GroupAction{5},
			SetField{Reg0, Value{Lo: 0x10}, Value{Lo: 0xf0}}, Resubmit{PortInPort, 9, false},
			Move{Subfield{Reg0, 0, 4}, Subfield{Reg0 + 1, 4, 4}}}
		all = append(all, a[f.IntN(len(a))])
	}
	return all
}

// TestValuesCross: every value with a JSON form arrives as it was sent.
func TestValuesCross(t *testing.T) {
	f := newFiller(t, 11)
	for range 300 {
		wiretest.Same(t, wiretest.Value[*Entry](f))
		wiretest.Same(t, wiretest.Value[Entry](f))
		wiretest.Same(t, wiretest.Value[*Group](f))
		wiretest.Same(t, wiretest.Value[[]*Group](f))
		wiretest.Same(t, wiretest.Value[*Meter](f))
		wiretest.Same(t, wiretest.Value[Key](f))
		wiretest.Same(t, wiretest.Value[Match](f))
		wiretest.Same(t, wiretest.Value[[]FieldID](f))
	}
}

// TestEntriesCross: every entry that text can say arrives, and so does each action.
func TestEntriesCross(t *testing.T) {
	g := newGenerator(t, 12)
	for i := range 3000 {
		line := g.entry(i)
		e, err := ParseEntry(line, portNames())
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		wiretest.Same(t, e)
		for _, a := range e.Actions {
			wiretest.Same(t, ActionText{a})
		}
	}
}

// TestNamesCross: names arrive, and a nil set stays nil.
func TestNamesCross(t *testing.T) {
	n := NewNames()
	wiretest.Same(t, n)
	wiretest.Same(t, (*Names)(nil))
	n.SetTable(4, "SpoofGuard")
	n.SetTable(0, `od"d`)
	n.SetPort(PortLocal, "br-int")
	n.SetPort(2, "antrea-gw0")
	wiretest.Same(t, n)
	if reflect.TypeFor[Names]().NumField() != 4 {
		t.Error("Names has other fields than tables and ports: they must cross too")
	}
}

// TestLongLines: what no line can hold crosses as several.
func TestLongLines(t *testing.T) {
	e := &Entry{Table: 3, Priority: 7, Cookie: 9}
	g := &Group{ID: 1, Type: GroupSelect}
	for i := range 5000 {
		e.Actions = append(e.Actions, Conjunction{ID: uint32(1<<31 + i), Clause: 2, N: 3})
		g.Buckets = append(g.Buckets, Bucket{ID: uint32(i), Weight: 1, Actions: []Action{SetField{Reg0, Value{Lo: 1}, Ones(32)}, Resubmit{PortInPort, 9, false}}})
	}
	if len(e.Text(Format{})) <= maxLine || len(g.Text(nil)) <= maxLine {
		t.Fatal("they fit in a line")
	}
	wiretest.Same(t, e)
	wiretest.Same(t, g)
}

// TestKeyStrayBit: a bit that no field has is refused, not dropped.
func TestKeyStrayBit(t *testing.T) {
	for i := range KeySize {
		for bit := range 8 {
			var k, known Key
			k[i] = 1 << bit
			for id := Reg0; id < numFields; id++ {
				f := FieldByID(id)
				f.Put(&known, f.Get(&k), Ones(128))
			}
			_, err := json.Marshal(k)
			if (known == k) != (err == nil) {
				t.Errorf("byte %d, bit %d: %v", i, bit, err)
			}
			_, err = json.Marshal(Match{Mask: k})
			if (known == k) != (err == nil) {
				t.Errorf("mask, byte %d, bit %d: %v", i, bit, err)
			}
		}
	}
}

// TestWrongJSON: what cannot be read is refused, and the error names the place.
func TestWrongJSON(t *testing.T) {
	for _, x := range []struct {
		into       any
		text, want string
	}{
		{new(Entry), `"table=4,tcpp actions=drop"`, `entry: column 9: unknown field "tcpp"`},
		{new(Entry), `["table=4 actions=conjunction(1,1/2)","table=5 actions=conjunction(2,1/2)"]`, "entry, line 2:"},
		{new(Entry), `["table=4 actions=conjunction(1,1/2)","table=4,cookie=1 actions=conjunction(2,1/2)"]`, "entry, line 2:"},
		{new(Entry), `["table=4 actions=conjunction(1,1/2)","table=4 actions=output:1"]`, "entry, line 2:"},
		{new(Entry), `[]`, "entry: expected a text or a list of texts"},
		{new(Entry), `{"table":4}`, "entry: expected a text or a list of texts"},
		{new(Group), `"group_id=1,type=salect"`, "group: column 17:"},
		{new(Group), `["group_id=1,type=all,bucket=drop","group_id=2,type=all,bucket=drop"]`, "group, line 2:"},
		{new(Group), `["group_id=1,type=all,bucket=bucket_id:0,drop","group_id=1,type=all,bucket=bucket_id:0,drop"]`, "group 1:"},
		{new(Names), `{"tables":{"256":"x"}}`, "names:"},
		{new(Names), `{"tables":{"1":"x","2":"x"}}`, `tables 1 and 2 are both called "x"`},
		{new(Names), `{"ports":{"1":"x","2":"x"}}`, `ports 1 and 2 are both called "x"`},
		{new(Key), `{"xreg0":"1"}`, `"xreg0" is not the name of a whole field`},
		{new(Key), `{"reg0":"0x100000000"}`, "reg0: column 1:"},
		{new(Key), `{"reg0":1}`, "fields of a packet:"},
		{new(Key), `{"ct_state":"+new"}`, "ct_state: column 1:"},
		{new(Key), `{"eth_src":"0a:00"}`, "eth_src: column 1:"},
		{new(Match), `{"reg0":"3/1"}`, "reg0: column 1: the value 3 has bits outside its mask 1"},
		{new(Match), `{"reg0":"3/"}`, "reg0: column 3:"},
		{new(FieldID), `"reg77"`, `no field is called "reg77"`},
		{new(ActionText), `"output:1,output:2"`, "expected one action, not 2"},
		{new(ActionText), `"drop"`, "expected one action, not 0"},
		{new(ActionText), `"outptu:1"`, `action "outptu:1": column 1:`},
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

// fuzzJSON: what a decoder takes is sent and arrives as it is.
func fuzzJSON[T any](t *testing.T, text []byte) {
	var v T
	if json.Unmarshal(text, &v) == nil {
		wiretest.Same(t, v)
	}
}

// FuzzUnmarshalEntry: no text makes the decoder panic, and what it takes prints as
// what it takes again.
func FuzzUnmarshalEntry(f *testing.F) {
	f.Add([]byte(`"table=4,priority=7,ip,nw_src=10.0.0.0/8 actions=load:1->NXM_NX_REG0[0],output:1"`))
	f.Add([]byte(`["table=4 actions=conjunction(1,1/2)","table=4 actions=conjunction(2,1/2)"]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var e Entry
		if json.Unmarshal(text, &e) != nil {
			return
		}
		if got := wiretest.Cross(t, &e); got.Text(Format{}) != e.Text(Format{}) {
			t.Fatalf("%s arrives as %s", &e, got)
		}
	})
}

// FuzzUnmarshalGroup: likewise.
func FuzzUnmarshalGroup(f *testing.F) {
	f.Add([]byte(`"group_id=1,type=select,bucket=bucket_id:3,weight:2,actions=output:1"`))
	f.Add([]byte(`["group_id=1,type=all,bucket=bucket_id:0,actions=drop","group_id=1,type=all,bucket=bucket_id:1,actions=drop"]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var g Group
		if json.Unmarshal(text, &g) != nil {
			return
		}
		if got := wiretest.Cross(t, &g); got.Text(nil) != g.Text(nil) {
			t.Fatalf("%s arrives as %s", &g, got)
		}
	})
}

// FuzzUnmarshalKey: likewise, for keys and matches.
func FuzzUnmarshalKey(f *testing.F) {
	f.Add([]byte(`{"reg0":"0x3","in_port":"7","ct_state":"new|trk","ip_dst":"10.96.0.1","eth_src":"0a:00:00:00:00:01"}`))
	f.Add([]byte(`{"reg0":"0x3/0xf","ipv6_src":"fd00::1","ip_frag":"3"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzzJSON[Key](t, text)
		fuzzJSON[Match](t, text)
	})
}

// FuzzUnmarshalNames: likewise.
func FuzzUnmarshalNames(f *testing.F) {
	f.Add([]byte(`{"tables":{"4":"SpoofGuard"},"ports":{"2":"antrea-gw0"}}`))
	f.Fuzz(func(t *testing.T, text []byte) { fuzzJSON[*Names](t, text) })
}

// FuzzUnmarshalAction: likewise.
func FuzzUnmarshalAction(f *testing.F) {
	f.Add("learn(table=1,NXM_OF_VLAN_TCI[0..11],load:1->NXM_NX_REG0[])")
	f.Fuzz(func(t *testing.T, text string) {
		var a ActionText
		if a.UnmarshalText([]byte(text)) != nil {
			return
		}
		sent := ActionsText([]Action{a.Action}, nil)
		if got := ActionsText([]Action{wiretest.Cross(t, a).Action}, nil); got != sent {
			t.Fatalf("%s arrives as %s", sent, got)
		}
	})
}
