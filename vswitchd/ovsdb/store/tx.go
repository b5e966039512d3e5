package store

import (
	"iter"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

// Tx is a transaction in progress. It sees its own changes. Only the goroutine of Transact or Execute
// uses it.
type Tx struct {
	d *Database
	// rows are the rows that the transaction made, changed, or deleted (nil).
	rows     map[*schema.Table]map[datum.ID]*Row
	comments []string
	durable  bool
	followed bool // it applies changes of another server
}

func newTx(d *Database) *Tx { return &Tx{d: d, rows: map[*schema.Table]map[datum.ID]*Row{}} }

// Transact calls f and commits its changes. If f or the commit returns an error, no row changes. The
// comment goes to the log.
func (d *Database) Transact(comment string, f func(*Tx) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	tx := newTx(d)
	if comment != "" {
		tx.comments = append(tx.comments, comment)
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.commit()
}

// Row is a row as the transaction sees it, or nil.
func (tx *Tx) Row(table string, id datum.ID) *Row { return tx.row(tx.d.mustTable(table), id) }

// Rows are the rows of a table as the transaction sees them.
func (tx *Tx) Rows(table string) iter.Seq[*Row] { return tx.rowsOf(tx.d.mustTable(table)) }

// Insert adds a row. Columns without a value have their defaults.
func (tx *Tx) Insert(table string, columns map[string]datum.Datum) (datum.ID, error) {
	r := newRow(tx.d.mustTable(table), datum.NewID())
	tx.putRow(r)
	return r.ID(), tx.set(r, columns)
}

// Set changes columns of a row. A missing row is an error.
func (tx *Tx) Set(table string, id datum.ID, columns map[string]datum.Datum) error {
	t := tx.d.mustTable(table)
	if tx.row(t, id) == nil {
		return datum.Errorf("referential integrity violation", "table %s has no row %s", table, id)
	}
	return tx.set(tx.editableRow(t, id), columns)
}

func (tx *Tx) set(r *Row, columns map[string]datum.Datum) error {
	for name, v := range columns {
		i, err := r.Table.Place(name)
		if err != nil {
			return err
		}
		if err := checkCell(r.Table, i, v); err != nil {
			return err
		}
		r.Cells[i] = v
	}
	return nil
}

// checkCell checks a value against the constraints of its column.
func checkCell(t *schema.Table, i int, v datum.Datum) error {
	if err := t.Columns[i].Type.Check(v); err != nil {
		return atColumn(t, i, err)
	}
	return nil
}

// atColumn adds the column to an error.
func atColumn(t *schema.Table, i int, err error) error {
	if e, ok := err.(*datum.Error); ok {
		return datum.Errorf(e.Tag, "column %s of table %s: %s", t.Columns[i].Name, t.Name, e.Details)
	}
	return err
}

func (tx *Tx) row(t *schema.Table, id datum.ID) *Row {
	if r, touched := tx.rows[t][id]; touched {
		return r
	}
	return tx.d.tables[t][id]
}

// rowsOf are the rows of a table. The transaction may change rows during the iteration, which may or
// may not see inserted ones.
func (tx *Tx) rowsOf(t *schema.Table) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		for id, r := range tx.d.tables[t] {
			if r = tx.row(t, id); r != nil && !yield(r) {
				return
			}
		}
		for id, r := range tx.rows[t] {
			if r != nil && tx.d.tables[t][id] == nil && !yield(r) {
				return
			}
		}
	}
}

// putRow adds a row to the transaction.
func (tx *Tx) putRow(r *Row) {
	if tx.rows[r.Table] == nil {
		tx.rows[r.Table] = map[datum.ID]*Row{}
	}
	tx.rows[r.Table][r.ID()] = r
}

// editableRow returns a row that the transaction may change. The row must exist.
func (tx *Tx) editableRow(t *schema.Table, id datum.ID) *Row {
	r := tx.row(t, id)
	if r == tx.d.tables[t][id] {
		r = r.clone()
		tx.putRow(r)
	}
	return r
}

func (tx *Tx) remove(t *schema.Table, id datum.ID) {
	if tx.rows[t] == nil {
		tx.rows[t] = map[datum.ID]*Row{}
	}
	tx.rows[t][id] = nil
}
