package demo

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/internal/antrailtest"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/internal/reaptest"
	"github.com/antrail/antrail/lab"
	"github.com/vishvananda/netlink"
)

// antrail is the binary that the labs of these tests run.
var antrail string

// labsAtOnce is how many parallel tests run at a time. Those have a lab each, and wait most
// of their time for what must not come.
const labsAtOnce = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", labsAtOnce); err != nil {
		panic(err)
	}
	if testing.Short() {
		bulkBytes /= 10
	}
	code := antrailtest.Main(m, &antrail)
	if downShared() {
		code = 1
	}
	os.Exit(code)
}

// up makes a lab of two Nodes with real agents; it goes when the test ends. The
// agents' logs are shown when the test fails.
func up(t *testing.T) *lab.Lab {
	t.Helper()
	return upWith(t, lab.Options{})
}

// upWith is up with a pipeline from somewhere else.
func upWith(t *testing.T, o lab.Options) *lab.Lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a lab needs root")
	}
	o.Binary, o.StateDir = antrail, reaptest.LabDir(t)
	l, err := lab.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			showLogs(t, l)
		}
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { wantAccounted(t, l) })
	return l
}

// showLogs shows the agents' logs.
func showLogs(t *testing.T, l *lab.Lab) {
	t.Helper()
	for _, n := range l.Topology.Nodes {
		if log, err := os.ReadFile(l.Log(n.Name)); err == nil {
			t.Logf("log of %s:\n%s", n.Name, log)
		}
	}
}

// wantAccounted checks at the end that each lab's packet counters add up. It skips agents
// that the test has stopped, which leave no socket.
func wantAccounted(t *testing.T, l *lab.Lab) {
	t.Helper()
	for _, n := range l.Topology.Nodes {
		if _, err := l.PacketCounters(context.Background(), n.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("at the end of the lab: %s: %v", n.Name, err)
		}
	}
}

// allChecks are the checks for a lab.
func allChecks(t *testing.T, w *world) []check {
	t.Helper()
	all, err := w.checks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDemo is `antrail demo` with each driver, with the flow cache and without, and with
// connections offloaded: every check as a test of its own, of both address families. With
// -short each of these is in one lab: AF_XDP in that with the cache.
func TestDemo(t *testing.T) {
	t.Parallel()
	for _, d := range []struct{ setting, driver, why string }{
		{config.DriverAuto, "afpacket", "auto: on a veth a packet socket keeps large segments whole"},
		{config.DriverAFXDP, "afxdp", "afxdp was asked for; the driver runs XDP programs; zero-copy has to be asked for; partial checksums leave as they came"},
	} {
		for name, o := range map[string]lab.Options{
			"cache": {Offload: config.OffloadOff}, "walk": {Offload: config.OffloadOff, Walk: true}, "offload": {Offload: config.OffloadAuto},
		} {
			if testing.Short() && (d.setting == config.DriverAFXDP) != (name == "cache") {
				continue
			}
			t.Run(d.setting+"/"+name, func(t *testing.T) {
				t.Parallel()
				o.Driver = d.setting
				w, err := newWorld(upWith(t, o))
				if err != nil {
					t.Fatal(err)
				}
				defer w.close()
				wantDriver(t, w, d.driver, d.why)
				runDemo(t, w)
				wantReplayed(t, w, !o.Walk)
			})
		}
	}
}

// TestDemoOfWays is the demo in the tunnels that it does not have by default, and
// without a tunnel. With -short it is GRE, which has no UDP port, and routes.
func TestDemoOfWays(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]lab.Options{
		"vxlan": {Tunnel: "vxlan"}, "gre": {Tunnel: "gre"}, "noEncap": {EncapMode: "noEncap"}, "hybrid": {EncapMode: "hybrid"},
		"afxdp": {TunnelDriver: config.DriverAFXDP}, "pipeline v2": {Manifests: pipelineV2(t, "")},
	} {
		if testing.Short() && name != "gre" && name != "hybrid" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := newWorld(upWith(t, o))
			if err != nil {
				t.Fatal(err)
			}
			defer w.close()
			runDemo(t, w)
		})
	}
}

