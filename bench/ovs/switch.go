package ovs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/testbed"
)

// Switch is a running Open vSwitch with its userspace datapath and the bridge br0. Its database and its
// sockets are in a directory of its own. It runs in the network namespace of the thread that started
// it, and ends with Close or with that thread.
type Switch struct {
	dir     string
	daemons []*exec.Cmd // ovs-vswitchd is the last one
	// closed ends the thread of StartIn; nil without one.
	closed chan struct{}
}

// Start starts a switch in the calling thread's namespace. The settings are of other_config, such as
// "userspace-tso-enable=true".
func Start(ctx context.Context, settings ...string) (*Switch, error) {
	p, err := findPrograms()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "antrail-ovs") // short: paths of sockets have a limit
	if err != nil {
		return nil, err
	}
	s := &Switch{dir: dir}
	if err := s.startDaemons(ctx, p, settings); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// startDaemons creates the database and starts ovsdb-server and ovs-vswitchd.
func (s *Switch) startDaemons(ctx context.Context, p programs, settings []string) error {
	if err := s.runProgram(ctx, "ovsdb-tool", "create", s.Path("conf.db"), p.schema); err != nil {
		return err
	}
	err := s.startDaemon(ctx, "db.sock", p.server, s.Path("conf.db"), "--remote=punix:"+s.Path("db.sock"),
		"--unixctl="+s.Path("db.ctl"), "--log-file="+s.Path("db.log"), "-vconsole:off")
	if err != nil {
		return err
	}
	if err := s.Vsctl(ctx, "--no-wait", "init"); err != nil {
		return err
	}
	for _, o := range settings {
		if err := s.Vsctl(ctx, "--no-wait", "set", "Open_vSwitch", ".", "other_config:"+o); err != nil {
			return err
		}
	}
	err = s.startDaemon(ctx, "vs.ctl", p.vswitchd, "unix:"+s.Path("db.sock"), "--disable-system", "--disable-system-route",
		"--enable-dummy", "--unixctl="+s.Path("vs.ctl"), "--log-file="+s.Path("vs.log"), "-vconsole:off")
	if err != nil {
		return err
	}
	return s.Vsctl(ctx, "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "fail-mode=secure", "protocols=OpenFlow10,OpenFlow13,OpenFlow15")
}

// Path is the path of a file in the switch's directory, such as its sockets.
func (s *Switch) Path(name string) string { return filepath.Join(s.dir, name) }

// daemonTimeout is how long a daemon may take to start, to answer or to end.
const daemonTimeout = 20 * time.Second

// startDaemon starts a process and waits for its socket.
func (s *Switch) startDaemon(ctx context.Context, socket, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Env = s.Environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // with the thread that starts it
	if err := cmd.Start(); err != nil {
		return err
	}
	s.daemons = append(s.daemons, cmd)
	for deadline := time.Now().Add(daemonTimeout); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("unix", s.Path(socket)); err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return errors.Join(fmt.Errorf("%s does not answer", program), ctx.Err())
		}
	}
}

// Environment is the environment in which Open vSwitch's tools find the switch.
func (s *Switch) Environment() []string {
	return append(os.Environ(), "OVS_RUNDIR="+s.dir, "OVS_LOGDIR="+s.dir, "OVS_DBDIR="+s.dir, "OVS_SYSCONFDIR="+s.dir)
}

// PID is the process number of ovs-vswitchd.
func (s *Switch) PID() string { return fmt.Sprint(s.daemons[len(s.daemons)-1].Process.Pid) }

// Close ends the daemons and removes the directory. It kills a daemon that does not end.
func (s *Switch) Close() error {
	if s.closed != nil {
		defer close(s.closed)
	}
	for i := len(s.daemons) - 1; i >= 0; i-- {
		cmd := s.daemons[i]
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Process.Signal(syscall.SIGCONT) // it may be stopped
		force := time.AfterFunc(daemonTimeout, func() { _ = cmd.Process.Kill() })
		_ = sched.Reap(cmd) // its error is the signal
		force.Stop()
	}
	return os.RemoveAll(s.dir)
}

// SetResting stops the switch's process, or lets it continue. Threads that poll AF_XDP ports never sleep
// and would take a processor from the contender that is measured.
func (s *Switch) SetResting(yes bool) error {
	signal := syscall.SIGCONT
	if yes {
		signal = syscall.SIGSTOP
	}
	return s.daemons[len(s.daemons)-1].Process.Signal(signal)
}

// StartIn starts a switch in a Node's namespace. Its daemons end with the thread that started them,
// which ends after Close.
func StartIn(ctx context.Context, n *testbed.Node, settings ...string) (s *Switch, err error) {
	started := make(chan error, 2)
	go func() {
		started <- testbed.Within(n.NS)(func() error {
			var failed error
			if s, failed = Start(ctx, settings...); failed != nil {
				return failed
			}
			closed := make(chan struct{})
			s.closed = closed
			started <- nil
			<-closed
			return nil
		})
	}()
	err = <-started
	return s, err
}
