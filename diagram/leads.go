package diagram

import (
	"slices"
	"strconv"

	"github.com/antrail/antrail/flow"
)

// leads is what becomes of the packets that an entry takes.
type leads struct {
	to                       map[uint8][]Kind
	drops, outputs, packetIn bool
}

// leads reads an entry's actions. An entry without any drops; one that only
// sets something returns to who asked for its table.
func (b *builder) leads(e *flow.Entry) *leads {
	l := &leads{to: map[uint8][]Kind{}, drops: len(e.Actions) == 0}
	l.actions(b, e.Table, e.Actions, false)
	return l
}

// actions reads a list of actions, of an entry or of a group's bucket.
func (l *leads) actions(b *builder, table uint8, actions []flow.Action, bucket bool) {
	for _, a := range actions {
		switch a := a.(type) {
		case flow.GotoTable:
			l.add(a.Table, Goto)
		case flow.Resubmit:
			l.resubmit(a, table, bucket)
		case *flow.CT:
			if a.Table != flow.NoTable {
				l.add(a.Table, CT)
			}
		case *flow.Learn:
			l.add(a.Table, Learn)
		case flow.GroupAction:
			l.group(b, table, a.ID)
		case flow.Clone:
			l.actions(b, table, a.Actions, bucket)
		case flow.Controller:
			l.packetIn = true
		case flow.Output, flow.OutputReg, flow.OutputInPort, flow.Normal, flow.Flood, flow.All:
			l.outputs = true
		}
	}
}

func (l *leads) resubmit(a flow.Resubmit, table uint8, bucket bool) {
	to, how := a.Table, Resubmit
	if to == flow.CurrentTable {
		to = table
	}
	if bucket {
		how = Group
	}
	l.add(to, how)
}

func (l *leads) group(b *builder, table uint8, id uint32) {
	g := b.groups[id]
	if g == nil {
		return
	}
	for i := range g.Buckets {
		l.actions(b, table, g.Buckets[i].Actions, true)
	}
}

func (l *leads) add(to uint8, how Kind) {
	if !slices.Contains(l.to[to], how) {
		l.to[to] = append(l.to[to], how)
	}
}

// tableName is a table's name, or its number.
func tableName(n *flow.Names, id uint8) string {
	if name := n.Table(id); name != "" {
		return name
	}
	return strconv.Itoa(int(id))
}
