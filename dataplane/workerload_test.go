package dataplane

import (
	"testing"
	"time"
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

// TestChargeBatch: the turns of a batch are charged together, so that a batch of many
// short turns does not make the next one longer.
func TestChargeBatch(t *testing.T) {
	p := &polled{switchPort: &switchPort{}, budget: 32}
	b := &p.backlog
	for left := 3; left >= 0; left-- {
		if b.frames = b.room[:left]; p.budget != 32 {
			t.Fatalf("the budget is %d before the batch's last turn, want 32", p.budget)
		}
		p.chargeBatch(int64(quantum) / 3)
	}
	if p.budget != 16 || b.took != 0 {
		t.Errorf("after a long batch the budget is %d, and %d ns are charged to the next; want 16 and none", p.budget, b.took)
	}
	if p.chargeBatch(1); p.budget != 32 {
		t.Errorf("after a short batch the budget is %d, want 32", p.budget)
	}
}
