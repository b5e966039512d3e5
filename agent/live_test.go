package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/internal/antrailtest"
)

// liveNode is an agent's configuration for node-a of a copy of examples/web-app.
func liveNode(t testing.TB) (c *config.Config, manifests string) {
	t.Helper()
	manifests = t.TempDir()
	if err := os.CopyFS(manifests, os.DirFS("../examples/web-app")); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("flows: node-a.flows", "manifests: "+manifests, "ofPort: 36", "link: client-a-1", "ofPort: 37, ", "").Replace(goodConfig)
	c, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c, manifests
}

// entriesOf counts the entries of a table.
func entriesOf(p *pipeline.Pipeline, table string) int {
	for _, t := range p.Switch.Tables() {
		if p.TableName(t.ID) == table {
			return t.Entries
		}
	}
	return 0
}

// loadNew is a new switch in this process with the objects of a configuration.
func loadNew(c *config.Config, log *slog.Logger) (*pipeline.Pipeline, *live, error) {
	p, err := pipeline.NewPipeline(pipeline.OptionsOf(c))
	if err != nil {
		return nil, nil, err
	}
	l, err := loadLive(c, p, nil, log)
	return p, l, err
}

// TestLive changes manifests under a running switch: policies go, a pod's port
// goes, a broken file changes nothing, another Node's gateway neither.
func TestLive(t *testing.T) {
	c, manifests := liveNode(t)
	log := make(logLines, 1000)
	p, l, err := loadNew(c, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Local.Close()
	wantPorts(t, l.ports(),
		config.Port{Name: "client-a", OFPort: 36, Link: "client-a-1", Driver: "auto", MAC: config.MAC{0x5e, 0xb5, 0xe3, 0xa6, 0x90, 0xb7}},
		config.Port{Name: "web-a", OFPort: 37, Link: "web-a-3f2a1", Driver: "afxdp", MAC: config.MAC{0xfa, 0xb7, 0x53, 0x74, 0x21, 0xa6}},
		config.Port{Name: "db-a", OFPort: 38, Link: "db-a", Driver: "auto", MAC: config.MAC{0x36, 0x48, 0x21, 0xa2, 0x9d, 0xb4}},
		config.Port{Name: "antrea-l7-tap0", OFPort: 32, Link: "antrea-l7-tap0", Driver: "tap"},
		config.Port{Name: "antrea-l7-tap1", OFPort: 33, Link: "antrea-l7-tap1", Driver: "tap"},
		config.Port{Name: "antrea-tc-tap0", OFPort: 34, Link: "antrea-tc-tap0", Driver: "tap"},
		config.Port{Name: "antrea-tc-tap1", OFPort: 35, Link: "antrea-tc-tap1", Driver: "tap"},
		config.Port{Name: "antrea-tc-tap2", OFPort: 39, Link: "antrea-tc-tap2", Driver: "tap", NoReturn: true})
	if n := entriesOf(p, "IngressDefaultRule"); n != 3 {
		t.Errorf("%d entries in IngressDefaultRule, want the isolation of db-a and web-a and the table-miss", n)
	}

	ctx, stop := context.WithCancel(t.Context())
	news := make(chan []config.Port, 100)
	l.setPorts = func(ports []config.Port) { news <- ports }
	l.setNode = func(*ledger.NodeSide) error { return nil }
	ended := make(chan error, 1)
	go func() { ended <- l.runManifests(ctx) }()
	next := func() []config.Port {
		t.Helper()
		select {
		case ports := <-news:
			return ports
		case err := <-ended:
			t.Fatalf("ended: %v", err)
		case <-time.After(time.Minute):
			t.Fatal("nothing happened")
		}
		return nil
	}

	if err := os.Rename(filepath.Join(manifests, "policies.yaml"), filepath.Join(manifests, "policies.off")); err != nil {
		t.Fatal(err)
	}
	next()
	if n := entriesOf(p, "IngressDefaultRule"); n != 1 {
		t.Errorf("%d entries in IngressDefaultRule, want the table-miss", n)
	}
	nodeConfig := filepath.Join(manifests, "node-a.yaml")
	antrailtest.ReplaceIn(t, nodeConfig, `    - {name: db-a, ofPort: 38, pod: default/db-a, mac: "36:48:21:a2:9d:b4"}`+"\n", "")
	if ports := next(); len(ports) != 7 {
		t.Errorf("ports %v", ports)
	}
	entries := len(p.Switch.Flows())
	antrailtest.ReplaceIn(t, filepath.Join(manifests, "services.yaml"), "kind: Service", "kind: [Service")
	log.want(t, "services.yaml:")
	antrailtest.ReplaceIn(t, nodeConfig, "ofPort: 2,", "ofPort: 3,")
	log.want(t, "the objects are no longer this Node's")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := len(p.Switch.Flows()); n != entries {
		t.Errorf("%d entries, want the %d that were there", n, entries)
	}
}

// TestRulesBeforePorts (CT-45): a pod's port is asked for when the entries that
// say which packets it may receive are in the switch, at the start and later.
func TestRulesBeforePorts(t *testing.T) {
	c, manifests := liveNode(t)
	nodeConfig, line := filepath.Join(manifests, "node-a.yaml"), `    - {name: db-a, ofPort: 38, pod: default/db-a, mac: "36:48:21:a2:9d:b4"}`+"\n"
	const before = "  ports:\n"
	antrailtest.ReplaceIn(t, nodeConfig, line, "")
	p, l, err := loadNew(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Local.Close()
	wantGuarded(t, p, l.ports(), "client-a", "web-a")

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	guards := make(chan []config.Port, 100)
	l.setPorts = func(ports []config.Port) {
		if len(ports) == 8 {
			wantGuarded(t, p, ports, "client-a", "web-a", "db-a")
		}
		guards <- ports
	}
	l.setNode = func(*ledger.NodeSide) error { return nil }
	ended := make(chan error, 1)
	go func() { ended <- l.runManifests(ctx) }()
	antrailtest.ReplaceIn(t, nodeConfig, before, before+line)
	for ports := []config.Port(nil); len(ports) != 8; {
		select {
		case ports = <-guards:
		case err := <-ended:
			t.Fatalf("ended: %v", err)
		case <-time.After(time.Minute):
			t.Fatal("db-a's port was not asked for")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// wantGuarded checks that ports are among those asked for, and what they may
// send is in the switch.
func wantGuarded(t *testing.T, p *pipeline.Pipeline, guards []config.Port, names ...string) {
	t.Helper()
	for _, name := range names {
		i := slices.IndexFunc(guards, func(port config.Port) bool { return port.Name == name })
		if i < 0 {
			t.Errorf("%s is not asked for", name)
			continue
		}
		guarded := slices.ContainsFunc(p.Switch.Flows(), func(f telemetry.FlowStats) bool {
			return p.TableName(f.Table) == "SpoofGuard" && strings.Contains(f.Match.Text(p.Switch.Names()), fmt.Sprintf("in_port=%q", name))
		})
		if !guarded {
			t.Errorf("%s is asked for, and SpoofGuard does not know it", name)
		}
	}
}

// logLines is a log, line by line.
type logLines chan string

func (l logLines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// want waits for a line with some words.
func (l logLines) want(t *testing.T, words string) {
	t.Helper()
	for {
		select {
		case line := <-l:
			if strings.Contains(line, words) {
				return
			}
		case <-time.After(time.Minute):
			t.Fatalf("no %q in the log", words)
		}
	}
}

func wantPorts(t *testing.T, got []config.Port, want ...config.Port) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("ports %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("port %v, want %v", got[i], want[i])
		}
	}
}

// TestLiveRefuses: an agent does not begin with what is not about its Node.
func TestLiveRefuses(t *testing.T) {
	for _, s := range []struct{ name, file, old, new, want string }{
		{"no NodeConfig", "node-a.yaml", "metadata: {name: node-a}", "metadata: {name: node-x}", "there is no NodeConfig/node-a"},
		{"no Node", "cluster.yaml", "metadata: {name: node-a}", "metadata: {name: node-x}", "node-a"},
		{"another gateway", "node-a.yaml", "ba:5e:d1:55:aa:c0", "ba:5e:d1:55:aa:c1", "the gateway of NodeConfig/node-a is antrea-gw0, port 2, ba:5e:d1:55:aa:c1"},
		{"another address of the gateway", "node-a.yaml", `"fd00:10:10::1"`, `"fd00:10:10::2"`, "the gateway of NodeConfig/node-a has [10.10.0.1 fd00:10:10::2]; in the configuration it has [10.10.0.1/24 fd00:10:10::1/64]"},
		{"one family less", "node-a.yaml", `, "fd00:10:10::1"`, "", "the gateway of NodeConfig/node-a has [10.10.0.1]; in the configuration it has [10.10.0.1/24 fd00:10:10::1/64]"},
		{"tunnel over IPv6", "node-a.yaml", "transportIPs: [192.168.77.102]", `transportIPs: ["fd00:77::102"]`, "the transportIPs of NodeConfig/node-a are [fd00:77::102]; in the configuration tunnel.localAddress is 192.168.77.102"},
		{"another mode", "node-a.yaml", "ofPort: 1}", "ofPort: 1}\n  trafficEncapMode: hybrid\n  transportCIDRs: [192.168.77.0/24]", "the trafficEncapMode of NodeConfig/node-a is hybrid; in the configuration it is encap"},
		{"another type of tunnel", "node-a.yaml", "ofPort: 1}", "ofPort: 1, type: vxlan}", "the tunnel of NodeConfig/node-a is of type vxlan; in the configuration it is geneve"},
		{"another tunnel", "node-a.yaml", "antrea-tun0", "antrea-tun1", "the tunnel of NodeConfig/node-a"},
	} {
		t.Run(s.name, func(t *testing.T) {
			c, manifests := liveNode(t)
			antrailtest.ReplaceIn(t, filepath.Join(manifests, s.file), s.old, s.new)
			p, _, err := loadNew(c, slog.New(slog.DiscardHandler))
			if p != nil {
				defer p.Local.Close()
			}
			if err == nil || !strings.Contains(err.Error(), s.want) {
				t.Errorf("error %v, want one with %q", err, s.want)
			}
		})
	}
}

// TestDevicePorts: what a TrafficControl names as a device is a link of that name,
// and is not made.
func TestDevicePorts(t *testing.T) {
	c, manifests := liveNode(t)
	antrailtest.ReplaceIn(t, filepath.Join(manifests, "egress-trafficcontrol.yaml"), "{ovsInternal: {name: antrea-tc-tap2}}", "{device: {name: antrea-tc-tap2}}")
	p, l, err := loadNew(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Local.Close()
	wantPorts(t, l.ports()[7:], config.Port{Name: "antrea-tc-tap2", OFPort: 39, Link: "antrea-tc-tap2", Driver: "auto"})
}

// TestFollowNode: the agent applies the switch's needs to the Node once, again after an
// error, and again when they change.
func TestFollowNode(t *testing.T) {
	c, manifests := liveNode(t)
	p, l, err := loadNew(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Local.Close()
	var told []*ledger.NodeSide
	answer := errors.New("not now")
	l.setNode = func(n *ledger.NodeSide) error { told = append(told, n); return answer }
	l.followNode()
	answer = nil
	l.followNode()
	l.followNode()
	if len(told) != 2 || told[0] != told[1] || len(told[0].ServiceCIDRs) == 0 {
		t.Fatalf("told %+v, want the same twice", told)
	}
	antrailtest.ReplaceIn(t, filepath.Join(manifests, "node-a.yaml"), "serviceCIDRs: [10.96.0.0/12", "serviceCIDRs: [10.112.0.0/12")
	u := l.manifests.Read()
	if err := l.objects.Update(u.New, u.Changed); err != nil {
		t.Fatal(err)
	}
	l.followNode()
	if len(told) != 3 || told[2].ServiceCIDRs[0].String() != "10.112.0.0/12" {
		t.Errorf("told %+v after the range moved", told)
	}
}
