package dataplane

import (
	"fmt"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
)

// portsOf makes a port of each worker and share of its time.
func portsOf(shares ...[]float64) (list []*switchPort) {
	for w, of := range shares {
		for _, part := range of {
			p := &switchPort{no: uint32(len(list) + 1)}
			p.share.setPart(part)
			p.worker.Store(int32(w))
			list = append(list, p)
		}
	}
	return list
}

// TestBestMove: the port that goes is the one that leaves the busier of the two
// workers the least to do.
func TestBestMove(t *testing.T) {
	for _, c := range []struct {
		name   string
		shares [][]float64
		want   uint32 // port; 0 for none
		to     int
	}{
		{"idle", [][]float64{{0.1, 0.1}, {}}, 0, 1},
		{"one port cannot be halved", [][]float64{{0.9}, {}}, 0, 1},
		{"one port that is the load stays, the others leave it", [][]float64{{0.2, 0.7}, {}}, 1, 1},
		{"two alike", [][]float64{{0.4, 0.4}, {}}, 1, 1},
		{"the one that fits", [][]float64{{0.5, 0.1, 0.3}, {0.2}}, 3, 1},
		{"balanced", [][]float64{{0.5}, {0.2, 0.25}}, 0, 1},
		{"not worth while", [][]float64{{0.5, 0.05}, {0.5}}, 0, 1},
		{"to the idlest of three", [][]float64{{0.3}, {0.4, 0.4}, {0.1}}, 2, 2},
		{"one worker", [][]float64{{0.5, 0.4}}, 0, 0},
		{"a port without packets never goes", [][]float64{{0, 0.9}, {}}, 0, 1},
	} {
		p, to := bestMove(portsOf(c.shares...), len(c.shares))
		var no uint32
		if p != nil {
			no = p.no
		}
		if no != c.want || p != nil && to != c.to {
			t.Errorf("%s: port %d goes to worker %d, want port %d to %d", c.name, no, to, c.want, c.to)
		}
	}
}

// TestCrowding: a worker calls for relief when it was behind for most of a
// window, and at its end only.
func TestCrowding(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct {
		name   string
		took   int64
		behind func(batch int) bool
		calls  int
	}{
		{"every batch is full", ms, func(int) bool { return true }, 8},
		{"two of three are", ms, func(i int) bool { return i%3 != 0 }, 8},
		{"one of three is", ms, func(i int) bool { return i%3 == 0 }, 0},
		{"none is", ms, func(int) bool { return false }, 0},
		{"short ones between pauses", ms / 4, func(int) bool { return true }, 0},
	} {
		var w crowding
		calls := 0
		for i := range 80 {
			if w.note(int64(i+1)*ms, c.took, c.behind(i)) {
				calls++
			}
		}
		if calls != c.calls {
			t.Errorf("%s: %d calls in 80 ms, want %d", c.name, calls, c.calls)
		}
	}
}

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
		c.ports.Load().byNumber[uint32(i+1)].share.spent.Add(uint64(part * float64(window)))
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
