package lab

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Process identifies a process for good. The kernel may reuse a PID, but not a PID with the
// same start time.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot, /proc/PID/stat field 22
}

// processOf is the live process of a PID; false if there is none, or only its exit status
// is left.
func processOf(pid int) (Process, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, false
	}
	// The second field is the command in parentheses and may hold anything;
	// the fields behind the last parenthesis begin with the third, the state.
	rest := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, start = 0, 22 - 3
	if len(rest) <= start || ended(pid, rest[state][0]) {
		return Process{}, false
	}
	ticks, err := strconv.ParseUint(string(rest[start]), 10, 64)
	return Process{pid, ticks}, err == nil
}

// ended says whether a process no longer runs. If its first thread has ended, it still has
// its sockets and links until the other threads end.
func ended(pid int, state byte) bool {
	if state != 'Z' && state != 'X' {
		return false
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return err != nil || len(threads) <= 1
}

// alive says whether this process still runs.
func (p Process) alive() bool {
	now, ok := processOf(p.PID)
	return ok && now == p
}

// end sends SIGTERM, waits, and kills the processes that still run. The error names the
// killed ones, and has the goroutines of Go programs.
func end(all []Process, waitAtMost time.Duration) error {
	signal(all, unix.SIGTERM)
	left := waitGone(all, waitAtMost)
	if len(left) == 0 {
		return nil
	}
	err := fmt.Errorf("processes %v did not end within %s of SIGTERM and were killed", left, waitAtMost)
	for _, p := range left {
		if said := p.quit(); said != "" {
			err = fmt.Errorf("%w\nprocess %d, after SIGQUIT:\n%s", err, p.PID, said)
		}
	}
	signal(left, unix.SIGKILL)
	if stuck := waitGone(left, waitAtMost); len(stuck) > 0 {
		return fmt.Errorf("processes %v still run after SIGKILL: %w", stuck, err)
	}
	return err
}

const (
	quitTime = time.Second // the time for a process to write its goroutines
	quitSaid = 30_000      // bytes of them in an error: a few hundred goroutines
)

// quit sends SIGQUIT, at which a Go program writes its goroutines and ends. It returns the
// first quitSaid bytes that the process then writes to standard error; "" if that is not a
// file.
func (p Process) quit() string {
	log, err := os.Open(fmt.Sprintf("/proc/%d/fd/2", p.PID))
	if err != nil {
		return ""
	}
	defer log.Close()
	at, err := log.Stat()
	if err != nil || !at.Mode().IsRegular() {
		return ""
	}
	signal([]Process{p}, unix.SIGQUIT)
	waitGone([]Process{p}, quitTime)
	said, err := io.ReadAll(io.NewSectionReader(log, at.Size(), quitSaid))
	if err != nil {
		return err.Error()
	}
	return string(said)
}

func signal(all []Process, s unix.Signal) {
	for _, p := range all {
		if p.alive() {
			unix.Kill(p.PID, s) // if the process ends between the two calls, that does no harm
		}
	}
}

// waitGone waits until all processes have ended, for waitAtMost, and returns those that
// still run.
func waitGone(all []Process, waitAtMost time.Duration) []Process {
	deadline := time.Now().Add(waitAtMost)
	for {
		var left []Process
		for _, p := range all {
			if p.alive() {
				left = append(left, p)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// keepDescriptors sets close-on-exec for each descriptor above standard error. Otherwise
// the agents would inherit those that the caller's shell left open (exec 9>lock; antrail
// lab up). A lock would stay held, and a pipe would never end, while the lab is up.
// exec.Cmd still passes the descriptors that a child needs.
func keepDescriptors() error {
	err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	open, err := os.ReadDir("/proc/self/fd") // a kernel before 5.11
	for _, f := range open {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// inside are the processes in a namespace, except this one.
func (n Namespace) inside() []Process {
	want := n.inode()
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil || want == 0 {
		return nil
	}
	var all []Process
	for _, l := range links {
		var st unix.Stat_t
		if unix.Stat(l, &st) != nil || st.Ino != want {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(l))))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if p, ok := processOf(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// tail is the end of a log, for an error message.
func tail(path string) string {
	const n = 2000
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-n):])
}
