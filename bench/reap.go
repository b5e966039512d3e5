package bench

import (
	"errors"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// Under chrt this process has a real-time priority, and to reap a child with one
// may take minutes: the kernel then clears the child's files from its tree of
// /proc, and waits without sleeping for whoever reads there at that moment, who
// may be an ordinary program that cannot run meanwhile. So children are reaped by
// ordinary threads.

// reap waits for a process as cmd.Wait does.
func reap(cmd *exec.Cmd) error {
	done := make(chan error)
	go func() { done <- runReaper(cmd) }()
	return <-done
}

// runReaper is reap on a thread of its own, which ends with it.
func runReaper(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	ordinary := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: reaperPriority}
	if err := unix.SchedSetAttr(0, &ordinary, 0); err != nil && !errors.Is(err, unix.EPERM) { // who may not has no other priority
		return errors.Join(err, cmd.Wait())
	}
	return cmd.Wait()
}

// reaperPriority has reapers go before most ordinary programs, but leaves those
// something.
const reaperPriority = -10

// runCommand is cmd.Run, but for who reaps the process.
func runCommand(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	return reap(cmd)
}
