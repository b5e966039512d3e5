package dataplane

import (
	"fmt"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/ports/memory"
)

// TestNextBudget: a port whose batches take long brings fewer frames a round,
// and more again when they do not.
func TestNextBudget(t *testing.T) {
	for _, c := range []struct {
		budget int
		took   time.Duration
		want   int
	}{
		{64, 0, 64}, {64, quantum, 64}, {64, quantum + 1, 32}, {32, time.Second, 16},
		{8, time.Second, leastBatch}, {9, time.Second, leastBatch}, {8, quantum, 16}, {48, 0, batchSize},
	} {
		if got := nextBudget(c.budget, c.took); got != c.want {
			t.Errorf("a batch within %d that took %v is followed by %d, want %d", c.budget, c.took, got, c.want)
		}
	}
}

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

// TestPatience: short sleeps make a worker spin longer, long ones shorter,
// until it does not spin at all.
func TestPatience(t *testing.T) {
	var p patience
	for range 10 {
		p.slept(maxSpin / 2)
	}
	if p.span != maxSpin {
		t.Errorf("after short sleeps it spins for %v, want %v", p.span, maxSpin)
	}
	for range 10 {
		p.slept(time.Second)
	}
	if p.span != 0 {
		t.Errorf("after long sleeps it spins for %v, want none", p.span)
	}
	p.slept(0)
	if p.span != minSpin {
		t.Errorf("after one short sleep it spins for %v, want %v", p.span, minSpin)
	}
	p.vain = 2
	if p.slept(0); p.span != 0 {
		t.Errorf("it spins for %v though it was woken for nothing", p.span)
	}
}

// TestWakeBucket checks the bounds of the histogram.
func TestWakeBucket(t *testing.T) {
	for d, want := range map[time.Duration]int{
		-time.Second: 0, 0: 0, 999: 0, time.Microsecond: 1, 2 * time.Microsecond: 2, 3999: 2,
		4 * time.Microsecond: 3, 16383 * time.Microsecond: 14, 16384 * time.Microsecond: 15, time.Hour: 15,
	} {
		if got := wakeBucket(d); got != want {
			t.Errorf("%v is in bucket %d, want %d", d, got, want)
		}
	}
}

// TestBalance: ports that are on one worker, as they came, are spread by what
// they cost it.
func TestBalance(t *testing.T) {
	clock := func() int64 { return 1 }
	s, err := New(Config{Conntrack: conntrack.NewTable(conntrack.Config{Now: clock}), Clock: clock, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for no := uint32(1); no <= 4; no++ {
		if err := s.AddPort(no, memory.New("p", memory.Options{})); err != nil {
			t.Fatal(err)
		}
	}
	spent := map[uint32]time.Duration{1: 400 * time.Millisecond, 3: 300 * time.Millisecond, 2: 10 * time.Millisecond}
	for range 3 {
		for no, d := range spent {
			s.ports.Load().byNumber[no].share.spent.Add(uint64(d))
		}
		s.balance(time.Second)
	}
	ws := s.Workers()
	if got := fmt.Sprint(ws[0].Ports, ws[1].Ports); got != "[1] [2 3 4]" {
		t.Errorf("ports %s: want 1 and 3 on two workers, and only one of them moved", got)
	}
	if ws[0].Load != 0.4 || ws[1].Load != 0.31 {
		t.Errorf("loads %v and %v", ws[0].Load, ws[1].Load)
	}
	for _, p := range s.Ports() {
		if p.No == 3 && (p.Worker != 1 || p.Load != 0.3) {
			t.Errorf("port 3 is on worker %d with %v of its time", p.Worker, p.Load)
		}
	}
}
