package diagram

import (
	"slices"

	"github.com/antrail/antrail/flow"
)

// Sketch is a map before anything is counted. Entries of a table that lead to the same places
// are one class. A map needs only the sums of classes, so a caller that draws it often asks
// once for each entry's class. It is for one goroutine.
type Sketch struct {
	names   *flow.Names
	stage   func(string) string
	groups  map[uint32]*flow.Group
	first   uint8
	classes []leads
	index   map[string]int // by their keys
	read    leads          // of the last entry
	key     []byte
}

// Count is the number of a class's entries, and of their packets.
type Count struct{ Entries, Packets uint64 }

// NewSketch begins the map of a program, without its entries. stage is that of Build.
func NewSketch(p *flow.Program, stage func(table string) string) *Sketch {
	s := &Sketch{names: p.Names, stage: stage, groups: map[uint32]*flow.Group{}, first: p.First, index: map[string]int{}}
	for _, g := range p.Groups {
		s.groups[g.ID] = g
	}
	return s
}

// Class is the class of an entry. Classes are numbered from 0 as they appear.
func (s *Sketch) Class(e *flow.Entry) int {
	s.read.read(s, e)
	s.key = s.read.key(s.key[:0])
	if i, ok := s.index[string(s.key)]; ok {
		return i
	}
	l := s.read
	l.to = slices.Clone(l.to)
	s.classes = append(s.classes, l)
	s.index[string(s.key)] = len(s.classes) - 1
	return len(s.classes) - 1
}

// Map is the map with the counts of classes. Missing counts are 0.
func (s *Sketch) Map(counts []Count) *Map {
	b := builder{s, map[uint8]*Table{}, map[[2]uint8]*Edge{}, map[[2]uint8]kindSet{}}
	for id := range flow.NoTable {
		if s.names.Table(uint8(id)) != "" {
			b.table(uint8(id))
		}
	}
	for i, c := range counts {
		if c.Entries > 0 {
			b.class(&s.classes[i], c)
		}
	}
	return b.finish()
}

// builder collects tables and edges.
type builder struct {
	*Sketch
	tables map[uint8]*Table
	edges  map[[2]uint8]*Edge
	kinds  map[[2]uint8]kindSet
}

// table is the table with a number. It makes the table at the first call.
func (b *builder) table(id uint8) *Table {
	if t := b.tables[id]; t != nil {
		return t
	}
	t := &Table{ID: id, Name: tableName(b.names, id)}
	if b.stage != nil {
		t.Stage = b.stage(t.Name)
	}
	b.tables[id] = t
	return t
}

func (b *builder) class(l *leads, c Count) {
	t, entries := b.table(l.table), int(c.Entries)
	t.Entries += entries
	t.Packets += c.Packets
	if l.drops {
		t.Drops += entries
		t.Dropped += c.Packets
	}
	if l.outputs {
		t.Outputs += entries
	}
	if l.packetIn {
		t.PacketIns += entries
	}
	if l.outputs || l.packetIn {
		t.Sent += c.Packets
	}
	for _, to := range l.to {
		b.edge([2]uint8{l.table, to.table}, to.how, c)
	}
}

func (b *builder) edge(between [2]uint8, how kindSet, c Count) {
	b.table(between[1])
	e := b.edges[between]
	if e == nil {
		e = &Edge{From: between[0], To: between[1]}
		b.edges[between] = e
	}
	e.Entries += int(c.Entries)
	if how != onlyLearn {
		e.Packets += c.Packets
	}
	b.kinds[between] |= how
}

func (b *builder) finish() *Map {
	m := &Map{First: b.first}
	for _, t := range b.tables {
		m.Tables = append(m.Tables, *t)
	}
	slices.SortFunc(m.Tables, func(a, b Table) int { return int(a.ID) - int(b.ID) })
	for between, e := range b.edges {
		e.Kinds = b.kinds[between].list()
		m.Edges = append(m.Edges, *e)
	}
	slices.SortFunc(m.Edges, func(a, b Edge) int { return int(a.From)<<8 + int(a.To) - int(b.From)<<8 - int(b.To) })
	return m
}