// wantReplayed checks whether every agent has replayed packets from its
// exact-match cache.
func wantReplayed(t *testing.T, w *world, want bool) {
	t.Helper()
	for _, n := range w.lab.Topology.Nodes {
		var all []api.Counter
		if err := w.agent(n.Name).JSON(t.Context(), "/cache", nil, &all); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(c api.Counter) bool { return c.Name == telemetry.CacheHit.String() })
		if i < 0 || (all[i].Value > 0) != want {
			t.Errorf("%s: packets were replayed: want %v, counters %+v", n.Name, want, all)
		}
	}
}

// wantDriver checks what the agents say of their pods' ports.
func wantDriver(t *testing.T, w *world, driver, why string) {
	t.Helper()
	pods := 0
	for _, n := range w.lab.Topology.Nodes {
		var all []api.PortRecord
		if err := w.agent(n.Name).JSON(t.Context(), "/ports", nil, &all); err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if p.Driver == "tap" || p.Driver == "underlay" {
				continue
			}
			pods++
			if p.Driver != driver || p.Why != why {
				t.Errorf("%s is on %s because %q, want %s because %q", p.Name, p.Driver, p.Why, driver, why)
			}
		}
	}
	if pods != 6 {
		t.Errorf("%d pods have ports, want 6", pods)
	}
}

func runDemo(t *testing.T, w *world) {
	t.Helper()
	all := allChecks(t, w)
	if len(all) != len(checks)+len(checks6)+len(objectChecks)+1 {
		t.Errorf("%d checks: the built-in lab is not all of examples/web-app", len(all))
	}
	runChecks(t, w, all)
}

// runChecks makes each check a test of its own.
func runChecks(t *testing.T, w *world, all []check) {
	t.Helper()
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			seen, err := c.run(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(seen)
		})
	}
}

// TestManifestsChangeUnderTheAgent changes a policy while the agents run. A client that was
// denied connects, and one that was allowed gets no answer. Then the test does the same by
// removing the policies.
func TestManifestsChangeUnderTheAgent(t *testing.T) {
	t.Parallel()
	dir := exampleAnd(t, nil, "")
	w, err := newWorld(upWith(t, lab.Options{Manifests: dir}))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	ctx := t.Context()
	allowed, denied := attempt{"web-a", "db-a:3306"}, attempt{"client-a", "db-a:3306"}
	wantBoth := func() {
		t.Helper()
		if err := w.wantSilence(ctx, denied); err != nil {
			t.Error(err)
		}
		waitConnected(t, w, allowed)
	}
	wantBoth()

	policies := filepath.Join(dir, "policies.yaml")
	text, err := os.ReadFile(policies)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Replace(text, []byte("- from: [{podSelector: {matchLabels: {app: web}}}]"), []byte("- from: [{podSelector: {matchLabels: {app: client}}}]"), 1)
	if err := os.WriteFile(policies, changed, 0o600); err != nil || bytes.Equal(text, changed) {
		t.Fatalf("no change: %v", err)
	}
	waitConnected(t, w, denied)
	allowed, denied = denied, allowed
	wantBoth()

	if err := os.Remove(policies); err != nil {
		t.Fatal(err)
	}
	waitConnected(t, w, denied)
}

// waitConnected tries until a connection stands.
func waitConnected(t *testing.T, w *world, a attempt) {
	t.Helper()
	var err error
	for range 10 {
		c, e := w.dial(t.Context(), a.from, a.to, waitAtMost)
		if e == nil {
			c.Close()
			return
		}
		err = e
	}
	t.Fatalf("%s to %s: %v", a.from, a.to, err)
}

