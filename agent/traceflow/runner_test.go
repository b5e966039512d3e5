package traceflow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables"
)

// world is an API server with Traceflows from Pod a of node-a to Pod b of node-b, and both
// Nodes. Each watching Node sees what any Node sends.
type world struct {
	t        *testing.T
	now      time.Time
	all      map[string]*cluster.Traceflow
	version  int
	missing  error // of an end
	isolated bool  // packets do not come to node-b
	sent     []string
	nodes    []*node
	refused  map[cluster.Key]string
}

// node is a Node as a Runner sees it.
type node struct {
	*world
	name string
	r    *Runner
	tags []control.TracedTag
	live []*fakeLive
}

// fakeLive is a live trace that ends with its filter.
type fakeLive struct {
	walks  chan *telemetry.Trace
	closed bool
}

func (l *fakeLive) Next(ctx context.Context) (*telemetry.Trace, error) {
	select {
	case t := <-l.walks:
		return t, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
func (l *fakeLive) Counts() telemetry.LiveCounts { return telemetry.LiveCounts{} }
func (l *fakeLive) Close()                       { l.closed = true }

func newWorld(t *testing.T, shared bool) *world {
	w := &world{t: t, now: time.Unix(1e9, 0), all: map[string]*cluster.Traceflow{}}
	for _, name := range []string{"node-a", "node-b"} {
		n := &node{world: w, name: name}
		c := Config{
			Node: name, Objects: n, Switch: n, Clock: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler),
			Refused: func() map[cluster.Key]string { return w.refused },
		}
		if shared {
			c.API = w
		}
		n.r = New(c)
		w.nodes = append(w.nodes, n)
	}
	return w
}

func key(name string) cluster.Key { return cluster.Key{Kind: cluster.KindTraceflow, Name: name} }

// add makes a Traceflow.
func (w *world) add(name string) {
	w.version++
	w.all[name] = &cluster.Traceflow{
		Meta: cluster.Meta{Key: key(name)}, UID: "uid of " + name, Version: fmt.Sprint(w.version),
		Source: cluster.Name{Namespace: "default", Name: "a"}, Pod: cluster.Name{Namespace: "default", Name: "b"},
		Packet: cluster.TracedPacket{Protocol: packet.ProtoTCP, DstPort: 80, TCPFlags: packet.TCPSyn}, Timeout: 20 * time.Second,
	}
}

func (w *world) WriteTraceflow(_ context.Context, t *cluster.Traceflow, s *cluster.TraceflowStatus) error {
	was := w.all[t.Key.Name]
	if was == nil || t.UID != "" && was.Version != t.Version {
		return nil
	}
	w.version++
	next := *was
	next.Version, next.Status = fmt.Sprint(w.version), *s
	w.all[t.Key.Name] = &next
	return nil
}

func (n *node) Traceflows() (all []*cluster.Traceflow) {
	for _, t := range n.all {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *cluster.Traceflow) int { return a.Key.Compare(b.Key) })
	return all
}

func (n *node) TracedEnds(*cluster.Traceflow) (ends control.TracedEnds, err error) {
	if n.missing != nil {
		return control.TracedEnds{Node: "node-a"}, n.missing
	}
	ends = control.TracedEnds{Node: "node-a", Src: netip.MustParseAddr("10.10.0.5"), Dst: netip.MustParseAddr("10.10.1.5")}
	if n.name == "node-a" {
		ends.Port, ends.SrcMAC, ends.DstMAC = 5, [6]byte{2, 0, 0, 0, 0, 5}, [6]byte{2, 0, 0, 0, 0, 1}
	}
	return ends, nil
}

func (n *node) SetTraceflows(tags []control.TracedTag) error { n.tags = tags; return nil }
func (n *node) FirstNode() string                            { return "node-a" }
func (n *node) NodeAt(netip.Addr) string                     { return "node-b" }
func (n *node) PlaceOf(netip.Addr) control.Place             { return control.Place{} }
func (n *node) Object(cluster.Key) cluster.Object            { return nil }
func (n *node) OriginsOf(*flow.Entry) []ledger.Origin        { return nil }
func (n *node) RuleByID(uint32) *policy.RealisedRule         { return nil }
func (n *node) Self() (control.Self, error) {
	return control.Self{Gateway: tables.Port{No: 2}, Tunnel: tables.Port{No: 1}}, nil
}

