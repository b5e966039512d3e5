//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

func startVswitchd(t *testing.T) *vswitchdRig {
	t.Helper()
	if _, err := exec.LookPath("ovs-ofctl"); err != nil {
		t.Skip("Open vSwitch is not installed: no ovs-ofctl")
	}
	r := &vswitchdRig{t: t, sw: startBare(t), prog: seedProgram(t), names: flow.NewNames()}
	for id, name := range r.prog.Names.Tables() {
		r.names.SetTable(id, name)
	}
	if err := r.sw.door.Apply(&flow.Bundle{Names: r.names, First: r.prog.First}); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.rundir, err = os.MkdirTemp("", "ovs"); err != nil { // t.TempDir is too long for a socket's path
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(r.rundir) })
	c := r.sw.Command(os.Args[0], "vswitchd", "--switch", r.sw.socket, "--rundir", r.rundir)
	c.Env = append(os.Environ(), asBinary+"=1")
	var log strings.Builder
	c.Stderr = &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
		if t.Failed() {
			t.Logf("vswitchd said:\n%s", log.String())
		}
	})
	nstest.Until(t, "the bridge answers", func() bool {
		_, err := os.Stat(filepath.Join(r.rundir, "br-int.mgmt"))
		return err == nil
	})
	return r
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
