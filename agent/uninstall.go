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

// A stopping agent removes what it made, but keeps what the next one continues with:
// connections, entries, the seed of endpoints. A killed agent leaves more (package host,
// record.go), and its switch, which runs on. Uninstall removes all of it.

// ErrRunning says that an agent answers at the socket.
var ErrRunning = switchd.ErrRunning

// Uninstall restores the Node to its state before the first agent of a socket. It calls tell
// for each thing that it removes. The error is ErrRunning while that agent runs.
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

// ReturnCard gives a card that a killed agent owned its addresses and routes back, and calls
// tell. It also removes the program by which the killed switch kept packets from the Node.
// While the agent or its switch runs it does nothing: packets pass.
func ReturnCard(socket string, tell func(what string)) error {
	c := &config.Config{Socket: socket}
	if someoneAnswers(socket) || someoneAnswers(c.SwitchSocket()) {
		return nil // not running(): the socket of a dying process accepts connections too
	}
	card, err := host.ReturnCard(c.RecordFile(), tell)
	if card == "" {
		return err
	}
	return errors.Join(err, afpacket.CleanLink(card))
}

// endLeftSwitch ends the switch of a killed agent.
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
		return nil // another agent's
	}
	if err := endOther(ctx, sw); err != nil {
		return err
	}
	tell(fmt.Sprintf("ended the switch, process %d", info.PID))
	return nil
}

// cleanTaps deletes the devices of a killed agent.
func cleanTaps(socket string, tell func(what string)) error {
	deleted, err := tap.Sweep(host.LinkAlias(socket), func(string) bool { return false })
	for _, name := range deleted {
		tell("removed link " + name)
	}
	return err
}

// running says whether a process accepts connections at a socket.
func running(socket string) bool {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// Stop stops the agent that answers at a socket, and returns when it has ended. The error says
// that ctx ended first. If nothing answers, Stop returns nil.
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

// PID is the process that listens at a socket. It is 0 if there is none, or if the process is
// outside the caller's PID namespace.
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

// listener is the PID of the process that listens at the other end, in the caller's PID
// namespace. It is 0 for a process outside that namespace (unix(7), SO_PEERCRED).
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
		return 0, fmt.Errorf("the process that answers at %s is unknown: %w", c.RemoteAddr(), err)
	}
	return int(cred.Pid), nil
}

// sweepTaps deletes devices of a killed agent that this one has not opened: the configuration
// is another, or ports have gone.
func (a *Agent) sweepTaps() {
	opened := map[string]bool{a.config.Gateway.Name: true}
	for _, p := range a.Pods.Wanted() {
		opened[p.Link] = true
	}
	deleted, err := tap.Sweep(ownerOf(a.config), func(name string) bool { return opened[name] })
	if len(deleted) > 0 {
		a.log.Info("deleted links of a killed agent", "links", deleted)
	}
	if err != nil {
		a.log.Warn("cannot delete links of a killed agent", "error", err)
	}
}
