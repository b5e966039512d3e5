package attack

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// A server greets each connection with one byte. If the client answers with one byte, it
// gets a stream. The stream's pace leaves most of the machine to the attack.
const (
	connectEvery = 20 * time.Millisecond
	streamEvery  = 10 * time.Millisecond
	streamPiece  = 32 << 10
)

// runServer serves until its listener is closed; streams end with ctx.
func runServer(ctx context.Context, ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go runGreeting(ctx, c)
	}
}

// runGreeting is the server's side of one connection.
func runGreeting(ctx context.Context, c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	c.SetDeadline(time.Now().Add(time.Minute))
	b := make([]byte, streamPiece)
	if _, err := c.Write(b[:1]); err != nil {
		return
	}
	if _, err := c.Read(b[:1]); err != nil {
		return
	}
	c.SetDeadline(time.Time{})
	for tick := time.NewTicker(streamEvery); ctx.Err() == nil; <-tick.C {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// dial connects on a path and reads the greeting.
func (s *stage) dial(ctx context.Context, p path) (c net.Conn, err error) {
	err = s.lab.In(p.from, func() error {
		c, err = (&net.Dialer{Timeout: waitAtMost}).DialContext(ctx, "tcp", s.target(p))
		return err
	})
	if err != nil {
		return nil, err
	}
	c.SetReadDeadline(time.Now().Add(waitAtMost))
	if _, err := c.Read(make([]byte, 1)); err != nil {
		c.Close()
		return nil, fmt.Errorf("no greeting: %w", err)
	}
	c.SetReadDeadline(time.Time{})
	return c, nil
}

// connecting makes connections on a path at a steady pace.
type connecting struct {
	path path
	s    *stage

	mu            sync.Mutex
	counts        bool
	busy          sync.WaitGroup // running connects of the window
	tried, failed int
	why           error
}

// mostBusy is the most connects at once.
const mostBusy = 64

// runConnects starts connections until ctx ends, and waits for the last.
func (c *connecting) runConnects(ctx context.Context) {
	tick := time.NewTicker(connectEvery)
	defer tick.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	room := make(chan struct{}, mostBusy)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case room <- struct{}{}:
		default:
			continue
		}
		counts := c.inWindow()
		all.Go(func() {
			c.runConnect(ctx, counts)
			<-room
		})
	}
}

// inWindow says whether the next connection belongs to the window.
func (c *connecting) inWindow() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts {
		c.tried++
		c.busy.Add(1)
	}
	return c.counts
}

func (c *connecting) runConnect(ctx context.Context, counts bool) {
	conn, err := c.s.dial(ctx, c.path)
	if err == nil {
		conn.Close()
	}
	if !counts {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed++
		c.why = fmt.Errorf("%s to %s: %w", c.path.from, c.path.to, err)
	}
	c.busy.Done()
}

func (c *connecting) beginWindow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts, c.tried, c.failed, c.why = true, 0, 0, nil
}

// end waits for the connects of the window.
func (c *connecting) end() (tried, failed int, why error) {
	c.mu.Lock()
	c.counts = false
	c.mu.Unlock()
	c.busy.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tried, c.failed, c.why
}

// streaming reads a TCP stream on a path, and another one if it ends.
type streaming struct {
	path path
	s    *stage

	mu     sync.Mutex
	bytes  int64
	last   time.Time     // when the last bytes came
	stall  time.Duration // the longest time without bytes
	broken error         // a stream ended in the window
}

// runStream reads until ctx ends.
func (t *streaming) runStream(ctx context.Context) {
	for ctx.Err() == nil {
		if err := t.read(ctx); ctx.Err() == nil {
			t.mu.Lock()
			t.broken = err
			t.mu.Unlock()
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// read reads one stream until it ends.
func (t *streaming) read(ctx context.Context) error {
	c, err := t.s.dial(ctx, t.path)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	b := make([]byte, 4*streamPiece)
	if _, err := c.Write(b[:1]); err != nil {
		return err
	}
	for {
		n, err := c.Read(b)
		if err != nil {
			return err
		}
		t.came(n)
	}
}

func (t *streaming) came(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.stall, t.last = max(t.stall, now.Sub(t.last)), now
	t.bytes += int64(n)
}

func (t *streaming) beginWindow() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes, t.stall, t.last, t.broken = 0, 0, time.Now(), nil
}

// end waits until bytes have come, in the window or since. The error says that none came,
// or that the stream ended.
func (t *streaming) end() (bytes int64, stall time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for end := time.Now().Add(waitAtMost); t.bytes == 0 && t.broken == nil && time.Now().Before(end); t.mu.Lock() {
		t.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
	switch {
	case t.broken != nil:
		err = fmt.Errorf("the stream from %s to %s ended: %w", t.path.to, t.path.from, t.broken)
	case t.bytes == 0:
		err = fmt.Errorf("the stream from %s to %s sent nothing for %v", t.path.to, t.path.from, waitAtMost)
	}
	return t.bytes, max(t.stall, time.Since(t.last)), err
}
