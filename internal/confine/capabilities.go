//go:build linux

package confine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// capabilities are the sets of a thread, as masks: bit n is capability n (capabilities(7)).
type capabilities struct{ effective, permitted, inheritable, bounding uint64 }

// readCapabilities reads those of the calling thread.
func readCapabilities() (c capabilities, err error) {
	var have [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &have[0]); err != nil {
		return c, fmt.Errorf("capabilities: %w", err)
	}
	for i, word := range have {
		c.effective |= uint64(word.Effective) << (32 * i)
		c.permitted |= uint64(word.Permitted) << (32 * i)
		c.inheritable |= uint64(word.Inheritable) << (32 * i)
	}
	for n := range uint64(64) {
		is, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(n), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // the kernel has no more
		} else if err != nil {
			return c, fmt.Errorf("bounding set: capability %d: %w", n, err)
		}
		c.bounding |= uint64(is) << n
	}
	return c, nil
}

// write changes the sets of the calling thread. The bounding set comes first, because a change
// takes CAP_SETPCAP. The kernel removes from the ambient set what the other sets lose.
func (c capabilities) write() error {
	had, err := readCapabilities()
	if err != nil {
		return err
	}
	for n := range uint64(64) {
		if had.bounding&^c.bounding&(1<<n) == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0); err != nil {
			return fmt.Errorf("bounding set: capability %d: %w", n, err)
		}
	}
	var want [2]unix.CapUserData
	for i := range want {
		want[i] = unix.CapUserData{Effective: uint32(c.effective >> (32 * i)), Permitted: uint32(c.permitted >> (32 * i)), Inheritable: uint32(c.inheritable >> (32 * i))}
	}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &want[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

// within are the capabilities that a mask has.
func (c capabilities) within(mask uint64) capabilities {
	return capabilities{c.effective & mask, c.permitted & mask, c.inheritable & mask, c.bounding & mask}
}

// Keep drops all capabilities of the process that keep lacks, from every set. Bit n of keep is
// capability n. A program calls Keep before it opens anything.
//
// If the process has other capabilities, Keep executes the same program again with the same
// arguments. It then returns only an error, and the process has to end. execve carries the state
// of one thread over, so no other thread keeps a capability. The second call returns nil.
//
// A process without CAP_SETPCAP cannot drop from its bounding set. If that set has capabilities
// that keep lacks, Keep changes nothing and returns them as left.
func Keep(keep uint64, program string) (left uint64, err error) {
	runtime.LockOSThread() // the sets are of this thread
	defer runtime.UnlockOSThread()
	have, err := readCapabilities()
	if err != nil {
		return 0, err
	}
	want := have.within(keep)
	switch {
	case want == have:
		return 0, nil
	case want.bounding != have.bounding && have.effective&(1<<unix.CAP_SETPCAP) == 0:
		return have.bounding &^ keep, nil
	}
	if err := want.write(); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("execute %s again: %w", program, syscall.Exec(program, os.Args, os.Environ()))
}
