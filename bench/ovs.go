package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A private Open vSwitch with its userspace datapath: database, daemon and
// sockets in a directory of its own. It runs in the network namespace of the
// thread that starts it, and ends with close, or with that thread.

// ovsPrograms is where Open vSwitch was found.
type ovsPrograms struct{ vswitchd, server, schema string }

// findOVS looks where packages put the daemons, which is often outside PATH.
func findOVS() (p ovsPrograms, err error) {
	for name, at := range map[string]*string{"ovs-vswitchd": &p.vswitchd, "ovsdb-server": &p.server} {
		for _, dir := range []string{"", "/usr/sbin/", "/usr/local/sbin/"} {
			if *at, err = exec.LookPath(dir + name); err == nil {
				break
			}
		}
		if err != nil {
			return p, fmt.Errorf("there is no %s; Debian's openvswitch-switch and openvswitch-common have all of it", name)
		}
	}
	for _, dir := range []string{"/usr/share/openvswitch", "/usr/local/share/openvswitch"} {
		p.schema = filepath.Join(dir, "vswitch.ovsschema")
		if _, err = os.Stat(p.schema); err == nil {
			return p, nil
		}
	}
	return p, err
}

// ovsVersion is the name and version that the daemon gives.
var ovsVersion = sync.OnceValue(func() string {
	p, err := findOVS()
	if err != nil {
		return "Open vSwitch"
	}
	var out strings.Builder
	cmd := exec.Command(p.vswitchd, "--version")
	cmd.Stdout = &out
	err = runCommand(cmd)
	line, _, _ := strings.Cut(out.String(), "\n")
	fields := strings.Fields(line)
	if err != nil || len(fields) == 0 {
		return "Open vSwitch"
	}
	return "Open vSwitch " + fields[len(fields)-1]
})

// ovsSwitch is a running one, with the bridge br0.
type ovsSwitch struct {
	dir     string
	daemons []*exec.Cmd // the switch is the last one
}

// startOVS starts a switch with settings of other_config, such as
// "userspace-tso-enable=true".
func startOVS(ctx context.Context, settings ...string) (*ovsSwitch, error) {
	p, err := findOVS()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "antrail-ovs") // short, for the sockets' sake
	if err != nil {
		return nil, err
	}
	s := &ovsSwitch{dir: dir}
	if err := s.start(ctx, p, settings); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *ovsSwitch) start(ctx context.Context, p ovsPrograms, settings []string) error {
	if _, err := s.run(ctx, "ovsdb-tool", "create", s.path("conf.db"), p.schema); err != nil {
		return err
	}
	err := s.daemon(ctx, "db.sock", p.server, s.path("conf.db"), "--remote=punix:"+s.path("db.sock"),
		"--unixctl="+s.path("db.ctl"), "--log-file="+s.path("db.log"), "-vconsole:off")
	if err != nil {
		return err
	}
	if err := s.vsctl(ctx, "--no-wait", "init"); err != nil {
		return err
	}
	for _, o := range settings {
		if err := s.vsctl(ctx, "--no-wait", "set", "Open_vSwitch", ".", "other_config:"+o); err != nil {
			return err
		}
	}
	err = s.daemon(ctx, "vs.ctl", p.vswitchd, "unix:"+s.path("db.sock"), "--disable-system", "--disable-system-route",
		"--enable-dummy", "--unixctl="+s.path("vs.ctl"), "--log-file="+s.path("vs.log"), "-vconsole:off")
	if err != nil {
		return err
	}
	return s.vsctl(ctx, "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "fail-mode=secure", "protocols=OpenFlow10,OpenFlow13,OpenFlow15")
}

func (s *ovsSwitch) path(name string) string { return filepath.Join(s.dir, name) }

// daemonPatience is how long a daemon may take to answer, or to end.
const daemonPatience = 20 * time.Second

// daemon starts a process and waits for its socket.
func (s *ovsSwitch) daemon(ctx context.Context, socket, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Env = s.environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // with the thread that starts it
	if err := cmd.Start(); err != nil {
		return err
	}
	s.daemons = append(s.daemons, cmd)
	for deadline := time.Now().Add(daemonPatience); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("unix", s.path(socket)); err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return errors.Join(fmt.Errorf("%s does not answer", program), ctx.Err())
		}
	}
}

func (s *ovsSwitch) environment() []string {
	return append(os.Environ(), "OVS_RUNDIR="+s.dir, "OVS_LOGDIR="+s.dir, "OVS_DBDIR="+s.dir, "OVS_SYSCONFDIR="+s.dir)
}

// run runs a program and returns what it prints.
func (s *ovsSwitch) run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = s.environment()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := runCommand(cmd); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

func (s *ovsSwitch) vsctl(ctx context.Context, args ...string) error {
	_, err := s.run(ctx, "ovs-vsctl", append([]string{"--db=unix:" + s.path("db.sock"), "--timeout=20"}, args...)...)
	return err
}

// appctl gives the switch a command as ovs-appctl does, without a process: one
// JSON-RPC call on its control socket.
func (s *ovsSwitch) appctl(ctx context.Context, command string, args ...string) (string, error) {
	var answer struct {
		Result string `json:"result"`
		Error  any    `json:"error"`
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", s.path("vs.ctl"))
	if err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	defer c.Close()
	call := map[string]any{"id": 0, "method": command, "params": append([]string{}, args...)}
	err = errors.Join(c.SetDeadline(time.Now().Add(daemonPatience)), json.NewEncoder(c).Encode(call))
	if err == nil {
		err = json.NewDecoder(c).Decode(&answer)
	}
	if err == nil && answer.Error != nil {
		err = fmt.Errorf("%v", answer.Error)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", command, strings.Join(args, " "), err)
	}
	return answer.Result, nil
}

// flow makes a flow entry the only one of the bridge.
func (s *ovsSwitch) flow(ctx context.Context, entry string) error {
	if _, err := s.run(ctx, "ovs-ofctl", "del-flows", s.path("br0.mgmt")); err != nil {
		return err
	}
	_, err := s.run(ctx, "ovs-ofctl", "add-flow", s.path("br0.mgmt"), entry)
	return err
}

// pid is the switch's process.
func (s *ovsSwitch) pid() string { return fmt.Sprint(s.daemons[len(s.daemons)-1].Process.Pid) }

// close ends the daemons, by force if they do not go, and removes the directory.
func (s *ovsSwitch) close() error {
	for i := len(s.daemons) - 1; i >= 0; i-- {
		cmd := s.daemons[i]
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Process.Signal(syscall.SIGCONT) // it may rest
		force := time.AfterFunc(daemonPatience, func() { _ = cmd.Process.Kill() })
		_ = reap(cmd) // that it was ended by a signal is no fault
		force.Stop()
	}
	return os.RemoveAll(s.dir)
}
