package program

import (
	"testing"

	"github.com/antrail/antrail/flow"
)

// BenchmarkApplyOne adds one entry to a table of 100,000, and takes it away.
func BenchmarkApplyOne(b *testing.B) {
	entryFor := func(i int) *flow.Entry {
		e := &flow.Entry{Table: 1, Priority: 200}
		e.Match.AddExact(flow.EthType, flow.Value{Lo: 0x800})
		e.Match.AddExact(flow.IPDst, flow.Value{Lo: uint64(i)})
		return e
	}
	p := &Program{}
	var made Compiler
	load := &flow.Bundle{Names: flow.NewNames()}
	for i := range 100_000 {
		load.Add = append(load.Add, entryFor(i))
	}
	p, err := p.Build(load, &made, 0)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		one := []*flow.Entry{entryFor(1 << 20)}
		for _, change := range []*flow.Bundle{{Add: one}, {Delete: one}} {
			if p, err = p.Build(change, &made, 0); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkApplyMany loads a table of 100,000 in one bundle; the figure is per
// entry.
func BenchmarkApplyMany(b *testing.B) {
	load := &flow.Bundle{Names: flow.NewNames()}
	for i := range 100_000 {
		e := &flow.Entry{Table: 1, Priority: 200}
		e.Match.AddExact(flow.EthType, flow.Value{Lo: 0x800})
		e.Match.AddExact(flow.IPDst, flow.Value{Lo: uint64(i)})
		load.Add = append(load.Add, e)
	}
	var made Compiler
	for n := 0; n < b.N; n += len(load.Add) {
		if _, err := (&Program{}).Build(load, &made, 0); err != nil {
			b.Fatal(err)
		}
	}
}
