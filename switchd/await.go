package switchd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/antrail/antrail/door"
	"golang.org/x/sys/unix"
)

// A process that waits until a launcher makes it the switch. Its launcher cannot start it,
// because it runs in its own container. It never has privilege. A child gets a message and
// descriptors from its launcher (launch.go). This process gets the same through a unix socket on
// which the launcher listens. They come in one message: launchOrder, with the descriptors from 4
// on in their order.

// waitingHello is the message of a waiting process to its launcher.
type waitingHello struct {
	Protocol string `json:"protocol"`
	// Pod is the name of the process's pod; "" outside of Kubernetes.
	Pod string `json:"pod,omitempty"`
}

// awaitProtocol is the protocol of this socket.
const awaitProtocol = "antrail-await/1"

// callPause is the pause between two calls to a launcher that does not answer, or does not accept
// this process.
const callPause = 500 * time.Millisecond

// Await waits at a socket until a launcher makes this process its switch, and runs the switch
// until ctx ends. The process must have no capability, and a user other than root. Await
// restricts it to the system calls of a switch. After another switch has taken over, Await waits
// until ctx ends: if it returned, the container would be started again.
func Await(ctx context.Context, socket, pod, release string, log *slog.Logger) error {
	if err := confineSelf(); err != nil {
		return err
	}
	log.Info("waiting to be launched as the switch", "socket", socket, "pod", pod)
	t, order, fds, err := callLauncher(ctx, socket, pod)
	if err != nil {
		return err
	}
	defer t.Close() // so the launcher learns that the switch has ended
	if !order.Confined || order.Release != release {
		door.CloseDescriptors(fds)
		return fmt.Errorf("the launcher has release %s, want %s; it wants a confined switch: %v, want true", order.Release, release, order.Confined)
	}
	if err := os.Chdir(order.Dir); err != nil {
		door.CloseDescriptors(fds)
		return fmt.Errorf("the switch's directory: %w", err)
	}
	err = order.run(ctx, fds, log)
	if !errors.Is(err, errHandedOver) {
		return err
	}
	t.Close()
	<-ctx.Done()
	return nil
}

// callLauncher calls the launcher until it launches this process. The connection stays open.
func callLauncher(ctx context.Context, socket, pod string) (t door.MessageConn, order *launchOrder, fds []int, err error) {
	for {
		if t, order, fds, err = callLauncherOnce(ctx, socket, pod); err == nil {
			return t, order, fds, nil
		}
		select {
		case <-ctx.Done():
			return t, nil, nil, ctx.Err()
		case <-time.After(callPause):
		}
	}
}

func callLauncherOnce(ctx context.Context, socket, pod string) (t door.MessageConn, order *launchOrder, fds []int, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return t, nil, nil, err
	}
	t.UnixConn = conn.(*net.UnixConn)
	defer context.AfterFunc(ctx, func() { t.Close() })()
	uid, err := peerUID(t.UnixConn)
	if err == nil && uid != 0 {
		err = fmt.Errorf("user %d listens at %s, and not root", uid, socket)
	}
	if err == nil {
		err = t.Send(waitingHello{Protocol: awaitProtocol, Pod: pod})
	}
	if err == nil {
		order = &launchOrder{}
		fds, err = t.Receive(order)
	}
	if err != nil {
		t.Close()
	}
	return t, order, fds, err
}

// peerUID is the user of the process at the other end, when it connected or listened.
func peerUID(c *net.UnixConn) (uid uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if ctl := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); ctl != nil || err != nil {
		return 0, errors.Join(ctl, err)
	}
	return cred.Uid, nil
}

// Waiting is the launcher's side: the socket, and the process that waits there.
type Waiting struct {
	ln  *net.UnixListener
	pod string
	log *slog.Logger
	// latest holds the connection of the latest process that can be launched.
	latest chan door.MessageConn
}

