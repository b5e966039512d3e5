package dataplane

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/antrail/antrail/flow"
)

// linear is the twin of classifier and conjunction.go that is too simple to be
// wrong: it reads every entry in order of priority. Tests compare the two.
type linear []*entry // by priority, falling, then newest first

func (l linear) find(k *flow.Key) *entry {
	hard := l.hard(k)
	for i := 0; i < len(l) && (hard == nil || l[i].Priority > hard.Priority); i++ {
		for _, id := range l.complete(k, l[i].Priority) {
			with := *k
			flow.FieldByID(flow.ConjID).Put(&with, flow.Value{Lo: uint64(id)}, flow.Ones(32))
			if e := l.hard(&with); e != nil {
				return e
			}
		}
	}
	return hard
}

// hard is the first entry without clauses that matches.
func (l linear) hard(k *flow.Key) *entry {
	for _, e := range l {
		if clausesOf(e.Actions) == nil && e.Match.Matches(k) {
			return e
		}
	}
	return nil
}

// complete lists the conjunctions all of whose clauses match at one priority,
// the lowest first.
func (l linear) complete(k *flow.Key, priority uint16) (ids []uint32) {
	seen := map[uint32]map[uint8]bool{}
	for _, e := range l {
		if e.Priority != priority || !e.Match.Matches(k) {
			continue
		}
		for _, c := range clausesOf(e.Actions) {
			if seen[c.ID] == nil {
				seen[c.ID] = map[uint8]bool{}
			}
			seen[c.ID][c.Clause] = true
			if len(seen[c.ID]) == int(c.N) && !slices.Contains(ids, c.ID) {
				ids = append(ids, c.ID)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// randomEntries makes entries over few fields with few values, so that masks
// overlap, priorities collide in shape and conjunctions complete often.
func randomEntries(r *rand.Rand, n int) []*entry {
	fields := []flow.FieldID{flow.Reg0, flow.IPSrc, flow.IPDst, flow.TCPDst, flow.CTState, flow.InPort, flow.CTLabel}
	seen := map[flow.Identity]*entry{}
	for i := range n {
		e := &flow.Entry{Priority: uint16(i)} // no ties: OpenFlow leaves those open
		if r.IntN(3) == 0 {
			e.Priority = uint16(1000 + 10*r.IntN(5)) // clauses share priorities
			id := uint32(1 + r.IntN(4))
			e.Actions = []flow.Action{flow.Conjunction{ID: id, Clause: uint8(1 + r.IntN(2)), N: 2}}
		} else if r.IntN(4) == 0 {
			f := flow.FieldByID(flow.ConjID)
			f.Put(&e.Match.Value, flow.Value{Lo: uint64(1 + r.IntN(4))}, flow.Ones(32))
			f.Put(&e.Match.Mask, flow.Ones(32), flow.Ones(32))
		}
		for range r.IntN(3) {
			id := fields[r.IntN(len(fields))]
			f := flow.FieldByID(id)
			mask := []flow.Value{flow.Ones(f.Bits), flow.Ones(2), flow.Ones(1)}[r.IntN(3)]
			f.Put(&e.Match.Mask, mask, flow.Ones(128))
			f.Put(&e.Match.Value, flow.Value{Lo: uint64(r.IntN(4))}.And(mask), flow.Ones(128))
		}
		seen[e.Identity()] = newEntry(e, uint64(i), 0)
	}
	return sorted(seen)
}

func randomKey(r *rand.Rand) *flow.Key {
	k := &flow.Key{}
	for _, id := range []flow.FieldID{flow.Reg0, flow.IPSrc, flow.IPDst, flow.TCPDst, flow.CTState, flow.InPort, flow.CTLabel} {
		flow.FieldByID(id).Put(k, flow.Value{Lo: uint64(r.IntN(4))}, flow.Ones(128))
	}
	return k
}

// TestClassifierAgainstLinear compares the lookup with its linear twin, with
// the entries all static, all learned, and split between both.
func TestClassifierAgainstLinear(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		all := randomEntries(r, 1+r.IntN(60))
		split := r.IntN(len(all) + 1)
		tb := &table{classifier: newClassifier(all[:split]), live: new(tableState)}
		for _, e := range all[split:] {
			tb.live.learned.add(e, 0)
		}
		for range 50 {
			k := randomKey(r)
			var s lookupScratch
			got, want := s.find(tb, k), linear(all).find(k)
			if got != want {
				t.Fatalf("seed %d: classifier found %v, linear %v, among %d entries, %d of them learned", seed, describe(got), describe(want), len(all), len(all)-split)
			}
		}
	}
}

func describe(e *entry) string {
	if e == nil {
		return "nothing"
	}
	return e.Text(flow.Format{})
}

// TestLearnedRemoval checks that a classifier after insertions and removals
// finds what one built anew finds.
func TestLearnedRemoval(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	all := randomEntries(r, 60)
	var l learnedEntries
	for _, e := range all {
		l.add(e, 0)
	}
	kept := map[*entry]bool{}
	for i, e := range all {
		kept[e] = i%3 == 0
	}
	if n := l.removeIf(func(e *entry) bool { return !kept[e] }); n == 0 {
		t.Fatal("nothing was removed")
	}
	var left []*entry
	for _, e := range all {
		if kept[e] {
			left = append(left, e)
		}
	}
	fresh := newClassifier(left)
	for range 500 {
		k := randomKey(r)
		var a, b lookupScratch
		if got, want := a.find(&l, k), b.find(fresh, k); got != want {
			t.Fatalf("seed %d: after removal %v, built anew %v", seed, describe(got), describe(want))
		}
	}
}
