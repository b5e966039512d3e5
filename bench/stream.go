package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Profile stream: bulk TCP between two pods.

// manyStreams is how many there are of "many streams".
const manyStreams = 8

const streamNote = "Streams are as bulk transfers are by default; of one it is told too what it is with TCP_NODELAY, which Go and most servers set: a sender then hands over the end of each write at once, in place of having it go with the next acknowledgement. A stream is measured after half a window, and with offload once the kernel has all of them. Sender and receiver are threads of their own in blocking calls, which run where the kernel puts them. " +
	"Processor time: all that sender, receiver, the switch and the kernel's threads for softirqs ran, by what arrived; unlike the rate it stays about the same while others take processors away. " +
	"Bare packet sockets: a thread each way that reads a frame from one pod's packet socket and writes it to the other's, without a pipeline, at rest while others are measured."

func runStream(ctx context.Context, r *rig, c *Comparison) error {
	c.Notes = append(c.Notes, streamNote)
	return r.contestPods(ctx, c, r.measureStreams)
}

func (r *rig) measureStreams(ctx context.Context, p *podPair) ([]reading, error) {
	var all []reading
	for _, of := range []struct {
		name    string
		streams int
		noDelay bool
	}{{"one stream", 1, false}, {"one stream, TCP_NODELAY", 1, true}, {fmt.Sprintf("%d streams together", manyStreams), manyStreams, false}} {
		rate, each, err := p.stream(ctx, of.streams, of.noDelay, r.Window)
		if err != nil {
			return nil, err
		}
		all = append(all, reading{of.name, "Gbit/s", rate}, reading{of.name + ", processor time of a kB", "ns", each})
	}
	return all, nil
}

// stream is the Gbit/s that arrive on n connections, once they have got going,
// and the nanoseconds of processor time that each kB takes.
func (p *podPair) stream(ctx context.Context, n int, noDelay bool, window time.Duration) (rate, each float64, err error) {
	list, err := p.connect(ctx, n)
	for _, c := range list {
		err = errors.Join(err, c.client.SetNoDelay(noDelay))
	}
	if err != nil {
		for _, c := range list {
			c.close()
		}
		return 0, 0, err
	}
	f, err := startFlows(list)
	if err != nil {
		return 0, 0, errors.Join(err, f.stop())
	}
	wait(ctx, window/2)
	if p.warm != nil {
		err = p.warm(ctx, n)
	}
	if err == nil {
		rate, each, err = p.watch(ctx, f, window)
	}
	return rate, each, errors.Join(err, f.stop(), ctx.Err())
}

// stillWindows is how many windows without a byte a stream may have before one with:
// on a busy machine a short one may pass before anybody has run.
const stillWindows = 50

// watch is stream for flows that have got going.
func (p *podPair) watch(ctx context.Context, f *flows, window time.Duration) (rate, each float64, err error) {
	busy, err := p.busy()
	before, start := f.arrived.Load(), time.Now()
	if err != nil {
		return 0, 0, err
	}
	wait(ctx, window)
	for n := 0; f.arrived.Load() == before && n < stillWindows && ctx.Err() == nil; n++ {
		wait(ctx, window)
	}
	bytes, took := float64(f.arrived.Load()-before), time.Since(start)
	now, err := p.busy()
	if err == nil && bytes == 0 && ctx.Err() == nil {
		err = errors.New("the stream stands still")
	}
	return 8 * bytes / took.Seconds() / 1e9, float64((now - busy).Nanoseconds()) / (bytes / 1e3), err
}

// busy is how long all that have a part in streams have run: the two ends, which
// are this process, the switches, and the kernel's threads for softirqs.
func (p *podPair) busy() (sum time.Duration, err error) {
	of, err := softirqThreads()
	if err != nil {
		return 0, err
	}
	for _, pid := range append(append(of, "self"), p.switches...) {
		u, err := usageOf(pid)
		if err != nil {
			return 0, err
		}
		sum += u.busy
	}
	return sum, nil
}

// softirqThreads are the numbers of the kernel's threads that take over softirqs
// when there are many; they stay as they are.
var softirqThreads = sync.OnceValues(func() (pids []string, err error) {
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err == nil && strings.HasPrefix(string(comm), "ksoftirqd/") {
			pids = append(pids, filepath.Base(filepath.Dir(name)))
		}
	}
	return pids, err
})

// flows is streams under way. Both ends of each are blocking system calls on
// threads of their own: Go's poller would take a fifth of the processor time, and where
// it has its threads run would decide on the figures. See raw_unsafe.go.
type flows struct {
	ends    []int       // descriptors, of senders and receivers
	rest    atomic.Bool // senders send nothing
	arrived atomic.Uint64
	ended   sync.WaitGroup
	lent    func()
}

// startFlows makes bytes flow on connections, which it closes: the descriptors are
// its own. With an error it still has to be stopped.
func startFlows(list []*connection) (*flows, error) {
	f := &flows{lent: lend(2 * len(list))}
	var errs []error
	for _, c := range list {
		from, err1 := blocking(c.client)
		to, err2 := blocking(c.server)
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
		f.ended.Go(func() { runSender(from, &f.rest) })
		f.ended.Go(func() { runReceiver(to, &f.arrived) })
	}
	return f, errors.Join(errs...)
}

// stop ends all flows: a call that blocks returns when its connection is shut
// down, which fails only where the other end has gone already.
func (f *flows) stop() error {
	f.rest.Store(false)
	for _, fd := range f.ends {
		_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	}
	f.ended.Wait()
	f.lent()
	var errs []error
	for _, fd := range f.ends {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}

// wait waits, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// chunk is the bytes per write and per read.
const chunk = 256 << 10

// runSender writes until the connection ends, but while it is to rest. A write that
// gives up, or that a signal comes between, is made again.
func runSender(fd int, rest *atomic.Bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b := make([]byte, chunk); ; {
		if rest.Load() {
			nap(time.Millisecond)
			continue
		}
		if _, err := rawWrite(fd, b); err != nil && err != unix.EINTR && err != unix.EAGAIN {
			return
		}
	}
}

// runReceiver reads and counts until the connection ends. A read that gives up,
// or that a signal comes between, is made again.
func runReceiver(fd int, arrived *atomic.Uint64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b := make([]byte, chunk); ; {
		n, err := rawRead(fd, b)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		arrived.Add(uint64(n))
	}
}
