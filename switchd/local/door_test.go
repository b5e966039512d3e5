package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/memory"
)

// rig is a switch with three ports in memory, and a client of it through a unix socket.
type rig struct {
	sw     *Switch
	client *door.Client
	server *door.Server
	ports  map[uint32]*memory.Port
}

const rigFlows = `
table=0, priority=100,in_port=1,ip actions=ct(table=1,zone=7)
table=0, priority=90,in_port=2,ip actions=ct(table=1,zone=7)
table=0, priority=10,arp actions=NORMAL
table=0, priority=5,in_port=3 actions=controller(max_len=128,id=1)
table=1, priority=10,ct_state=+new+trk,udp,tp_dst=53 actions=ct(commit,zone=7),output:2
table=1, priority=9,ct_state=+new+trk actions=group:4
table=1, priority=8,ct_state=-new+trk actions=output:1
`

func newRig(t testing.TB) *rig {
	t.Helper()
	start := time.Now()
	clock := func() int64 { return int64(time.Since(start)) }
	r := &rig{ports: map[uint32]*memory.Port{}}
	c := Config{Clock: clock, Conntrack: conntrack.Config{Timeouts: proto.DefaultTimeouts()}}
	c.PacketIn = func(pi *telemetry.PacketIn) { r.server.SendEvent(door.Event{PacketIn: pi}) }
	var err error
	if r.sw, err = Open(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.sw.Close() })
	for no := uint32(1); no <= 3; no++ {
		r.ports[no] = memory.New("p"+string(rune('0'+no)), memory.Options{})
		if err := r.sw.AddPort(no, r.ports[no]); err != nil {
			t.Fatal(err)
		}
	}
	r.server = door.NewServer(r.sw, nil, clock, "test")
	r.client = serve(t, r.server)
	return r
}

// serve serves a server on a unix socket, and returns a client of it.
func serve(t testing.TB, s *door.Server) *door.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "switch.sock")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	h := &http.Server{Handler: s.Handler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go h.Serve(ln)
	t.Cleanup(func() { h.Close() })
	return door.Dial(socket)
}

// load installs the rig's entries through the door, with names, a group and a meter.
func (r *rig) load(t testing.TB) {
	t.Helper()
	prog, err := parse.Program(parse.Sources{
		Flows: parse.Text("flows", rigFlows), Groups: parse.Text("groups", "group_id=4,type=select,bucket=bucket_id:0,weight:100,actions=output:2,bucket=bucket_id:1,weight:100,actions=output:3"),
		Meters: parse.Text("meters", "meter=1 pktps burst stats bands=\ntype=drop rate=100 burst_size=200"),
	})
	if err != nil {
		t.Fatal(err)
	}
	prog.Names.SetTable(0, "Classifier")
	prog.Names.SetPort(1, "web")
	if err := r.client.Apply(flow.BundleOf(prog)); err != nil {
		t.Fatal(err)
	}
}

// send sends a UDP packet into a port.
func (r *rig) send(t testing.TB, no uint32, dport uint16) {
	t.Helper()
	if err := r.ports[no].Send(packettest.UDP4(packettest.Options{SrcPort: 1000, DstPort: dport})); err != nil {
		t.Fatal(err)
	}
	r.sw.Poll()
}

