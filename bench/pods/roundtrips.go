package pods

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrail/antrail/bench/sched"
	"golang.org/x/sys/unix"
)

// percentile returns the value that this part of sorted times does not exceed. There must be at least one.
func percentile(sorted []time.Duration, part float64) time.Duration {
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

// roundTrips returns how long each round trip took, without the first hundred. The ends run on the given
// processors. If on is nil, they run where the kernel puts them.
func (p *pair) roundTrips(ctx context.Context, window time.Duration, on *unix.CPUSet) ([]time.Duration, error) {
	list, err := p.connect(ctx, 1)
	for _, c := range list {
		defer c.close()
	}
	if err != nil {
		return nil, err
	}
	defer sched.LendProcessors(2)()
	client, err := blockingDescriptor(list[0].client)
	if err != nil {
		return nil, err
	}
	defer unix.Close(client)
	server, err := blockingDescriptor(list[0].server)
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer unix.Close(server)
		if sched.LockToProcessors(on) == nil { // the client has the same error
			runServer(server)
		}
	}()
	requested := make(chan answers, 1)
	go func() {
		if err := sched.LockToProcessors(on); err != nil {
			requested <- answers{err: err}
			return
		}
		requested <- runClient(ctx, client, window)
	}()
	a := <-requested
	_ = unix.Shutdown(client, unix.SHUT_RDWR) // the server reads the end, and ends
	<-ended
	if a.err == nil && len(a.times) == 0 {
		a.err = fmt.Errorf("no answer in %v", window)
	}
	return a.times, errors.Join(a.err, ctx.Err())
}

// runServer answers until the connection ends, or nothing comes for a second.
func runServer(fd int) {
	for b := make([]byte, 1); ; {
		if transferByte(sched.RawRead, fd, b) != nil || transferByte(sched.RawWrite, fd, b) != nil {
			return
		}
	}
}

// answers is the round trips of a client.
type answers struct {
	times []time.Duration
	err   error
}

// warmupTrips is how many round trips are not counted.
const warmupTrips = 100

// runClient makes one round trip after the other for a window.
func runClient(ctx context.Context, fd int, window time.Duration) (a answers) {
	a.times = make([]time.Duration, 0, 1<<17)
	b := make([]byte, 1)
	var end time.Time
	for i := 0; ; i++ {
		start := time.Now()
		if i == warmupTrips {
			end = start.Add(window)
		}
		if i > warmupTrips && (start.After(end) || ctx.Err() != nil) {
			return a
		}
		if a.err = errors.Join(transferByte(sched.RawWrite, fd, b), transferByte(sched.RawRead, fd, b)); a.err != nil {
			return a
		}
		if i >= warmupTrips {
			a.times = append(a.times, time.Since(start))
		}
	}
}
