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

func runRR(ctx context.Context, r *rig, c *Comparison) error {
	return r.contestPods(ctx, c, r.measureRR)
}

func (r *rig) measureRR(ctx context.Context, p *podPair) ([]reading, error) {
	times, err := p.roundTrips(ctx, r.Window)
	if err != nil {
		return nil, err
	}
	slices.Sort(times)
	var readings []reading
	for _, q := range []struct {
		name string
		of   float64
	}{{"round trip, 50 %", 0.5}, {"round trip, 90 %", 0.9}, {"round trip, 99 %", 0.99}} {
		readings = append(readings, reading{q.name, "µs", percentile(times, q.of).Seconds() * 1e6})
	}
	return readings, nil
}

// percentile is the value of sorted times, of which there is at least one, that
// this part of them does not exceed.
func percentile(sorted []time.Duration, part float64) time.Duration {
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

// roundTrips is how long each question took, the first hundred left out.
func (p *podPair) roundTrips(ctx context.Context, window time.Duration) ([]time.Duration, error) {
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
	go func() { defer close(ended); defer unix.Close(server); runEcho(server) }()
	asked := make(chan asking, 1)
	go func() { asked <- runQuestions(ctx, client, window) }()
	a := <-asked
	_ = unix.Shutdown(client, unix.SHUT_RDWR) // the echo reads the end, and ends
	<-ended
	if a.err == nil && len(a.times) == 0 {
		a.err = fmt.Errorf("no answer in %v", window)
	}
	return a.times, errors.Join(a.err, ctx.Err())
}

// blocking is a connection's own descriptor in blocking mode; the connection is
// of no use for Go from then on. Reads and writes give up after a second, and so
// end when a signal comes between.
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
	second := unix.NsecToTimeval(int64(time.Second))
	return fd, errors.Join(unix.SetNonblock(fd, false),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &second), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &second))
}

// runEcho answers until the connection ends or nothing comes for a second.
func runEcho(fd int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b := make([]byte, 1); ; {
		if transfer(rawRead, fd, b) != nil || transfer(rawWrite, fd, b) != nil {
			return
		}
	}
}

// transfer reads or writes one byte, again when a signal comes between: Go's
// own do.
func transfer(call func(int, []byte) (int, error), fd int, b []byte) error {
	for {
		n, err := call(fd, b)
		if err == unix.EINTR {
			continue
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
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
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