// TestClientAnswersAsTheSwitch calls a switch directly and through its socket, and compares the
// answers.
func TestClientAnswersAsTheSwitch(t *testing.T) {
	r := newRig(t)
	r.load(t)
	r.send(t, 1, 53)
	r.send(t, 1, 54)
	for name, ask := range map[string]func(door.Switch) any{
		"first":       func(s door.Switch) any { return s.First() },
		"generation":  func(s door.Switch) any { return s.Generation() },
		"learnings":   func(s door.Switch) any { return s.Learnings() },
		"groups":      func(s door.Switch) any { return s.Groups() },
		"meters":      func(s door.Switch) any { return s.Meters() },
		"ports":       func(s door.Switch) any { return s.Ports() },
		"sample":      func(s door.Switch) any { return s.DropSample(1, "none") },
		"fdb":         func(s door.Switch) any { return s.LearnedMACs() },
		"fdb stats":   func(s door.Switch) any { return s.MACTableStats() },
		"ct limits":   func(s door.Switch) any { return s.Connections().Limits() },
		"sums":        func(s door.Switch) any { return s.PacketCounters() },
		"running":     func(s door.Switch) any { return s.RunningPacketCounters() },
		"workers":     func(s door.Switch) any { return s.Workers() },
		"answers":     func(s door.Switch) any { return s.Answers() },
		"sleeps":      func(s door.Switch) any { return s.Sleeps() },
		"cache":       func(s door.Switch) any { return s.Cache() },
		"shapes":      func(s door.Switch) any { return s.CacheShapes() },
		"offload":     func(s door.Switch) any { return s.OffloadStats() },
		"off":         func(s door.Switch) any { return s.OffloadOff() },
		"fragments":   func(s door.Switch) any { return s.Fragments() },
		"tables":      func(s door.Switch) any { return s.Tables() },
		"ct zones":    func(s door.Switch) any { return s.Connections().Zones() },
		"ct ports":    func(s door.Switch) any { return s.Connections().Ports() },
		"revalidated": func(s door.Switch) any { return s.Connections().Revalidated() },
		"entries":     func(s door.Switch) any { return s.Connections().Stats().Entries },
	} {
		here, there := ask(r.sw), ask(r.client)
		if v := reflect.ValueOf(here); v.Kind() == reflect.Slice && v.Len() == 0 && reflect.ValueOf(there).Len() == 0 {
			continue // nil crosses as empty or nil
		}
		if !reflect.DeepEqual(here, there) {
			t.Errorf("%s: here %+v\nthere %+v", name, here, there)
		}
	}
	if r.client.Names().Table(0) != "Classifier" || r.client.Names().Port(1) != "web" {
		t.Error("names did not cross")
	}
	wantSameFlows(t, r.sw.Flows(), r.client.Flows())
	wantSameFlows(t, r.sw.FlowsIn(1), r.client.FlowsIn(1))
	if n := r.client.Failures(); n != 0 {
		t.Errorf("%d failures: %v", n, r.client.Err())
	}
}

// wantSameFlows compares entries and counters, but not ages.
func wantSameFlows(t *testing.T, here, there []telemetry.FlowStats) {
	t.Helper()
	if len(here) == 0 || len(here) != len(there) {
		t.Fatalf("%d entries here, %d there", len(here), len(there))
	}
	for i := range here {
		h, x := &here[i], &there[i]
		if h.Entry.String() != x.Entry.String() || h.Packets != x.Packets || h.Bytes != x.Bytes || x.Duration < h.Duration || x.Idle < h.Idle {
			t.Errorf("here  %v %d\nthere %v %d", h.Entry, h.Packets, x.Entry, x.Packets)
		}
	}
}

// TestClientConnections lists, flushes and shields through the socket.
func TestClientConnections(t *testing.T) {
	r := newRig(t)
	r.load(t)
	r.send(t, 1, 53)
	zone := uint16(7)
	all := slices.Collect(r.client.Connections().Dump(conntrack.Filter{Zone: &zone}))
	if len(all) != 1 || all[0].Orig.DstPort != 53 || all[0].Zone != 7 || all[0].InPort != 1 {
		t.Fatalf("connections %+v", all)
	}
	other := uint16(8)
	if n := r.client.Connections().Flush(conntrack.Filter{Zone: &other}); n != 0 {
		t.Errorf("%d flushed of another zone", n)
	}
	r.client.Connections().Purge(&door.Purge{Addrs: []netip.Addr{all[0].Orig.Dst}})
	if n := r.sw.Table().Stats().Entries; n != 0 {
		t.Errorf("%d connections are left", n)
	}
	if err := r.client.Connections().Revalidate(t.Context(), &door.NodePorts{}); err != nil {
		t.Error(err)
	}
}

