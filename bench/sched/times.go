package sched

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ResidentMemory returns the resident set size of a process in bytes, shared pages included.
// pid may be "self".
func ResidentMemory(pid string) (float64, error) {
	text, err := os.ReadFile("/proc/" + pid + "/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, errors.New("/proc/" + pid + "/statm has no second field")
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize()), err
}

// Usage is the processor time of all threads of some processes.
type Usage struct {
	Busy time.Duration
	// Runs is how often a thread was given a processor.
	Runs uint64
}

// UsageOf adds up the processor time of processes. It reads schedstat, which counts nanoseconds;
// the times in stat are only sampled. A process that does not exist is an error.
func UsageOf(pids ...string) (sum Usage, err error) {
	var threads []string
	for _, pid := range pids {
		of, err := filepath.Glob("/proc/" + pid + "/task/*/schedstat")
		if err == nil && len(of) == 0 {
			err = fmt.Errorf("process %s is gone, or the kernel tells no thread's time", pid)
		}
		if err != nil {
			return sum, err
		}
		threads = append(threads, of...)
	}
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // a thread that ended
		}
		var busy, waited, runs uint64
		if _, err2 := fmt.Sscan(string(text), &busy, &waited, &runs); errors.Join(err, err2) != nil {
			return sum, fmt.Errorf("%s: %w", name, errors.Join(err, err2))
		}
		sum.Busy += time.Duration(busy)
		sum.Runs += runs
	}
	return sum, err
}

// ThreadTime is how long a thread has run, and how long it has waited for a processor.
type ThreadTime struct{ Ran, Waited time.Duration }

// ThreadTimes returns the times of each thread of a process, by thread number. process may be "self".
func ThreadTimes(process string) (map[int]ThreadTime, error) {
	dir := "/proc/" + process + "/task/"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	times := make(map[int]ThreadTime)
	for _, thread := range threads {
		t, err := readThreadTime(dir + thread.Name() + "/schedstat")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		number, err2 := strconv.Atoi(thread.Name())
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		times[number] = t
	}
	return times, nil
}

// readThreadTime reads a thread's schedstat.
func readThreadTime(path string) (ThreadTime, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return ThreadTime{}, err
	}
	var ran, waited int64
	if _, err := fmt.Sscan(string(text), &ran, &waited); err != nil {
		return ThreadTime{}, fmt.Errorf("%s: %q: %w", path, text, err)
	}
	return ThreadTime{time.Duration(ran), time.Duration(waited)}, nil
}

// SoftirqThreads returns the process numbers of ksoftirqd, the kernel's threads for softirqs.
// They do not change while the machine runs.
var SoftirqThreads = sync.OnceValues(func() (pids []string, err error) {
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err == nil && strings.HasPrefix(string(comm), "ksoftirqd/") {
			pids = append(pids, filepath.Base(filepath.Dir(name)))
		}
	}
	return pids, err
})

// FindThread returns the number of the first thread of a process whose name begins with prefix.
func FindThread(process, prefix string) (int, error) {
	names, err := filepath.Glob("/proc/" + process + "/task/*/comm")
	if err != nil {
		return 0, err
	}
	for _, path := range names {
		name, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(name), prefix) {
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, fmt.Errorf("process %s has no thread %s…", process, prefix)
}
