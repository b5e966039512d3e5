package program

import (
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// clauseEntry is an entry of an address with a list of actions.
func clauseEntry(address uint64, actions []flow.Action) *flow.Entry {
	var m flow.Match
	m.AddExact(flow.EthType, flow.Value{Lo: 0x800})
	m.AddExact(flow.IPSrc, flow.Value{Lo: address})
	return &flow.Entry{Table: 1, Priority: 200, Match: m.Mini(), Actions: actions}
}

func conjunctions(n int) (all []flow.Action) {
	for i := range n {
		all = append(all, flow.Conjunction{ID: uint32(n - i), Clause: 1, N: 2})
	}
	return all
}

// BenchmarkApplyClause adds an address to ten thousand others which as many
// rules name, and takes it away again.
func BenchmarkApplyClause(b *testing.B) {
	list, made := conjunctions(10_000), &Compiler{}
	load := &flow.Bundle{Names: flow.NewNames()}
	for i := range 10_000 {
		load.Add = append(load.Add, clauseEntry(uint64(i), list))
	}
	p, err := (&Program{}).Build(load, made, 0)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		one := []*flow.Entry{clauseEntry(1<<20, list)}
		for _, change := range []*flow.Bundle{{Add: one}, {Delete: one}} {
			if p, err = p.Build(change, made, 0); err != nil {
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
	actions, err := parse.Actions(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := flow.ActionsText(actions, flow.Format{})
	shown := CompileActions(actions)
	for i, a := range shown {
		shown[i] = AsWritten(a)
	}
	if got := flow.ActionsText(shown, flow.Format{}); got != want {
		t.Errorf("shown as\n%s\nwant\n%s", got, want)
	}
}
