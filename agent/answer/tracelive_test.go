package answer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/trace"
)

// watchedNode is a Node of examples/web-app on memory ports, whose API is served
// at a socket.
type watchedNode struct {
	*Answers
	name   string
	ports  map[uint32]*memory.Port
	client *api.Client
}

// Ports of both Nodes.
const (
	nodeTunnel = 1
	nodeClient = 36
	nodeWeb    = 37
	nodeDB     = 38
)

func newWatchedNode(t *testing.T, name string) *watchedNode {
	t.Helper()
	return loadWatched(t, "../../examples/web-app", name, pipeline.Options{})
}

// loadWatched is newWatchedNode with other objects and options.
func loadWatched(t *testing.T, manifests, name string, o pipeline.Options) *watchedNode {
	t.Helper()
	p, err := pipeline.Manifests{Path: manifests, Node: name}.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	n := &watchedNode{Answers: New(p), name: name}
	if n.ports, err = n.addMemoryPorts([]string{config.DefaultTunnel}); err != nil {
		t.Fatal(err)
	}
	n.client = serveLive(t, n.Answers, name)
	t.Cleanup(func() { p.Close() })
	return n
}

// serveLive serves a pipeline's live traces, as an agent does.
func serveLive(t *testing.T, p *Answers, name string) *api.Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "live") // shorter than a test's own: sockets have short names
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := p.Routes(Registry(p))
	mux.HandleFunc("POST /trace/live", func(w http.ResponseWriter, r *http.Request) { p.AnswerLive(w, r, name) })
	server := &http.Server{Handler: mux}
	go func() { server.Serve(ln) }()
	t.Cleanup(func() { server.Close(); os.RemoveAll(dir) })
	return api.NewClient(socket)
}

// send gives the Node a frame at a port, and returns what leaves by another.
func (n *watchedNode) send(t *testing.T, in uint32, b []byte, tunnel packet.Tunnel, out uint32) (sent []*packet.Frame) {
	t.Helper()
	f := packet.NewFrame(make([]byte, 2048), nil)
	f.SetBytes(b)
	f.Tunnel = tunnel
	n.ports[in].Inject(f)
	n.Local.Poll()
	for one := make([]*packet.Frame, 1); n.ports[out] != nil && n.ports[out].Collect(one) == 1; {
		sent = append(sent, one[0])
	}
	return sent
}

// watching is a trace under way at some Nodes.
type watching struct {
	ways   chan trace.Joined
	armed  []*api.Armed
	counts chan telemetry.LiveCounts
	errs   chan error
	stop   func()
}

// watch begins a trace, and returns once all Nodes watch.
func watch(t *testing.T, r api.LiveTraceRequest, nodes ...*watchedNode) *watching {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	w := &watching{ways: make(chan trace.Joined, 2000), counts: make(chan telemetry.LiveCounts, 1), errs: make(chan error, 1), stop: cancel}
	armed := make(chan *api.Armed, len(nodes))
	watch := api.Watch{Request: r, Armed: func(a *api.Armed) { armed <- a }, Tell: func(way trace.Joined) error { w.ways <- way; return nil }}
	for _, n := range nodes {
		watch.Agents = append(watch.Agents, n.client)
	}
	go func() {
		c, err := watch.Run(ctx)
		w.counts <- c
		w.errs <- err
	}()
	for range nodes {
		select {
		case a := <-armed:
			w.armed = append(w.armed, a)
		case err := <-w.errs:
			t.Fatalf("the trace ended: %v", err)
		}
	}
	return w
}

