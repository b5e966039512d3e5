package switchd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
)

// The switch's side of a launch (launch.go).

// Enter runs the switch if a launcher has started this process, and then exits. Without a
// launcher, it returns. Call it first in main, because it may start the program again as another
// user.
func Enter() {
	err := enterConfined()
	if err == nil {
		if os.Getenv(launchedVariable) == "" {
			return
		}
		os.Unsetenv(launchedVariable)
		err = runLaunched()
	}
	switch {
	case errors.Is(err, errHandedOver):
		os.Exit(replacedStatus)
	case err != nil:
		fmt.Fprintln(os.Stderr, "antrail switch:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runLaunched runs the switch until SIGTERM. A switch that is bound to its launcher also ends with
// it. SIGPIPE is ignored, so the switch outlives the launcher's standard error.
func runLaunched() error {
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	words := os.NewFile(wordsFD, "words")
	var order launchOrder
	err := json.NewDecoder(words).Decode(&order)
	if err = errors.Join(err, words.Close()); err != nil {
		return fmt.Errorf("descriptor %d: the launcher's message: %w", wordsFD, err)
	}
	fds := make([]int, order.descriptors())
	for i := range fds {
		fds[i] = doorFD + i
	}
	return order.run(ctx, fds, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: order.Level})).With("process", "switch"))
}

// run runs the switch with the launcher's descriptors. The error is errHandedOver if another
// switch has taken over.
func (order *launchOrder) run(ctx context.Context, fds []int, log *slog.Logger) error {
	p := &Process{
		Socket: order.Socket, Dir: order.Dir, Release: order.Release, Settings: order.Settings, Confined: order.Confined,
		TakeOver: order.Replaces, Log: log,
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.adoptDescriptors(order, fds, cancel); err != nil {
		return err
	}
	if err := p.Run(ctx); err != nil {
		return err
	}
	return p.outcome
}

// descriptors is the number of the launcher's descriptors, the door's first.
func (order *launchOrder) descriptors() int {
	n := 1 + order.Offload + order.Awake
	for _, one := range []bool{order.Bound, order.Replaces} {
		if one {
			n++
		}
	}
	return n
}

// adoptDescriptors takes the launcher's descriptors, also if it fails. end ends the switch.
func (p *Process) adoptDescriptors(order *launchOrder, fds []int, end func()) (err error) {
	if order.Awake < 0 || order.Awake > 64 || order.Offload < 0 || order.Offload > 64 || len(fds) != order.descriptors() {
		return fmt.Errorf("%d descriptors came; the message announces %d for the offload and %d to keep awake, want 0 to 64 of each, and their sum to fit", len(fds), order.Offload, order.Awake)
	}
	next := func() (fd int) { fd, fds = fds[0], fds[1:]; return fd }
	socket := os.NewFile(uintptr(next()), "door")
	if p.Listener, err = net.FileListener(socket); err != nil {
		return fmt.Errorf("the door is not a listening socket: %w", err)
	}
	socket.Close()
	if order.Bound {
		go p.runLifeline(os.NewFile(uintptr(next()), "lifeline"), end)
	}
	if order.Replaces {
		if p.predecessor, err = connectionOf(next()); err != nil {
			return err
		}
	}
	for range order.Offload {
		p.offload = append(p.offload, next())
	}
	for range order.Awake {
		p.awake = append(p.awake, os.NewFile(uintptr(next()), "awake"))
	}
	return nil
}

// connectionOf is the connection to the predecessor of a descriptor.
func connectionOf(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "the previous switch")
	defer f.Close()
	c, err := net.FileConn(f)
	if err == nil {
		if u, is := c.(*net.UnixConn); is {
			return u, nil
		}
		err = errors.Join(errors.New("it is not a unix socket"), c.Close())
	}
	return nil, fmt.Errorf("descriptor %d is not a connection: %w", fd, err)
}

// runLifeline ends the switch after the launcher has ended, in any way.
func (p *Process) runLifeline(f *os.File, end func()) {
	io.Copy(io.Discard, f) // returns when the launcher's end closes: the launcher writes nothing
	p.Log.Info("stopping: the launcher has ended, or stops")
	end()
}
