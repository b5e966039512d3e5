package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Profile rr: a question of one byte and an answer of one byte, over TCP. Both
// ends are blocking system calls on threads of their own, so that what is
// measured is the way between the pods and not Go's poller; see raw_unsafe.go.
//
// Where the kernel puts the ends decides much: on one processor an answer wakes the
// other end in 20 µs, on two in 50, and which of the two it is changes from window to
// window. So the ends are also kept to one processor, which leaves the others to a
// switch.

func runRR(ctx context.Context, r *rig, c *Comparison) error {
	c.Notes = append(c.Notes, "On a machine of up to four processors antrail keeps idle ones awake while its workers see pods talk (keepAwake), unless its name says otherwise; no other contender does.")
	return r.contestPods(ctx, c, r.measureRR)
}

func (r *rig) measureRR(ctx context.Context, p *podPair) ([]reading, error) {
	one, err := lastProcessor()
	if err != nil {
		return nil, err
	}
	var readings []reading
	for _, ends := range []struct {
		where string
		on    *unix.CPUSet
	}{{"round trip", nil}, {"round trip, ends on one processor", one}} {
		times, err := p.roundTrips(ctx, r.Window, ends.on)
		if err != nil {
			return nil, err
		}
		slices.Sort(times)
		for _, percent := range []float64{50, 90, 99} {
			readings = append(readings, reading{fmt.Sprintf("%s, %v %%", ends.where, percent), "µs", percentile(times, percent/100).Seconds() * 1e6})
		}
	}
	return readings, nil
}

// lastProcessor is the last of those that the calling thread may run on.
func lastProcessor() (*unix.CPUSet, error) {
	var all, last unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("processors of a thread: %w", err)
	}
	for i := range processors {
		if all.IsSet(i) {
			last.Zero()
			last.Set(i)
		}
	}
	return &last, nil
}

// percentile is the value of sorted times, of which there is at least one, that
// this part of them does not exceed.
func percentile(sorted []time.Duration, part float64) time.Duration {
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

// roundTrips is how long each question took, the first hundred left out. The ends run
// on some processors, or, when they are nil, where the kernel puts them.
func (p *podPair) roundTrips(ctx context.Context, window time.Duration, on *unix.CPUSet) ([]time.Duration, error) {
	list, err := p.connect(ctx, 1)
	for _, c := range list {
		defer c.close()
	}
	if err != nil {
		return nil, err
	}
	defer lend(2)()
	client, err := blocking(list[0].client)
	if err != nil {
		return nil, err
	}
	defer unix.Close(client)
	server, err := blocking(list[0].server)
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer unix.Close(server)
		if keepTo(on) == nil { // who asks has the same error
			runEcho(server)
		}
	}()
	asked := make(chan asking, 1)
	go func() {
		if err := keepTo(on); err != nil {
			asked <- asking{err: err}
			return
		}
		asked <- runQuestions(ctx, client, window)
	}()
	a := <-asked
	_ = unix.Shutdown(client, unix.SHUT_RDWR) // the echo reads the end, and ends
	<-ended
	if a.err == nil && len(a.times) == 0 {
		a.err = fmt.Errorf("no answer in %v", window)
	}
	return a.times, errors.Join(a.err, ctx.Err())
}

// blocking is a connection's own descriptor in blocking mode; the connection is
// of no use for Go from then on. Reads and writes give up after a second.
func blocking(c *net.TCPConn) (int, error) {
	f, err := c.File()
	if err != nil {
		return -1, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	return fd, waiting(fd, time.Second)
}

// waiting has reads and writes of a socket wait in the kernel; they give up after so
// long, and so end when a signal comes between.
func waiting(fd int, patience time.Duration) error {
	limit := unix.NsecToTimeval(int64(patience))
	return errors.Join(unix.SetNonblock(fd, false),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit))
}

// keepTo gives the calling goroutine a thread of its own, which ends with it, and keeps
// that to some processors.
func keepTo(on *unix.CPUSet) error {
	runtime.LockOSThread()
	if on == nil {
		return nil
	}
	if err := unix.SchedSetaffinity(0, on); err != nil {
		return fmt.Errorf("keep a thread to a processor: %w", err)
	}
	return nil
}

// runEcho answers until the connection ends or nothing comes for a second.
func runEcho(fd int) {
	for b := make([]byte, 1); ; {
		if transfer(rawRead, fd, b) != nil || transfer(rawWrite, fd, b) != nil {
			return
		}
	}
}

// transfer reads or writes one byte, again when a signal comes between: Go's own do,
// every 10 ms of a call that waits, which begins its second anew each time.
func transfer(call func(int, []byte) (int, error), fd int, b []byte) error {
	for interrupted := (time.Time{}); ; {
		n, err := call(fd, b)
		if err == unix.EINTR {
			if interrupted.IsZero() {
				interrupted = time.Now()
			}
			if time.Since(interrupted) < time.Second {
				continue
			}
		}
		if err == nil && n != 1 {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
}

// asking is what came of questions.
type asking struct {
	times []time.Duration
	err   error
}

// warmup is how many questions are not counted.
const warmup = 100

// runQuestions asks one question after the other for so long.
func runQuestions(ctx context.Context, fd int, window time.Duration) (a asking) {
	a.times = make([]time.Duration, 0, 1<<17)
	b := make([]byte, 1)
	var end time.Time
	for i := 0; ; i++ {
		start := time.Now()
		if i == warmup {
			end = start.Add(window)
		}
		if i > warmup && (start.After(end) || ctx.Err() != nil) {
			return a
		}
		if a.err = errors.Join(transfer(rawWrite, fd, b), transfer(rawRead, fd, b)); a.err != nil {
			return a
		}
		if i >= warmup {
			a.times = append(a.times, time.Since(start))
		}
	}
}
