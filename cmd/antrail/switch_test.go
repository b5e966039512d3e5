//go:build linux && !portable

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/internal/nstest"
)

// vswitchdRig is `antrail vswitchd` in front of a switch, with the names of a program's tables.
type vswitchdRig struct {
	t      *testing.T
	sw     *bareSwitch
	rundir string
	prog   *flow.Program
	names  *flow.Names // of tables
}

// startVswitchd starts one for the bridge br-int, without a database.
func startVswitchd(t *testing.T) *vswitchdRig {
	t.Helper()
	r := newVswitchdRig(t)
	r.prog, r.names = seedProgram(t), flow.NewNames()
	for id, name := range r.prog.Names.Tables() {
		r.names.SetTable(id, name)
	}
	if err := r.sw.door.Apply(&flow.Bundle{Names: r.names, First: r.prog.First}); err != nil {
		t.Fatal(err)
	}
	r.start("br-int.mgmt", "--bridge", "br-int")
	return r
}

// newVswitchdRig is a rig whose `antrail vswitchd` is still to be started.
func newVswitchdRig(t *testing.T) *vswitchdRig {
	t.Helper()
	for _, program := range []string{"ovs-ofctl", "ovs-vsctl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("Open vSwitch is not installed: no %s", program)
		}
	}
	r := &vswitchdRig{t: t, sw: startBare(t)}
	var err error
	if r.rundir, err = os.MkdirTemp("", "ovs"); err != nil { // t.TempDir is too long for a socket's path
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(r.rundir) })
	return r
}

// start starts `antrail vswitchd`, and waits for a file of its directory. The function ends it.
func (r *vswitchdRig) start(file string, args ...string) (stop func()) {
	r.t.Helper()
	c := r.sw.Command(os.Args[0], append([]string{"vswitchd", "--switch", r.sw.socket, "--rundir", r.rundir}, args...)...)
	c.Env = append(os.Environ(), asBinary+"=1", "OVS_DBDIR="+r.rundir)
	var log strings.Builder
	c.Stderr = &log
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		c.Process.Signal(syscall.SIGTERM)
		c.Wait()
		if r.t.Failed() {
			r.t.Logf("vswitchd said:\n%s", log.String())
		}
	})
	r.t.Cleanup(stop)
	nstest.Until(r.t, "vswitchd serves", func() bool {
		_, err := os.Stat(filepath.Join(r.rundir, file))
		return err == nil
	})
	return stop
}

