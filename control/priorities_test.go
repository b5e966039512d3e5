package control

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPriorityFormula: the numbers that rules get where nothing is in the way.
func TestPriorityFormula(t *testing.T) {
	for _, c := range []struct {
		name  string
		zone  ruleZone
		block ruleBlock
		want  uint16 // of index 0
	}{
		{"application, priority 5", antreaZone, ruleBlock{250, 5, 2}, 14500},
		{"application, priority 4", antreaZone, ruleBlock{250, 4, 1}, 14600},
		{"securityops, priority 5", antreaZone, ruleBlock{100, 5, 3}, 44900},
		{"emergency, priority 1.5", antreaZone, ruleBlock{50, 1.5, 1}, 54970},
		{"a float", antreaZone, ruleBlock{250, 5.1, 1}, 14490},
		{"below the floor", antreaZone, ruleBlock{250, 10000, 3}, 107},
		{"baseline", baselineZone, ruleBlock{253, 5, 2}, 130},
		{"below the floor of baseline", baselineZone, ruleBlock{253, 100, 2}, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &priorities{zone: c.zone}
			if err := p.acquire(c.block); err != nil {
				t.Fatal(err)
			}
			for i := range c.block.size {
				if got, want := p.of(c.block.at(i)), c.want-uint16(i); got != want {
					t.Errorf("rule %d has priority %d, want %d", i, got, want)
				}
			}
		})
	}
}

// TestPriorityOrder: whatever comes and goes, the numbers are in the order of
// the ranks, distinct, and inside the zone.
func TestPriorityOrder(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	for _, c := range []struct {
		name   string
		zone   ruleZone
		tiers  []int32
		steps  int
		places int // distinct policy priorities
	}{
		{"a zone with room", antreaZone, []int32{50, 100, 250}, 400, 1000},
		{"tiers that collide", antreaZone, []int32{249, 250, 251, 252}, 400, 10000},
		{"a crowded zone", baselineZone, []int32{253}, 2000, 40},
		{"a tiny zone", ruleZone{1, 20, antreaZone.first}, []int32{250}, 2000, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			p := &priorities{zone: c.zone}
			var held []ruleBlock
			for range c.steps {
				if len(held) > 0 && rng.IntN(3) == 0 {
					i := rng.IntN(len(held))
					p.release(held[i])
					held = slices.Delete(held, i, i+1)
				} else {
					b := ruleBlock{c.tiers[rng.IntN(len(c.tiers))], float64(1+rng.IntN(c.places)) / 3, 1 + rng.IntN(8)}
					if err := p.acquire(b); err == nil {
						held = append(held, b)
					} else if fits(p, b) {
						t.Fatalf("%v was refused though it fits: %v", b, err)
					}
				}
				checkPriorities(t, p, held)
			}
		})
	}
}

// fits reports whether the zone has numbers for a block's new ranks.
func fits(p *priorities, b ruleBlock) bool {
	fresh := 0
	for i := range b.size {
		if !slices.ContainsFunc(p.placed, func(r placedRule) bool { return r.ruleOrder == b.at(i) }) {
			fresh++
		}
	}
	return len(p.placed)+fresh <= p.zone.highest-p.zone.lowest+1
}

// checkPriorities compares the numbers with a sorted list of the ranks held.
func checkPriorities(t *testing.T, p *priorities, held []ruleBlock) {
	t.Helper()
	var want []ruleOrder
	for _, b := range held {
		for i := range b.size {
			want = append(want, b.at(i))
		}
	}
	slices.SortFunc(want, func(a, b ruleOrder) int {
		return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(a.priority, b.priority), cmp.Compare(a.index, b.index))
	})
	want = slices.Compact(want)
	if len(want) != len(p.placed) {
		t.Fatalf("%d ranks are placed, want %d", len(p.placed), len(want))
	}
	last := p.zone.highest + 1
	for _, o := range want {
		n := int(p.of(o))
		if n >= last || n < p.zone.lowest {
			t.Fatalf("%+v has priority %d, want %d to %d", o, n, p.zone.lowest, last-1)
		}
		last = n
	}
}

// TestPrioritiesRunOut: a table has no 65,001st rank, and nothing is disturbed
// by who asks for it.
func TestPrioritiesRunOut(t *testing.T) {
	p := &priorities{zone: antreaZone}
	var held []ruleBlock
	for i := range (antreaZone.highest - antreaZone.lowest + 1) / 10 {
		b := ruleBlock{250, float64(i%977) + float64(i)/1e4, 10}
		if err := p.acquire(b); err != nil {
			t.Fatalf("block %d: %v", i, err)
		}
		held = append(held, b)
	}
	before := slices.Clone(p.placed)
	if err := p.acquire(ruleBlock{100, 1, 1}); !errors.Is(err, errNoPriority) {
		t.Fatalf("error %v, want %v", err, errNoPriority)
	}
	if !slices.Equal(before, p.placed) {
		t.Error("a refused block has moved others")
	}
	checkPriorities(t, p, held)
}

// TestPriorityNeighboursMoveLeast: a rule between two that touch moves one of
// them by one.
func TestPriorityNeighboursMoveLeast(t *testing.T) {
	p := &priorities{zone: antreaZone}
	for _, b := range []ruleBlock{{250, 5, 2}, {250, 5.02, 2}, {250, 5.01, 1}} {
		if err := p.acquire(b); err != nil {
			t.Fatal(err)
		}
	}
	var got []uint16
	for _, r := range p.placed {
		got = append(got, r.priority)
	}
	if want := []uint16{14501, 14500, 14499, 14498, 14497}; !slices.Equal(got, want) {
		t.Errorf("priorities %v, want %v", got, want)
	}
}
