package ledger

import (
	"iter"
	"maps"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/flow"
)

// Questions about owners: the owner of an entry, group or meter, and the entries of an object.

// Entry is the entry that the switch has, or nil.
func (r *Row) Entry() *flow.Entry { return r.has }

// Origins yields where the claims of a row come from. For an entry of a set these are the
// clauses of the rules that share it.
func (r *Row) Origins() iter.Seq[Origin] {
	return func(yield func(Origin) bool) {
		for _, c := range r.claims {
			if c.by.set == nil {
				if !yield(*c.Origin) {
					return
				}
				continue
			}
			for _, clause := range c.by.set.clauses {
				if !yield(*clause.Origin) {
					return
				}
			}
		}
	}
}

// Installed is the row of an entry's identity, or nil if the switch has no entry of it.
func (l *Ledger) Installed(e *flow.Entry) *Row {
	if r := l.find(e); r != nil && r.has != nil {
		return r
	}
	return nil
}

// All yields the rows of all entries that the switch has.
func (l *Ledger) All() iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		for _, h := range slices.Sorted(maps.Keys(l.rows)) {
			for r := l.rows[h]; r != nil; r = r.next {
				if r.has != nil && !yield(r) {
					return
				}
			}
		}
	}
}

// RowsOf returns the rows of the entries in the switch that an object wants, each once.
func (l *Ledger) RowsOf(k cluster.Key) map[*Row]bool {
	rows := map[*Row]bool{}
	add := func(entries []Wanted) {
		for _, w := range entries {
			if row := l.Installed(w.Entry); row != nil {
				rows[row] = true
			}
		}
	}
	for _, d := range l.PartsOf(k) {
		add(d.Entries)
		for _, clause := range d.Clauses {
			if by := l.Desired(clause.By); by != nil {
				add(by.Entries)
			}
		}
	}
	return rows
}

// Objects yields the objects that claim anything.
func (l *Ledger) Objects() iter.Seq[cluster.Key] { return maps.Keys(l.of) }

// PartsOf yields the parts of an object by name, with what each claims.
func (l *Ledger) PartsOf(k cluster.Key) iter.Seq2[string, *Desired] {
	return func(yield func(string, *Desired) bool) {
		for name, c := range l.of[k] {
			if !yield(name, c.desired) {
				return
			}
		}
	}
}

// PartNames returns the names of an object's parts, sorted.
func (l *Ledger) PartNames(k cluster.Key) []string { return slices.Sorted(maps.Keys(l.of[k])) }

// GroupOwner is the part that claims a group, with what it claims; nil if no part does.
func (l *Ledger) GroupOwner(id uint32) (Part, *Desired) { return ownerOf(l.groups[id]) }

// MeterOwner is the part that claims a meter, with what it claims; nil if no part does.
func (l *Ledger) MeterOwner(id uint32) (Part, *Desired) { return ownerOf(l.meters[id]) }

func ownerOf[T any](r *idRow[T]) (Part, *Desired) {
	if r == nil || r.by == nil {
		return Part{}, nil
	}
	return r.by.part, r.by.desired
}

// Owners yields the addresses that objects own (Desired.Owns).
func (l *Ledger) Owners() iter.Seq[AddressOwner] {
	return func(yield func(AddressOwner) bool) {
		for p, c := range l.parts {
			for _, a := range c.desired.Owns {
				if !yield(AddressOwner{a, p.Object}) {
					return
				}
			}
		}
	}
}
