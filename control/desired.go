package control

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/antrail/antrail/flow"
)

// What the objects of a cluster want of the switch, and what the switch has.
//
// An object wants entries, groups and meters: its Desired. It may want them in
// several parts, so that a change of one part costs no more than that part: a
// policy has one part for every address of a large set, a Service has one.
//
// Two objects may want the same entry (same table, priority and match):
//
//   - both want it alike: it is there as long as one of them wants it, as the
//     entry that translates to an endpoint of two Services;
//   - both want nothing but conjunctions of it: it has the conjunctions of
//     both, as the address that two policies name;
//   - anything else is a clash: the object that came later is refused.
//
// The ledger (ledger.go) counts who wants what.

// Origin says where an entry comes from: an object and the place in it.
type Origin struct {
	Object Key
	// Field is the part of the object that asked for the entry, as a path in
	// its manifest: spec.ports[0], spec.ingress[1].from. Empty: the object
	// being there is enough.
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

// Part names what is installed and taken away as one. Most objects have a
// single part, whose Name is empty.
type Part struct {
	Object Key
	Name   string
}

// Wanted is an entry that somebody wants, and where it comes from. Entries of
// one place share the Origin.
type Wanted struct {
	Entry  *flow.Entry
	Origin *Origin
}

// WantedGroup is a group that somebody wants. A group has one owner.
type WantedGroup struct {
	Group  *flow.Group
	Origin Origin
}

// Desired is what a part of an object wants of the switch. It is not written
// after it was handed over. A later Desired of the same part does well to hold
// the same pointers for what did not change: that is found without looking
// closer.
type Desired struct {
	Entries []Wanted
	Groups  []WantedGroup
	Meters  []*flow.Meter
	// Clauses are clauses of a rule that entries of other parts fulfil.
	Clauses []SharedClause
	// Shared makes the part a set: its entries do what the Clauses that name
	// it say, and their own actions do not matter (ledger_shared.go).
	Shared bool
	// Owns are addresses that belong to the object from now on: connections
	// of an address are forgotten before its new owner's entries are in.
	Owns []netip.Addr
	// Paths are the ways of connections without an end of their own (UDP):
	// connections of a path that goes are forgotten.
	Paths []Path
	// Node is what goes with it outside the switch.
	Node NodeSide
}

// Path is the way from an address of a Service to an endpoint.
type Path struct {
	Proto    Protocol
	Service  netip.AddrPort // the address not valid: a NodePort, any address of the Node
	Endpoint netip.AddrPort
}

// add appends entries that come from one place.
func (d *Desired) add(o Origin, entries ...*flow.Entry) {
	for _, e := range entries {
		d.Entries = append(d.Entries, Wanted{e, &o})
	}
}

// addGroup appends a group.
func (d *Desired) addGroup(o Origin, g *flow.Group) {
	d.Groups = append(d.Groups, WantedGroup{g, o})
}

// sameDesired reports whether two parts want the same, origins included. Two
// nil ones do.
func sameDesired(a, b *Desired) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.EqualFunc(a.Entries, b.Entries, func(x, y Wanted) bool {
		return x == y || *x.Origin == *y.Origin && sameEntry(x.Entry, y.Entry)
	}) && reflect.DeepEqual(a.Groups, b.Groups) && reflect.DeepEqual(a.Meters, b.Meters) &&
		a.Shared == b.Shared && slices.EqualFunc(a.Clauses, b.Clauses, SharedClause.equal) &&
		slices.Equal(a.Owns, b.Owns) && slices.Equal(a.Paths, b.Paths) && a.Node.same(&b.Node)
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

// sameActions compares actions. Entries of a set have one slice; what is left of
// long lists is conjunctions.
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

// onlyConjunctions reports whether an entry does nothing but take part in
// conjunctive matches.
func onlyConjunctions(e *flow.Entry) bool {
	for _, a := range e.Actions {
		if _, ok := a.(flow.Conjunction); !ok {
			return false
		}
	}
	return len(e.Actions) > 0
}

// onlyIn is what of a is not in b, by pointers. Most of a long list is usually
// the same on both ends.
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

// wants collects what changes while the objects of a new snapshot are looked
// at: each part that was looked at, and what is to be said of its object. It
// is how the builders (pods.go, services.go, policies.go …) speak to the
// reconciler.
type wants struct {
	parts map[Part]*Desired // nil: the part goes
	notes map[Key]note      // the last word on objects that were looked at
	order []Part
}

// note is what a builder says of an object besides its entries.
type note struct {
	state  State
	reason string
}

func newWants() *wants {
	return &wants{parts: map[Part]*Desired{}, notes: map[Key]note{}}
}

// want says what a part wants now; nil takes it away.
func (w *wants) want(p Part, d *Desired) {
	if _, seen := w.parts[p]; !seen {
		w.order = append(w.order, p)
	}
	w.parts[p] = d
}

// fine says that nothing keeps an object from being installed.
func (w *wants) fine(k Key) { w.notes[k] = note{state: Installed} }

// ignore says that an object has nothing in the switch, and why that is right.
func (w *wants) ignore(k Key, why string) { w.notes[k] = note{Installed, why} }

// hold says what an object is waiting for.
func (w *wants) hold(k Key, format string, args ...any) {
	w.notes[k] = note{Pending, fmt.Sprintf(format, args...)}
}

// refuse says why an object is not taken.
func (w *wants) refuse(k Key, format string, args ...any) {
	w.notes[k] = note{Refused, fmt.Sprintf(format, args...)}
}
