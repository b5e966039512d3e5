package store

import (
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

// eachRef calls f with each reference of a row, weak or strong: its column, the type of the
// reference, and the UUID.
func eachRef(r *Row, f func(place int, to *datum.Base, id datum.ID)) {
	if r == nil {
		return
	}
	for _, i := range r.Table.Refs {
		t := &r.Table.Columns[i].Type
		for n, k := range r.Cells[i].Keys {
			if t.Key.Table != "" {
				f(i, &t.Key, k.ID)
			}
			if t.Value != nil && t.Value.Table != "" {
				f(i, t.Value, r.Cells[i].Values[n].ID)
			}
		}
	}
}

// refCounter counts the strong references to rows as a transaction changes them.
type refCounter struct {
	tx     *Tx
	counts map[datum.ID]int // of rows whose count has changed
	// loose are rows that may be without references.
	loose []tableRow
}

type tableRow struct {
	table *schema.Table
	id    datum.ID
}

// settleRefs refuses strong references to missing rows, deletes rows without references, and removes
// weak references to deleted rows. It returns the new counts of rows whose references changed.
func (tx *Tx) settleRefs() (map[datum.ID]int, error) {
	c := &refCounter{tx: tx, counts: map[datum.ID]int{}}
	for t, rows := range tx.rows {
		for id, r := range rows {
			c.count(tx.d.tables[t][id], -1)
			c.count(r, 1)
			c.loose = append(c.loose, tableRow{t, id})
		}
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	c.deleteUnreferenced()
	return c.counts, tx.dropWeakRefs()
}

// count adds to the counts of the rows that a row refers to.
func (c *refCounter) count(r *Row, by int) {
	eachRef(r, func(_ int, to *datum.Base, id datum.ID) {
		if to.Weak {
			return
		}
		if _, touched := c.counts[id]; !touched {
			c.counts[id] = c.tx.d.refs[id]
		}
		c.counts[id] += by
		if by < 0 {
			c.loose = append(c.loose, tableRow{c.tx.d.mustTable(to.Table), id})
		}
	})
}

// countOf is the number of strong references to a row.
func (c *refCounter) countOf(id datum.ID) int {
	if n, touched := c.counts[id]; touched {
		return n
	}
	return c.tx.d.refs[id]
}

// deleteUnreferenced deletes rows without references, and then rows to which only those referred.
func (c *refCounter) deleteUnreferenced() {
	for len(c.loose) > 0 {
		l := c.loose[len(c.loose)-1]
		c.loose = c.loose[:len(c.loose)-1]
		r := c.tx.row(l.table, l.id)
		if r == nil || c.countOf(l.id) > 0 || l.table.Root {
			continue
		}
		c.tx.remove(l.table, l.id)
		c.count(r, -1)
	}
}

// check refuses a strong reference of a changed row to a missing row, and the deletion of a row
// with references.
func (c *refCounter) check() (err error) {
	for t, rows := range c.tx.rows {
		for id, r := range rows {
			if n := c.countOf(id); r == nil && n > 0 && c.tx.d.tables[t][id] != nil {
				return datum.Errorf("referential integrity violation", "row %s of table %s cannot be deleted: %d references to it are left", id, t.Name, n)
			}
			if err = c.tx.checkRefs(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRefs returns an error if a strong reference of a row leads to a missing row.
func (tx *Tx) checkRefs(r *Row) (err error) {
	eachRef(r, func(place int, to *datum.Base, id datum.ID) {
		if err == nil && !to.Weak && tx.row(tx.d.mustTable(to.Table), id) == nil {
			err = datum.Errorf("referential integrity violation", "column %s of table %s, row %s, refers to row %s of table %s, which does not exist",
				r.Table.Columns[place].Name, r.Table.Name, r.ID(), id, to.Table)
		}
	})
	return err
}

// dropWeakRefs removes weak references to missing rows. It checks the rows that the transaction
// changes, and those that referred to a deleted one.
func (tx *Tx) dropWeakRefs() error {
	for _, t := range tx.d.Schema.Tables {
		if !hasWeakRefs(t) {
			continue
		}
		for r := range tx.rowsOf(t) {
			if err := tx.dropWeakRefsOf(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func hasWeakRefs(t *schema.Table) bool {
	for _, i := range t.Refs {
		if c := &t.Columns[i].Type; c.Key.Weak || c.Value != nil && c.Value.Weak {
			return true
		}
	}
	return false
}

func (tx *Tx) dropWeakRefsOf(r *Row) error {
	dangling := map[int]bool{} // columns
	eachRef(r, func(place int, to *datum.Base, id datum.ID) {
		if to.Weak && tx.row(tx.d.mustTable(to.Table), id) == nil {
			dangling[place] = true
		}
	})
	for place := range dangling {
		t := &r.Table.Columns[place].Type
		d := r.Cells[place].Filter(func(k, v datum.Atom) bool { return tx.refersToRow(&t.Key, k) && tx.refersToRow(t.Value, v) })
		if err := checkCell(r.Table, place, d); err != nil {
			return err
		}
		tx.editableRow(r.Table, r.ID()).Cells[place] = d
	}
	return nil
}

// refersToRow reports whether an atom is not a weak reference, or is one to an existing row.
func (tx *Tx) refersToRow(b *datum.Base, a datum.Atom) bool {
	return b == nil || !b.Weak || tx.row(tx.d.mustTable(b.Table), a.ID) != nil
}
