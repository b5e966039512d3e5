package ledger

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// mustEntry reads an entry.
func mustEntry(t testing.TB, line string) *flow.Entry {
	t.Helper()
	e, err := parse.Entry(line, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// partOf is the part of a Pod that wants some lines.
func partOf(t testing.TB, name string, lines ...string) (Part, *Desired) {
	t.Helper()
	p := Part{Object: cluster.Key{Kind: cluster.KindPod, Namespace: "default", Name: name}}
	d := &Desired{}
	for _, l := range lines {
		d.AddEntries(Origin{Object: p.Object}, mustEntry(t, l))
	}
	return p, d
}

// commit makes a step of what parts want and applies it to a switch; it returns
// the bundle as lines.
func commit(t testing.TB, l *Ledger, sw *MemorySwitch, set map[Part]*Desired) []string {
	t.Helper()
	s := l.BeginStep()
	for _, p := range slices.SortedFunc(maps.Keys(set), func(a, b Part) int { return strings.Compare(a.Object.Name, b.Object.Name) }) {
		if err := s.Claim(p, set[p]); err != nil {
			t.Fatalf("%v: %v", p, err)
		}
	}
	b := s.Bundle()
	if err := sw.Apply(b); err != nil {
		t.Fatal(err)
	}
	s.Keep()
	return bundleLines(b)
}

// bundleLines is a bundle as text, sorted.
func bundleLines(b *flow.Bundle) []string {
	lines := []string{}
	for _, e := range b.Add {
		lines = append(lines, "+"+e.String())
	}
	for _, e := range b.Delete {
		lines = append(lines, "-"+e.String())
	}
	slices.Sort(lines)
	return lines
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("bundle:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLedgerConjunctions shares an address between three policies and takes
// them away one by one: the entry has the conjunctions of those that are left.
func TestLedgerConjunctions(t *testing.T) {
	const match = "priority=200,ip,nw_src=10.0.0.1 actions="
	l, sw := New(), NewMemorySwitch()
	a, da := partOf(t, "a", match+"conjunction(7,1/3)")
	b, db := partOf(t, "b", match+"conjunction(3,1/2)")
	c, dc := partOf(t, "c", match+"conjunction(3,1/2)")
	expect(t, commit(t, l, sw, map[Part]*Desired{a: da}), "+ "+match+"conjunction(7,1/3)")
	expect(t, commit(t, l, sw, map[Part]*Desired{b: db, c: dc}), "+ "+match+"conjunction(3,1/2),conjunction(7,1/3)")
	expect(t, commit(t, l, sw, map[Part]*Desired{b: nil})) // c wants the same
	expect(t, commit(t, l, sw, map[Part]*Desired{a: nil}), "+ "+match+"conjunction(3,1/2)")
	expect(t, commit(t, l, sw, map[Part]*Desired{c: nil}), "- "+match+"conjunction(3,1/2)")
	if len(l.rows)+len(l.parts)+len(l.of) != 0 {
		t.Errorf("the ledger is not empty: %d rows, %d parts", len(l.rows), len(l.parts))
	}
}

// TestLedgerShared counts the claims of an entry: it stays until the last part releases it.
func TestLedgerShared(t *testing.T) {
	const line = "priority=200,tcp,reg3=0xa000001 actions=drop"
	l, sw := New(), NewMemorySwitch()
	a, da := partOf(t, "a", line, line) // twice in one part is once
	b, db := partOf(t, "b", line)
	expect(t, commit(t, l, sw, map[Part]*Desired{a: da}), "+ "+line)
	expect(t, commit(t, l, sw, map[Part]*Desired{b: db}))
	expect(t, commit(t, l, sw, map[Part]*Desired{a: nil}))
	expect(t, commit(t, l, sw, map[Part]*Desired{b: nil}), "- "+line)
}

// TestLedgerClash refuses an entry that somebody else wants to do something
// else, names both, and leaves the part as it was.
func TestLedgerClash(t *testing.T) {
	l, sw := New(), NewMemorySwitch()
	a, da := partOf(t, "a", "priority=1,ip actions=drop", "priority=2,ip actions=drop")
	b, db := partOf(t, "b", "priority=3,ip actions=drop")
	commit(t, l, sw, map[Part]*Desired{a: da, b: db})
	_, bad := partOf(t, "b", "priority=4,ip actions=drop", "priority=2,ip actions=NORMAL")
	s := l.BeginStep()
	err := s.Claim(b, bad)
	if err == nil {
		t.Fatal("the clash went unnoticed")
	}
	for _, part := range []string{"Pod/default/a", "Pod/default/b", "NORMAL", "has drop for it", "priority=2,ip"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
	if got := s.Bundle(); !got.Empty() {
		t.Errorf("after the clash, the bundle has %v", bundleLines(got))
	}
	if l.Desired(b) != db {
		t.Error("the part lost what it had")
	}
}

// TestLedgerGroups gives a group one owner.
func TestLedgerGroups(t *testing.T) {
	l, sw := New(), NewMemorySwitch()
	a, da := partOf(t, "a")
	b, db := partOf(t, "b")
	da.AddGroup(Origin{Object: a.Object}, &flow.Group{ID: 9, Type: flow.GroupSelect})
	db.AddGroup(Origin{Object: b.Object}, &flow.Group{ID: 9, Type: flow.GroupAll})
	commit(t, l, sw, map[Part]*Desired{a: da})
	s := l.BeginStep()
	if err := s.Claim(b, db); err == nil || !strings.Contains(err.Error(), "9 belongs to Pod/default/a") {
		t.Errorf("a second owner: %v", err)
	}
	s.Undo()
	commit(t, l, sw, map[Part]*Desired{a: nil, b: db})
	if len(sw.groups) != 1 || sw.groups[9].Type != flow.GroupAll {
		t.Errorf("groups: %v", sw.groups)
	}
	commit(t, l, sw, map[Part]*Desired{b: nil})
	if len(sw.groups) != 0 || len(l.groups) != 0 {
		t.Errorf("groups are left: %v, %v", sw.groups, l.groups)
	}
}

// TestLedgerRandom makes random steps, undoes some, and compares the switch
// with what the parts want.
func TestLedgerRandom(t *testing.T) { testLedgerRandom(t, New()) }

// TestLedgerCollisions does the same where many identities have one hash.
func TestLedgerCollisions(t *testing.T) {
	l := New()
	l.hash = func(e *flow.Entry) uint64 { return uint64(e.Priority) % 3 }
	testLedgerRandom(t, l)
}

func testLedgerRandom(t *testing.T, l *Ledger) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	sw, model := NewMemorySwitch(), map[Part]*Desired{}
	for range 2000 {
		s, next := l.BeginStep(), map[Part]*Desired{}
		for range 1 + rnd.IntN(4) {
			p, d := randomPart(t, rnd)
			if err := s.Claim(p, d); err == nil {
				next[p] = d
			}
		}
		b := s.Bundle()
		if rnd.IntN(5) == 0 {
			s.Undo()
			continue
		}
		if err := sw.Apply(b); err != nil {
			t.Fatal(err)
		}
		s.Keep()
		for p, d := range next {
			model[p] = d
		}
		compareModel(t, sw, model)
	}
	for p := range model {
		model[p] = nil
	}
	commit(t, l, sw, model)
	if len(sw.entries)+len(l.rows)+len(l.parts) != 0 {
		t.Errorf("at the end, there are %d entries, %d rows, %d parts", len(sw.entries), len(l.rows), len(l.parts))
	}
}

// randomPart is one of six parts with some of thirty entries; conjunctions
// carry the part's number, so most of them differ.
func randomPart(t testing.TB, rnd *rand.Rand) (Part, *Desired) {
	n := rnd.IntN(6)
	var lines []string
	for range rnd.IntN(8) {
		switch m := rnd.IntN(10); rnd.IntN(3) {
		case 0:
			lines = append(lines, fmt.Sprintf("priority=100,ip,nw_src=10.0.0.%d actions=conjunction(%d,1/2)", m, n/2))
		case 1:
			lines = append(lines, fmt.Sprintf("priority=200,reg1=%d actions=drop", m))
		case 2:
			lines = append(lines, fmt.Sprintf("priority=%d,reg2=%d actions=output:%d", 300+m, m, n))
		}
	}
	p, d := partOf(t, fmt.Sprint(n), lines...)
	if len(lines) == 0 {
		d = nil
	}
	return p, d
}

// compareModel compares a switch with the union of what parts want, worked out
// on text.
func compareModel(t *testing.T, sw *MemorySwitch, model map[Part]*Desired) {
	t.Helper()
	want := map[string]map[string]bool{} // actions by match
	for _, d := range model {
		if d == nil {
			continue
		}
		for _, w := range d.Entries {
			match, action, _ := strings.Cut(w.Entry.String(), "actions=")
			if want[match] == nil {
				want[match] = map[string]bool{}
			}
			want[match][action] = true
		}
	}
	for _, e := range sw.entries {
		match, actions, _ := strings.Cut(e.String(), "actions=")
		n := strings.Count(actions, "conjunction") + 1
		if strings.HasPrefix(actions, "conjunction") {
			n--
		}
		if len(want[match]) != n {
			t.Fatalf("%s has %s, wanted %v", match, actions, want[match])
		}
		for a := range want[match] {
			if !strings.Contains(actions, a) {
				t.Fatalf("%s lacks %s", match, a)
			}
		}
		delete(want, match)
	}
	if len(want) > 0 {
		t.Fatalf("missing: %v", want)
	}
}
