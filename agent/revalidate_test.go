package agent

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/internal/antrailtest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// begun is a connection that a packet begins: where it comes in, and what it is.
type begun struct{ in, packet string }

// The connections of TestRevalidate, by what is to become of them. web-b-only loses
// its endpoint, db pods their clients, and client-a its address, while no agent
// runs.
const (
	fromClient = "dl_src=5e:b5:e3:a6:90:b7,dl_dst=ba:5e:d1:55:aa:c0,"
	fromWeb    = "dl_src=fa:b7:53:74:21:a6,dl_dst=ba:5e:d1:55:aa:c0,"
	fromFar    = "dl_src=aa:bb:cc:dd:ee:ff,dl_dst=aa:bb:cc:dd:ee:ff,"
	fromHost   = "dl_src=ba:5e:d1:55:aa:c0,dl_dst=aa:bb:cc:dd:ee:ff,"
)

var revalidatedConnections = map[string][]begun{
	"kept": {
		{"client-a", "tcp,dl_src=5e:b5:e3:a6:90:b7,dl_dst=fa:b7:53:74:21:a6,nw_src=10.10.0.26,nw_dst=10.10.0.24,tp_dst=80"},
		{"client-a", "tcp6,dl_src=5e:b5:e3:a6:90:b7,dl_dst=fa:b7:53:74:21:a6,ipv6_src=fd00:10:10::26,ipv6_dst=fd00:10:10::24,tp_dst=80"},
		{"client-a", "icmp,dl_src=5e:b5:e3:a6:90:b7,dl_dst=fa:b7:53:74:21:a6,nw_src=10.10.0.26,nw_dst=10.10.0.24"},
		{"client-a", "tcp," + fromClient + "nw_src=10.10.0.26,nw_dst=10.10.1.6,tp_dst=80"},
		{"client-a", "tcp," + fromClient + "nw_src=10.10.0.26,nw_dst=10.105.31.235,tp_src=1,tp_dst=80"},
		{"client-a", "tcp," + fromClient + "nw_src=10.10.0.26,nw_dst=10.105.31.235,tp_src=2,tp_dst=80"},
		{"client-a", "tcp," + fromClient + "nw_src=10.10.0.26,nw_dst=10.96.76.15,tp_src=3,tp_dst=80"},
		{"client-a", "tcp6," + fromClient + "ipv6_src=fd00:10:10::26,ipv6_dst=fd00:10:96::24,tp_dst=80"},
		{"client-a", "udp," + fromClient + "nw_src=10.10.0.26,nw_dst=8.8.8.8,tp_src=5,tp_dst=53"},
		{"web-a", "tcp," + fromWeb + "nw_src=10.10.0.24,nw_dst=10.96.0.24,tp_dst=80"}, // and back to itself
		{"antrea-gw0", "tcp,dl_src=ba:5e:d1:55:aa:c0,dl_dst=fa:b7:53:74:21:a6,nw_src=10.10.0.1,nw_dst=10.10.0.24,tp_dst=80"},
		{"antrea-gw0", "pkt_mark=0x80000000,tcp,dl_src=ba:5e:d1:55:aa:c0,dl_dst=36:48:21:a2:9d:b4,nw_src=10.10.0.1,nw_dst=10.10.0.25,tp_dst=3306"}, // the Node, to an isolated pod
		{"antrea-gw0", "tcp," + fromHost + "nw_src=192.168.77.1,nw_dst=192.168.77.150,tp_dst=80"},
		{"antrea-tun0", "tcp," + fromFar + "nw_src=10.10.1.7,nw_dst=10.10.0.24,tp_dst=80"},
	},
	"denied": {
		{"web-a", "tcp,dl_src=fa:b7:53:74:21:a6,dl_dst=36:48:21:a2:9d:b4,nw_src=10.10.0.24,nw_dst=10.10.0.25,tp_dst=3306"},
		{"antrea-tun0", "tcp," + fromFar + "nw_src=10.10.1.6,nw_dst=10.10.0.25,tp_dst=3306"},
		{"client-a", "tcp," + fromClient + "nw_src=10.10.0.26,nw_dst=10.96.1.6,tp_src=8,tp_dst=80"}, // the Service has no endpoint
	},
	"moved": {
		{"client-a", "tcp," + fromClient + "nw_src=10.10.0.26,nw_dst=192.168.77.200,tp_src=7,tp_dst=80"}, // to web-b
	},
}

