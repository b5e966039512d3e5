package diagram

import (
	"slices"
	"strconv"

	"github.com/antrail/antrail/flow"
)

// leads is where entries of a table lead.
type leads struct {
	table                    uint8
	drops, outputs, packetIn bool
	to                       []lead
}

// lead is the ways to another table, by kind.
type lead struct {
	table uint8
	how   kindSet
}

// kindSet has a bit for each of kinds.
type kindSet uint8

// onlyLearn is the kind of an edge without packets.
var onlyLearn = kindOf(Learn)

func kindOf(k Kind) kindSet { return 1 << slices.Index(kinds, k) }

// list has the kinds in the order of the constants.
func (s kindSet) list() (all []Kind) {
	for i, k := range kinds {
		if s&(1<<i) != 0 {
			all = append(all, k)
		}
	}
	return all
}

// read reads an entry's actions. An entry without actions drops. One that only sets fields
// returns to the table that resubmitted.
func (l *leads) read(s *Sketch, e *flow.Entry) {
	*l = leads{table: e.Table, drops: len(e.Actions) == 0, to: l.to[:0]}
	l.actions(s, e.Actions, false)
}

// actions reads the actions of an entry or of a group's bucket.
func (l *leads) actions(s *Sketch, actions []flow.Action, bucket bool) {
	for _, a := range actions {
		switch a := a.(type) {
		case flow.GotoTable:
			l.add(a.Table, Goto)
		case flow.Resubmit:
			l.resubmit(a, bucket)
		case *flow.CT:
			if a.Table != flow.NoTable {
				l.add(a.Table, CT)
			}
		case *flow.Learn:
			l.add(a.Table, Learn)
		case flow.GroupAction:
			l.group(s, a.ID)
		case flow.Clone:
			l.actions(s, a.Actions, bucket)
		case flow.Controller:
			l.packetIn = true
		case flow.Output, flow.OutputReg, flow.OutputInPort, flow.Normal, flow.Flood, flow.All:
			l.outputs = true
		}
	}
}

func (l *leads) resubmit(a flow.Resubmit, bucket bool) {
	to, how := a.Table, Resubmit
	if to == flow.CurrentTable {
		to = l.table
	}
	if bucket {
		how = Group
	}
	l.add(to, how)
}

func (l *leads) group(s *Sketch, id uint32) {
	g := s.groups[id]
	if g == nil {
		return
	}
	for i := range g.Buckets {
		l.actions(s, g.Buckets[i].Actions, true)
	}
}

func (l *leads) add(to uint8, how Kind) {
	for i := range l.to {
		if l.to[i].table == to {
			l.to[i].how |= kindOf(how)
			return
		}
	}
	l.to = append(l.to, lead{to, kindOf(how)})
}

// key is equal for entries that lead to the same places in the same order.
func (l *leads) key(b []byte) []byte {
	b = append(b, l.table, 0)
	for i, is := range []bool{l.drops, l.outputs, l.packetIn} {
		if is {
			b[len(b)-1] |= 1 << i
		}
	}
	for _, to := range l.to {
		b = append(b, to.table, uint8(to.how))
	}
	return b
}

// tableName is a table's name, or its number.
func tableName(n *flow.Names, id uint8) string {
	if name := n.Table(id); name != "" {
		return name
	}
	return strconv.Itoa(int(id))
}
