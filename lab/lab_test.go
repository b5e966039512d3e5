package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/reaptest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The tests' agent is this test binary: called as `antrail agent`, TestMain becomes one. It
// answers /readyz, and SIGTERM ends it. The tests of real agents in a lab are in lab/demo.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "agent" {
		fmt.Fprintln(os.Stderr, runFakeAgent(os.Args[3]))
		os.Exit(1)
	}
	if os.Getenv(hiddenEnv) != "" {
		testHidden()
	}
	os.Exit(m.Run())
}

// fakeNotes are the tests' agents' notes on links and Nodes, a line each.
const fakeNotes = "Pod default/x, whose link veth-x is down\nNode node-c at 192.0.2.3 does not answer"

func runFakeAgent(file string) error {
	c, err := config.Load(file)
	if err != nil {
		return err
	}
	for _, path := range []string{c.Groups, c.Manifests} {
		if _, err := os.Stat(path); path != "" && err != nil {
			return err
		}
	}
	for _, p := range c.Ports {
		if _, err := netlink.LinkByName(p.Link); err != nil {
			return fmt.Errorf("link of %s: %w", p.Name, err)
		}
	}
	ln, err := net.Listen("unix", c.Socket)
	if err != nil {
		return err
	}
	return http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/drops/last" {
			fmt.Fprintf(w, `{"note": %q}`, fakeNotes)
		}
	}))
}

func needRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
}

// up makes a lab of the tests' agents, and removes it at the end.
func up(t *testing.T, o Options) *Lab {
	t.Helper()
	needRoot(t)
	o.Binary = os.Args[0]
	l, err := Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Down() })
	return l
}

// nothingLeft fails for each namespace, process and file that is left of a lab.
func nothingLeft(t *testing.T, l *Lab) {
	t.Helper()
	left, err := namespaces(l.prefix())
	if err != nil || len(left) > 0 {
		t.Errorf("namespaces left: %v, %v", left, err)
	}
	for _, a := range l.State.Agents {
		if a.Process.alive() {
			t.Errorf("agent of %s is alive: %d", a.Node, a.Process.PID)
		}
	}
	if _, err := os.Stat(l.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", l.Dir, err)
	}
}

func TestUpMakesTheTopology(t *testing.T) {
	l := up(t, Options{StateDir: reaptest.LabDir(t)})
	for _, n := range l.Topology.Nodes {
		checkEth0(t, l, n.Name, n.Address, addrsOf(l.Topology.Outside))
		for _, p := range n.Pods {
			in := within(p.Address, n.PodCIDR)
			checkEth0(t, l, p.Name, Dual[netip.Prefix]{in[0], in[1]}, n.Gateway)
			checkPodLinks(t, l, &n, &p)
		}
	}
	checkEth0(t, l, "outside", l.Topology.Outside, Dual[netip.Addr]{})
	s := l.Status(t.Context())
	if s.State != "up" || len(s.Nodes) != 2 || s.Nodes[1].Agent != "ready" || s.Nodes[0].Pods[2].Namespace == "" {
		t.Errorf("status %+v", s)
	}
	if got := strings.Join(s.Nodes[0].Notes, "\n"); got != fakeNotes {
		t.Errorf("notes of %s: %q", s.Nodes[0].Name, got)
	}
	b := l.State.Agents[1].Process
	if err := unix.Kill(b.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); b.alive() && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	if got := l.Status(t.Context()).Nodes[1].Agent; !strings.HasPrefix(got, "its agent has ended (log: "+l.Log("node-b")+"); to start another: ") {
		t.Errorf("of an agent that was killed: %s", got)
	}
	l = startByHand(t, l, "node-b")
	if err := l.Down(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, l)
}

// startByHand starts an agent in place of one that has ended, as an operator does, and
// checks that the lab finds it.
func startByHand(t *testing.T, l *Lab, node string) *Lab {
	t.Helper()
	if err := os.Remove(l.Socket(node)); err != nil { // as a real agent does
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "agent", "--config", l.configFile(node))
	if err := l.namespace(node).Do(cmd.Start); err != nil {
		t.Fatal(err)
	}
	go cmd.Wait()
	var s *Status
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var err error
		if l, err = Find(filepath.Dir(l.Dir), l.State.ID); err != nil {
			t.Fatal(err)
		}
		// Find may have run before the program's start, and Status when it was ready.
		if s = l.Status(t.Context()); s.Nodes[1].Agent == ready && s.Nodes[1].PID == cmd.Process.Pid {
			break
		}
	}
	if n := s.Nodes[1]; n.Agent != ready || n.PID != cmd.Process.Pid {
		t.Errorf("started by hand: %s, process %d, not %d", n.Agent, n.PID, cmd.Process.Pid)
	}
	return l
}