func (n *node) Names() *flow.Names {
	names := flow.NewNames()
	names.SetTable(0, tables.TableNames()[0])
	names.SetTable(9, "Output")
	return names
}

func (n *node) TraceLive(*door.LiveRequest) (door.Live, error) {
	l := &fakeLive{walks: make(chan *telemetry.Trace, 100)}
	n.live = append(n.live, l)
	return l, nil
}

// PacketOut has the packet seen on both Nodes: it leaves node-a by the tunnel, and node-b to
// its Pod, at port 7.
func (n *node) PacketOut(inPort uint32, actions []flow.Action, frame []byte) error {
	var k flow.Key
	flow.Extract(packetFrame(frame), inPort, &k)
	n.sent = append(n.sent, flow.KeyText(&k, nil))
	if text := flow.ActionsText(actions, flow.Format{Names: n.Names()}); text != "resubmit(,PipelineRootClassifier)" {
		n.t.Errorf("actions %s", text)
	}
	for i, to := range n.nodes {
		if i == 1 && n.isolated {
			continue
		}
		t := &telemetry.Trace{Start: k, Names: n.Names(), Live: &telemetry.Arrival{Port: inPort, Time: n.now}}
		if i == 1 {
			t.Live.Port = 1
		}
		st := telemetry.Step{Kind: telemetry.StepOutput, Table: 9, Port: []uint32{1, 7}[i], After: k}
		tables.TargetOFPortField.Put(&st.After, flow.Value{Lo: uint64(st.Port)})
		t.Steps = append(t.Steps, st)
		to.live[len(to.live)-1].walks <- t
	}
	return nil
}

func packetFrame(b []byte) *packet.Frame {
	f := packet.NewFrame(make([]byte, packet.Headroom+len(b)+64), nil)
	f.SetBytes(b)
	return f
}

// pass lets time pass, in steps in which each Node takes a turn.
func (w *world) pass(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(500 * time.Millisecond) {
		for _, n := range w.nodes {
			n.r.turn(w.t.Context())
			n.takeAll()
		}
	}
}

// takeAll takes what the watches have.
func (n *node) takeAll() {
	for {
		queued := 0
		for _, l := range n.live {
			queued += len(l.walks)
		}
		select {
		case s := <-n.r.seen:
			n.r.take(&s)
			continue
		case <-time.After(time.Millisecond):
		}
		if queued == 0 {
			return
		}
	}
}

// wantStatus compares a status, in short. Results are in the order of Nodes' names: of two
// Nodes that write at once, either may be first.
func (w *world) wantStatus(n *node, name, want string) {
	w.t.Helper()
	s := n.r.Status(w.all[name])
	got := []string{string(s.Phase)}
	byNode := func(a, b cluster.TraceflowResult) int { return strings.Compare(a.Node, b.Node) }
	for _, r := range slices.SortedFunc(slices.Values(s.Results), byNode) {
		for _, o := range r.Observations {
			got = append(got, fmt.Sprintf("%s %s %s", r.Node, o.Component, o.Action))
		}
	}
	if s.Reason != "" {
		got = append(got, s.Reason)
	}
	if text := strings.Join(got, ", "); text != want || s.Phase != cluster.TraceflowRunning && s.Tag != 0 {
		w.t.Errorf("%s on %s is %q with tag %d, want %q", name, n.name, text, s.Tag, want)
	}
}

