package pods

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/bench/sched"
	"golang.org/x/sys/unix"
)

// stillWindows is how many windows may pass before a stream's first byte. On a busy machine its threads
// may not run for as long.
const stillWindows = 50

// watchFlows measures flows for a window. It returns what measureStream does.
func (p *pair) watchFlows(ctx context.Context, f *flows, window time.Duration) (rate, each float64, err error) {
	busy, err := p.processorTime()
	before, start := f.arrived.Load(), time.Now()
	if err != nil {
		return 0, 0, err
	}
	sched.Wait(ctx, window)
	for n := 0; f.arrived.Load() == before && n < stillWindows && ctx.Err() == nil; n++ {
		sched.Wait(ctx, window)
	}
	bytes, took := float64(f.arrived.Load()-before), time.Since(start)
	now, err := p.processorTime()
	if err == nil && bytes == 0 && ctx.Err() == nil {
		err = errors.New("the stream stands still")
	}
	return 8 * bytes / took.Seconds() / 1e9, float64((now - busy).Nanoseconds()) / (bytes / 1e3), err
}

// processorTime is the processor time of all threads that carry streams: of this process with both ends,
// of agents, of switches, and the softirq threads.
func (p *pair) processorTime() (sum time.Duration, err error) {
	of, err := sched.SoftirqThreads()
	if err != nil {
		return 0, err
	}
	u, err := sched.UsageOf(append(append(of, "self"), p.switches...)...)
	return u.Busy, err
}

// flows is streams under way. Both ends of each are blocking system calls on threads of their own. Go's
// poller would take a fifth of the processor time, and its choice of threads would decide on the
// figures (sched.RawRead).
type flows struct {
	ends     []int       // descriptors, of senders and receivers
	resting  atomic.Bool // senders send nothing
	arrived  atomic.Uint64
	ended    sync.WaitGroup
	giveBack func()
}

// startFlows makes bytes flow on connections. It takes descriptors of its own and closes the connections.
// With an error, the flows must still be stopped.
func startFlows(list []*connection) (*flows, error) {
	f := &flows{giveBack: sched.LendProcessors(2 * len(list))}
	var errs []error
	for _, c := range list {
		from, err1 := blockingDescriptor(c.client)
		to, err2 := blockingDescriptor(c.server)
		c.close()
		for _, fd := range []int{from, to} {
			if fd >= 0 {
				f.ends = append(f.ends, fd)
			}
		}
		if err := errors.Join(err1, err2); err != nil {
			errs = append(errs, err)
			continue
		}
		f.ended.Go(func() { runSender(from, &f.resting) })
		f.ended.Go(func() { runReceiver(to, &f.arrived) })
	}
	return f, errors.Join(errs...)
}

// stop ends all flows. A blocking call returns when its connection is shut down. That fails only if the
// other end has gone.
func (f *flows) stop() error {
	f.resting.Store(false)
	for _, fd := range f.ends {
		_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	}
	f.ended.Wait()
	f.giveBack()
	var errs []error
	for _, fd := range f.ends {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}

// chunk is how many bytes a call writes or reads at most.
const chunk = 256 << 10

// runSender writes until the connection ends, unless it rests. It repeats a write that timed out or was
// interrupted.
func runSender(fd int, resting *atomic.Bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b := make([]byte, chunk); ; {
		if resting.Load() {
			sched.Nap(time.Millisecond)
			continue
		}
		if _, err := sched.RawWrite(fd, b); err != nil && err != unix.EINTR && err != unix.EAGAIN {
			return
		}
	}
}

// runReceiver reads and counts until the connection ends. It repeats a read that timed out or was
// interrupted.
func runReceiver(fd int, arrived *atomic.Uint64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b := make([]byte, chunk); ; {
		n, err := sched.RawRead(fd, b)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		arrived.Add(uint64(n))
	}
}
