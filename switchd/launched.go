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

// Enter makes this process the switch that a launcher has started, and ends with it. Without a
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

// runLaunched runs the switch until SIGTERM, or until its launcher ends if it is bound to
// it. If the launcher's standard error ends before, the switch goes on.
func runLaunched() error {
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	words := os.NewFile(wordsFD, "words")
	var said launched
	err := json.NewDecoder(words).Decode(&said)
	if err = errors.Join(err, words.Close()); err != nil {
		return fmt.Errorf("descriptor %d: what the launcher says: %w", wordsFD, err)
	}
	fds := make([]int, said.descriptors())
	for i := range fds {
		fds[i] = doorFD + i
	}
	return said.run(ctx, fds, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: said.Level})).With("process", "switch"))
}

// run runs the switch with the launcher's descriptors. The error is errHandedOver if another
// switch has taken over.
func (said *launched) run(ctx context.Context, fds []int, log *slog.Logger) error {
	p := &Process{
		Socket: said.Socket, Dir: said.Dir, Release: said.Release, Settings: said.Settings, Confined: said.Confined,
		TakeOver: said.Replaces, Log: log,
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.takeFiles(said, fds, cancel); err != nil {
		return err
	}
	if err := p.Run(ctx); err != nil {
		return err
	}
	return p.how
}

// descriptors is the number of the launcher's descriptors, the door's first.
func (said *launched) descriptors() int {
	n := 1 + said.Offload + said.Awake
	for _, one := range []bool{said.Bound, said.Replaces} {
		if one {
			n++
		}
	}
	return n
}

// takeFiles takes the launcher's descriptors, also if it fails. end ends the switch.
func (p *Process) takeFiles(said *launched, fds []int, end func()) (err error) {
	if said.Awake < 0 || said.Awake > 64 || said.Offload < 0 || said.Offload > 64 || len(fds) != said.descriptors() {
		return fmt.Errorf("%d descriptors, %d for the offload and %d to stay awake: want 0 to 64 of either, and those that were announced", len(fds), said.Offload, said.Awake)
	}
	next := func() (fd int) { fd, fds = fds[0], fds[1:]; return fd }
	door := os.NewFile(uintptr(next()), "door")
	if p.Listener, err = net.FileListener(door); err != nil {
		return fmt.Errorf("the door is no listening socket: %w", err)
	}
	door.Close()
	if said.Bound {
		go p.runLifeline(os.NewFile(uintptr(next()), "lifeline"), end)
	}
	if said.Replaces {
		if p.before, err = connectionOf(next()); err != nil {
			return err
		}
	}
	for range said.Offload {
		p.offload = append(p.offload, next())
	}
	for range said.Awake {
		p.awake = append(p.awake, os.NewFile(uintptr(next()), "awake"))
	}
	return nil
}

// connectionOf is the connection of a descriptor, to the predecessor.
func connectionOf(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "the switch before")
	defer f.Close()
	c, err := net.FileConn(f)
	if err == nil {
		if u, is := c.(*net.UnixConn); is {
			return u, nil
		}
		err = errors.Join(errors.New("it is no unix socket"), c.Close())
	}
	return nil, fmt.Errorf("descriptor %d is no connection: %w", fd, err)
}

// runLifeline ends the switch after the launcher has ended, in any way.
func (p *Process) runLifeline(f *os.File, end func()) {
	io.Copy(io.Discard, f) // the launcher writes nothing; Copy returns when its end closes
	p.Log.Info("stopping: the launcher has ended, or stops")
	end()
}
