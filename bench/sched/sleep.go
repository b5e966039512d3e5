package sched

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// Wait sleeps for d, or until ctx ends.
func Wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Nap sleeps in the kernel. A Go timer needs a thread of Go's scheduler, and threads that never
// sleep may keep that thread from its processor.
func Nap(d time.Duration) {
	left := unix.NsecToTimespec(d.Nanoseconds())
	for unix.Nanosleep(&left, &left) == unix.EINTR {
	}
}
