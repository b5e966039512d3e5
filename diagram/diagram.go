// Package diagram draws a pipeline as a map: stages are columns, tables are boxes, and arrows
// are the ways that flow entries open. Each arrow comes from an entry.
//
//	diagram.go  the map: its tables and edges, made from entries
//	sketch.go   the map in two steps, for changing counters: classes of entries, sums
//	leads.go    where an entry leads
//	maploads.go traffic: totals, or rates between two readings
//	boxlayout.go positions of boxes; box.go the marks below them
//	route.go    routes of lines
//	svg.go      the picture; style.go its colours, for light and dark
//	graphtext.go the same map as DOT, Mermaid and a table; JSON is the Map itself
//
// A Map is a plain value: it goes through JSON and is drawn the same on the other side. Nothing
// here changes after it was made.
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

// Table is a box. Drops, Outputs and PacketIns count the entries that drop, send to a port, or
// send to the agent. Packets counts the packets that entries of the table matched, Dropped
// those that were dropped here.
type Table struct {
	ID        uint8  `json:"id"`
	Name      string `json:"name"` // the number if it has no name
	Stage     string `json:"stage,omitempty"`
	Entries   int    `json:"entries"`
	Drops     int    `json:"drops,omitempty"`
	Outputs   int    `json:"outputs,omitempty"`
	PacketIns int    `json:"packetIns,omitempty"`
	Packets   uint64 `json:"packets"`
	Dropped   uint64 `json:"dropped"`
	Sent      uint64 `json:"sent"` // by entries that send, to ports or to the agent
}

// Edge is a way from one table to another. Entries counts the entries that open it, Packets
// their packets. Each edge of a group's buckets has all packets of the group.
type Edge struct {
	From    uint8  `json:"from"`
	To      uint8  `json:"to"`
	Kinds   []Kind `json:"kinds"` // in the order of the constants
	Entries int    `json:"entries"`
	Packets uint64 `json:"packets"`
}

// Kind is how an entry leads to another table.
type Kind string

// Kinds of edges: goto_table, resubmit (a call that returns), ct(table=), a group's bucket, and
// learn, which adds an entry there and moves no packet.
const (
	Goto     Kind = "goto"
	Resubmit Kind = "resubmit"
	CT       Kind = "ct"
	Group    Kind = "group"
	Learn    Kind = "learn"
)

var kinds = []Kind{Goto, Resubmit, CT, Group, Learn}

// Hop is a step of a packet's walk. From is the table that led to To; for the first, To itself.
type Hop struct{ From, To uint8 }

// Build makes the map of a program. stage is the stage of a table, "" for none. packets is the
// counter of an entry. Both may be nil.
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
