package ledger

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/flow"
)

// An object wants entries, groups and meters: its Desired. An object with several parts has
// one Desired for each, so a change of one part costs that part only. A policy has one part
// for every address of a large set; a Service has one part.
//
// Two objects may want the same entry (same table, priority and match):
//
//   - If both want it to do the same, it stays as long as one of them wants it. Two
//     Services with one endpoint share such an entry.
//   - If both want only conjunctions, the entry has the conjunctions of both. Two policies
//     that name an address share such an entry.
//   - All other cases are a clash: the ledger refuses the later object.

// Origin says where an entry comes from: an object and the place in it.
type Origin struct {
	Object cluster.Key
	// Field is the part of the object that asked for the entry, as a path in its manifest:
	// spec.ports[0], spec.ingress[1].from. If it is empty, the object's existence suffices.
	Field string
	// Rule is the name of the policy rule that Field is in; often empty.
	Rule string
}

// String gives the object and the field: Service/default/web spec.ports[0].
func (o Origin) String() string {
	s := o.Object.String()
	if o.Field != "" {
		s += " " + o.Field
	}
	if o.Rule != "" {
		s += fmt.Sprintf(" (%s)", o.Rule)
	}
	return s
}

// Part names the unit that is installed and removed as a whole. Most objects have a single
// part, whose Name is empty.
type Part struct {
	Object cluster.Key
	Name   string
}

// Wanted is an entry that a part wants, and where it comes from. Entries of one place share
// the Origin.
type Wanted struct {
	Entry  *flow.Entry
	Origin *Origin
}

// WantedGroup is a group that a part wants. A group has one owner.
type WantedGroup struct {
	Group  *flow.Group
	Origin Origin
}

// Desired is what a part of an object wants of the switch. The caller does not write it after
// Claim. A later Desired of the part should hold the same pointers for what did not change:
// equal pointers are compared first.
type Desired struct {
	Entries []Wanted
	Groups  []WantedGroup
	Meters  []*flow.Meter
	// Clauses are clauses of a rule that entries of other parts fulfil.
	Clauses []SharedClause
	// Shared makes the part a set: its entries do what the Clauses that name it say. Their
	// own actions have no effect (sharedclause.go).
	Shared bool
	// Owns are addresses that belong to the object. The switch removes the connections of
	// an address before it gets the entries of a new owner.
	Owns []netip.Addr
	// Paths are the ways of connections that have no end of their own (UDP). The switch
	// removes the connections of a path that goes.
	Paths []Path
	// Node is what the part wants of the Node, outside the switch.
	Node NodeSide
}

// Path leads from an address of a Service to an endpoint.
type Path struct {
	Proto    cluster.Protocol
	Service  netip.AddrPort // address invalid: a NodePort, any address of the Node
	Endpoint netip.AddrPort
}

// AddEntries appends entries that come from one place.
func (d *Desired) AddEntries(o Origin, entries ...*flow.Entry) {
	for _, e := range entries {
		d.Entries = append(d.Entries, Wanted{e, &o})
	}
}

// AddGroup appends a group.
func (d *Desired) AddGroup(o Origin, g *flow.Group) {
	d.Groups = append(d.Groups, WantedGroup{g, o})
}

// Same reports whether two parts want the same, origins included. Two nil ones want the same.
func Same(a, b *Desired) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.EqualFunc(a.Entries, b.Entries, func(x, y Wanted) bool {
		return x == y || *x.Origin == *y.Origin && sameEntry(x.Entry, y.Entry)
	}) && reflect.DeepEqual(a.Groups, b.Groups) && reflect.DeepEqual(a.Meters, b.Meters) &&
		a.Shared == b.Shared && slices.EqualFunc(a.Clauses, b.Clauses, SharedClause.equal) &&
		slices.Equal(a.Owns, b.Owns) && slices.Equal(a.Paths, b.Paths) && a.Node.Same(&b.Node)
}

// sameEntry reports whether two entries are equal in everything.
func sameEntry(a, b *flow.Entry) bool {
	return a == b || sameIdentity(a, b) && sameEffect(a, b)
}

// sameEffect reports whether two entries of one identity do the same.
func sameEffect(a, b *flow.Entry) bool {
	return a.Cookie == b.Cookie && a.IdleTimeout == b.IdleTimeout && a.HardTimeout == b.HardTimeout &&
		a.SendFlowRem == b.SendFlowRem && sameActions(a.Actions, b.Actions)
}

// sameActions compares actions. Entries of a set share one slice. Long lists of other entries
// are conjunctions, which need no reflection.
func sameActions(a, b []flow.Action) bool {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
		return true
	}
	return slices.EqualFunc(a, b, func(x, y flow.Action) bool {
		if c, ok := x.(flow.Conjunction); ok {
			return c == y
		}
		return reflect.DeepEqual(x, y)
	})
}

// onlyConjunctions reports whether all actions of an entry are conjunctions.
func onlyConjunctions(e *flow.Entry) bool {
	for _, a := range e.Actions {
		if _, ok := a.(flow.Conjunction); !ok {
			return false
		}
	}
	return len(e.Actions) > 0
}

// onlyIn returns the entries of a that are not in b, by pointer. Long lists usually agree at
// both ends, which it skips first.
func onlyIn(a, b []Wanted) []Wanted {
	for len(a) > 0 && len(b) > 0 && a[0].Entry == b[0].Entry {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1].Entry == b[len(b)-1].Entry {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 || len(b) == 0 {
		return a
	}
	there := make(map[*flow.Entry]bool, len(b))
	for _, w := range b {
		there[w.Entry] = true
	}
	var rest []Wanted
	for _, w := range a {
		if !there[w.Entry] {
			rest = append(rest, w)
		}
	}
	return rest
}

// AddressOwner is an address and the object that owns it.
type AddressOwner struct {
	Addr  netip.Addr
	Owner cluster.Key
}

// State is the progress of an object.
type State string

// States of an object: in the switch; not yet, with the reason; not accepted, with the reason.
const (
	Installed State = "installed"
	Pending   State = "pending"
	Refused   State = "refused"
)
