package dataplane

import (
	"math/rand/v2"
	"testing"

	"github.com/antrail/antrail/flow"
)

// TestAskedBits: whatever the bits are that a lookup has not asked for, it gives
// the same entry.
func TestAskedBits(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	free, changed := 0, 0
	for range 300 {
		all := randomEntries(r, 1+r.IntN(60))
		tb := &table{classifier: newClassifier(all), live: new(tableState)}
		for range 30 {
			k := randomKey(r)
			var a asked
			s := lookupScratch{asked: &a}
			want := s.find(tb, k)
			s.asked = nil
			for range 8 {
				other := disguise(k, randomKey(r), &a)
				if *other != *k {
					changed++
				}
				if got := s.find(tb, other); got != want {
					t.Fatalf("seed %d: found %v, and %v for a key that differs in what was not asked for, among %d entries", seed, describe(want), describe(got), len(all))
				}
			}
			if len(a.bits.list()) < flow.KeyWords/4 {
				free++
			}
		}
	}
	if changed < 10_000 || free < 1000 {
		t.Errorf("%d keys were changed, %d lookups asked for little: this proves nothing", changed, free)
	}
}

// disguise is k with the bits of another key where nothing was asked for. It
// has no conj_id, as no packet has.
func disguise(k, other *flow.Key, a *asked) *flow.Key {
	n := *k
	for i := range flow.KeyWords {
		n.SetWord(i, other.Word(i)&^a.bits[i], ^a.bits[i])
	}
	n.SetConjID(0)
	return &n
}
