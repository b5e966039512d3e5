package program

import (
	"testing"

	"github.com/antrail/antrail/flow"
)

// addressEntry is an entry of a destination.
func addressEntry(i int) *flow.Entry {
	var m flow.Match
	m.AddExact(flow.EthType, flow.Value{Lo: 0x800})
	m.AddExact(flow.IPDst, flow.Value{Lo: uint64(i)})
	return &flow.Entry{Table: 1, Priority: 200, Match: m.Mini()}
}

// BenchmarkApplyOne adds one entry to a table of 100,000, and takes it away.
func BenchmarkApplyOne(b *testing.B) {
	p := &Program{}
	var made Compiler
	load := &flow.Bundle{Names: flow.NewNames()}
	for i := range 100_000 {
		load.Add = append(load.Add, addressEntry(i))
	}
	p, err := p.Build(load, &made, 0)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		one := []*flow.Entry{addressEntry(1 << 20)}
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
		load.Add = append(load.Add, addressEntry(i))
	}
	var made Compiler
	for n := 0; n < b.N; n += len(load.Add) {
		if _, err := (&Program{}).Build(load, &made, 0); err != nil {
			b.Fatal(err)
		}
	}
}
