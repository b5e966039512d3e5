package telemetry

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/internal/wiretest"
)

// wireEntries and wireGroups are what the values of these tests hold.
var wireEntries = []string{
	"table=9,cookie=0x1030000000000,priority=200,ip,reg0=0x200/0x200,nw_dst=10.10.1.0/24 actions=set_field:0a:00:00:00:00:01->eth_dst,load:1->NXM_NX_REG0[3],goto_table:10",
	"table=4,priority=190,tcp,in_port=7,nw_src=10.10.0.7,tp_dst=53 actions=ct(commit,table=5,zone=65520,nat(dst=10.0.0.1:80),exec(set_field:0x10/0x10->ct_mark))",
	"table=0,idle_timeout=7,hard_timeout=9,send_flow_rem,priority=0 actions=drop",
}

const wireGroup = "group_id=7,type=select,bucket=bucket_id:0,weight:100,actions=load:1->NXM_NX_REG0[0..3],resubmit(,9),bucket=bucket_id:4,actions=drop"

func mustEntry(t testing.TB, line string) *flow.Entry {
	e, err := parse.Entry(line, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// newFiller fills what this package tells.
func newFiller(t testing.TB, seed uint64) *wiretest.Filler {
	f := wiretest.New(t, seed)
	f.How[reflect.TypeFor[flow.Entry]()] = func() any { return *mustEntry(t, wireEntries[f.IntN(len(wireEntries))]) }
	f.How[reflect.TypeFor[flow.Group]()] = func() any {
		g, err := parse.Group(wireGroup, nil)
		if err != nil {
			t.Fatal(err)
		}
		return *g
	}
	f.How[reflect.TypeFor[flow.Names]()] = func() any {
		n := flow.NewNames()
		n.SetTable(uint8(f.Uint32()), "Output")
		n.SetPort(f.Uint32(), "antrea-gw0")
		return *n
	}
	f.How[reflect.TypeFor[flow.Key]()] = func() any { return fillKey(f) }
	f.How[reflect.TypeFor[flow.Match]()] = func() any {
		mask := fillKey(f)
		return flow.Match{Value: mask, Mask: mask}
	}
	f.How[reflect.TypeFor[flow.FieldID]()] = func() any { return flow.Reg0 + flow.FieldID(f.IntN(16)) }
	f.How[reflect.TypeFor[Rest]()] = func() any {
		return Rest{Table: uint8(f.IntN(255)), Cookie: f.Uint64(), Actions: mustEntry(t, wireEntries[f.IntN(2)]).Actions}
	}
	f.How[reflect.TypeFor[flow.Action]()] = func() any {
		e := mustEntry(t, wireEntries[f.IntN(2)])
		return append(e.Actions, nil)[f.IntN(len(e.Actions)+1)]
	}
	f.How[reflect.TypeFor[DropReason]()] = func() any { return DropReason(f.IntN(int(NumDropReasons))) }
	f.How[reflect.TypeFor[StepKind]()] = func() any { return []StepKind{StepEntry, StepCT, StepOutput}[f.IntN(3)] }
	f.Stays[reflect.TypeFor[TraceRequest]()] = []string{"PickBucket"}
	f.Stays[reflect.TypeFor[conntrack.Request]()] = []string{"Near"}
	f.Private[reflect.TypeFor[conntrack.Meta]()] = []string{"orig", "at", "dir", "sound", "again", "counted", "seen", "unknown"}
	f.Private[reflect.TypeFor[DroppedPacket]()] = []string{"kept", "head"}
	f.After[reflect.TypeFor[DroppedPacket]()] = func(p any) {
		l := p.(*DroppedPacket)
		l.kept = uint8(copy(l.head[:], f.Bytes(f.IntN(DroppedBytes+1))))
	}
	return f
}

func fillKey(f *wiretest.Filler) (k flow.Key) {
	for _, id := range []flow.FieldID{flow.Reg0, flow.InPort, flow.CTState, flow.CTLabel, flow.EthDst, flow.EthType, flow.IPSrc, flow.TCPDst} {
		if f.Chance(60) {
			flow.FieldByID(id).Put(&k, flow.Value{Hi: f.Uint64(), Lo: f.Uint64()}, flow.Ones(128))
		}
	}
	return k
}

// TestValuesCross: every value with a JSON form arrives as it was sent.
func TestValuesCross(t *testing.T) {
	f := newFiller(t, 51)
	for range 200 {
		wiretest.Same(t, wiretest.Value[FlowStats](f))
		wiretest.Same(t, wiretest.Value[[]FlowStats](f))
		wiretest.Same(t, wiretest.Value[GroupStats](f))
		wiretest.Same(t, wiretest.Value[MeterStats](f))
		wiretest.Same(t, wiretest.Value[TableStats](f))
		wiretest.Same(t, wiretest.Value[PortStats](f))
		wiretest.Same(t, wiretest.Value[WorkerStats](f))
		wiretest.Same(t, wiretest.Value[CacheStats](f))
		wiretest.Same(t, wiretest.Value[CacheShape](f))
		wiretest.Same(t, wiretest.Value[OffloadStats](f))
		wiretest.Same(t, wiretest.Value[SwitchPacketCounters](f))
		wiretest.Same(t, wiretest.Value[LearnedMAC](f))
		wiretest.Same(t, wiretest.Value[Learned](f))
		wiretest.Same(t, wiretest.Value[Trace](f))
		wiretest.Same(t, wiretest.Value[Arrival](f))
		wiretest.Same(t, wiretest.Value[[]DroppedPacket](f))
		wiretest.Same(t, wiretest.Value[PacketIn](f))
		wiretest.Same(t, wiretest.Value[FlowRemoved](f))
		wiretest.Same(t, wiretest.Value[LiveCounts](f))
		wiretest.Same(t, wiretest.Value[CTAnswer](f))
		wiretest.Same(t, wiretest.Value[TraceRequest](f))
		wiretest.Same(t, wiretest.Value[map[DropReason]uint64](f))
	}
}

// TestTraceKeepsPointers: steps that met one entry or group still do, two equal
// entries stay two, and none stays none.
func TestTraceKeepsPointers(t *testing.T) {
	a, b := mustEntry(t, wireEntries[0]), mustEntry(t, wireEntries[0])
	g, err := parse.Group(wireGroup, nil)
	if err != nil {
		t.Fatal(err)
	}
	sent := Trace{Steps: []Step{
		{Kind: StepEntry, Entry: a}, {Kind: StepAction, Action: flow.Output{Port: 1}}, {Kind: StepEntry, Entry: b}, {Kind: StepEntry},
		{Kind: StepEntry, Entry: a}, {Kind: StepBucket, Group: g}, {Kind: StepBucket, Group: g},
	}}
	got := wiretest.Cross(t, sent)
	st := got.Steps
	if st[0].Entry != st[4].Entry || st[0].Entry == st[2].Entry || st[3].Entry != nil || st[1].Entry != nil {
		t.Errorf("entries arrive as %p %p %p %p", st[0].Entry, st[2].Entry, st[3].Entry, st[4].Entry)
	}
	if st[5].Group != st[6].Group || st[5].Group == nil {
		t.Errorf("groups arrive as %p %p", st[5].Group, st[6].Group)
	}
	if !reflect.DeepEqual(got, sent) {
		t.Errorf("%+v arrives as %+v", sent, got)
	}
}

// TestFlowLine: the line is for people to read, in whatever order its members come.
func TestFlowLine(t *testing.T) {
	s := FlowStats{mustEntry(t, wireEntries[1]), 7, 588, 9e9, 1e9, true}
	const want = `{"entry":"table=4, priority=190,tcp,in_port=7,nw_src=10.10.0.7,tp_dst=53 ` +
		`actions=ct(commit,table=5,zone=65520,nat(dst=10.0.0.1:80),exec(set_field:0x10/0x10->ct_mark))",` +
		`"packets":7,"bytes":588,"durationNS":9000000000,"idleNS":1000000000,"learned":true}`
	if text := string(s.AppendJSON(nil)); text != want {
		t.Errorf("%s\nexpected\n%s", text, want)
	}
	var got FlowStats
	if err := json.Unmarshal([]byte(`{ "learned":true, "packets":7, "new":[1], "bytes":588, "idleNS":1000000000, "durationNS":9000000000, "entry":`+want[9:strings.Index(want, `,"packets"`)]+`}`), &got); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("in another order: %+v, %v", got, err)
	}
}

// TestWrongJSON: what cannot be read is refused, and the error names the place.
func TestWrongJSON(t *testing.T) {
	for _, x := range []struct {
		into       any
		text, want string
	}{
		{new(FlowStats), `{"entry":"table=4,tcpp actions=drop","packets":7,"bytes":588,"durationNS":9,"idleNS":1}`, `entry: column 9: unknown field "tcpp"`},
		{new(FlowStats), `{"entry":"table=4,tcpp actions=drop"}`, `entry: column 9: unknown field "tcpp"`},
		{new(FlowStats), `{"entry":"actions=drop","packets":99999999999999999999,"bytes":588,"durationNS":9,"idleNS":1}`, "packets"},
		{new(FlowStats), `{"entry":"actions=drop","packets":9,"bytes":588,"durationNS":9999999999999999999,"idleNS":1}`, "durationNS"},
		{new(FlowStats), `{"packets":-1}`, "packets"},
		{new(GroupStats), `{"group":"group_id=1,type=salect"}`, "column 17"},
		{new(TableStats), `{"drops":{"full":1}}`, `"full" is not a drop reason`},
		{new(WorkerStats), `{"wakes":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}`, "wakes has 17 elements; expected 16"},
		{new(CacheStats), `{"events":{"hit":1,"hot":2}}`, `events: "hot" is not a known event`},
		{new(OffloadStats), `{"events":{"late":1,"early":2}}`, `events: "early" is not a known event`},
		{new(DroppedPacket), `{"head":"` + strings.Repeat("AAAA", 43) + `"}`, "head has 129 bytes; expected at most 128"},
		{new(Learned), `{"entry":"actions=drop","ageNS":"x"}`, "ageNS"},
		{new(Trace), `{"steps":[{"kind":"entry"},{"kind":"entry","entry":0}]}`, "steps[1]: entry: index 0 is outside a list of 0"},
		{new(Trace), `{"entries":["actions=drop"],"steps":[{"kind":"entry","entry":-1}]}`, "steps[0]: entry: index -1 is outside a list of 1"},
		{new(Trace), `{"groups":[null],"steps":[{"kind":"bucket","group":0}]}`, "steps[0]: group: the list has null"},
		{new(Trace), `{"steps":[{}]}`, `steps[0]: kind "" is not a kind of step`},
		{new(Trace), `{"steps":[{"kind":"action","action":"outptu:1"}]}`, `steps[0]: action "outptu:1"`},
		{new(Trace), `{"steps":[{"kind":"entry","after":{"reg99":"1"}}]}`, `steps[0]: fields of a packet: "reg99"`},
		{new(TraceRequest), `{"metadata":{"reg99":"1"}}`, `"reg99"`},
		{new(TraceRequest), `{"ctNext":["trk|old"]}`, `"old" is not a connection state`},
	} {
		before := fmt.Sprintf("%+v", x.into)
		err := json.Unmarshal([]byte(x.text), x.into)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v; expected %s", x.text, err, x.want)
		}
		if after := fmt.Sprintf("%+v", x.into); after != before && x.want[0] != '"' {
			t.Errorf("%s was refused and left %s", x.text, after)
		}
	}
}