// TestClientTraces walks made-up and real packets through the socket.
func TestClientTraces(t *testing.T) {
	r := newRig(t)
	r.load(t)
	q := &telemetry.TraceRequest{InPort: 1, Frame: packettest.UDP4(packettest.Options{SrcPort: 1000, DstPort: 99}), Buckets: map[uint32]int{4: 1}}
	here, err := r.sw.Trace(q)
	if err != nil {
		t.Fatal(err)
	}
	there, err := r.client.Trace(q)
	if err != nil {
		t.Fatal(err)
	}
	var a, b bytes.Buffer
	if err := errors.Join(here.WriteText(&a, nil), there.WriteText(&b, nil)); err != nil || a.String() != b.String() {
		t.Errorf("%v\nhere\n%s\nthere\n%s", err, &a, &b)
	}
	if !slices.Equal(there.Verdict.Outputs, []uint32{3}) {
		t.Errorf("bucket 1 was asked for; outputs %v", there.Verdict.Outputs)
	}
	if _, err := r.client.Trace(&telemetry.TraceRequest{PickBucket: func(*flow.Group, int) int { return 0 }}); err == nil {
		t.Error("a function crossed")
	}
	l, err := r.client.TraceLive(&door.LiveRequest{Filters: []string{"udp port 53"}, Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r.send(t, 1, 54)
	r.send(t, 1, 53)
	w, err := l.Next(t.Context())
	if err != nil || w.Live.Port != 1 || len(w.Steps) == 0 {
		t.Fatalf("%+v, %v", w, err)
	}
	if _, err := l.Next(t.Context()); err != io.EOF {
		t.Errorf("after as many as were asked for: %v", err)
	}
	if n := l.Counts(); n.Told != 1 {
		t.Errorf("counts %+v", n)
	}
	if _, err := r.client.TraceLive(&door.LiveRequest{Filters: []string{"no expression"}}); err == nil {
		t.Error("a filter that is none was taken")
	}
}

// TestDropsAreForAll: each of several callers sees every dropped packet once.
func TestDropsAreForAll(t *testing.T) {
	r := newRig(t)
	r.send(t, 1, 53) // no pipeline is loaded
	r.load(t)
	for range 2 {
		a := r.client.DropsSince(0)
		if all := a.Packets; len(all) != 1 || a.Next != 1 || a.Missed != 0 || all[0].Reason != telemetry.DropNoPipeline || len(all[0].Frame()) == 0 {
			t.Errorf("dropped %+v", a)
		}
	}
	if a := r.client.DropsSince(1); len(a.Packets) != 0 || a.Next != 1 {
		t.Errorf("then %+v", a)
	}
}

// TestClassCounters: sums by class through the socket equal those of the entries, and end with
// their generation.
func TestClassCounters(t *testing.T) {
	r := newRig(t)
	r.load(t)
	class := func(e *flow.Entry) int { return int(e.Table) }
	here, there := r.sw.ClassCounters(class), r.client.ClassCounters(class)
	r.send(t, 1, 53)
	h, _ := here.Sum()
	x, ok := there.Sum()
	if !ok || !reflect.DeepEqual(h, x) || x[1].Packets != 1 || there.Generation() != r.sw.Generation() {
		t.Errorf("here %+v, there %+v %v", h, x, ok)
	}
	r.load(t)
	if _, ok := there.Sum(); ok {
		t.Error("sums of another generation")
	}
}

// TestBundleIsWholeOrNothing: the error of a bundle names the line or the entry, and nothing
// changes.
func TestBundleIsWholeOrNothing(t *testing.T) {
	r := newRig(t)
	r.load(t)
	before := r.sw.Generation()
	e, err := parse.Entry("table=0,priority=1,in_port=9 actions=group:77", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.client.Apply(&flow.Bundle{Add: []*flow.Entry{e}}); err == nil || !strings.Contains(err.Error(), "77") {
		t.Errorf("an entry that leads to no group: %v", err)
	}
	if r.sw.Generation() != before {
		t.Error("the pipeline changed")
	}
}

// TestController: there is only one. Another is refused or takes over. Without one, packet-ins
// are dropped with their own reason.
func TestController(t *testing.T) {
	r := newRig(t)
	away := make(chan bool, 10)
	r.server.OnController(func(connected bool) { r.sw.SetControllerAway(!connected); away <- !connected })
	r.sw.SetControllerAway(true)
	r.load(t)
	r.send(t, 3, 53)
	if n := r.sw.Drops()[telemetry.DropControllerAway]; n != 1 {
		t.Errorf("%d packet-ins dropped without a controller", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begun, events, ended := make(chan bool), make(chan *door.Event, 10), make(chan error, 1)
	go func() {
		ended <- r.client.Control(ctx, "first", false, func() { close(begun) }, func(e *door.Event) { events <- e })
	}()
	<-begun
	if <-away {
		t.Error("the controller that is connected is away")
	}
	r.send(t, 3, 53)
	if e := <-events; e.PacketIn == nil || e.PacketIn.InPort != 3 || len(e.PacketIn.Frame) == 0 {
		t.Errorf("event %+v", e)
	}
	second := serve(t, r.server)
	if err := second.Apply(&flow.Bundle{}); err == nil || !strings.Contains(err.Error(), `"first" is connected`) {
		t.Errorf("somebody else changed the switch: %v", err)
	}
	if err := second.Control(ctx, "second", false, func() {}, func(*door.Event) {}); err == nil || !strings.Contains(err.Error(), "take-over=1") {
		t.Errorf("a second controller: %v", err)
	}
	taken := make(chan bool)
	go second.Control(ctx, "second", true, func() { close(taken) }, func(*door.Event) {})
	<-taken
	var over *door.TakenOverError
	if err := <-ended; !errors.As(err, &over) || over.By != "second" {
		t.Errorf("the first one ended with %v", err)
	}
	if err := second.Apply(&flow.Bundle{}); err != nil {
		t.Errorf("the controller: %v", err)
	}
	cancel()
	for !<-away {
	}
}

// TestSlowControllerLosesEvents: a controller that does not read loses packet-ins, which are
// counted. The switch continues.
func TestSlowControllerLosesEvents(t *testing.T) {
	r := newRig(t)
	r.load(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun, stuck := make(chan bool), make(chan bool)
	missed := make(chan uint64, 1)
	go r.client.Control(ctx, "slow", false, func() { close(begun) }, func(e *door.Event) {
		<-stuck
		if e.Missed > 0 {
			select {
			case missed <- e.Missed:
			default:
			}
		}
	})
	<-begun
	for range 20000 {
		r.server.SendEvent(door.Event{PacketIn: &telemetry.PacketIn{Frame: make([]byte, 1400)}})
	}
	close(stuck)
	deadline := time.After(time.Minute)
	for {
		r.server.SendEvent(door.Event{PacketIn: &telemetry.PacketIn{}})
		select {
		case n := <-missed:
			if n == 0 || n > 20000 {
				t.Errorf("%d events missed", n)
			}
			return
		case <-deadline:
			t.Fatal("no event tells of those that were missed")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestSwitchAway: if a switch does not answer, the failure is counted and the error names the
// socket.
func TestSwitchAway(t *testing.T) {
	c := door.Dial(filepath.Join(t.TempDir(), "nobody.sock"))
	if all := c.Flows(); all != nil {
		t.Errorf("entries %v", all)
	}
	if c.PacketCounters() == nil || c.Failures() == 0 {
		t.Error("nothing failed")
	}
	var away *door.AwayError
	if err := c.Err(); !errors.As(err, &away) || !strings.Contains(err.Error(), "nobody.sock") {
		t.Errorf("%v", err)
	}
	if _, err := c.Info(t.Context()); !errors.As(err, &away) {
		t.Errorf("%v", err)
	}
}