// TestTwoNodes: the owner gives a tag and sends one packet, both Nodes add what they saw, and
// nothing is left.
func TestTwoNodes(t *testing.T) {
	w := newWorld(t, true)
	w.add("tf")
	w.pass(time.Second)
	w.wantStatus(w.nodes[1], "tf", "Running")
	tag := w.all["tf"].Status.Tag
	for _, n := range w.nodes {
		if len(n.tags) != 1 || n.tags[0].Tag != tag || tag < tables.FirstTag {
			t.Errorf("%s has tags %v, want %d", n.name, n.tags, tag)
		}
	}
	if len(w.sent) > 0 {
		t.Errorf("sent before all Nodes watch: %v", w.sent)
	}
	w.pass(4 * time.Second)
	w.wantStatus(w.nodes[0], "tf", "Succeeded, node-a SpoofGuard Forwarded, node-a Forwarding Forwarded, node-b Forwarding Received, node-b Forwarding Delivered")
	if len(w.sent) != 1 || !strings.Contains(w.sent[0], fmt.Sprintf("nw_tos=%d,", tag<<2)) {
		t.Errorf("sent %v", w.sent)
	}
	for _, n := range w.nodes {
		if len(n.tags) > 0 {
			t.Errorf("%s still has tags %v", n.name, n.tags)
		}
	}
}

// TestFailures: an end that is not there, a packet that does not arrive, and an owner that does
// nothing.
func TestFailures(t *testing.T) {
	w := newWorld(t, true)
	w.missing = errors.New("there is no Pod b")
	w.add("missing")
	w.pass(2 * time.Second)
	w.wantStatus(w.nodes[0], "missing", "")
	w.pass(3 * time.Second)
	w.wantStatus(w.nodes[0], "missing", "Failed, Node node-a: there is no Pod b")

	w.missing, w.isolated = nil, true
	w.add("lost")
	w.pass(15 * time.Second)
	w.wantStatus(w.nodes[0], "lost", "Running, node-a SpoofGuard Forwarded, node-a Forwarding Forwarded")
	w.pass(10 * time.Second)
	w.wantStatus(w.nodes[0], "lost", "Failed, node-a SpoofGuard Forwarded, node-a Forwarding Forwarded, Traceflow timeout")

	w.nodes = w.nodes[1:]
	w.add("silent")
	w.pass(24 * time.Second)
	w.wantStatus(w.nodes[0], "silent", "")
	w.pass(3 * time.Second)
	w.wantStatus(w.nodes[0], "silent", "Failed, Node node-a, where the source Pod is, did not begin")
}

// TestTags: Traceflows at the same time have different tags, as many as there are; one more
// waits. Of two with one tag, the second by name gets another.
func TestTags(t *testing.T) {
	w := newWorld(t, true)
	w.isolated = true
	for i := range 15 {
		w.add(fmt.Sprintf("tf-%02d", i))
	}
	w.pass(time.Second)
	tags := map[uint8]bool{}
	for _, f := range w.all {
		tags[f.Status.Tag] = true
	}
	if len(tags) != 15 || !tags[0] {
		t.Errorf("tags %v, want 14 and none for one", tags)
	}
	w.pass(45 * time.Second)
	for name := range w.all {
		w.wantStatus(w.nodes[0], name, "Failed, node-a SpoofGuard Forwarded, node-a Forwarding Forwarded, Traceflow timeout")
	}
	clear(w.all)
	w.pass(time.Second)
	w.isolated = false
	w.add("first")
	w.add("second")
	w.pass(time.Second)
	for _, name := range []string{"first", "second"} {
		w.WriteTraceflow(t.Context(), w.all[name], &cluster.TraceflowStatus{Phase: cluster.TraceflowRunning, Tag: 11})
	}
	w.pass(10 * time.Second)
	const want = "Succeeded, node-a SpoofGuard Forwarded, node-a Forwarding Forwarded, node-b Forwarding Received, node-b Forwarding Delivered"
	w.wantStatus(w.nodes[0], "first", want)
	w.wantStatus(w.nodes[0], "second", want)
}

// TestWithoutAPI: each Node keeps its own status. One that is edited runs again.
func TestWithoutAPI(t *testing.T) {
	w := newWorld(t, false)
	w.add("tf")
	w.pass(4 * time.Second)
	w.wantStatus(w.nodes[0], "tf", "Succeeded, node-a SpoofGuard Forwarded, node-a Forwarding Forwarded, the packet went on to Node node-b, whose agent knows the rest")
	w.wantStatus(w.nodes[1], "tf", "Succeeded, node-b Forwarding Received, node-b Forwarding Delivered")
	w.isolated = true
	w.add("tf")
	w.pass(25 * time.Second)
	w.wantStatus(w.nodes[1], "tf", "Succeeded, its packet did not come to this Node")
	if len(w.sent) != 2 {
		t.Errorf("sent %v", w.sent)
	}
}