// checkEth0 checks the addresses and default routes of an eth0. All are in use, and there
// are no others but the link-local address.
func checkEth0(t *testing.T, l *Lab, name string, addresses Dual[netip.Prefix], gateways Dual[netip.Addr]) {
	t.Helper()
	ns, err := l.Namespace(name)
	if err != nil {
		t.Fatal(err)
	}
	err = ns.Do(func() error {
		return errors.Join(
			checkFamily(t, name, netlink.FAMILY_V4, addresses.V4, gateways.V4),
			checkFamily(t, name, netlink.FAMILY_V6, addresses.V6, gateways.V6))
	})
	if err != nil {
		t.Error(err)
	}
}

// checkFamily checks the eth0 of the calling thread's namespace.
func checkFamily(t *testing.T, name string, family int, address netip.Prefix, gateway netip.Addr) error {
	t.Helper()
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	addrs, err := netlink.AddrList(link, family)
	if err != nil {
		return err
	}
	addrs = slices.DeleteFunc(addrs, func(a netlink.Addr) bool { return a.IP.IsLinkLocalUnicast() })
	if len(addrs) != 1 || addrs[0].IPNet.String() != address.String() || addrs[0].Flags&unix.IFA_F_TENTATIVE != 0 {
		t.Errorf("%s has %v, want %s", name, addrs, address)
	}
	routes, err := netlink.RouteListFiltered(family, &netlink.Route{LinkIndex: link.Attrs().Index}, netlink.RT_FILTER_DST|netlink.RT_FILTER_OIF)
	var want, via string
	if gateway.IsValid() {
		want = gateway.String()
	}
	for _, r := range routes {
		via += r.Gw.String()
	}
	if via != want {
		t.Errorf("%s has default route via %q, want %q", name, via, want)
	}
	return err
}

