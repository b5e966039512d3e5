package lookup

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/antrail/antrail/flow"
)

// linear is the twin of classifier and conjunction.go that is too simple to be
// wrong: it reads every entry in order of priority. Tests compare the two.
type linear []*Entry // by priority, falling, then newest first

func (l linear) find(k *flow.Key) *Entry {
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
func (l linear) hard(k *flow.Key) *Entry {
	for _, e := range l {
		if len(appendClauses(nil, e.Actions)) == 0 && e.Match.Matches(k) {
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
		for _, c := range appendClauses(nil, e.Actions) {
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

// randomFields are the fields that random entries and keys are about.
var randomFields = []flow.FieldID{flow.Reg0, flow.IPSrc, flow.IPDst, flow.IPv6Dst, flow.TCPDst, flow.CTState, flow.InPort, flow.CTLabel}

// randomValue is one of a few values of a field, which differ in its first and
// last bits.
func randomValue(r *rand.Rand, f *flow.Field) flow.Value {
	return flow.Value{Lo: uint64(r.IntN(4))}.Shl((f.Bits - 2) * r.IntN(2))
}

// randomMask is a field's mask: all of it, its last bits, or a prefix.
func randomMask(r *rand.Rand, f *flow.Field) flow.Value {
	switch r.IntN(4) {
	case 0:
		return flow.Ones(1 + r.IntN(2))
	case 1:
		return flow.Ones(f.Bits)
	}
	n := 1 + r.IntN(f.Bits)
	return flow.Ones(n).Shl(f.Bits - n)
}

// randomEntries makes entries over few fields with few values, so that masks
// overlap, priorities collide in shape and conjunctions complete often.
func randomEntries(r *rand.Rand, n int) []*Entry {
	seen := map[flow.Identity]*Entry{}
	for i := range n {
		var m flow.Match
		e := &flow.Entry{Priority: uint16(i)} // no ties: OpenFlow leaves those open
		if r.IntN(3) == 0 {
			e.Priority = uint16(1000 + 10*r.IntN(5)) // clauses share priorities
			e.Actions = randomClauses(r)
		} else if r.IntN(4) == 0 {
			m.AddExact(flow.ConjID, flow.Value{Lo: uint64(r.IntN(5))})
		}
		for range r.IntN(3) {
			f := flow.FieldByID(randomFields[r.IntN(len(randomFields))])
			mask := randomMask(r, f)
			m.Add(f.ID, randomValue(r, f).And(mask), mask)
		}
		e.Match = m.Mini()
		seen[e.Identity()] = testEntry(e, uint64(i))
	}
	return slices.SortedFunc(maps.Values(seen), byPriority)
}

// randomClauses are conjunction actions: ids 1 to 3 have two clauses, 4 and 5
// three.
func randomClauses(r *rand.Rand) (all []flow.Action) {
	clause := uint8(1 + r.IntN(3))
	for id := range uint32(5) {
		c := flow.Conjunction{ID: id + 1, Clause: clause, N: uint8(2 + id/3)}
		if r.IntN(4) == 0 { // most entries are one clause of all they name, some are not
			c.Clause = uint8(1 + r.IntN(2))
		}
		if c.Clause <= c.N && r.IntN(2) == 0 {
			all = append(all, c)
		}
	}
	if all == nil {
		return []flow.Action{flow.Conjunction{ID: 1, Clause: 1, N: 2}}
	}
	return all
}

func randomKey(r *rand.Rand) *flow.Key {
	k := &flow.Key{}
	for _, id := range randomFields {
		f := flow.FieldByID(id)
		f.Put(k, randomValue(r, f), flow.Ones(128))
	}
	return k
}

// TestClassifierAgainstLinear compares the lookup with its linear twin, with
// the entries all static, all learned, and split between both.
func TestClassifierAgainstLinear(t *testing.T) {
	for range 200 {
		againstLinear(t, rand.Uint64())
	}
}

// FuzzClassifier is TestClassifierAgainstLinear from seeds that the fuzzer
// chooses: it keeps those that take new ways through the lookup.
func FuzzClassifier(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed)
	}
	f.Fuzz(againstLinear)
}

// againstLinear looks 50 keys up in a random table.
func againstLinear(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	all := randomEntries(r, 1+r.IntN(200))
	split := r.IntN(len(all) + 1)
	tb := &Table{Static: newClassifier(all[:split]), Live: new(TableState)}
	for _, e := range all[split:] {
		tb.Live.Learned.Add(e, 0)
	}
	for range 50 {
		k := randomKey(r)
		var s Scratch
		got, want := s.Find(tb, k), linear(all).find(k)
		if got != want {
			t.Fatalf("seed %d: classifier found %v, linear %v, among %d entries, %d of them learned", seed, describe(got), describe(want), len(all), len(all)-split)
		}
	}
}

func describe(e *Entry) string {
	if e == nil {
		return "nothing"
	}
	return e.Text(flow.Format{})
}

// TestLearnedRemoval checks that a classifier after insertions and removals finds the same
// entries as a newly built one.
func TestLearnedRemoval(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	all := randomEntries(r, 60)
	var l LearnedEntries
	for _, e := range all {
		l.Add(e, 0)
	}
	kept := map[*Entry]bool{}
	for i, e := range all {
		kept[e] = i%3 == 0
	}
	if n := l.RemoveIf(func(e *Entry) bool { return !kept[e] }); len(n) == 0 {
		t.Fatal("nothing was removed")
	}
	var left []*Entry
	for _, e := range all {
		if kept[e] {
			left = append(left, e)
		}
	}
	fresh := newClassifier(left)
	for range 500 {
		k := randomKey(r)
		var a, b Scratch
		if got, want := a.Find(l.current.Load(), k), b.Find(fresh, k); got != want {
			t.Fatalf("seed %d: after removal %v, built anew %v", seed, describe(got), describe(want))
		}
	}
}