// addMemoryPorts gives an agent's switch ports in memory for all that it has
// names for.
func memoryPorts(t testing.TB, a *Agent) map[string]*memory.Port {
	t.Helper()
	all := map[string]*memory.Port{}
	for no, name := range a.Switch.Names().OpenPorts() {
		all[name] = memory.New(name, memory.Options{Tunnel: name == a.config.Tunnel.Name})
		if err := a.Local.AddPort(no, all[name]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// beginConnection sends the first packet of a connection, and gives its entries.
func beginConnection(t testing.TB, a *Agent, ports map[string]*memory.Port, b begun) (all []string) {
	t.Helper()
	before := connections(a.Pipeline)
	m, err := parse.Match(b.packet, nil)
	if err != nil {
		t.Fatal(err)
	}
	flow.AssumeFirst(&m)
	first := flow.Compose(&m.Value)
	f := packet.FrameOf(first)
	f.Mark = m.Value.PktMark()
	if ports[b.in].Inject(f) != 1 {
		t.Fatal("the port is full")
	}
	a.Local.Poll()
	for _, c := range connections(a.Pipeline) {
		if !slices.Contains(before, c) {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%v began no connection", b)
	}
	return all
}

// connections are all connections without what changes with time.
func connections(p *pipeline.Pipeline) (all []string) {
	for c := range p.Connections.Dump(conntrack.Filter{}) {
		all = append(all, fmt.Sprintf("%d %v %v %d", c.InPort, &c.Orig, &c.Reply, c.Zone))
	}
	return all
}

// TestRevalidate: of the connections of an agent before, those stay whose first
// packet would come through today and lead where it led; the others go, with
// their entries in other zones.
func TestRevalidate(t *testing.T) {
	c, manifests := keptNode(t)
	a := liveAgent(t, c, slog.New(slog.DiscardHandler), nil)
	ports := memoryPorts(t, a)
	leads := map[string][]string{}
	for what, all := range revalidatedConnections {
		for _, b := range all {
			leads[what] = append(leads[what], beginConnection(t, a, ports, b)...)
		}
	}
	wantToWebB(t, leads["moved"])
	kept := keep(t, a)
	closePipeline(t, a.Pipeline)

	antrailtest.ReplaceIn(t, filepath.Join(manifests, "policies.yaml"), "from: [{podSelector: {matchLabels: {app: web}}}]\n      ports: [{protocol: TCP, port: 3306}]", "from: [{podSelector: {matchLabels: {app: nobody}}}]\n      ports: [{protocol: TCP, port: 3306}]")
	services := filepath.Join(manifests, "services.yaml")
	antrailtest.ReplaceIn(t, services, "selector: {pod: web-b}", "selector: {app: nobody}")
	antrailtest.ReplaceIn(t, services, "selector: {app: web}, ipFamilies: [IPv4, IPv6], externalIPs:", "selector: {pod: web-a}, ipFamilies: [IPv4, IPv6], externalIPs:")

	var log bytes.Buffer
	a = liveAgent(t, c, slog.New(slog.NewTextHandler(&log, nil)), kept)
	defer closePipeline(t, a.Pipeline)
	read := make(chan error, 1)
	if a.live.runFirstRead(read); a.live.restored == nil || len(read) != 1 || <-read != nil {
		t.Fatalf("not restored, or not read: %s", &log)
	}
	ports = memoryPorts(t, a)
	a.live.resume()
	a.runRevalidate(t.Context())
	left := connections(a.Pipeline)
	for what, all := range leads {
		for _, c := range all {
			if got := slices.Contains(left, c); got != (what == "kept") {
				t.Errorf("%s is there: %v, want it %s", c, got, what)
			}
		}
	}
	for what, want := range map[door.Outcome]uint64{door.Kept: uint64(len(revalidatedConnections["kept"])), door.Denied: 3, door.Moved: 1, door.Unknown: 0} {
		if got := a.Connections.Revalidated()[what]; got != want {
			t.Errorf("outcome %d: %d, want %d", what, got, want)
		}
	}
	if !strings.Contains(log.String(), "examined=18 removed=4 denied=3 moved=1 unknown=0") {
		t.Errorf("logged %s", &log)
	}
	wantServerSilent(t, a, ports)
}

// wantToWebB checks that connections lead to web-b.
func wantToWebB(t *testing.T, all []string) {
	t.Helper()
	for _, c := range all {
		if !strings.Contains(c, "src=10.10.1.6") {
			t.Fatalf("%s does not lead to web-b; give it another port", c)
		}
	}
}

// wantServerSilent checks that the server of a connection that was forgotten
// begins none with what it still had to say.
func wantServerSilent(t *testing.T, a *Agent, ports map[string]*memory.Port) {
	t.Helper()
	before := a.Connections.Stats().Entries
	m, err := parse.Match("tcp,dl_src=36:48:21:a2:9d:b4,dl_dst=ba:5e:d1:55:aa:c0,nw_src=10.10.0.25,nw_dst=10.10.1.6,tp_src=3306,tp_dst=40000,tcp_flags=+ack,nw_ttl=64", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ports["db-a"].Send(flow.Compose(&m.Value)); err != nil {
		t.Fatal(err)
	}
	a.Local.Poll()
	if n := a.Local.Drops()[telemetry.DropServerFirst]; n != 1 || a.Connections.Stats().Entries != before {
		t.Errorf("%d packets dropped as the server's first, %d connections, want %d", n, a.Connections.Stats().Entries, before)
	}
}

// TestRevalidateUnknown: a connection that came in where nobody may send from, as
// its pod has gone, is forgotten.
func TestRevalidateUnknown(t *testing.T) {
	c, manifests := keptNode(t)
	a := liveAgent(t, c, slog.New(slog.DiscardHandler), nil)
	beginConnection(t, a, memoryPorts(t, a), revalidatedConnections["kept"][3])
	kept := keep(t, a)
	closePipeline(t, a.Pipeline)

	nodeConfig := filepath.Join(manifests, "node-a.yaml")
	text, err := os.ReadFile(nodeConfig)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "name: client-a") {
			antrailtest.ReplaceIn(t, nodeConfig, line, "")
		}
	}
	a = liveAgent(t, c, slog.New(slog.DiscardHandler), kept)
	defer closePipeline(t, a.Pipeline)
	if !a.live.firstSync(t.Context()) {
		t.Fatal("not synced")
	}
	a.runRevalidate(t.Context())
	if n := a.Connections.Revalidated()[door.Unknown]; n != 1 || len(connections(a.Pipeline)) != 0 {
		t.Errorf("%d unknown, left %v", n, connections(a.Pipeline))
	}
}

// TestPodsAnewWithoutSnapshot: if the earlier owners of the Pods' addresses are unknown, their
// connections are forgotten before their entries are in.
func TestPodsAnewWithoutSnapshot(t *testing.T) {
	c, _ := keptNode(t)
	a := liveAgent(t, c, slog.New(slog.DiscardHandler), nil)
	beginConnection(t, a, memoryPorts(t, a), revalidatedConnections["kept"][0])
	closePipeline(t, a.Pipeline)
	a = liveAgent(t, c, slog.New(slog.DiscardHandler), nil)
	defer closePipeline(t, a.Pipeline)
	if left := connections(a.Pipeline); len(left) != 0 || a.Connections.Stats().Restored.Entries != 1 {
		t.Errorf("%v is left of %d", left, a.Connections.Stats().Restored.Entries)
	}
}
