package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// instance is an Open vSwitch of our own, with a bridge br0 whose datapath is in
// user space and touches no real interface. It has a directory and a data base of
// its own and ends with the test.
type instance struct {
	t   *testing.T
	dir string
}

func startOVS(t *testing.T) *instance {
	t.Helper()
	if _, err := exec.LookPath("ovs-vswitchd"); err != nil {
		t.Skip("Open vSwitch is not installed")
	}
	dir, err := os.MkdirTemp("", "ovs") // a short path: socket names are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	o := &instance{t, dir}
	o.run("", "ovsdb-tool", "create", o.path("conf.db"), "/usr/share/openvswitch/vswitch.ovsschema")
	o.daemon("db.sock", "ovsdb-server", o.path("conf.db"), "--remote=punix:"+o.path("db.sock"))
	o.vsctl("--no-wait", "init")
	o.daemon("vs.ctl", "ovs-vswitchd", "unix:"+o.path("db.sock"), "--unixctl="+o.path("vs.ctl"),
		"--enable-dummy", "--disable-system", "--disable-system-route")
	o.vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy", "fail-mode=secure",
		"protocols=OpenFlow10,OpenFlow13,OpenFlow15")
	return o
}

func (o *instance) path(name string) string { return filepath.Join(o.dir, name) }

// daemon starts a program, to be ended with the test, and waits for its socket.
func (o *instance) daemon(socket, program string, args ...string) {
	o.t.Helper()
	cmd := o.command(program, append(args, "-vconsole:off", "--log-file="+o.path(program+".log"))...)
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(o.path(socket)); err == nil {
			return
		}
		if time.Now().After(deadline) {
			o.t.Fatalf("%s made no %s", program, socket)
		}
	}
}

func (o *instance) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+o.dir, "OVS_LOGDIR="+o.dir, "OVS_DBDIR="+o.dir, "OVS_SYSCONFDIR="+o.dir)
	return cmd
}

// run returns what a program prints; an error ends the test.
func (o *instance) run(stdin, program string, args ...string) string {
	o.t.Helper()
	var errs strings.Builder
	cmd := o.command(program, args...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &errs
	out, err := cmd.Output()
	if err != nil {
		o.t.Fatalf("%s %q: %v\n%s", program, args, err, errs.String())
	}
	return string(out)
}

func (o *instance) vsctl(args ...string) string {
	o.t.Helper()
	return o.run("", "ovs-vsctl", append([]string{"--db=unix:" + o.path("db.sock")}, args...)...)
}

func (o *instance) appctl(args ...string) string {
	o.t.Helper()
	return o.run("", "ovs-appctl", append([]string{"-t", o.path("vs.ctl")}, args...)...)
}

// ofctl speaks OpenFlow 1.5 with names; a file named - is stdin.
func (o *instance) ofctl(stdin string, args ...string) string {
	o.t.Helper()
	return o.run(stdin, "ovs-ofctl", append([]string{"-OOpenFlow15", "--names"}, args...)...)
}
