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

// The side of the switch that a launcher starts (launch.go).

// Enter makes this process the switch that a launcher has started, and ends with it. If
// nobody has, Enter returns. It is the first call in main: it may begin again as another
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
// it. The launcher's standard error may end before: that is no reason to end.
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
	p := &Process{
		Socket: said.Socket, Dir: said.Dir, Release: said.Release, Settings: said.Settings, Confined: said.Confined,
		TakeOver: said.Replaces,
		Log:      slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: said.Level})).With("process", "switch"),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.takeFiles(&said, cancel); err != nil {
		return err
	}
	if err := p.Run(ctx); err != nil {
		return err
	}
	return p.how
}

// takeFiles takes the descriptors that the launcher gives. end ends the switch.
func (p *Process) takeFiles(said *launched, end func()) (err error) {
	if said.Awake < 0 || said.Awake > 64 || said.Offload < 0 || said.Offload > 64 {
		return fmt.Errorf("%d and %d descriptors, want 0 to 64", said.Offload, said.Awake)
	}
	door := os.NewFile(doorFD, "door")
	if p.Listener, err = net.FileListener(door); err != nil {
		return fmt.Errorf("descriptor %d is no listening socket: %w", doorFD, err)
	}
	door.Close()
	next := firstFD
	if said.Bound {
		go p.runLifeline(os.NewFile(uintptr(next), "lifeline"), end)
		next++
	}
	if said.Replaces {
		if p.before, err = connectionOf(next); err != nil {
			return err
		}
		next++
	}
	for range said.Offload {
		p.offload = append(p.offload, next)
		next++
	}
	for range said.Awake {
		p.awake = append(p.awake, os.NewFile(uintptr(next), "awake"))
		next++
	}
	return nil
}

// connectionOf is the connection of a descriptor, to the switch before.
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

// runLifeline ends the switch when the launcher has ended, however that was.
func (p *Process) runLifeline(f *os.File, end func()) {
	io.Copy(io.Discard, f) // nobody writes; it returns when the launcher's end is closed
	p.Log.Info("stopping: the launcher has ended, or stops")
	end()
}
