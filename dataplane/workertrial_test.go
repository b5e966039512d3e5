package dataplane

import (
	"testing"
	"time"
)

// behind has the ports spend parts of so many windows, and receive so many bytes in
// each, with a call for relief at the end of each.
func (c *crowd) behind(windows int, bytes uint64, parts ...float64) {
	for range windows {
		c.pass(crowdWindow, parts...)
		c.ports.Load().byNumber[1].port.(*busyPort).bytes += bytes
		c.relieve()
	}
}

// stay fails unless each worker has the ports that are wanted.
func (c *crowd) stay(t *testing.T, what, want string) {
	t.Helper()
	if got := c.on(); got != want {
		t.Fatalf("%s: ports on %s, want %s", what, got, want)
	}
}

const (
	together = "[1 2 3 4] []"
	apart    = "[2 3 4] [1]"
)

// TestRelieve: ports begin on one worker. The one that suits best is moved once it is
// known what passes without, and only that one; it stays when more passes so.
func TestRelieve(t *testing.T) {
	c := newCrowd(t)
	c.stay(t, "new", together)
	c.pass(time.Minute, 0.5, 0.01, 0.4)
	c.relieve()
	c.behind(3, 1000, 0.5, 0.01, 0.4)
	c.stay(t, "while it is measured", together)
	c.behind(1, 1000, 0.5, 0.01, 0.4)
	c.stay(t, "then", apart)
	c.behind(3, 1100, 0.8, 0.01, 0.7)
	c.stay(t, "more passes", apart)
	c.behind(10, 1100, 0.8, 0.01, 0.7)
	c.stay(t, "both have enough to do", apart)
	for _, w := range c.Workers() {
		if want := []float64{0.71, 0.8}[w.No]; w.Load != want {
			t.Errorf("worker %d: load %v, want %v", w.No, w.Load, want)
		}
	}
}

// TestRelieveInVain: a port comes back when no more passes, and none is moved for a
// second, then for two.
func TestRelieveInVain(t *testing.T) {
	c := newCrowd(t)
	c.pass(crowdWindow)
	for _, pause := range []time.Duration{leastPause, 2 * leastPause} {
		c.relieve()
		c.behind(4, 1000, 0.5, 0.01, 0.4)
		c.stay(t, "on trial", apart)
		c.behind(3, 1000, 0.5, 0.01, 0.4)
		c.stay(t, "no more passes", together)
		c.behind(int(pause/crowdWindow)-1, 1000, 0.5, 0.01, 0.4)
		c.stay(t, "in the pause", together)
		c.behind(1, 1000, 0.5, 0.01, 0.4)
	}
}

// TestRelieveOnce: a worker that is not behind any more was relieved; and a port that is
// gone meanwhile is not moved.
func TestRelieveOnce(t *testing.T) {
	c := newCrowd(t)
	c.pass(crowdWindow)
	c.relieve()
	c.behind(4, 1000, 0.5, 0.01, 0.4)
	c.pass(time.Second, 0.5, 0.01, 0.4)
	c.behind(1, 0, 0.5, 0.01, 0.4)
	c.stay(t, "long after", apart)
	c.gather(c.ports.Load().list)
	c.behind(4, 1000, 0.5, 0.01, 0.4)
	c.stay(t, "on trial again", apart)
	if err := c.RemovePort(1); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		c.pass(crowdWindow)
		c.relieve()
	}
	c.stay(t, "the port is gone", "[2 3 4] []")
}
