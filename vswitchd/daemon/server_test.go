package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antrail/antrail/vswitchd/bridgetest"
)

// ovsdbServer is an ovsdb-server of Open vSwitch with db.sock in a directory.
type ovsdbServer struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
}

// startServer runs an ovsdb-server with an empty database until the test ends.
func startServer(t *testing.T) *ovsdbServer {
	t.Helper()
	need(t, "ovs-vsctl")
	dir, err := os.MkdirTemp("", "front")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &ovsdbServer{t: t, dir: dir}
	if text, code := tool(t, dir, "ovsdb-tool", "create", filepath.Join(dir, "conf.db"), "/usr/share/openvswitch/vswitch.ovsschema"); code != 0 {
		t.Fatal(text)
	}
	s.start()
	t.Cleanup(s.stop)
	s.vsctl("--no-wait", "init")
	return s
}

func (s *ovsdbServer) start() {
	s.t.Helper()
	program, err := exec.LookPath("ovsdb-server")
	if err != nil {
		program = "/usr/sbin/ovsdb-server" // daemons are often outside PATH
	}
	socket := filepath.Join(s.dir, "db.sock")
	s.cmd = exec.Command(program, filepath.Join(s.dir, "conf.db"), "--remote=punix:"+socket, "--unixctl="+filepath.Join(s.dir, "db.ctl"), "-vconsole:off")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if text, code := tool(s.t, s.dir, "ovsdb-client", "list-dbs", "unix:"+socket); code == 0 && strings.Contains(text, "Open_vSwitch") {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatal("ovsdb-server does not answer")
		}
	}
}

func (s *ovsdbServer) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

func (s *ovsdbServer) vsctl(args ...string) string {
	s.t.Helper()
	text, code := tool(s.t, s.dir, "ovs-vsctl", append([]string{"--timeout=20"}, args...)...)
	if code != 0 {
		s.t.Fatalf("ovs-vsctl %s: %s", strings.Join(args, " "), text)
	}
	return strings.TrimSpace(text)
}

// config is a daemon that follows the server's rows.
func (s *ovsdbServer) config(sw *bridgetest.Switch) Config {
	c := config(s.dir, sw)
	c.Database, c.Server = "", filepath.Join(s.dir, "db.sock")
	return c
}

// TestAnotherServer follows the rows of an ovsdb-server of Open vSwitch. A second daemon is refused.
// When the server is started again, the daemon goes on.
func TestAnotherServer(t *testing.T) {
	s := startServer(t)
	sw := bridgetest.New()
	d, err := New(s.config(sw))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- d.Run(t.Context()) }()
	s.vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy")
	s.vsctl("add-port", "br0", "p1", "--", "set", "Interface", "p1", "type=dummy", "ofport_request=7")
	if got := s.vsctl("get", "Interface", "p1", "ofport", "admin_state"); got != "7\nup" {
		t.Errorf("p1 has %q", got)
	}
	if got := s.vsctl("get", "Open_vSwitch", ".", "ovs_version"); got == "[]" {
		t.Error("the switch has not written its version")
	}
	if _, err := New(s.config(bridgetest.New())); err == nil {
		t.Error("a second daemon is not refused")
	}
	s.stop()
	s.start()
	s.vsctl("add-port", "br0", "p2", "--", "set", "Interface", "p2", "type=dummy")
	s.vsctl("del-port", "br0", "p1")
	if got := strings.Join(sw.Names(), " "); got != "br0/br0 br0/p2" {
		t.Errorf("the switch has %s", got)
	}
	if text, code := tool(t, s.dir, "ovs-appctl", "exit"); code != 0 {
		t.Error(text)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := s.vsctl("list-ports", "br0"); got != "p2" {
		t.Errorf("the database has the ports %s", got)
	}
}

// TestNoServer: a daemon returns an error if its server does not answer, or if the database is empty.
func TestNoServer(t *testing.T) {
	c := config(t.TempDir(), bridgetest.New())
	c.Server = filepath.Join(t.TempDir(), "db.sock")
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
	s := startServer(t)
	s.vsctl("--no-wait", "emer-reset")
	if text, code := tool(t, s.dir, "ovsdb-client", "transact", "unix:"+filepath.Join(s.dir, "db.sock"), `["Open_vSwitch",{"op":"delete","table":"Open_vSwitch","where":[]}]`); code != 0 {
		t.Fatal(text)
	}
	if _, err := New(s.config(bridgetest.New())); err == nil || !strings.Contains(err.Error(), "ovs-vsctl --no-wait init") {
		t.Error(err)
	}
}