// checkPodLinks checks both ends of a pod's veth.
func checkPodLinks(t *testing.T, l *Lab, n *Node, p *Pod) {
	t.Helper()
	err := l.namespace(p.Name).Do(func() error {
		link, err := netlink.LinkByName("eth0")
		if err == nil && (link.Attrs().HardwareAddr.String() != p.MAC.String() || link.Attrs().MTU != 1450) {
			t.Errorf("eth0 of %s: MAC %s, MTU %d", p.Name, link.Attrs().HardwareAddr, link.Attrs().MTU)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	err = l.namespace(n.Name).Do(func() error {
		link, err := netlink.LinkByName(p.Name + "-" + l.State.ID)
		if err == nil && link.Attrs().Flags&net.FlagUp == 0 {
			t.Errorf("host end of %s is down", p.Name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTwoLabsAtOnce(t *testing.T) {
	dir := reaptest.LabDir(t)
	a, b := up(t, Options{StateDir: dir, Nodes: 1}), up(t, Options{StateDir: dir, Nodes: 1})
	if _, err := Find(dir, ""); err == nil || !strings.Contains(err.Error(), "several labs") {
		t.Errorf("Find without an ID: %v", err)
	}
	if _, err := Doomed(dir, ""); err == nil {
		t.Error("Doomed without an ID takes one of two labs")
	}
	if err := a.Down(); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, a)
	if l, err := Find(dir, ""); err != nil || l.State.ID != b.State.ID {
		t.Errorf("the other lab: %v, %v", l, err)
	}
	if s := b.Status(t.Context()); s.Nodes[0].Agent != "ready" {
		t.Errorf("the other lab: %+v", s)
	}
}

// TestDownAfterKilledLab: Down removes what a killed `lab up` left half-way, with one Node
// and its agent. Only the state file describes it.
func TestDownAfterKilledLab(t *testing.T) {
	needRoot(t)
	dir := reaptest.LabDir(t)
	half, err := newState(dir, State{Nodes: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { half.Down() })
	half.State.Creator = Process{PID: os.Getpid(), Start: 1} // our PID, another process
	n := &half.Topology.Nodes[0]
	pipeline, err := half.pipeline(&Options{})
	for _, step := range []func() error{
		func() error { return err },
		half.makeUnderlay,
		func() error { return half.makeNode(n) },
		func() error { return half.writeConfig(n, pipeline) },
		func() error { _, err := half.startAgent(n.Name, os.Args[0]); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	doomed, err := Doomed(dir, "")
	if err != nil || len(doomed) != 1 || !doomed[0].Dead() {
		t.Fatalf("Doomed: %v, %v", doomed, err)
	}
	if err := doomed[0].Down(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, half)
}

// TestSweep removes labs whose process died, and no others.
func TestSweep(t *testing.T) {
	dir := reaptest.LabDir(t)
	mine := up(t, Options{StateDir: dir, Nodes: 1, Transient: true})
	kept := up(t, Options{StateDir: dir, Nodes: 1})
	kept.State.Creator = Process{PID: os.Getpid(), Start: 1}
	orphan := up(t, Options{StateDir: dir, Nodes: 1, Transient: true})
	orphan.State.Creator = Process{PID: os.Getpid(), Start: 1}
	for _, l := range []*Lab{kept, orphan} {
		if err := l.save(); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(dir); err != nil {
		t.Error(err)
	}
	nothingLeft(t, orphan)
	for _, l := range []*Lab{mine, kept} {
		if s := l.Status(t.Context()); s.Nodes[0].Agent != "ready" {
			t.Errorf("lab %s: %+v", l.State.ID, s)
		}
	}
}

func TestDownAfterLostState(t *testing.T) {
	dir := reaptest.LabDir(t)
	if err := os.Mkdir(dir+"/0af31", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/test", 0o700); err != nil { // not a lab's name
		t.Fatal(err)
	}
	doomed, err := Doomed(dir, "")
	if err != nil || len(doomed) != 1 {
		t.Fatalf("Doomed: %v, %v", doomed, err)
	}
	if err := doomed[0].Down(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, doomed[0])
	if _, err := os.Stat(dir + "/test"); err != nil {
		t.Errorf("a directory that is no lab's was touched: %v", err)
	}
}

// TestDownEndsPodProcesses: a pod's processes end with the pod.
func TestDownEndsPodProcesses(t *testing.T) {
	l := up(t, Options{StateDir: reaptest.LabDir(t), Nodes: 1})
	cmd := exec.Command("sleep", "1000")
	if err := l.namespace("web-a").Do(cmd.Start); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := l.Down(); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		cmd.Process.Kill()
		t.Error("the process in web-a was not ended")
	}
	nothingLeft(t, l)
}

func TestUpFailsClean(t *testing.T) {
	needRoot(t)
	for _, s := range []struct {
		name string
		o    Options
		want string
	}{
		{"agent ends", Options{Binary: "/bin/false"}, "the agent of node-a ended (exit status 1)"},
		{"no binary", Options{Binary: "/no/such/antrail"}, "start the agent of node-a"},
		{"no flow files", Options{Binary: "/bin/false", FlowsDir: "/no/such/dir"}, "node-a.flows"},
		{"no manifests", Options{Manifests: "/no/such/dir"}, "/no/such/dir"},
		{"three Nodes", Options{Nodes: 3}, "1 to 2 Nodes"},
	} {
		t.Run(s.name, func(t *testing.T) {
			s.o.StateDir = reaptest.LabDir(t)
			if s.o.Binary == "" {
				s.o.Binary = os.Args[0]
			}
			_, err := Up(t.Context(), s.o)
			if err == nil || !strings.Contains(err.Error(), s.want) {
				t.Errorf("error %v, want one with %q", err, s.want)
			}
			if left, err := List(s.o.StateDir); err != nil || len(left) > 0 {
				t.Errorf("labs left: %v, %v", left, err)
			}
		})
	}
}

func TestUpInterrupted(t *testing.T) {
	needRoot(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := reaptest.LabDir(t)
	if _, err := Up(ctx, Options{StateDir: dir, Binary: os.Args[0]}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if left, err := List(dir); err != nil || len(left) > 0 {
		t.Errorf("labs left: %v, %v", left, err)
	}
}

// TestAgentsKeepNothing: the agents do not inherit a descriptor that lab up's caller left
// open, as a shell does with exec 9>lock.
func TestAgentsKeepNothing(t *testing.T) {
	needRoot(t)
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil { // without O_CLOEXEC
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	kept, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", pipe[1]))
	if err != nil {
		t.Fatal(err)
	}
	l := up(t, Options{StateDir: reaptest.LabDir(t)})
	for _, a := range l.State.Agents {
		dir := fmt.Sprintf("/proc/%d/fd", a.Process.PID)
		open, err := os.ReadDir(dir)
		if err != nil || len(open) == 0 {
			t.Errorf("the agent of %s: %d descriptors, %v", a.Node, len(open), err)
		}
		for _, f := range open {
			if to, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && to == kept {
				t.Errorf("descriptor %s of the agent of %s is %s, which lab up was given", f.Name(), a.Node, kept)
			}
		}
	}
}

// TestStatusOfSilentAgent: the table's columns stay narrow. The reason that an agent is not
// ready, and its notes on links and Nodes, are below the table.
func TestStatusOfSilentAgent(t *testing.T) {
	why := "no agent answers at /x: connection refused"
	s := &Status{ID: "1", State: "up", Nodes: []NodeStatus{{Name: "node-a", Agent: ready, Notes: []string{"Node node-b is silent"}}, {Name: "node-b", Agent: why}}}
	var b strings.Builder
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(b.String(), "\n\nnode-a: Node node-b is silent\nnode-b: "+why+"\n") || strings.Count(b.String(), why) != 1 || !strings.Contains(b.String(), "not ready") {
		t.Errorf("status:\n%s", b.String())
	}
}
