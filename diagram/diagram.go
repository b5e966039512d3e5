// Package diagram draws a pipeline as a map: stages as columns, tables as
// boxes, and between them the ways that flow entries open. Nothing on it is
// drawn by hand: an arrow is there because an entry goes there.
//
//	diagram.go  the map: its tables and edges, made from entries
//	sketch.go   the same in two steps, for counts that move: classes of entries, sums
//	leads.go    where an entry leads
//	maploads.go what passes: totals, or rates between two looks
//	boxlayout.go where boxes stand; box.go what hangs below them
//	route.go    where lines run
//	svg.go      the picture; style.go its colours, for light and dark
//	graphtext.go the same map as DOT, Mermaid and a table; JSON is the Map itself
//
// A Map is a plain value: it goes through JSON and is drawn the same on the
// other side. Nothing here is changed after it was made.
package diagram

import (
	"github.com/antrail/antrail/flow"
)

// Map is a pipeline: tables in the order of their numbers, edges by where they
// begin and end. Packets enter at table First.
type Map struct {
	First  uint8   `json:"first"`
	Tables []Table `json:"tables"`
	Edges  []Edge  `json:"edges"`
}

// Table is a box. Drops, Outputs and PacketIns count the entries that drop,
// that send to a port, and that hand packets to the agent; Packets are those
// that entries of the table took, Dropped those whose way ended here.
type Table struct {
	ID        uint8  `json:"id"`
	Name      string `json:"name"` // the number when it has none
	Stage     string `json:"stage,omitempty"`
	Entries   int    `json:"entries"`
	Drops     int    `json:"drops,omitempty"`
	Outputs   int    `json:"outputs,omitempty"`
	PacketIns int    `json:"packetIns,omitempty"`
	Packets   uint64 `json:"packets"`
	Dropped   uint64 `json:"dropped"`
	Sent      uint64 `json:"sent"` // by entries that send, to ports or to the agent
}

// Edge is a way from one table to another. Entries counts those that open it,
// Packets those that such entries took. A group's buckets share its packets:
// each of their edges has all of them.
type Edge struct {
	From    uint8  `json:"from"`
	To      uint8  `json:"to"`
	Kinds   []Kind `json:"kinds"` // in the order of the constants
	Entries int    `json:"entries"`
	Packets uint64 `json:"packets"`
}

// Kind is how an entry leads to another table.
type Kind string

// Kinds of edges: goto_table, resubmit (a call that comes back), ct(table=), a
// group's bucket, and learn, which puts an entry there and moves no packet.
const (
	Goto     Kind = "goto"
	Resubmit Kind = "resubmit"
	CT       Kind = "ct"
	Group    Kind = "group"
	Learn    Kind = "learn"
)

var kinds = []Kind{Goto, Resubmit, CT, Group, Learn}

// Hop is a table's turn in a packet's way; From is the table that led there,
// To itself for the first.
type Hop struct{ From, To uint8 }

// Build makes the map of a program. stage names the stage of a table, "" for
// none; packets are an entry's count. Both may be nil.
func Build(p *flow.Program, stage func(table string) string, packets func(*flow.Entry) uint64) *Map {
	s := NewSketch(p, stage)
	var counts []Count
	for _, e := range p.Entries {
		class := s.Class(e)
		for len(counts) <= class {
			counts = append(counts, Count{})
		}
		counts[class].Entries++
		if packets != nil {
			counts[class].Packets += packets(e)
		}
	}
	return s.Map(counts)
}

// Table is the table of a number, nil when there is none.
func (m *Map) Table(id uint8) *Table {
	for i := range m.Tables {
		if m.Tables[i].ID == id {
			return &m.Tables[i]
		}
	}
	return nil
}
