package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestNobodyElses: what another could have written is not gone by.
func TestNobodyElses(t *testing.T) {
	none, own, open := filepath.Join(t.TempDir(), "none"), t.TempDir(), t.TempDir()
	link, file := filepath.Join(own, "link"), filepath.Join(own, "file")
	for _, err := range []error{os.Chmod(own, 0o700), os.Chmod(open, 0o777), os.Symlink(own, link), os.WriteFile(file, nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for dir, good := range map[string]bool{none: true, own: true, open: false, link: false, file: false} {
		if err := nobodyElses(dir); (err == nil) != good {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// TestKeptAfterFailedUninstall: with -keep, an interrupt begins the uninstallation and
// does not end it. When that fails, the next interrupt ends the second wait.
func TestKeptAfterFailedUninstall(t *testing.T) {
	var pressed []context.CancelFunc // an interrupt each
	next := func() (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		pressed = append(pressed, cancel)
		return ctx, cancel
	}
	failure := errors.New("a Node is not as it was")
	fine := func(context.Context) error { return nil }
	looks, failures := 0, 0
	s := show{
		up: fine, check: fine, keep: true, interrupts: newInterrupts(next), failed: func() { failures++ },
		look: func() { looks++; pressed[len(pressed)-1]() },
	}
	s.uninstall = func(ctx context.Context) error { return errors.Join(ctx.Err(), failure) }
	ended := make(chan error, 1)
	go func() { ended <- s.run() }()
	select {
	case err := <-ended:
		if !errors.Is(err, failure) || errors.Is(err, context.Canceled) || looks != 2 || failures != 1 || len(pressed) != 3 {
			t.Errorf("%v; %d looks, %d failures, %d interrupts", err, looks, failures, len(pressed))
		}
	case <-time.After(time.Minute):
		t.Fatal("the second wait does not end")
	}
	s.keep, s.interrupts = false, newInterrupts(next)
	if err := s.run(); !errors.Is(err, failure) || looks != 2 || failures != 2 {
		t.Errorf("without -keep: %v; %d looks, %d failures", err, looks, failures)
	}
}
