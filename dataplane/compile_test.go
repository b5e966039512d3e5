package dataplane

import (
	"runtime"
	"testing"

	"github.com/antrail/antrail/flow"
)

// clauseEntry is an entry of an address with a list of actions.
func clauseEntry(address uint64, actions []flow.Action) *flow.Entry {
	e := &flow.Entry{Table: 1, Priority: 200, Actions: actions}
	e.Match.AddExact(flow.EthType, flow.Value{Lo: 0x800})
	e.Match.AddExact(flow.IPSrc, flow.Value{Lo: address})
	return e
}

func conjunctions(n int) (all []flow.Action) {
	for i := range n {
		all = append(all, flow.Conjunction{ID: uint32(n - i), Clause: 1, N: 2})
	}
	return all
}

// TestSharedClauses: entries with one list of actions have one compiled list,
// whenever they come, and a list of its own when the actions are others.
func TestSharedClauses(t *testing.T) {
	list, made := conjunctions(100), &compiler{}
	first := made.entry(clauseEntry(1, list), 0)
	for i := range 10 * minSweep {
		made.entry(clauseEntry(uint64(i), conjunctions(10)), 0) // so that lists are swept out
	}
	runtime.GC()
	again := made.entry(clauseEntry(2, list), 0)
	if first.clauses == nil || first.clauses != again.clauses {
		t.Error("two entries with one list of actions have two compiled ones")
	}
	if len(first.actions) != 0 || len(first.clauses.actions) != 100 || first.clauses.actions[0].ID != 1 {
		t.Errorf("the entry has %d actions and %d conjunctions, of which %v is the first, want 0 and 100 from id 1 on",
			len(first.actions), len(first.clauses.actions), first.clauses.actions[0])
	}
	if shorter := made.entry(clauseEntry(3, list[:50]), 0); len(shorter.clauses.actions) != 50 || shorter.clauses.actions[0].ID != 51 {
		t.Errorf("the first half of the list has %d conjunctions from %v on", len(shorter.clauses.actions), shorter.clauses.actions[0])
	}
	if other := made.entry(clauseEntry(4, conjunctions(100)), 0); other.clauses == first.clauses {
		t.Error("entries with two lists have one compiled one")
	}
	if hard := made.entry(clauseEntry(5, []flow.Action{flow.Output{Port: 1}}), 0); hard.clauses != nil || len(hard.actions) != 1 {
		t.Error("a hard entry has clauses, or not its action")
	}
	runtime.KeepAlive(first)
}

// TestClauseListsForget: lists that no entry has any more do not gather.
func TestClauseListsForget(t *testing.T) {
	made := &compiler{}
	for range 20 {
		for i := range minSweep {
			made.entry(clauseEntry(uint64(i), conjunctions(10)), 0)
		}
		runtime.GC()
	}
	if n := len(made.shared.known); n > 4*minSweep {
		t.Errorf("%d lists are known, of which none is in use", n)
	}
}

// BenchmarkApplyClause adds an address to ten thousand others which as many
// rules name, and takes it away again.
func BenchmarkApplyClause(b *testing.B) {
	list, made := conjunctions(10_000), &compiler{}
	load := &Bundle{Names: flow.NewNames()}
	for i := range 10_000 {
		load.Add = append(load.Add, clauseEntry(uint64(i), list))
	}
	p, err := (&program{}).build(load, made, 0)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		one := []*flow.Entry{clauseEntry(1<<20, list)}
		for _, change := range []*Bundle{{Add: one}, {Delete: one}} {
			if p, err = p.build(change, made, 0); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// TestCompiledActionsAreShownAsWritten: a trace shows each action by the text that it
// was parsed from, whatever packets run in its place.
func TestCompiledActionsAreShownAsWritten(t *testing.T) {
	const text = "set_field:0x3/0xf->reg0,load:0x1->NXM_NX_REG4[16],set_field:aa:bb:cc:dd:ee:ff->eth_dst,move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],output:NXM_NX_REG1[]," +
		"clone(set_field:0x1->reg2,output:NXM_NX_REG2[0..7],output:3),ct(commit,table=2,zone=65520,exec(set_field:0x1/0x1->ct_mark,move:NXM_NX_REG0[0..3]->NXM_NX_CT_MARK[0..3]))"
	actions, err := flow.ParseActions(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := flow.ActionsText(actions, nil)
	shown := compiled(actions)
	for i, a := range shown {
		shown[i] = asWritten(a)
	}
	if got := flow.ActionsText(shown, nil); got != want {
		t.Errorf("shown as\n%s\nwant\n%s", got, want)
	}
}
