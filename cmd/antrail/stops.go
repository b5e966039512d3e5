package main

import (
	"os"
	"strings"
	"syscall"
)

// Go stops goroutines for a garbage collection, three or four times each, by a flag that
// their next call of a function sees, and by a signal for those that make none for long.
// A worker calls functions all the time. The signal is an interrupt of another processor,
// which takes 50 to 130 µs in a virtual machine, and the worker waits for it
// (docs/decisions/053-short-stops.md). Go reads the setting that leaves it out when a
// program begins, and from the environment only.
const noSignals = "asyncpreemptoff"

// beginWithoutSignals has an agent or a switch begin again with that setting, as the same process.
// One that has it set, to whatever value, keeps it; where that fails, stops are as long
// as Go makes them. No other command: profiles of bench wait in system calls that only
// signals end.
func beginWithoutSignals(args []string) {
	if len(args) == 0 || args[0] != "agent" && args[0] != "switch" {
		return
	}
	if setting, more := withNoSignals(os.Getenv("GODEBUG")); more && os.Setenv("GODEBUG", setting) == nil {
		_ = syscall.Exec(itself(), os.Args, os.Environ())
	}
}

// itself is a path that this very program is executed by: the one where it lies, for
// ps(1) and pgrep(1) name a process after it, unless something else lies there by now.
func itself() string {
	const running = "/proc/self/exe"
	path, err := os.Executable()
	if err != nil {
		return running
	}
	there, err := os.Stat(path)
	if err != nil {
		return running
	}
	if now, err := os.Stat(running); err != nil || !os.SameFile(there, now) {
		return running
	}
	return path
}

// withNoSignals adds the setting to those of GODEBUG; more is false when it is there.
func withNoSignals(setting string) (with string, more bool) {
	if strings.Contains(setting, noSignals+"=") {
		return setting, false
	}
	return strings.TrimPrefix(setting+","+noSignals+"=1", ","), true
}
