package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Profile connect: TCP connections that are made and closed at once.

// dialers is how many connections are under way at a time.
const dialers = 4

func runConnect(ctx context.Context, r *rig, c *Comparison) error {
	c.Notes = append(c.Notes, fmt.Sprintf("%d clients, each of which connects, resets and connects again.", dialers))
	return r.contestPods(ctx, c, r.measureConnect)
}

func (r *rig) measureConnect(ctx context.Context, p *podPair) ([]reading, error) {
	l, err := p.listen()
	if err != nil {
		return nil, err
	}
	var ended sync.WaitGroup
	ended.Go(func() { runAcceptor(l) })
	var made atomic.Uint64
	errs := make([]error, dialers)
	start := time.Now()
	var dialing sync.WaitGroup
	for i := range errs {
		dialing.Go(func() {
			errs[i] = p.client(func() error { return runDialer(ctx, p.address, start.Add(r.Window), &made) })
		})
	}
	dialing.Wait()
	took := time.Since(start)
	l.Close()
	ended.Wait()
	return []reading{{"connections", "1/s", float64(made.Load()) / took.Seconds()}}, errors.Join(errs...)
}

// runAcceptor takes connections and drops them until the listener is closed.
func runAcceptor(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Close()
	}
}

// runDialer makes connections until then. They are reset, so that none waits
// and none takes a port away from those to come.
func runDialer(ctx context.Context, address string, end time.Time, made *atomic.Uint64) error {
	d := net.Dialer{Timeout: 5 * time.Second}
	for time.Now().Before(end) && ctx.Err() == nil {
		c, err := d.DialContext(ctx, "tcp4", address)
		if err != nil {
			return err
		}
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
		made.Add(1)
	}
	return ctx.Err()
}
