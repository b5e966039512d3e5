package sched

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestReadEvent checks which events make a steal: another program preempts a thread of this process,
// until the next thread of this process runs, or the timer is late.
func TestReadEvent(t *testing.T) {
	const us, ours, other, third = int64(time.Microsecond), 7, 8, 9
	out, taken := uint64(unix.PERF_RECORD_SWITCH_CPU_WIDE|switchOut), uint64(unix.PERF_RECORD_SWITCH_CPU_WIDE|switchOut|switchPreempt)
	from := func(header uint64, was, next uint32, at int64) []uint64 {
		return []uint64{header, uint64(next) | 1<<32, uint64(was) | 1<<32, uint64(at * us)}
	}
	timer := func(at int64) []uint64 { return []uint64{unix.PERF_RECORD_SAMPLE, ours, uint64(at * us), 0} }
	for name, c := range map[string]struct {
		events       [][]uint64
		since, until int64
	}{
		"taken":                  {[][]uint64{from(taken, ours, other, 10), from(out, other, ours, 500)}, 10, 500},
		"taken for two":          {[][]uint64{from(taken, ours, other, 10), from(taken, other, third, 200), from(out, third, ours, 500)}, 10, 500},
		"late to turn":           {[][]uint64{timer(100), from(out, third, other, 900)}, 200, 900},
		"late, but was idle":     {[][]uint64{timer(100), from(out, third, 0, 150), from(out, 0, ours, 900)}, 0, 0},
		"late after it was idle": {[][]uint64{from(out, 0, ours, 900), timer(1500)}, 1000, 1500},
		"timer left out":         {[][]uint64{timer(100), {unix.PERF_RECORD_THROTTLE, 0, 0, 0}, timer(1500)}, 1500, 1500},
		"given":                  {[][]uint64{from(out, ours, other, 10), from(out, other, ours, 90)}, 0, 0},
		"among our own":          {[][]uint64{from(taken, ours, ours, 10), from(out, ours, ours, 90)}, 0, 0},
		"not ours":               {[][]uint64{from(taken, third, other, 10), from(out, other, ours, 90)}, 0, 0},
		"until nobody wants it":  {[][]uint64{from(taken, ours, other, 10), from(out, other, 0, 300)}, 10, 300},
		"timer in time":          {[][]uint64{timer(100), timer(200)}, 200, 200},
		"timer late":             {[][]uint64{timer(100), timer(4200)}, 200, 4200},
		"timer early":            {[][]uint64{timer(100), timer(190)}, 190, 190},
		"first of the timer":     {[][]uint64{timer(4200)}, 4200, 4200},
	} {
		one := processorSteal{pid: ours}
		var since, until int64
		for _, e := range c.events {
			since, until = one.readEvent(e)
		}
		if until-since != (c.until-c.since)*us || until != since && until != c.until*us {
			t.Errorf("%s: from %d to %d µs, want %d to %d", name, since/us, until/us, c.since, c.until)
		}
	}
}

// TestAddSteal checks that steals count if those within a millisecond are long enough together.
func TestAddSteal(t *testing.T) {
	const us = int64(time.Microsecond)
	for name, c := range map[string]struct {
		each, every int64 // µs
		want        bool
	}{
		"once for long": {200, 5000, true},
		"short, often":  {70, 300, true},
		"short, seldom": {70, 600, false},
		"on time":       {0, 100, false},
	} {
		var one processorSteal
		much := false
		for at := int64(10_000); at < 20_000; at += c.every {
			much = one.addSteal((at-c.each)*us, at*us) || much
		}
		if much != c.want {
			t.Errorf("%s: taken %v, want %v", name, much, c.want)
		}
	}
}

// TestStealMonitor reads the kernel's events: no steal ended in the future, and the timer comes on each
// busy processor.
func TestStealMonitor(t *testing.T) {
	k, err := OpenStealMonitor()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	defer keepBusy(t)()
	came := make([]bool, len(k.processors))
	for end := time.Now().Add(time.Minute); slices.Contains(came, false); time.Sleep(time.Millisecond) {
		if ago, err := k.SinceStolen(); err != nil || ago < 0 {
			t.Fatalf("the last steal ended %v ago: %v", ago, err)
		}
		for i, one := range k.processors {
			came[i] = came[i] || one.ran != 0
		}
		if time.Now().After(end) {
			t.Fatalf("the timer came on processors %v", came)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = k.SinceStolen() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestStealMonitorLosesEvents checks that lost events count as a steal that ended now, and only those.
func TestStealMonitorLosesEvents(t *testing.T) {
	k, err := OpenStealMonitor()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	stop := keepBusy(t)
	room := uint64(8 * len(k.processors[0].events.words))
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if page := k.processors[0].events.page; atomic.LoadUint64(&page.Data_head)+1024 > page.Data_tail+room {
			break
		}
	}
	time.Sleep(100 * time.Millisecond) // what comes now is lost
	told := 0
	for range 20 { // the kernel tells with the first event that there is room for
		ago, err := k.SinceStolen()
		if err != nil {
			t.Fatal(err)
		}
		if ago == 0 {
			told++
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	if told == 0 || told == 20 {
		t.Errorf("the last steal ended now %d times of 20, want when events were lost", told)
	}
}

// keepBusy keeps each processor that the test may use busy until stop is called.
func keepBusy(t *testing.T) (stop func()) {
	t.Helper()
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		t.Fatal(err)
	}
	var stopped atomic.Bool
	var busy sync.WaitGroup
	for i := range MaxProcessors {
		if !may.IsSet(i) {
			continue
		}
		busy.Go(func() {
			runtime.LockOSThread() // for good: the thread ends with its processor
			var one unix.CPUSet
			one.Set(i)
			if err := unix.SchedSetaffinity(0, &one); err != nil {
				t.Error(err)
			}
			for !stopped.Load() {
			}
		})
	}
	return func() { stopped.Store(true); busy.Wait() }
}
