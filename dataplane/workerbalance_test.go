package dataplane

import (
	"fmt"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/sched"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
)

// crowd is a switch of two workers and four ports whose clock the test turns.
type crowd struct {
	*Switch
	now time.Duration
}

func newCrowd(t *testing.T) *crowd {
	c := &crowd{now: time.Hour}
	clock := func() int64 { return int64(c.now) }
	s, err := New(Config{Conntrack: conntrack.NewTable(conntrack.Config{Now: clock}), Clock: clock, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c.Switch = s
	for no := uint32(1); no <= 4; no++ {
		if err := s.AddPort(no, &busyPort{Port: memory.New("p", memory.Options{})}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// busyPort is a port that says how much it has received.
type busyPort struct {
	*memory.Port
	bytes uint64
}

func (p *busyPort) Stats() ports.Stats { return ports.Stats{RxBytes: p.bytes} }

// pass has the ports 1, 2, ... spend parts of a window.
func (c *crowd) pass(window time.Duration, parts ...float64) {
	for i, part := range parts {
		c.ports.Load().byNumber[uint32(i+1)].share.Spend(int64(part * float64(window)))
	}
	c.now += window
}

// on is which ports each worker has.
func (c *crowd) on() string {
	ws := c.Workers()
	return fmt.Sprint(ws[0].Ports, ws[1].Ports)
}

// TestBalance: a worker without time left gives a port away though it keeps up,
// ports stay apart while there is work for two, and come together again.
func TestBalance(t *testing.T) {
	c := newCrowd(t)
	for _, step := range []struct {
		parts []float64
		want  string
	}{
		{[]float64{0.3, 0, 0.4}, "[1 2 3 4] []"},
		{[]float64{0.5, 0.02, 0.46}, "[2 3 4] [1]"},
		{[]float64{0.5, 0.02, 0.2}, "[2 3 4] [1]"},
		{[]float64{0.3, 0, 0.2}, "[1 2 3 4] []"},
		{[]float64{1}, "[1 2 3 4] []"},
	} {
		c.pass(time.Second, step.parts...)
		c.balance()
		if got := c.on(); got != step.want {
			t.Errorf("loads %v: ports on %s, want %s", step.parts, got, step.want)
		}
	}
}

// behind has the ports spend parts of so many windows, and receive so many bytes in
// each, with a call for relief at the end of each.
func (c *crowd) behind(windows int, bytes uint64, parts ...float64) {
	for range windows {
		c.pass(sched.CrowdWindow, parts...)
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
	c.pass(sched.CrowdWindow)
	for _, pause := range []time.Duration{time.Second, 2 * time.Second} {
		c.relieve()
		c.behind(4, 1000, 0.5, 0.01, 0.4)
		c.stay(t, "on trial", apart)
		c.behind(3, 1000, 0.5, 0.01, 0.4)
		c.stay(t, "no more passes", together)
		c.behind(int(pause/sched.CrowdWindow)-1, 1000, 0.5, 0.01, 0.4)
		c.stay(t, "in the pause", together)
		c.behind(1, 1000, 0.5, 0.01, 0.4)
	}
}

// TestRelieveOnce: a worker that is not behind any more was relieved; and a port that is
// gone meanwhile is not moved.
func TestRelieveOnce(t *testing.T) {
	c := newCrowd(t)
	c.pass(sched.CrowdWindow)
	c.relieve()
	c.behind(4, 1000, 0.5, 0.01, 0.4)
	c.pass(time.Second, 0.5, 0.01, 0.4)
	c.behind(1, 0, 0.5, 0.01, 0.4)
	c.stay(t, "long after", apart)
	for _, p := range c.ports.Load().list {
		c.move(p, 0)
	}
	c.behind(4, 1000, 0.5, 0.01, 0.4)
	c.stay(t, "on trial again", apart)
	if err := c.RemovePort(1); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		c.pass(sched.CrowdWindow)
		c.relieve()
	}
	c.stay(t, "the port is gone", "[2 3 4] []")
}
