package sched

import (
	"fmt"
	"math/bits"
	"runtime"

	"golang.org/x/sys/unix"
)

// MaxProcessors is how many processors a unix.CPUSet has room for.
const MaxProcessors = len(unix.CPUSet{}) * bits.UintSize

// LastProcessor returns the last processor that the calling thread may run on.
func LastProcessor() (*unix.CPUSet, error) {
	var all, last unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("processors of a thread: %w", err)
	}
	for i := range MaxProcessors {
		if all.IsSet(i) {
			last.Zero()
			last.Set(i)
		}
	}
	return &last, nil
}

// LockToProcessors locks the calling goroutine to its thread for good and restricts the thread to on.
// If on is nil, the thread keeps its processors.
func LockToProcessors(on *unix.CPUSet) error {
	runtime.LockOSThread()
	if on == nil {
		return nil
	}
	if err := unix.SchedSetaffinity(0, on); err != nil {
		return fmt.Errorf("keep a thread to a processor: %w", err)
	}
	return nil
}

// ProcessorsWithout returns the processors that this process may use and a thread may not; nil if there
// are none.
func ProcessorsWithout(thread int) (*unix.CPUSet, error) {
	var its unix.CPUSet
	if err := unix.SchedGetaffinity(thread, &its); err != nil {
		return nil, err
	}
	return OtherProcessors(&its)
}

// OtherProcessors returns the processors that this process may use and that are not in but; nil if
// there are none.
func OtherProcessors(but *unix.CPUSet) (*unix.CPUSet, error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, err
	}
	for cpu := range MaxProcessors {
		if but.IsSet(cpu) {
			all.Clear(cpu)
		}
	}
	if all.Count() == 0 {
		return nil, nil
	}
	return &all, nil
}
