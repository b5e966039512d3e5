package sched

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// highestPriority is the highest priority of ordinary programs.
const highestPriority = -20

// TakePrecedence gives this process, and those that it starts from now on, precedence over the other
// ordinary programs of the machine. Those would disturb the measurement. It needs root.
func TakePrecedence() error {
	threads, err := os.ReadDir("/proc/self/task")
	for _, t := range threads { // the kernel keeps a priority for each
		n, err := strconv.Atoi(t.Name())
		if err == nil {
			err = unix.Setpriority(unix.PRIO_PROCESS, n, highestPriority)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // a thread may have ended
			return fmt.Errorf("priority %d: %w", highestPriority, err)
		}
	}
	return err
}

// RunAsOrdinary runs f. If this process has a real-time class (chrt(1)), all its threads and what f
// starts have the ordinary class meanwhile.
//
// Pods and the switch between them share processors, and are ordinary on a Node. A polling thread in a
// real-time class would keep its processor for a time slice of 100 ms. Each round trip would take as
// long.
func RunAsOrdinary(f func() error) error {
	class, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return fmt.Errorf("class of a thread: %w", err)
	}
	if class.Policy != unix.SCHED_FIFO && class.Policy != unix.SCHED_RR {
		return f()
	}
	if err := everyThread(&unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: highestPriority}); err != nil {
		return err
	}
	return errors.Join(f(), everyThread(class))
}

// everyThread sets the scheduling class of all threads of this process.
func everyThread(class *unix.SchedAttr) error {
	for changed := true; changed; { // a thread that begins meanwhile has the class of the thread that began it
		changed = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			n, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			has, err := unix.SchedGetAttr(n, 0)
			if err == nil && has.Policy != class.Policy {
				err, changed = unix.SchedSetAttr(n, class, 0), true
			}
			if err != nil && !errors.Is(err, unix.ESRCH) { // a thread may have ended
				return fmt.Errorf("class %d of thread %d: %w", class.Policy, n, err)
			}
		}
	}
	return nil
}

// RaisePriority raises the real-time priority of the calling thread by one, if it has one, until lower
// is called. It is for a thread that steers threads that never sleep.
func RaisePriority() (lower func() error, err error) {
	was, err := unix.SchedGetAttr(0, 0)
	if err != nil || was.Priority == 0 {
		return func() error { return nil }, err
	}
	above := *was
	above.Priority++
	return func() error { return unix.SchedSetAttr(0, was, 0) }, unix.SchedSetAttr(0, &above, 0)
}

// LowerPriority lowers the real-time priority of a thread by one, if it has one above the least.
// Thread 0 is the calling thread. It is for threads that never sleep: a thread with the same priority
// would wait a tenth of a second for their processor.
func LowerPriority(thread int) error {
	a, err := unix.SchedGetAttr(thread, 0)
	if err != nil || a.Priority < 2 {
		return err
	}
	a.Priority--
	return unix.SchedSetAttr(thread, a, 0)
}
