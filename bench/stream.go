package bench

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Profile stream: bulk TCP between two pods.

// manyStreams is how many there are of "many streams".
const manyStreams = 8

const streamNote = "A stream is measured after half a window, and with offload once the kernel has all of them."

func runStream(ctx context.Context, r *rig, c *Comparison) error {
	c.Notes = append(c.Notes, streamNote)
	return r.contestPods(ctx, c, r.measureStreams)
}

func (r *rig) measureStreams(ctx context.Context, p *podPair) ([]reading, error) {
	one, err := p.stream(ctx, 1, r.Window)
	if err != nil {
		return nil, err
	}
	many, err := p.stream(ctx, manyStreams, r.Window)
	return []reading{{"one stream", "Gbit/s", one}, {"8 streams together", "Gbit/s", many}}, err
}

// stream is the Gbit/s that arrive on n connections, once they have got going.
func (p *podPair) stream(ctx context.Context, n int, window time.Duration) (float64, error) {
	list, err := p.connect(ctx, n)
	var arrived atomic.Uint64
	var ended sync.WaitGroup
	for _, c := range list {
		if c.server != nil {
			ended.Go(func() { runSender(c.client) })
			ended.Go(func() { runReceiver(c.server, &arrived) })
		}
	}
	bits, took := 0.0, time.Duration(1)
	if err == nil {
		wait(ctx, window/2)
		if p.warm != nil {
			err = p.warm(ctx, n)
		}
	}
	if err == nil {
		before, start := arrived.Load(), time.Now()
		wait(ctx, window)
		bits, took = 8*float64(arrived.Load()-before), time.Since(start)
	}
	for _, c := range list {
		c.close()
	}
	ended.Wait()
	if err == nil && ctx.Err() == nil && bits == 0 {
		err = errors.New("the stream stands still")
	}
	return bits / took.Seconds() / 1e9, errors.Join(err, ctx.Err())
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

// runSender writes until the connection is closed.
func runSender(c *net.TCPConn) {
	for b := make([]byte, chunk); ; {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// runReceiver reads and counts until the connection is closed.
func runReceiver(c *net.TCPConn, arrived *atomic.Uint64) {
	for b := make([]byte, chunk); ; {
		n, err := c.Read(b)
		arrived.Add(uint64(n))
		if err != nil {
			return
		}
	}
}
