package lookup

import (
	"runtime"
	"testing"

	"github.com/antrail/antrail/flow"
)

// clauseActions are conjunctions with ids from n down to 1.
func clauseActions(n int) (all []flow.Action) {
	for i := range n {
		all = append(all, flow.Conjunction{ID: uint32(n - i), Clause: 1, N: 2})
	}
	return all
}

// TestSharedClauses: one list of actions gives one Clauses whenever it comes, and another
// list gives another.
func TestSharedClauses(t *testing.T) {
	list, lists := clauseActions(100), &ClauseLists{}
	first := lists.Of(list)
	for range 10 * minSweep {
		lists.Of(clauseActions(10)) // so that lists are swept out
	}
	runtime.GC()
	if again := lists.Of(list); first == nil || first != again {
		t.Error("one list of actions has two Clauses")
	}
	if len(first.actions) != 100 || first.actions[0].ID != 1 {
		t.Errorf("%d conjunctions, of which %v is the first, want 100 from id 1 on", len(first.actions), first.actions[0])
	}
	if shorter := lists.Of(list[:50]); len(shorter.actions) != 50 || shorter.actions[0].ID != 51 {
		t.Errorf("the first half of the list has %d conjunctions from %v on", len(shorter.actions), shorter.actions[0])
	}
	if other := lists.Of(clauseActions(100)); other == first {
		t.Error("two lists have one Clauses")
	}
	if hard := lists.Of([]flow.Action{flow.Output{Port: 1}}); hard != nil {
		t.Error("a hard entry has clauses")
	}
	runtime.KeepAlive(first)
}

// TestClauseListsForget: lists that no entry has any more do not gather.
func TestClauseListsForget(t *testing.T) {
	lists := &ClauseLists{}
	for range 20 {
		for range minSweep {
			lists.Of(clauseActions(10))
		}
		runtime.GC()
	}
	if n := len(lists.known); n > 4*minSweep {
		t.Errorf("%d lists are known, of which none is in use", n)
	}
}