// FuzzUnmarshalFlow: no text makes the decoder panic, and what it takes arrives again.
func FuzzUnmarshalFlow(f *testing.F) {
	for i, line := range wireEntries {
		s := FlowStats{mustEntry(f, line), 7, 588, 9e9, 1e9, i == 1}
		f.Add(s.AppendJSON(nil))
	}
	f.Add([]byte(`{"entry":null}`))
	f.Add([]byte(`{"entry":"actions=drop","packets":00,"bytes":588,"durationNS":9999999999999999999,"idleNS":1}`))
	f.Fuzz(func(t *testing.T, text []byte) { crossAgain[FlowStats](t, text) })
}

// FuzzUnmarshalTrace: no text makes the decoder panic, and what it takes arrives again.
func FuzzUnmarshalTrace(f *testing.F) {
	fill := newFiller(f, 52)
	for range 5 {
		text, err := json.Marshal(wiretest.Value[Trace](fill))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) { crossAgain[Trace](t, text) })
}

// FuzzUnmarshal: likewise, for the other decoders of this package.
func FuzzUnmarshal(f *testing.F) {
	fill := newFiller(f, 53)
	for range 3 {
		for _, v := range []any{wiretest.Value[CacheStats](fill), wiretest.Value[OffloadStats](fill), wiretest.Value[WorkerStats](fill), wiretest.Value[GroupStats](fill),
			wiretest.Value[MeterStats](fill), wiretest.Value[DroppedPacket](fill), wiretest.Value[Learned](fill)} {
			text, err := json.Marshal(v)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		crossAgain[CacheStats](t, text)
		crossAgain[OffloadStats](t, text)
		crossAgain[WorkerStats](t, text)
		crossAgain[GroupStats](t, text)
		crossAgain[MeterStats](t, text)
		crossAgain[DroppedPacket](t, text)
		crossAgain[Learned](t, text)
	})
}

// crossAgain: what a decoder takes is sent as the same text once it has arrived.
func crossAgain[T any](t *testing.T, text []byte) {
	var v T
	if json.Unmarshal(text, &v) != nil {
		return
	}
	first, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(wiretest.Cross(t, v)); err != nil || string(again) != string(first) {
		t.Fatalf("%s\narrives as\n%s\n%v", first, again, err)
	}
}
