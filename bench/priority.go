package bench

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// highestPriority is that of ordinary programs.
const highestPriority = -20

// TakePrecedence gives this process, and those it starts from now on, precedence
// over the other ordinary programs of the machine, which would disturb what is
// measured. It takes root.
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

// asOrdinary runs f with all threads of this process, and what f starts, among the
// ordinary programs, if it is of a real-time class (chrt(1)), which it is again
// afterwards. Pods and what is between them share processors, and are ordinary on a Node:
// of a real-time class a thread that polls lets nobody else run there for its time slice
// of 100 ms, and each round trip takes as long.
func asOrdinary(f func() error) error {
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

// everyThread gives all threads of this process a class.
func everyThread(class *unix.SchedAttr) error {
	for changed := true; changed; { // a thread that another one begins meanwhile has the class of that one
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
