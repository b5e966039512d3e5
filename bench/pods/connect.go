package pods

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
)

// dialers is how many connections are under way at a time.
const dialers = 4

// RunConnect is profile connect: TCP connections between two pods that are made and closed at once.
func (p *Profiles) RunConnect(ctx context.Context, r *rig.Rig, c *report.Comparison) error {
	c.Notes = append(c.Notes, fmt.Sprintf("%d clients, each of which connects, resets and connects again.", dialers))
	return p.runPairs(ctx, r, c, measureConnect)
}

// measureConnect measures how many connections are made a second.
func measureConnect(ctx context.Context, p *pair, window time.Duration) ([]rig.Reading, error) {
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
			errs[i] = p.client(func() error { return runDialer(ctx, p.address, start.Add(window), &made) })
		})
	}
	dialing.Wait()
	took := time.Since(start)
	l.Close()
	ended.Wait()
	return []rig.Reading{{Name: "connections", Unit: "1/s", Value: float64(made.Load()) / took.Seconds()}}, errors.Join(errs...)
}

// runAcceptor accepts connections and closes them, until the listener is closed.
func runAcceptor(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Close()
	}
}

// runDialer makes connections until end. It resets them, so that none keeps its port in TIME-WAIT.
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