// TestRefused: whoever waits for a Traceflow that was refused learns why, once.
func TestRefused(t *testing.T) {
	w := newWorld(t, true)
	w.add("tf")
	w.refused = map[cluster.Key]string{key("tf"): "spec.liveTraffic: Forbidden"}
	w.all["tf"].Status.Phase = "Refused" // the store does not have it
	w.pass(time.Second)
	w.wantStatus(w.nodes[0], "tf", "Failed, spec.liveTraffic: Forbidden")
	if n := w.version; n != 2 {
		t.Errorf("%d versions", n)
	}
}

// TestFrames: packets are what their Traceflows say.
func TestFrames(t *testing.T) {
	ends := control.TracedEnds{Src: netip.MustParseAddr("10.10.0.5"), Dst: netip.MustParseAddr("10.10.1.5"), SrcMAC: [6]byte{2, 0, 0, 0, 0, 5}, DstMAC: [6]byte{2, 0, 0, 0, 0, 1}}
	ends6 := ends
	ends6.Src, ends6.Dst = netip.MustParseAddr("fd00::5"), netip.MustParseAddr("fd00::6")
	for _, c := range []struct {
		p    cluster.TracedPacket
		want []string
	}{
		{cluster.TracedPacket{Protocol: packet.ProtoTCP, SrcPort: 5, DstPort: 80, TCPFlags: 2, TTL: 3}, []string{"tcp,", "nw_tos=236", "nw_ttl=3", "tp_src=5,tp_dst=80", "tcp_flags=syn"}},
		{cluster.TracedPacket{Protocol: packet.ProtoUDP, DstPort: 53, DontFragment: true}, []string{"udp,", "nw_ttl=64", "tp_dst=53", "nw_dst=10.10.1.5"}},
		{cluster.TracedPacket{Protocol: packet.ProtoICMP, ICMPID: 9, ICMPSeq: 8}, []string{"icmp,", "icmp_type=8"}},
		{cluster.TracedPacket{Protocol: packet.ProtoTCP, IPv6: true, DstPort: 80, TCPFlags: 16}, []string{"tcp6,", "ipv6_dst=fd00::6", "tcp_flags=ack"}},
		{cluster.TracedPacket{Protocol: packet.ProtoUDP, IPv6: true, DstPort: 53}, []string{"udp6,", "nw_tos=236"}},
		{cluster.TracedPacket{Protocol: packet.ProtoICMPv6, IPv6: true, ICMPID: 9}, []string{"icmp6,", "icmp_type=128"}},
	} {
		of := ends
		if c.p.IPv6 {
			of = ends6
		}
		f := &cluster.Traceflow{Meta: cluster.Meta{Key: key("tf")}, Packet: c.p}
		b, err := frameOf(f, 59, &of)
		if err != nil {
			t.Error(err)
			continue
		}
		var k flow.Key
		flow.Extract(packetFrame(b), 5, &k)
		for _, want := range c.want {
			if text := flow.KeyText(&k, nil); !strings.Contains(text, want) {
				t.Errorf("%s has no %s", text, want)
			}
		}
		l := packet.ParseLayers(b)
		sound := slices.Clone(b)
		if l.SetL4Checksum(sound); !slices.Equal(sound, b) {
			t.Errorf("%v: the checksum is wrong", c.p)
		}
		if h := packet.ICMP(b[l.L4:]); !hasPorts(&c.p) && (h.ID() != c.p.ICMPID || h.Seq() != c.p.ICMPSeq) {
			t.Errorf("id %d, sequence %d", h.ID(), h.Seq())
		}
		if h := packet.IPv4(b[l.L3:]); c.p.DontFragment && (h.FlagsOffset() != packet.IPv4DontFragment || !h.ChecksumValid()) {
			t.Error("it may be fragmented, or its checksum is wrong")
		}
	}
}
