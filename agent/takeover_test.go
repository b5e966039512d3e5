package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/kubetest"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/vishvananda/netlink"
)

// upgradedNode is a Node with the links of two pods, one of them on AF_XDP, and its
// configuration.
func upgradedNode(t *testing.T) (*nstest.Namespace, *config.Config) {
	t.Helper()
	c, _ := keptNode(t)
	c.Metrics.Listen = new(false)
	node := nstest.New(t)
	node.AddAddress(t, "lo", "192.168.77.102/32")
	nstest.AddVeth(t, node, "client-a-1", nstest.New(t), "eth0")
	nstest.AddVeth(t, node, "web-a-3f2a1", nstest.New(t), "eth0")
	return node, c
}

// portsOpen are the names of the ports that an agent's switch has, sorted.
func portsOpen(t *testing.T, c *config.Config) (names []string) {
	t.Helper()
	var all []api.PortRecord
	if err := api.NewClient(c.Socket).JSON(t.Context(), "/ports", nil, &all); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Missing != "" {
			continue
		}
		names = append(names, fmt.Sprintf("%d %s %s", p.No, p.Link, p.Driver))
	}
	slices.Sort(names)
	return names
}

// forwarding is what an agent's switch forwards by.
type forwarding struct {
	ports         []string
	flows, groups string
}

func forwardingOf(t *testing.T, c *config.Config) *forwarding {
	t.Helper()
	return &forwarding{portsOpen(t, c), askText(t, c, "/flows"), askText(t, c, "/groups")}
}

// wantStill checks that the switch has the same ports, entries and groups.
func (f *forwarding) wantStill(t *testing.T, c *config.Config) {
	t.Helper()
	now := forwardingOf(t, c)
	if !slices.Equal(now.ports, f.ports) {
		t.Errorf("ports %v, want %v", now.ports, f.ports)
	}
	if now.flows != f.flows || now.groups != f.groups {
		t.Error("entries or groups are others")
	}
}

// switchPID is the process of an agent's switch.
func switchPID(t *testing.T, c *config.Config) int {
	t.Helper()
	info, err := door.Dial(c.SwitchSocket()).Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.PID
}

// TestTakeOver: an agent takes the place of another. Switch and devices stay the very
// same, with the same entries and ports, and when the second agent is stopped it takes
// all back, also what the first one made.
func TestTakeOver(t *testing.T) {
	node, c := upgradedNode(t)
	before := startProcess(t, node, c)
	wantReady(t, c)
	gateway, tap, pid := node.Link(t, c.Gateway.Name).Attrs().Index, node.Link(t, "antrea-tc-tap0").Attrs().Index, switchPID(t, c)
	had := forwardingOf(t, c)
	if !slices.Contains(had.ports, "36 client-a-1 afpacket") || !slices.Contains(had.ports, "37 web-a-3f2a1 afxdp") {
		t.Fatalf("ports %v", had.ports)
	}

	after := startProcess(t, node, c, takeOverArg)
	before.wantExit(t, exitTakenOver)
	after.wantSaid(t, "the previous agent's switch still runs")
	wantReady(t, c)
	if g, p := node.Link(t, c.Gateway.Name).Attrs().Index, node.Link(t, "antrea-tc-tap0").Attrs().Index; g != gateway || p != tap {
		t.Errorf("links %d and %d are %d and %d now: they were made anew", gateway, tap, g, p)
	}
	had.wantStill(t, c)
	if now := switchPID(t, c); now != pid {
		t.Errorf("the switch is process %d, not %d", now, pid)
	}

	after.stop(t)
	wantNothingLeft(t, node, c)
}

// TestKilledAgent: the switch goes on without its agent, and the next agent has it.
func TestKilledAgent(t *testing.T) {
	node, c := upgradedNode(t)
	before := startProcess(t, node, c)
	wantReady(t, c)
	pid, had := switchPID(t, c), forwardingOf(t, c)
	before.Process.Kill()
	<-before.ended
	nstest.Until(t, "the switch to have no controller", func() bool {
		info, err := door.Dial(c.SwitchSocket()).Info(t.Context())
		return err == nil && info.Controller == ""
	})
	after := startProcess(t, node, c)
	wantReady(t, c)
	had.wantStill(t, c)
	if now := switchPID(t, c); now != pid {
		t.Errorf("the switch is process %d, not %d", now, pid)
	}
	after.stop(t)
	wantNothingLeft(t, node, c)
}

// TestKilledSwitch: the agent starts its switch again, with entries and ports.
func TestKilledSwitch(t *testing.T) {
	node, c := upgradedNode(t)
	running := startProcess(t, node, c)
	wantReady(t, c)
	pid, had := switchPID(t, c), forwardingOf(t, c)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	running.wantExit(t, exitAgain) // where it executes itself again
	if now := switchPID(t, c); now == pid {
		t.Fatalf("the switch is process %d again", now)
	}
	again := startProcess(t, node, c)
	wantReady(t, c)
	had.wantStill(t, c)
	again.stop(t)
	wantNothingLeft(t, node, c)
}

