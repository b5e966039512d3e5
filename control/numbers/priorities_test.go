package numbers

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPriorityFormula: without neighbours in the way, rules get the formula's priorities.
func TestPriorityFormula(t *testing.T) {
	for _, c := range []struct {
		name  string
		zone  Zone
		block Block
		want  uint16 // of index 0
	}{
		{"application, priority 5", AntreaZone, Block{250, 5, 2}, 14500},
		{"application, priority 4", AntreaZone, Block{250, 4, 1}, 14600},
		{"securityops, priority 5", AntreaZone, Block{100, 5, 3}, 44900},
		{"emergency, priority 1.5", AntreaZone, Block{50, 1.5, 1}, 54970},
		{"a float", AntreaZone, Block{250, 5.1, 1}, 14490},
		{"below the floor", AntreaZone, Block{250, 10000, 3}, 107},
		{"baseline", BaselineZone, Block{253, 5, 2}, 130},
		{"below the floor of baseline", BaselineZone, Block{253, 100, 2}, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := NewPriorities(c.zone)
			if err := p.Assign(c.block); err != nil {
				t.Fatal(err)
			}
			for i := range c.block.Size {
				if got, want := p.Of(c.block.At(i)), c.want-uint16(i); got != want {
					t.Errorf("rule %d has priority %d, want %d", i, got, want)
				}
			}
		})
	}
}

// TestPriorityOrder: after every change the priorities are in the order of the ranks,
// distinct and inside the zone.
func TestPriorityOrder(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	for _, c := range []struct {
		name   string
		zone   Zone
		tiers  []int32
		steps  int
		places int // distinct policy priorities
	}{
		{"a zone with room", AntreaZone, []int32{50, 100, 250}, 400, 1000},
		{"tiers that collide", AntreaZone, []int32{249, 250, 251, 252}, 400, 10000},
		{"a crowded zone", BaselineZone, []int32{253}, 2000, 40},
		{"a tiny zone", Zone{1, 20, AntreaZone.first}, []int32{250}, 2000, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			p := NewPriorities(c.zone)
			var held []Block
			for range c.steps {
				if len(held) > 0 && rng.IntN(3) == 0 {
					i := rng.IntN(len(held))
					p.Free(held[i])
					held = slices.Delete(held, i, i+1)
				} else {
					b := Block{c.tiers[rng.IntN(len(c.tiers))], float64(1+rng.IntN(c.places)) / 3, 1 + rng.IntN(8)}
					if err := p.Assign(b); err == nil {
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
func fits(p *Priorities, b Block) bool {
	fresh := 0
	for i := range b.Size {
		if !slices.ContainsFunc(p.placed, func(r placedRule) bool { return r.Order == b.At(i) }) {
			fresh++
		}
	}
	return len(p.placed)+fresh <= p.zone.Size()
}

// checkPriorities compares the priorities with a sorted list of the ranks held.
func checkPriorities(t *testing.T, p *Priorities, held []Block) {
	t.Helper()
	var want []Order
	for _, b := range held {
		for i := range b.Size {
			want = append(want, b.At(i))
		}
	}
	slices.SortFunc(want, func(a, b Order) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Index, b.Index))
	})
	want = slices.Compact(want)
	if len(want) != len(p.placed) {
		t.Fatalf("%d ranks are placed, want %d", len(p.placed), len(want))
	}
	last := p.zone.highest + 1
	for _, o := range want {
		n := int(p.Of(o))
		if n >= last || n < p.zone.lowest {
			t.Fatalf("%+v has priority %d, want %d to %d", o, n, p.zone.lowest, last-1)
		}
		last = n
	}
}

// TestPrioritiesRunOut: a table has no 65,001st rank. A refused block changes nothing.
func TestPrioritiesRunOut(t *testing.T) {
	p := NewPriorities(AntreaZone)
	var held []Block
	for i := range (AntreaZone.highest - AntreaZone.lowest + 1) / 10 {
		b := Block{250, float64(i%977) + float64(i)/1e4, 10}
		if err := p.Assign(b); err != nil {
			t.Fatalf("block %d: %v", i, err)
		}
		held = append(held, b)
	}
	before := slices.Clone(p.placed)
	if err := p.Assign(Block{100, 1, 1}); !errors.Is(err, errNoPriority) {
		t.Fatalf("error %v, want %v", err, errNoPriority)
	}
	if !slices.Equal(before, p.placed) {
		t.Error("a refused block has moved others")
	}
	checkPriorities(t, p, held)
}

// TestPriorityNeighboursMoveLeast: a rule between two adjacent ones moves one of them by one.
func TestPriorityNeighboursMoveLeast(t *testing.T) {
	p := NewPriorities(AntreaZone)
	for _, b := range []Block{{250, 5, 2}, {250, 5.02, 2}, {250, 5.01, 1}} {
		if err := p.Assign(b); err != nil {
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