// TestDemoWithFlowFiles: hand-written flow files do as well. These are IPv4 only.
func TestDemoWithFlowFiles(t *testing.T) {
	t.Parallel()
	w, err := newWorld(upWith(t, lab.Options{FlowsDir: "../../examples/two-nodes"}))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, c := range allChecks(t, w) {
		if _, err := c.run(t.Context(), w); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestPodDeletedUnderTheAgent deletes a pod's namespace and makes it again. The rest of the
// Node must not notice, and the new pod must be reachable.
func TestPodDeletedUnderTheAgent(t *testing.T) {
	l := plainLab(t)
	w := l.bare()
	mustPing := func(from, to string) {
		t.Helper()
		if _, err := w.ping(from, to, waitAtMost); err != nil {
			t.Fatal(err)
		}
	}
	mustPing("client-a", "web-a")
	if err := l.DeletePod("web-a"); err != nil {
		t.Fatal(err)
	}
	waitPorts(t, w, "node-a", 9)
	nstest.Until(t, "lab status names the link that is gone", func() bool { // it is down before
		notes := l.Status(t.Context()).Nodes[0].Notes
		return len(notes) == 1 && strings.HasPrefix(notes[0], "Pod default/web-a, whose link ") && strings.Contains(notes[0], " is gone: ")
	})
	mustPing("client-a", "client-b")
	if err := l.AddPod("web-a"); err != nil {
		t.Fatal(err)
	}
	waitPorts(t, w, "node-a", 10)
	mustPing("client-a", "web-a")
	mustPing("web-a", "client-b")
}

// waitPorts waits until a Node's switch has so many ports, with a carrier each.
func waitPorts(t *testing.T, w *world, node string, want int) {
	t.Helper()
	var all []api.PortRecord
	for range 1000 {
		if err := w.agent(node).JSON(t.Context(), "/ports", nil, &all); err != nil {
			t.Fatal(err)
		}
		up := slices.DeleteFunc(slices.Clone(all), func(p api.PortRecord) bool { return !p.Up })
		if len(up) == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s has %d ports, want %d: %+v", node, len(all), want, all)
}

// TestAgentLeavesNothing stops an agent by SIGTERM (lab.StopAgent fails when
// that takes it more than two seconds) and looks for what it made. Then there is an agent
// again.
func TestAgentLeavesNothing(t *testing.T) {
	l := plainLab(t)
	defer func() {
		if err := l.RestartAgent(context.WithoutCancel(t.Context()), "node-a", antrail); err != nil {
			t.Error(err)
		}
	}()
	if err := l.StopAgent("node-a"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(l.Socket("node-a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket: %v", err)
	}
	ns, err := l.Namespace("node-a")
	if err != nil {
		t.Fatal(err)
	}
	err = ns.Do(func() error {
		links, err := netlink.LinkList()
		for _, link := range links {
			if link.Attrs().Name == config.DefaultGateway {
				t.Errorf("link %s is there", config.DefaultGateway)
			}
			if x := link.Attrs().Xdp; x != nil && x.Attached {
				t.Errorf("link %s has an XDP program", link.Attrs().Name)
			}
		}
		return errors.Join(err, routesAndRules(t))
	})
	if err != nil {
		t.Error(err)
	}
}

// loopsOfLab is the table that is not the agent's but the lab's.
var loopsOfLab = regexp.MustCompile(`(?s)table netdev antrail-lab \{\n.*?\n\}\n`)

// routesAndRules are the routes and rules of the calling thread's namespace. Without an
// agent only the lab's are left.
func routesAndRules(t *testing.T) error {
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := netlink.RouteList(nil, family)
		if err != nil {
			return err
		}
		for _, r := range routes {
			if r.Dst != nil && (strings.HasPrefix(r.Dst.String(), "10.10.") || strings.HasPrefix(r.Dst.String(), "fd00:10:10:")) {
				t.Errorf("route %s is there", r)
			}
		}
	}
	for _, file := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding", "ipv6/conf/eth0/forwarding"} {
		on, err := os.ReadFile("/proc/sys/net/" + file)
		if err != nil || strings.TrimSpace(string(on)) != "0" {
			t.Errorf("%s is %s, %v", file, on, err)
		}
	}
	rules, err := exec.Command("nft", "list", "ruleset").CombinedOutput()
	rules = loopsOfLab.ReplaceAll(rules, nil)
	if len(bytes.TrimSpace(rules)) > 0 {
		t.Errorf("nftables: %s", rules)
	}
	return err
}

// TestAgentRestarts: a second agent in the same Node takes over where a killed
// one left off.
func TestAgentRestarts(t *testing.T) {
	l := plainLab(t)
	killBoth(t, l.Lab, "node-a")
	if err := l.RestartAgent(t.Context(), "node-a", antrail); err != nil {
		t.Fatal(err)
	}
	w := l.bare()
	for _, to := range []string{"web-a", "client-b", "outside"} {
		if _, err := w.ping("client-a", to, waitAtMost); err != nil {
			t.Error(err)
		}
	}
}