// next is the next way.
func (w *watching) next(t *testing.T) trace.Joined {
	t.Helper()
	select {
	case way := <-w.ways:
		return way
	case err := <-w.errs:
		t.Fatalf("the trace ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("no walk came")
	}
	return nil
}

// syn is the first packet of a connection from the client of a Node.
func syn(dst string, sport uint16) []byte {
	return packettest.TCP4(packettest.Options{
		EthSrc: [6]byte{0x5e, 0xb5, 0xe3, 0xa6, 0x90, 0xb7}, EthDst: [6]byte{0xba, 0x5e, 0xd1, 0x55, 0xaa, 0xc0},
		Src: packettest.Addr("10.10.0.26"), Dst: packettest.Addr(dst), SrcPort: sport, DstPort: 80, TCPFlags: packet.TCPSyn, TTL: 64,
	})
}

// TestLiveTraceAcrossNodes watches a client of one Node that asks a Service, whose
// endpoint is on another one: one walk, with the objects of both Nodes.
func TestLiveTraceAcrossNodes(t *testing.T) {
	a, b := newWatchedNode(t, "node-a"), newWatchedNode(t, "node-b")
	w := watch(t, api.LiveTraceRequest{Source: "default/client-a", Destination: "default/web-b"}, a, b)
	out := a.send(t, nodeClient, syn("10.96.1.6", 1000), packet.Tunnel{}, nodeTunnel)
	if len(out) != 1 || out[0].Tunnel.Trace == 0 {
		t.Fatalf("%d frames left through the tunnel", len(out))
	}
	far := packet.Tunnel{Src: netip.MustParseAddr("192.168.77.101"), Dst: netip.MustParseAddr("192.168.77.103"), Trace: out[0].Tunnel.Trace}
	if got := b.send(t, nodeTunnel, out[0].Bytes(), far, nodeWeb); len(got) != 1 {
		t.Fatalf("%d frames arrived", len(got))
	}
	way := w.next(t)
	if len(way) != 2 || way[0].Node != "node-a" || way[1].Node != "node-b" || way[0].ID != way[1].ID || !way[1].Followed {
		t.Fatalf("%d walks: %+v", len(way), way[0])
	}
	var tree strings.Builder
	if err := trace.WriteTree(&tree, way); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"tcp 10.10.0.26:1000 > 10.96.1.6:80 syn, 54 bytes on node-a, id " + way[0].ID,
		"enters by client-a (36, default/client-a)",
		"for Pod/default/client-a",
		"for Service/default/web-b-only spec.ports[0] at spec.clusterIPs",
		"chose bucket 0 of 1, Service/default/web-b-only",
		"NAT: destination 10.96.1.6:80 → 10.10.1.6:80",
		"conntrack: new|trk|dnat in zone 65520",
		"in a tunnel to 192.168.77.103, VNI 0",
		"goes on on node-b",
		"enters by antrea-tun0 (1), in a tunnel from 192.168.77.101, VNI 0",
		"leaves by web-b (37, default/web-b)",
		`└─ output to port 37 ("web-b")`,
	} {
		if !strings.Contains(tree.String(), want) {
			t.Errorf("no %q in\n%s", want, tree.String())
		}
	}
	a.send(t, nodeClient, syn("10.96.0.24", 1001), packet.Tunnel{}, nodeTunnel) // to another one
	a.send(t, nodeWeb, syn("10.96.1.6", 1002), packet.Tunnel{}, nodeTunnel)     // from another one
	a.send(t, nodeClient, syn("10.10.1.6", 1003), packet.Tunnel{}, nodeTunnel)
	if next := w.next(t); len(next) != 1 || !strings.Contains(next[0].Packet, "tp_src=1003") {
		t.Errorf("%d walks: %s", len(next), next[0].Packet)
	}
	w.stop()
	if err := errors.Join(<-w.errs); err != nil {
		t.Error(err)
	}
}

// TestLiveTraceSpoof watches a Pod that lies about its address: it is met by its port,
// and told as dropped.
func TestLiveTraceSpoof(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	w := watch(t, api.LiveTraceRequest{Source: "default/client-a", DroppedOnly: true, Text: true}, n)
	forged := syn("10.10.0.24", 1000)
	copy(forged[26:], []byte{10, 10, 0, 99})
	n.send(t, nodeClient, syn("10.10.0.24", 999), packet.Tunnel{}, nodeWeb)
	n.send(t, nodeClient, forged, packet.Tunnel{}, 0)
	way := w.next(t)
	v := way[0].Verdict
	if len(way) != 1 || v.Reason != "entry" || v.Table != "SpoofGuard" {
		t.Errorf("%+v", v)
	}
	if !strings.Contains(way[0].Text, "dropped in table SpoofGuard") {
		t.Errorf("the text is\n%s", way[0].Text)
	}
}

// TestLiveTraceEnds ends traces by their count, by their time and by their client.
func TestLiveTraceEnds(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	counted := watch(t, api.LiveTraceRequest{Filter: "tcp", Count: 3}, n)
	for i := range 10 {
		n.send(t, nodeClient, syn("10.10.0.24", uint16(i)), packet.Tunnel{}, nodeWeb)
	}
	if c, err := <-counted.counts, <-counted.errs; err != nil || c.Told != 3 || len(counted.ways) != 3 {
		t.Errorf("%d walks, %+v, %v", len(counted.ways), c, err)
	}
	other := newWatchedNode(t, "node-b")
	several := watch(t, api.LiveTraceRequest{Filter: "tcp", Count: 3}, n, other)
	for i := range 10 {
		n.send(t, nodeClient, syn("10.10.0.24", uint16(100+i)), packet.Tunnel{}, nodeWeb)
	}
	if err := <-several.errs; err != nil || len(several.ways) != 3 {
		t.Errorf("of two Nodes %d walks, want 3; %v", len(several.ways), err)
	}
	timed := watch(t, api.LiveTraceRequest{For: 50 * time.Millisecond}, n)
	if err := <-timed.errs; err != nil {
		t.Error(err)
	}
	for range 20 { // more than there may be at once
		w := watch(t, api.LiveTraceRequest{}, n)
		w.stop()
		if err := <-w.errs; err != nil {
			t.Fatal(err)
		}
		n.waitForNobody(t)
	}
}

