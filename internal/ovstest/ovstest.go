// Package ovstest runs a private Open vSwitch for a test, to compare antrail with it. The switch
// has its own database, daemon and userspace datapath, in a temporary directory.
//
// It touches neither the machine's interfaces nor a running switch, and needs no root. Ports are
// of type dummy. Packets enter by netdev-dummy/receive and leave into pcap files.
package ovstest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/unixctl"
)

// Bridge is the name of the one bridge. It speaks OpenFlow 1.0, 1.3, 1.4 and 1.5.
const Bridge = "br0"

// startTimeout bounds how long a daemon may take to answer.
const startTimeout = 20 * time.Second

// Switch is a running Open vSwitch.
type Switch struct {
	// Dir is its directory: sockets, database, logs, captures.
	Dir string
	t   testing.TB
}

// Port is a port of the bridge.
type Port struct {
	Name   string
	Number int
}

// Start runs a switch with the bridge br0 and these ports until the test ends. It skips the test
// on a machine without Open vSwitch, and only there.
func Start(t testing.TB, ports ...Port) *Switch {
	t.Helper()
	vswitchd := lookPath(t, "ovs-vswitchd")
	server := lookPath(t, "ovsdb-server")
	dir, err := os.MkdirTemp("", "ovs") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	s := &Switch{Dir: dir, t: t}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.must(s.run("ovsdb-tool", "create", s.path("conf.db"), schema(t)))
	s.daemon(server, "db.sock", s.path("conf.db"), "--remote=punix:"+s.path("db.sock"),
		"--unixctl="+s.path("db.ctl"), "--log-file="+s.path("db.log"), "-vconsole:off")
	s.must(s.Vsctl("--no-wait", "init"))
	s.daemon(vswitchd, "vs.ctl", "unix:"+s.path("db.sock"), "--enable-dummy", "--disable-system",
		"--disable-system-route", "--unixctl="+s.path("vs.ctl"), "--log-file="+s.path("vs.log"), "-vconsole:off")
	s.must(s.Vsctl("add-br", Bridge, "--", "set", "bridge", Bridge, "datapath_type=dummy", "fail-mode=secure",
		"protocols=OpenFlow10,OpenFlow13,OpenFlow14,OpenFlow15"))
	s.AddPorts(ports...)
	return s
}

// lookPath finds a program of Open vSwitch; daemons are often outside PATH.
func lookPath(t testing.TB, name string) string {
	t.Helper()
	for _, p := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
		if found, err := exec.LookPath(p); err == nil {
			return found
		}
	}
	t.Skipf("Open vSwitch is not installed: no %s", name)
	return ""
}

// schema finds the database schema that comes with Open vSwitch.
func schema(t testing.TB) string {
	t.Helper()
	for _, p := range []string{"/usr/share/openvswitch", "/usr/local/share/openvswitch"} {
		if f := filepath.Join(p, "vswitch.ovsschema"); fileExists(f) {
			return f
		}
	}
	t.Fatal("Open vSwitch is installed without vswitch.ovsschema")
	return ""
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func (s *Switch) path(name string) string { return filepath.Join(s.Dir, name) }

// daemon starts a process, waits for its socket, and ends it with the test.
func (s *Switch) daemon(program, socket string, args ...string) {
	s.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = s.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("%s: %v", program, err)
	}
	ended := make(chan struct{})
	go runReaper(cmd, ended)
	s.t.Cleanup(func() { stop(cmd, ended) })
	for deadline := time.Now().Add(startTimeout); !answers(s.path(socket)); time.Sleep(5 * time.Millisecond) {
		select {
		case <-ended:
			s.t.Fatalf("%s ended at once: %s", program, s.logs())
		default:
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s does not answer: %s", program, s.logs())
		}
	}
}

// answers says whether a daemon listens on a socket.
func answers(socket string) bool {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

func runReaper(cmd *exec.Cmd, ended chan<- struct{}) {
	_ = cmd.Wait()
	close(ended)
}

// stop ends a daemon, by force if it does not go by itself.
func stop(cmd *exec.Cmd, ended <-chan struct{}) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(startTimeout):
		_ = cmd.Process.Kill()
		<-ended
	}
}

// logs returns the end of the daemons' logs.
func (s *Switch) logs() string {
	var b strings.Builder
	for _, f := range []string{"db.log", "vs.log"} {
		text, _ := os.ReadFile(s.path(f))
		b.Write(text[max(0, len(text)-2000):])
	}
	return b.String()
}

func (s *Switch) env() []string {
	return append(os.Environ(), "OVS_RUNDIR="+s.Dir, "OVS_LOGDIR="+s.Dir, "OVS_DBDIR="+s.Dir, "OVS_SYSCONFDIR="+s.Dir)
}

// run runs a program and returns its standard output. An error holds its standard error.
func (s *Switch) run(program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Env = s.env()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

func (s *Switch) must(_ string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// AddPorts adds dummy ports with their numbers. Frames sent to port p are captured in Dir/p.pcap.
func (s *Switch) AddPorts(ports ...Port) {
	s.t.Helper()
	if len(ports) == 0 {
		return
	}
	var args []string
	for _, p := range ports {
		args = append(args, "--", "add-port", Bridge, p.Name, "--", "set", "interface", p.Name, "type=dummy",
			"ofport_request="+strconv.Itoa(p.Number), "options:tx_pcap="+s.path(p.Name+".pcap"))
	}
	s.must(s.Vsctl(args...))
}

// Vsctl is ovs-vsctl on the switch's database.
func (s *Switch) Vsctl(args ...string) (string, error) {
	return s.run("ovs-vsctl", append([]string{"--db=unix:" + s.path("db.sock")}, args...)...)
}

// Ofctl is ovs-ofctl in OpenFlow 1.5: Ofctl("dump-flows") asks the bridge, and
// further arguments follow its name: Ofctl("add-flows", FILE). Options stand
// before the command: Ofctl("--names", "dump-flows").
func (s *Switch) Ofctl(args ...string) (string, error) {
	full := []string{"-OOpenFlow15"}
	for i, a := range args {
		full = append(full, a)
		if !strings.HasPrefix(a, "-") {
			full = append(full, s.path(Bridge+".mgmt"))
			return s.run("ovs-ofctl", append(full, args[i+1:]...)...)
		}
	}
	return s.run("ovs-ofctl", full...)
}

// Appctl is ovs-appctl to the switch: Appctl("ofproto/trace", "br0", FLOW).
func (s *Switch) Appctl(command string, args ...string) (string, error) {
	return unixctl.Call(s.t.Context(), s.path("vs.ctl"), appctlTimeout, command, args...)
}

// appctlTimeout is how long the switch may take to answer a command.
const appctlTimeout = time.Minute
