package flow_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// randomMatch matches bits of a few fields.
func randomMatch(r *rand.Rand) (m flow.Match) {
	for range r.IntN(6) {
		id := flow.Reg0 + flow.FieldID(r.IntN(int(flow.NumFields-flow.Reg0)))
		m.Add(id, flow.Value{Hi: r.Uint64(), Lo: r.Uint64()}, flow.Value{Hi: r.Uint64(), Lo: r.Uint64() >> r.IntN(64)})
	}
	return m
}

// TestMinimatch: a short match equals the whole one, also in a room of many.
func TestMinimatch(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	var room flow.MinimatchRoom
	var all []flow.Match
	var minis []flow.Minimatch
	for range 2000 {
		m := randomMatch(r)
		all, minis = append(all, m), append(minis, room.Mini(&m))
	}
	for i, m := range all {
		mini := minis[i]
		if got := mini.Expand(); got != m || mini != m.Mini() || mini.Value() != m.Value || mini.Mask().Key() != m.Mask || mini.IsAny() != m.IsAny() {
			t.Fatalf("seed %d: %s comes back as %s", seed, &m, &got)
		}
		for id := flow.Reg0; id < flow.NumFields; id++ {
			v, mask := m.Get(id)
			if gotV, gotMask := mini.Get(id); gotV != v || gotMask != mask {
				t.Fatalf("seed %d: %s of %s is %x/%x", seed, flow.FieldByID(id).Name, &m, gotV, gotMask)
			}
		}
		for w := range flow.KeyWords {
			if mini.Word(w) != m.Value.Word(w) {
				t.Fatalf("seed %d: word %d of %s", seed, w, &m)
			}
		}
		other := all[r.IntN(len(all))]
		if (mini == other.Mini()) != (m == other) || (mini.Mask() == other.Mini().Mask()) != (m.Mask == other.Mask) {
			t.Fatalf("seed %d: %s and %s are compared wrongly", seed, &m, &other)
		}
		if mini.Matches(&other.Value) != m.Matches(&other.Value) || mini.Within(&other) != m.Within(&other) || mini.String() != m.String() {
			t.Fatalf("seed %d: %s is another match in short", seed, &m)
		}
	}
}

// TestEntriesAreSmall: an entry takes less than a quarter of the bytes of a whole match.
func TestEntriesAreSmall(t *testing.T) {
	const line, many = "table=12,priority=100,tcp,nw_src=10.0.0.1,tp_dst=80 actions=drop", 20_000
	p := parse.NewParser(nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range many {
		if _, err := p.Entry(line); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / many; per > 156 {
		t.Errorf("an entry takes %d bytes, want at most 156", per)
	}
}