// ListenWaiting opens the socket at which a process of the same pod may wait. Any process that
// can reach the socket may connect. It is launched only if its user is that of a confined switch.
func ListenWaiting(socket, pod string, log *slog.Logger) (*Waiting, error) {
	ln, err := ReplaceSocket(socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	w := &Waiting{ln: ln.(*net.UnixListener), pod: pod, log: log, latest: make(chan door.MessageConn, 1)}
	go w.runAccept()
	return w, nil
}

// Close closes the socket. The waiting process calls again.
func (w *Waiting) Close() error {
	err := w.ln.Close()
	w.hangUpLatest()
	return err
}

// hangUpLatest hangs up on the waiting process.
func (w *Waiting) hangUpLatest() {
	select {
	case t := <-w.latest:
		t.Close()
	default:
	}
}

// runAccept accepts processes until the socket is closed.
func (w *Waiting) runAccept() {
	for {
		conn, err := w.ln.AcceptUnix()
		if err != nil {
			return
		}
		t := door.MessageConn{UnixConn: conn}
		if err := w.checkWaiting(t); err != nil {
			w.log.Debug("a process cannot be launched as the switch", "error", err)
			t.Close()
			continue
		}
		w.hangUpLatest() // the previous one has ended, and this one was started in its place
		w.latest <- t
	}
}

// checkWaiting returns the reason why a process cannot be launched.
func (w *Waiting) checkWaiting(t door.MessageConn) error {
	uid, err := peerUID(t.UnixConn)
	if err == nil && uid != ConfinedUID {
		err = fmt.Errorf("it runs as user %d, want %d", uid, ConfinedUID)
	}
	var h waitingHello
	if err == nil {
		err = errors.Join(t.SetReadDeadline(time.Now().Add(callPause)), receiveHello(t, &h), t.SetReadDeadline(time.Time{}))
	}
	switch {
	case err != nil:
		return err
	case h.Protocol != awaitProtocol:
		return fmt.Errorf("it speaks %.40q, want %s", h.Protocol, awaitProtocol)
	case h.Pod != w.pod:
		return fmt.Errorf("it is in pod %.80q, want %q", h.Pod, w.pod)
	}
	return nil
}

func receiveHello(t door.MessageConn, h *waitingHello) error {
	fds, err := t.Receive(h)
	door.CloseDescriptors(fds)
	return err
}

// waitingProcess is a process that was taken off the socket for a launch.
type waitingProcess struct {
	door.MessageConn
	launched bool
}

// takeWaiting returns the waiting process, once there is one.
func (w *Waiting) takeWaiting(ctx context.Context) (*waitingProcess, error) {
	if len(w.latest) == 0 {
		w.log.Info("waiting for a process to launch as the switch: antrail switch --await", "socket", w.ln.Addr(), "pod", w.pod)
	}
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("no process waits to be launched as the switch (antrail switch --await): %w", ctx.Err())
		case t := <-w.latest:
			if alive(t) {
				return &waitingProcess{MessageConn: t}, nil
			}
			t.Close()
		}
	}
}

// alive reports whether a process still waits: it has not hung up, and has not sent anything.
func alive(t door.MessageConn) bool {
	if t.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	_, err := t.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded) && t.SetReadDeadline(time.Time{}) == nil
}

// hangUp makes a process that was not launched wait again.
func (w *waitingProcess) hangUp() {
	if !w.launched {
		w.Close()
	}
}

// startWaiting launches a waiting process.
func (p *Process) startWaiting(w *waitingProcess) starter {
	return func(l *Launch, order *launchOrder, files []*os.File) (*Launched, error) {
		var fds []int
		for _, f := range files {
			fds = append(fds, int(f.Fd()))
		}
		if err := w.Send(order, fds...); err != nil {
			return nil, fmt.Errorf("the process that waited to be launched as the switch: %w", err)
		}
		w.launched = true
		p.Log.Info("the process that waited is the switch", "door", p.Socket)
		ended := make(chan error, 1)
		go p.runHungUp(w.MessageConn, ended)
		return &Launched{Ended: ended}, nil
	}
}

// errHungUp is how a switch ends that is not a child.
var errHungUp = errors.New("the process of the switch has hung up")

// runHungUp waits until a switch has ended.
func (p *Process) runHungUp(t door.MessageConn, ended chan<- error) {
	io.Copy(io.Discard, t) // returns when the switch hangs up: it sends no message
	t.Close()
	p.Log.Info("the process of the switch has ended")
	ended <- errHungUp
}
