package sched

import (
	"errors"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// Threads of ordinary priority reap children. Under chrt(1) the other threads have a real-time
// priority, and a reap by one of them may take minutes. The kernel clears the child's files from /proc
// and spins until other readers of /proc are done. Such a reader may be an ordinary program, which
// cannot run meanwhile.

// Reap waits for a process as cmd.Wait does, and returns the same errors.
func Reap(cmd *exec.Cmd) error {
	done := make(chan error)
	go func() { done <- runReaper(cmd) }()
	return <-done
}

// runReaper reaps on a thread of its own, which ends with it.
func runReaper(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	ordinary := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: reaperPriority}
	if err := unix.SchedSetAttr(0, &ordinary, 0); err != nil && !errors.Is(err, unix.EPERM) { // without the right to change it the priority is ordinary
		return errors.Join(err, cmd.Wait())
	}
	return cmd.Wait()
}

// reaperPriority lets reapers run before most ordinary programs, which still get some time.
const reaperPriority = -10

// RunCommand runs a command as cmd.Run does, and reaps it by Reap.
func RunCommand(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	return Reap(cmd)
}