// TestSwitchWithOtherSettings: the next agent's switch is what its configuration says.
func TestSwitchWithOtherSettings(t *testing.T) {
	node, c := upgradedNode(t)
	running := startProcess(t, node, c)
	wantReady(t, c)
	for _, s := range []struct {
		change   func()
		replaced bool
	}{
		{func() { c.Peers = nil }, false},
		{func() { c.Conntrack.Max = 3000 }, true},
	} {
		s.change()
		pid := switchPID(t, c)
		next := startProcess(t, node, c, takeOverArg)
		running.wantExit(t, exitTakenOver)
		next.wantSaid(t, "the previous agent has left")
		wantReady(t, c)
		if ports := portsOpen(t, c); !slices.Contains(ports, "36 client-a-1 afpacket") || !slices.Contains(ports, "37 web-a-3f2a1 afxdp") {
			t.Errorf("ports %v", ports)
		}
		if replaced := switchPID(t, c) != pid; replaced != s.replaced {
			t.Errorf("another switch: %v, want %v", replaced, s.replaced)
		}
		running = next
	}
	refused := startProcess(t, node, c) // without taking over
	refused.wantExit(t, exitFailed)
	refused.wantSaid(t, "an agent is running already")
	running.stop(t)
	wantNothingLeft(t, node, c)
}

// wantNothingLeft checks that a Node is as it was without an agent.
func wantNothingLeft(t *testing.T, node *nstest.Namespace, c *config.Config) {
	t.Helper()
	if _, err := node.Links().LinkByName(c.Gateway.Name); !errors.As(err, new(netlink.LinkNotFoundError)) {
		t.Errorf("gateway: %v", err)
	}
	for _, socket := range []string{c.Socket, c.SwitchSocket()} {
		if _, err := os.Stat(socket); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("socket %s: %v", socket, err)
		}
	}
	if tables, err := node.Command("nft", "list", "tables").CombinedOutput(); err != nil || len(tables) > 0 {
		t.Errorf("nftables: %s, %v", tables, err)
	}
}

// TestTakeOverOfNobody: without an agent that runs, one starts as usual.
func TestTakeOverOfNobody(t *testing.T) {
	node, c := upgradedNode(t)
	only := startProcess(t, node, c, takeOverArg)
	wantReady(t, c)
	only.stop(t)
	wantNothingLeft(t, node, c)
}

// TestTakeOverWithAPI: so it is with objects from the API, also on a Node without a
// directory for the socket, and while the API is away.
func TestTakeOverWithAPI(t *testing.T) {
	node := nstest.New(t)
	node.AddAddress(t, "lo", "192.168.77.102/32")
	nstest.AddVeth(t, node, "web-a", nstest.New(t), "eth0")
	var api *kubetest.API
	node.Do(t, func() { api = kubetest.New(t) })
	api.Apply(clusterObjects)
	c, no := kubeConfig(t, api), false
	c.Socket, c.Metrics.Listen = filepath.Join(t.TempDir(), "antrail", "agent.sock"), &no
	before := startProcess(t, node, c, takeOverArg)
	wantReady(t, c)
	before.wantSaid(t, "port added\" port=web-a")
	gateway, flows := node.Link(t, config.DefaultGateway).Attrs().Index, askText(t, c, "/flows")
	api.Down()

	after := startProcess(t, node, c, takeOverArg)
	before.wantExit(t, exitTakenOver)
	for _, want := range []string{"using the stored facts", "the previous agent's switch still runs"} {
		after.wantSaid(t, want)
	}
	wantReady(t, c)
	if g := node.Link(t, config.DefaultGateway).Attrs().Index; g != gateway {
		t.Errorf("the gateway %d is %d now: it was made anew", gateway, g)
	}
	if askText(t, c, "/flows") != flows {
		t.Errorf("entries are others while the API is away")
	}
	after.stop(t)
}

// TestTakeOverFlowFiles: a pipeline of flow files is read by the new agent itself.
func TestTakeOverFlowFiles(t *testing.T) {
	node, c := upgradedNode(t)
	c.Manifests, c.Flows, c.Ports[0].OFPort, c.Ports[1].OFPort = "", filepath.Join(t.TempDir(), "a.flows"), 36, 37
	if err := os.WriteFile(c.Flows, []byte("table=0,priority=0 actions=drop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := startProcess(t, node, c)
	wantReady(t, c)
	if err := os.WriteFile(c.Flows, []byte("table=0,priority=0 actions=NORMAL\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	startProcess(t, node, c, takeOverArg).wantSaid(t, "the previous agent has left")
	before.wantExit(t, exitTakenOver)
	wantReady(t, c)
	if flows := askText(t, c, "/flows"); !strings.Contains(flows, "NORMAL") {
		t.Errorf("entries %s", flows)
	}
}
