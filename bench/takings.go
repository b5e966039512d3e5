package bench

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// takings tells when somebody else had one of this process' processors: the host, or
// another program that took it from a thread of this process which wanted to go on.
// The kernel's perf events tell (perf_event_open(2)): of a timer that interrupts each
// processor that is not idle every takingPeriod, late only when that did not run, and of
// every switch from one thread to another. What threads of this process take from each other
// is no taking, nor is it when a thread wakes up and finds its processor taken, or the
// host wakes an idle one late: Go is blamed for too much rather than for too little. It is for one goroutine.
type takings struct {
	of    []*taking
	ended int64 // when the last one did, ns of CLOCK_MONOTONIC
}

const (
	// takingPeriod is how often each processor is seen to run.
	takingPeriod = 100 * time.Microsecond
	// leastTaken is for how long a processor is taken within a millisecond, at least.
	leastTaken = 200 * time.Microsecond
)

// taking is what one processor tells.
type taking struct {
	events *perfRing
	pid    uint32 // this process
	seen   int64  // when it last was known to run somebody; 0 while it does not
	lost   int64  // since when a thread of this process is without it; 0 when none is
	began  int64  // when the first of the takings did that are summed up
	sum    int64  // how long these were, ns
}

// openTakings begins to watch the processors that this process may use.
func openTakings() (_ *takings, err error) {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	t := new(takings)
	for cpu := 0; len(t.of) < may.Count(); cpu++ {
		if !may.IsSet(cpu) {
			continue
		}
		events, err := openPerfRing(cpu, takingPeriod)
		if err != nil {
			return nil, errors.Join(err, t.close())
		}
		t.of = append(t.of, &taking{events: events, pid: uint32(os.Getpid())})
	}
	return t, nil
}

func (t *takings) close() (err error) {
	for _, one := range t.of {
		err = errors.Join(err, one.events.close())
	}
	return err
}

// last is how long ago the last taking ended, or the machine began when there was none;
// nothing when there were more events than there was room for, as when it has not been
// asked for long: nobody knows what those would have told.
func (t *takings) last() (time.Duration, error) {
	lost := false
	for _, one := range t.of {
		for {
			words, ok := one.events.next()
			if !ok {
				break
			}
			if uint32(words[0]) == unix.PERF_RECORD_LOST {
				one.seen, one.lost, lost = 0, 0, true
				continue
			}
			if since, until := one.learn(words); one.much(since, until) {
				t.ended = max(t.ended, until)
			}
		}
	}
	var now unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	if lost {
		t.ended = now.Nano()
	}
	return time.Duration(now.Nano() - t.ended), err
}

// much adds a taking to those that began in the millisecond before it ended, and says
// whether they are long enough. The host may take a processor many times for a moment.
func (t *taking) much(since, until int64) bool {
	if until-t.began > int64(time.Millisecond) {
		t.began, t.sum = since, 0
	}
	t.sum += until - since
	return t.sum >= int64(leastTaken)
}

// What a record's first word has above its type.
const (
	switchOut   = unix.PERF_RECORD_MISC_SWITCH_OUT << 32
	switchTaken = unix.PERF_RECORD_MISC_SWITCH_OUT_PREEMPT << 32 // from one that could go on
)

// learn reads an event: of the timer the type, whom it interrupted, and when; of a
// switch the type, who is next, who was before, and when. It returns a time for which
// the processor was taken, which is over; or two that are equal.
func (t *taking) learn(words []uint64) (since, until int64) {
	switch typ := uint32(words[0]); {
	case typ == unix.PERF_RECORD_SAMPLE:
		return t.runs(int64(words[2]))
	case typ == unix.PERF_RECORD_SWITCH_CPU_WIDE && words[0]&switchOut != 0:
		return t.turns(words[0]&switchTaken != 0, uint32(words[2]), uint32(words[1]), int64(words[3]))
	case typ != unix.PERF_RECORD_SWITCH_CPU_WIDE:
		t.seen = 0 // the kernel leaves the timer out for a while
	}
	return 0, 0
}

// runs learns that the processor runs somebody.
func (t *taking) runs(now int64) (since, until int64) {
	before := t.seen
	if t.seen = now; before == 0 {
		return now, now
	}
	return min(before+int64(takingPeriod), now), now
}

// turns learns that the processor turns from one process to another, which the first
// did not want when it was taken from it.
func (t *taking) turns(taken bool, was, next uint32, now int64) (since, until int64) {
	if was != nobody {
		since, until = t.runs(now)
	}
	if t.seen = now; next == nobody {
		t.seen = 0
	}
	if lost := t.lost; lost != 0 && (next == t.pid || next == nobody) {
		t.lost = 0
		return lost, now
	}
	if taken && was == t.pid && next != t.pid {
		t.lost = now
	}
	return since, until
}

// nobody is whom an idle processor runs.
const nobody = 0
