package testbed

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/bench/sched"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The generator is the kernel's test run of an XDP program with live frames
// (BPF_F_TEST_XDP_LIVE_FRAMES). One thread sends several million frames a second into a veth, more than
// any forwarder takes, so the forwarder is the limit.
//
// A test run takes up to some ten milliseconds to begin. So one lasts as long as the generator lives,
// and the program keeps the pace: it drops a frame that is not due yet.

// pacing is the memory that the generator's program and this process share: an array map of one element.
type pacing struct {
	Interval uint64 // nanoseconds from frame to frame
	Due      uint64 // when the next frame is due, ns of CLOCK_MONOTONIC
	End      uint64 // from when on no frame is sent, ns of CLOCK_MONOTONIC
	Sent     uint64
	Runs     uint64 // 1 once the program runs
}

// The offsets of pacing's fields.
const (
	intervalAt = 8 * iota
	dueAt
	endAt
	sentAt
	runsAt
	pacingSize
)

// burstTime is how much of a pause the generator makes up for. A ring has room for that many frames.
const burstTime = 250 * time.Microsecond

// Generator sends frames into a topology until Stop.
type Generator struct {
	program *ebpf.Program
	state   *ebpf.Map
	thread  atomic.Int64 // the number of its thread; 0 until a test run begins
	done    atomic.Bool
	ended   chan error
}

// StartGenerator starts a generator for the topology's source. It sends nothing before Start. Its frames
// are copies of frame, which the instructions change. They find the context in R6 and the number
// of earlier frames in R8.
func (t *Topology) StartGenerator(frame []byte, change asm.Instructions) (*Generator, error) {
	g := &Generator{ended: make(chan error, 1)}
	var err error
	if g.state, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: pacingSize, MaxEntries: 1}); err != nil {
		return nil, fmt.Errorf("generator: %w", err)
	}
	program := append(append(paceInstructions(g.state), change...), redirectInstructions(t.Source)...)
	program = append(program, asm.Mov.Imm(asm.R0, 1).WithSymbol("drop"), asm.Return()) // XDP_DROP
	if g.program, err = loadGenerator(program); err != nil {
		return nil, errors.Join(err, g.state.Close())
	}
	go func() { g.ended <- g.runGenerator(t, frame) }() // or exitIfDone sends
	if err := g.awaitProgram(); err != nil {
		return nil, errors.Join(err, g.Stop())
	}
	return g, nil
}

// generatorTimeout is how long a test run may take to begin. A busy machine takes long.
const generatorTimeout = 10 * time.Second

// awaitProgram returns when the generator's program runs, or when its thread has ended.
func (g *Generator) awaitProgram() error {
	for end := time.Now().Add(generatorTimeout); ; sched.Nap(time.Millisecond) {
		p, err := g.read()
		if err != nil || p.Runs != 0 {
			return err
		}
		if time.Now().After(end) {
			return errors.New("generator: the test run does not begin")
		}
		select {
		case err := <-g.ended:
			g.ended <- err // for Stop
			return err
		default:
		}
	}
}

// testRuns is how many frames a test run has, enough for seconds. A signal ends it earlier.
const testRuns = 1 << 25

// runGenerator runs test runs until Stop, on a thread that ends with it.
func (g *Generator) runGenerator(t *Topology, frame []byte) error {
	runtime.LockOSThread()
	err := netns.Set(t.ns)
	if err == nil && t.Spare != nil {
		err = unix.SchedSetaffinity(0, t.Spare)
	}
	if err = errors.Join(err, sched.LowerPriority(0)); err != nil {
		return fmt.Errorf("generator: %w", err)
	}
	g.thread.Store(int64(unix.Gettid()))
	//lint:ignore SA1019 it is the only way to leave a test run that a signal has ended
	options := ebpf.RunOptions{Data: frame, Repeat: testRuns, Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES, Reset: g.exitIfDone}
	for !g.done.Load() {
		if _, err := g.program.Run(&options); err != nil {
			return fmt.Errorf("generator: %w", err)
		}
	}
	return nil
}

// exitIfDone is called when a signal has interrupted a test run, which would begin again. To leave it, the
// goroutine ends, and its thread with it.
func (g *Generator) exitIfDone() {
	if g.done.Load() {
		g.ended <- nil
		runtime.Goexit()
	}
}

// Stop ends the generator. It interrupts the test run by a signal that Go ignores. It sends the signal
// again and again, since one may come between two test runs.
func (g *Generator) Stop() error {
	g.done.Store(true)
	for {
		if thread := g.thread.Load(); thread != 0 {
			_ = unix.Tgkill(unix.Getpid(), int(thread), unix.SIGURG)
		}
		select {
		case err := <-g.ended:
			return errors.Join(err, g.program.Close(), g.state.Close())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Start makes the generator send rate frames a second until window is over. The kernel's program ends
// the window, so it is exact even if this process does not run.
func (g *Generator) Start(rate float64, window time.Duration) error {
	p, err := g.read()
	if err != nil {
		return err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("generator: %w", err)
	}
	p.Interval, p.Due, p.End = uint64(1e9/rate), 0, uint64(now.Nano()+window.Nanoseconds())
	return g.state.Put(uint32(0), p)
}

// Halt ends the window of Start early.
func (g *Generator) Halt() error {
	p, err := g.read()
	if err != nil {
		return err
	}
	p.End = 0
	return g.state.Put(uint32(0), p)
}

// ThreadNumber is the number of the generator's thread.
func (g *Generator) ThreadNumber() int { return int(g.thread.Load()) }

// Sent is how many frames were sent since the generator started.
func (g *Generator) Sent() (uint64, error) {
	p, err := g.read()
	return p.Sent, err
}

// read reads the shared memory.
func (g *Generator) read() (p pacing, err error) {
	return p, g.state.Lookup(uint32(0), &p)
}

// SendFor sends rate frames a second for window and returns how many were sent.
func (g *Generator) SendFor(ctx context.Context, rate float64, window time.Duration) (sent uint64, err error) {
	before, err := g.read()
	if err != nil {
		return 0, err
	}
	if err := g.Start(rate, window); err != nil {
		return 0, err
	}
	sched.Nap(window)
	after, err := g.read()
	return after.Sent - before.Sent, errors.Join(err, ctx.Err())
}