// waitForNobody waits until no trace is left that nobody reads.
func (n *watchedNode) waitForNobody(t *testing.T) {
	t.Helper()
	for range 2000 {
		l, err := n.Switch.TraceLive(&door.LiveRequest{})
		if err == nil {
			l.Close()
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("traces stay that nobody reads")
}

// TestLiveTraceArmed says what is looked for.
func TestLiveTraceArmed(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	w := watch(t, api.LiveTraceRequest{Source: "default/client-b", Destination: "default/web-a", Port: 80, Filter: "ip"}, n)
	want := []string{
		"src host (10.10.1.7 or fd00:10:10:1::7)",
		"dst host (10.10.0.24 or fd00:10:10::24 or 10.96.0.24 or 10.96.76.15 or 10.105.31.235 or 192.168.77.150 or 192.168.77.151 or 192.168.77.200 or " +
			"fd00:10:96::15 or fd00:10:96::24 or fd00:10:96::235 or fd00:77::150 or fd00:77::151 or fd00:77::200)",
		"port 80", "ip",
	}
	if got := w.armed[0]; !slices.Equal(got.Filter, want) || got.InPort != 0 || got.Node != "node-a" {
		t.Errorf("%+v", got)
	}
}

// TestLiveTraceRefuses says what is wrong with a request.
func TestLiveTraceRefuses(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	files, err := twoNodes(t).Load(pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for want, r := range map[string]api.LiveTraceRequest{
		"there is no Pod default/nobody":                              {Source: "default/nobody"},
		`"web-a" is not namespace/name of a Pod`:                      {Destination: "web-a"},
		`filter "host web", column 6: expected an address, not "web"`: {Filter: "host web"},
		`firstID="12" has no session`:                                 {FirstID: "12"},
		"bytes: 9217 of a packet; want 1 to 9216":                     {Bytes: 9217},
		"firstID=\"no\" has no session":                               {FirstID: "no"},
	} {
		if err := n.client.TraceLive(t.Context(), &r, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
	r := api.LiveTraceRequest{Source: "default/client-a"}
	err = serveLive(t, New(files), "").TraceLive(t.Context(), &r, nil)
	if err == nil || !strings.Contains(err.Error(), "entries come from flow files") {
		t.Errorf("flow files: %v", err)
	}
	if err := api.NewClient("/nowhere").TraceLive(t.Context(), &r, nil); err == nil || !strings.Contains(err.Error(), "no agent answers at /nowhere") {
		t.Errorf("nobody: %v", err)
	}
}

// TestLiveTraceBytes: a walk has the beginning of a packet, headers if nobody says how much,
// and its whole length in a number.
func TestLiveTraceBytes(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	long := append(syn("10.10.0.24", 7), make([]byte, 1000)...)
	for bytes, want := range map[int]int{0: api.HeaderBytes, 60: 60, api.MostBytes: len(long)} {
		w := watch(t, api.LiveTraceRequest{Port: 80, Bytes: bytes, Tables: []string{"Output"}}, n)
		n.send(t, nodeClient, long, packet.Tunnel{}, nodeWeb)
		walk, kept := w.next(t)[0], 0
		for _, s := range walk.Steps {
			if s.Frame != nil {
				kept++
				if len(s.Frame) != want {
					t.Errorf("%d asked for: %d bytes at %s, want %d", bytes, len(s.Frame), s.Table, want)
				}
			}
		}
		if len(walk.Frame) != want || walk.Length != len(long) || kept != 2 {
			t.Errorf("%d asked for: %d of %d bytes, %d steps have them; want %d of %d, 2 steps", bytes, len(walk.Frame), walk.Length, kept, want, len(long))
		}
		w.stop()
	}
}

// TestLiveTraceOfMany watches a thousand packets that come as fast as they are read.
func TestLiveTraceOfMany(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	w := watch(t, api.LiveTraceRequest{Port: 80}, n)
	for i := range 1000 {
		n.send(t, nodeClient, syn("10.10.0.24", uint16(i)), packet.Tunnel{}, nodeWeb)
	}
	seen := map[string]bool{}
	for range 100 {
		way := w.next(t)
		seen[fmt.Sprint(way[0].ID, way[0].Packet)] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d of 100 walks are different", len(seen))
	}
	w.stop()
	c := <-w.counts
	if c.Told < 100 || c.Told+c.Missed > c.Matched {
		t.Errorf("%+v", c)
	}
}
