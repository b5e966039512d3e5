package bench

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// threadClock tells what became of the time of a thread that asks it itself: it
// ran, or waited for a processor that others had, or else it slept. Asking
// allocates nothing.
type threadClock struct {
	schedstat int // the thread's file, open
	text      [64]byte
}

// openThreadClock opens that of the thread which calls, and goes on to.
func openThreadClock() (*threadClock, error) {
	name := fmt.Sprintf("/proc/self/task/%d/schedstat", unix.Gettid())
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &threadClock{schedstat: fd}, nil
}

func (c *threadClock) close() error { return unix.Close(c.schedstat) }

// errSchedstat is a schedstat that does not begin with two numbers.
var errSchedstat = errors.New("schedstat: no two numbers")

// read is the thread's time until now. What it ran comes from its own clock, for
// schedstat counts that at ticks.
func (c *threadClock) read() (t threadTime, err error) {
	var ran unix.Timespec
	if err = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ran); err != nil {
		return t, err
	}
	n, err := unix.Pread(c.schedstat, c.text[:], 0)
	if err != nil {
		return t, err
	}
	_, rest, _ := bytes.Cut(c.text[:n], []byte(" "))
	waited, _, _ := bytes.Cut(rest, []byte(" "))
	ns, err := strconv.ParseInt(string(waited), 10, 64)
	if err != nil {
		return t, errSchedstat
	}
	return threadTime{ran: time.Duration(ran.Nano()), waited: time.Duration(ns)}, nil
}