// tool runs a tool of Open vSwitch, and returns what it printed.
func (r *vswitchdRig) tool(name string, args ...string) string {
	r.t.Helper()
	c := r.sw.Command(name, append([]string{"--timeout=60"}, args...)...)
	c.Env = append(os.Environ(), "OVS_RUNDIR="+r.rundir)
	out, err := c.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

// TestVswitchdTools: ovs-vsctl makes a bridge of two links, over which hosts talk; the bridge
// outlives the process; what antrail does not do is an error of the row.
func TestVswitchdTools(t *testing.T) {
	r := newVswitchdRig(t)
	hosts := [2]*nstest.Namespace{nstest.New(t), nstest.New(t)}
	for i, link := range []string{"v0", "v1"} {
		host := fmt.Sprintf("host%d", i)
		nstest.AddVeth(t, r.sw.Namespace, link, hosts[i], host)
		hosts[i].AddAddress(t, host, fmt.Sprintf("10.9.0.%d/24", i+1))
	}
	ping := func() error { return hosts[0].Command("ping", "-c1", "-W5", "10.9.0.2").Run() }
	stop := r.start("db.sock")
	r.tool("ovs-vsctl", "add-br", "br0", "--", "add-port", "br0", "v0", "--", "add-port", "br0", "v1")
	if err := ping(); err != nil {
		t.Errorf("the hosts do not talk over the bridge: %v", err)
	}
	if out := r.tool("ovs-ofctl", "--no-stats", "dump-flows", "br0"); out != " priority=0 actions=NORMAL\n" {
		t.Errorf("a new bridge has the entries %q", out)
	}
	for _, c := range []struct{ args, want string }{
		{"get interface v0 ofport", "1\n"},
		{"get interface v1 ofport", "2\n"},
		{"get interface br0 ofport", "65534\n"},
		{"get interface v0 link_state", "up\n"},
		{"list-ports br0", "v0\nv1\n"},
	} {
		if out := r.tool("ovs-vsctl", strings.Fields(c.args)...); out != c.want {
			t.Errorf("%s: %q, want %q", c.args, out, c.want)
		}
	}
	if out := r.tool("ovs-appctl", "fdb/show", "br0"); strings.Count(out, "\n") < 3 {
		t.Errorf("after a ping the bridge has learned %q", out)
	}
	for _, c := range []struct{ change, row, want, back string }{
		{"add-br br1", "br1", "bridge br0 already", "del-br br1"},
		{"set port v1 vlan_mode=dot1q-tunnel tag=5", "v1", "vlan_mode", "clear port v1 vlan_mode tag"},
		{"add-port br0 px -- set interface px type=patch options:peer=py", "px", "no interface type", "del-port px"},
		{"add-port br0 gn -- set interface gn type=geneve options:local_ip=127.0.0.1 options:remote_ip=192.0.2.9" +
			" -- add-port br0 gw -- set interface gw type=geneve options:local_ip=127.0.0.1 options:remote_ip=192.0.2.8",
			"gw", "geneve tunnel at 127.0.0.1 already", "del-port gw -- del-port gn"},
	} {
		r.tool("ovs-vsctl", strings.Fields(c.change)...)
		if out := r.tool("ovs-vsctl", "get", "interface", c.row, "error"); !strings.Contains(out, c.want) {
			t.Errorf("after %s the error is %s", c.change, out)
		}
		r.tool("ovs-vsctl", strings.Fields(c.back)...)
	}
	r.tool("ovs-vsctl", "set-controller", "br0", "punix:"+filepath.Join(r.rundir, "by-row"))
	if out := r.tool("ovs-ofctl", "dump-flows", "unix:"+filepath.Join(r.rundir, "by-row")); !strings.Contains(out, "NORMAL") {
		t.Errorf("at the controller's socket: %q", out)
	}
	r.tool("ovs-vsctl", "set", "port", "v0", "tag=5", "--", "set", "port", "v1", "tag=5")
	if err := ping(); err != nil {
		t.Errorf("in VLAN 5: %v", err)
	}
	if out := r.tool("ovs-appctl", "fdb/show", "br0"); !strings.Contains(out, "     5  ") {
		t.Errorf("in VLAN 5 the bridge has learned %q", out)
	}

	stop()
	if err := ping(); err != nil {
		t.Errorf("the bridge ended with vswitchd: %v", err)
	}
	r.start("br0.mgmt")
	if out := r.tool("ovs-vsctl", "list-ports", "br0"); out != "v0\nv1\n" || ping() != nil {
		t.Errorf("after another start: ports %q", out)
	}
	r.tool("ovs-vsctl", "del-br", "br0")
	if ports := r.sw.door.Ports(); len(ports) != 0 {
		t.Errorf("without a bridge the switch has the ports %v", ports)
	}
}

// ofctl runs ovs-ofctl, and returns the lines that begin with a blank, without that, sorted.
func (r *vswitchdRig) ofctl(version string, args ...string) (lines []string) {
	r.t.Helper()
	c := exec.CommandContext(r.t.Context(), "ovs-ofctl", append([]string{"--timeout=60", "-O" + version}, args...)...)
	c.Env = append(os.Environ(), "OVS_RUNDIR="+r.rundir)
	out, err := c.CombinedOutput()
	if err != nil {
		r.t.Fatalf("ovs-ofctl %q: %v: %s", args, err, out)
	}
	for l := range strings.SplitSeq(string(out), "\n") {
		if strings.HasPrefix(l, " ") {
			lines = append(lines, strings.TrimSpace(l))
		}
	}
	slices.Sort(lines)
	return lines
}

// file writes lines for ovs-ofctl to read.
func (r *vswitchdRig) file(lines []string) string {
	r.t.Helper()
	name := filepath.Join(r.rundir, "lines")
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return name
}

// entries are the program's entries as a dump of a version prints them.
func (r *vswitchdRig) entries(f flow.Format) (lines []string) {
	for _, e := range r.prog.Entries {
		lines = append(lines, strings.TrimSpace(e.Text(f)))
	}
	slices.Sort(lines)
	return lines
}

// TestVswitchdSeed gives ovs-ofctl the seed's groups, meters and entries, and dumps them: the
// dumps of OpenFlow 1.5 with names and of OpenFlow 1.0 are those of Open vSwitch.
func TestVswitchdSeed(t *testing.T) {
	r := startVswitchd(t)
	for _, m := range r.prog.Meters {
		r.ofctl("OpenFlow15", "add-meter", "br-int", strings.Join(strings.Fields(m.Text()), " "))
	}
	var groups []string
	for _, g := range r.prog.Groups {
		groups = append(groups, strings.TrimSpace(g.Text(r.names)))
	}
	slices.Sort(groups)
	r.ofctl("OpenFlow15", "--names", "add-groups", "br-int", r.file(groups))
	want := r.entries(flow.Format{Names: r.names})
	r.ofctl("OpenFlow15", "--names", "--bundle", "add-flows", "br-int", r.file(want))
	wantLines(t, "OpenFlow 1.5", want, r.ofctl("OpenFlow15", "--names", "--no-stats", "dump-flows", "br-int"))
	wantLines(t, "groups", groups, r.ofctl("OpenFlow15", "--names", "dump-groups", "br-int"))
	wantLines(t, "OpenFlow 1.0", r.entries(flow.Format{Version: flow.OpenFlow10}), r.ofctl("OpenFlow10", "--no-names", "--no-stats", "dump-flows", "br-int"))
	got := strings.Join(r.ofctl("OpenFlow15", "--names", "--bundle", "replace-flows", "br-int", r.file(want)), "\n")
	if got != "" {
		t.Errorf("replace-flows by the same entries says %q", got)
	}
	numbers := r.file(r.entries(flow.Format{})) // diff-flows reads no names of tables
	if out := r.ofctl("OpenFlow15", "diff-flows", "br-int", numbers); len(out) != 0 {
		t.Errorf("diff-flows finds %q", out)
	}
	if n := len(r.sw.door.Flows()); n != len(r.prog.Entries) {
		t.Errorf("the switch has %d entries, want %d", n, len(r.prog.Entries))
	}
}

func wantLines(t *testing.T, what string, want, got []string) {
	t.Helper()
	for _, l := range got {
		if !slices.Contains(want, l) {
			t.Errorf("%s: got %s", what, l)
		}
	}
	for _, l := range want {
		if !slices.Contains(got, l) {
			t.Errorf("%s: want %s", what, l)
		}
	}
	if len(got) != len(want) || len(got) == 0 {
		t.Errorf("%s: %d lines, want %d", what, len(got), len(want))
	}
}
