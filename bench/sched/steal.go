package sched

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// StealMonitor reports when one of this process's processors was stolen: by the host, or by another
// program that preempted a thread of this process. It is for one goroutine.
//
// It reads two kinds of the kernel's perf events (perf_event_open(2)):
//
//   - A timer interrupts each busy processor every TimerPeriod. If it is late, the host had the
//     processor.
//   - The kernel records every switch from one thread to another.
//
// Three delays are not steal time, so that Go is charged with too much rather than too little:
//
//   - Threads of this process preempt each other.
//   - A thread wakes up and finds its processor busy.
//   - The host wakes an idle processor late.
type StealMonitor struct {
	processors []*processorSteal
	ended      int64 // when the last steal ended, ns of CLOCK_MONOTONIC
}

const (
	// TimerPeriod is the time from one timer interrupt of a busy processor to the next.
	TimerPeriod = 100 * time.Microsecond
	// LeastStolen is the steal time within a millisecond from which it counts.
	LeastStolen = 200 * time.Microsecond
)

// processorSteal is what the events of one processor have told so far. Times are ns of
// CLOCK_MONOTONIC.
type processorSteal struct {
	events *perfRing
	pid    uint32 // this process
	ran    int64  // when the processor was last known to run a thread; 0 while it is idle
	lost   int64  // since when a preempted thread of this process waits; 0 when none does
	began  int64  // when the first of the steals in sum began
	sum    int64  // steal time within about a millisecond, ns
}

// OpenStealMonitor begins to watch the processors that this process may use. It needs the
// privilege for perf events of all processes.
func OpenStealMonitor() (_ *StealMonitor, err error) {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	m := new(StealMonitor)
	for cpu := 0; len(m.processors) < may.Count(); cpu++ {
		if !may.IsSet(cpu) {
			continue
		}
		events, err := openPerfRing(cpu, TimerPeriod)
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		m.processors = append(m.processors, &processorSteal{events: events, pid: uint32(os.Getpid())})
	}
	return m, nil
}

// Close ends the events of all processors.
func (m *StealMonitor) Close() (err error) {
	for _, p := range m.processors {
		err = errors.Join(err, p.events.close())
	}
	return err
}

// SinceStolen returns the time since the last steal ended. Without any steal it is the time since
// the machine started. It is 0 if the kernel had no room for events, since those may have been
// steals. That happens if SinceStolen is not called for more than half a second.
func (m *StealMonitor) SinceStolen() (time.Duration, error) {
	lost := false
	for _, p := range m.processors {
		for {
			words, ok := p.events.next()
			if !ok {
				break
			}
			if uint32(words[0]) == unix.PERF_RECORD_LOST {
				p.ran, p.lost, lost = 0, 0, true
				continue
			}
			if since, until := p.readEvent(words); p.addSteal(since, until) {
				m.ended = max(m.ended, until)
			}
		}
	}
	var now unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	if lost {
		m.ended = now.Nano()
	}
	return time.Duration(now.Nano() - m.ended), err
}

// addSteal adds a steal to those that began within the millisecond before its end. It says whether
// they are long enough together: the host may take a processor many times for a moment.
func (p *processorSteal) addSteal(since, until int64) bool {
	if until-p.began > int64(time.Millisecond) {
		p.began, p.sum = since, 0
	}
	p.sum += until - since
	return p.sum >= int64(LeastStolen)
}

// The bits of a record's first word above its type.
const (
	switchOut     = unix.PERF_RECORD_MISC_SWITCH_OUT << 32
	switchPreempt = unix.PERF_RECORD_MISC_SWITCH_OUT_PREEMPT << 32 // the thread wanted to go on
)

// readEvent reads a record and returns the steal that ended with it, or two equal times. The words
// of a timer event are type, interrupted thread and time. Those of a switch are type, next thread,
// previous thread and time.
func (p *processorSteal) readEvent(words []uint64) (since, until int64) {
	switch typ := uint32(words[0]); {
	case typ == unix.PERF_RECORD_SAMPLE:
		return p.noteRunning(int64(words[2]))
	case typ == unix.PERF_RECORD_SWITCH_CPU_WIDE && words[0]&switchOut != 0:
		return p.noteSwitch(words[0]&switchPreempt != 0, uint32(words[2]), uint32(words[1]), int64(words[3]))
	case typ != unix.PERF_RECORD_SWITCH_CPU_WIDE:
		p.ran = 0 // the kernel leaves the timer out for a while
	}
	return 0, 0
}

// noteRunning notes that the processor runs a thread. If the timer is late, the time beyond
// its period was stolen.
func (p *processorSteal) noteRunning(now int64) (since, until int64) {
	before := p.ran
	if p.ran = now; before == 0 {
		return now, now
	}
	return min(before+int64(TimerPeriod), now), now
}

// noteSwitch notes that the processor goes from one process to the next. A preempted process of
// ours has lost the processor until it, or no process, gets it.
func (p *processorSteal) noteSwitch(preempted bool, was, next uint32, now int64) (since, until int64) {
	if was != idleProcess {
		since, until = p.noteRunning(now)
	}
	if p.ran = now; next == idleProcess {
		p.ran = 0
	}
	if lost := p.lost; lost != 0 && (next == p.pid || next == idleProcess) {
		p.lost = 0
		return lost, now
	}
	if preempted && was == p.pid && next != p.pid {
		p.lost = now
	}
	return since, until
}

// idleProcess is the process number that the kernel tells while a processor is idle.
const idleProcess = 0
