package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/cni/node"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/ports/afpacket"
	"github.com/antrail/antrail/ports/tap"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/switchd/local"
	"golang.org/x/sys/unix"
)

// An agent that is told to stop takes back what it made, but keeps what the next
// one goes on with: connections, entries, the seed of endpoints. One that was
// killed leaves more (package host, record.go), and its switch, which goes on. Uninstall
// removes both.

// ErrRunning says that an agent answers at a socket.
var ErrRunning = switchd.ErrRunning

// Uninstall leaves the Node as it was before the agent of a socket first started.
// It tells each thing that it takes back. While that agent runs it is an error
// that is ErrRunning.
func Uninstall(socket string, tell func(what string)) error {
	if running(socket) {
		return fmt.Errorf("%w: it answers at %s", ErrRunning, socket)
	}
	c := &config.Config{Socket: socket}
	if err := endLeftSwitch(c, tell); err != nil {
		return err
	}
	return errors.Join(node.Clean(c.CNIRecord(), tell), cleanTaps(socket, tell), afpacket.Clean(tell), host.Clean(c.RecordFile(), tell))
}

// ReturnCard gives a card that a killed agent owned its addresses and routes back, and tells that. The
// program goes with which the killed switch kept packets from the Node. While the agent or its switch
// runs it does nothing: packets pass.
func ReturnCard(socket string, tell func(what string)) error {
	c := &config.Config{Socket: socket}
	if someoneAnswers(socket) || someoneAnswers(c.SwitchSocket()) {
		return nil // the socket of a process that dies takes connections, too
	}
	card, err := host.ReturnCard(c.RecordFile(), tell)
	if card == "" {
		return err
	}
	return errors.Join(err, afpacket.CleanLink(card))
}

// endLeftSwitch ends the switch of an agent that was killed.
func endLeftSwitch(c *config.Config, tell func(what string)) error {
	sw := door.Dial(c.SwitchSocket())
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	info, err := sw.Info(ctx)
	if away := (*door.AwayError)(nil); errors.As(err, &away) {
		return nil
	}
	if err != nil {
		return err
	}
	var s local.Settings
	if err := json.Unmarshal(info.Settings, &s); err != nil || s.Owner != ownerOf(c) {
		return nil // it is somebody else's
	}
	if err := endOther(ctx, sw); err != nil {
		return err
	}
	tell(fmt.Sprintf("ended the switch, process %d", info.PID))
	return nil
}

// cleanTaps deletes the devices of an agent that was killed.
func cleanTaps(socket string, tell func(what string)) error {
	deleted, err := tap.Sweep(host.LinkAlias(socket), func(string) bool { return false })
	for _, name := range deleted {
		tell("removed link " + name)
	}
	return err
}

// running says whether somebody answers at a socket.
func running(socket string) bool {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// Stop tells the agent that answers at a socket to stop, and returns when it has
// ended, or with an error when ctx ends before. That nobody answers is no error.
func Stop(ctx context.Context, socket string) error {
	pid, err := PID(socket)
	if err != nil || pid == 0 {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("the agent, process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("the agent, process %d: %w", pid, err)
	}
	const look = 100 // milliseconds between looks at ctx
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, look)
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("the agent, process %d: %w", pid, err)
		}
	}
	return fmt.Errorf("the agent, process %d, has not stopped: %w", pid, context.Cause(ctx))
}

// PID is the process that listens at a socket; 0 for nobody, and for one that is in none
// of the caller's PID namespace.
func PID(socket string) (pid int, err error) {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return listener(c.(*net.UnixConn))
}

// listener is the process that listens at the other end, as a number of the caller's
// PID namespace; 0 for one that is in none of it (unix(7), SO_PEERCRED).
func listener(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, credErr); err != nil {
		return 0, fmt.Errorf("who answers at %s: %w", c.RemoteAddr(), err)
	}
	return int(cred.Pid), nil
}

// sweepTaps deletes devices of an agent before that was killed, and that this one has
// not opened: it has another configuration, or ports have gone meanwhile.
func (a *Agent) sweepTaps() {
	opened := map[string]bool{a.config.Gateway.Name: true}
	for _, p := range a.Pods.Wanted() {
		opened[p.Link] = true
	}
	deleted, err := tap.Sweep(ownerOf(a.config), func(name string) bool { return opened[name] })
	if len(deleted) > 0 {
		a.log.Info("links of an agent before that was killed are deleted", "links", deleted)
	}
	if err != nil {
		a.log.Warn("links of an agent before stay", "error", err)
	}
}
