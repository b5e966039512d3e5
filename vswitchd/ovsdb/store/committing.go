package store

import (
	"maps"
	"slices"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

// commit checks a transaction and publishes it. If it returns an error, nothing has changed.
func (tx *Tx) commit() error {
	tx.dropUnchanged()
	counts, err := tx.settleRefs()
	if err != nil {
		return err
	}
	tx.dropUnchanged() // a row that came and went in this transaction
	if err := tx.checkRows(); err != nil {
		return err
	}
	changes := tx.changes()
	if len(changes) == 0 {
		return nil
	}
	index, err := tx.d.unique.with(changes)
	if err != nil {
		return err
	}
	if err := tx.write(changes); err != nil {
		return err
	}
	maps.Copy(tx.d.refs, counts)
	maps.DeleteFunc(tx.d.refs, func(_ datum.ID, n int) bool { return n == 0 })
	index.apply()
	tx.d.publish(changes)
	tx.d.compactIfLong()
	return nil
}

// dropUnchanged drops rows without a change from the transaction.
func (tx *Tx) dropUnchanged() {
	for t, rows := range tx.rows {
		maps.DeleteFunc(rows, func(id datum.ID, r *Row) bool {
			old := tx.d.tables[t][id]
			return old == nil && r == nil || old != nil && r != nil && sameCells(old, r)
		})
	}
}

// checkRows checks the number of rows of tables. It also checks the columns of new rows, because a
// default may violate the constraints of its column.
func (tx *Tx) checkRows() error {
	for t, rows := range tx.rows {
		n := len(tx.d.tables[t])
		for id, r := range rows {
			before, after := tx.d.tables[t][id] != nil, r != nil
			switch {
			case after && !before:
				n++
			case before && !after:
				n--
			}
			if after && !before {
				if err := checkAll(r); err != nil {
					return err
				}
			}
		}
		if n > t.MaxRows {
			return datum.Violationf("the transaction would leave %d rows in table %s, which may have %d", n, t.Name, t.MaxRows)
		}
	}
	return nil
}

func checkAll(r *Row) error {
	for i := range r.Cells {
		if err := checkCell(r.Table, i, r.Cells[i]); err != nil {
			return err
		}
	}
	return nil
}

// changes lists the changes of the transaction, table by table. It sets the new version of each
// changed row.
func (tx *Tx) changes() (all []Change) {
	for _, t := range tx.d.Schema.Tables {
		for id, r := range tx.rows[t] {
			if r != nil {
				r.Cells[schema.VersionColumn] = datum.One(datum.Ref(datum.NewID()))
			}
			all = append(all, Change{tx.d.tables[t][id], r})
		}
	}
	return slices.Clip(all)
}

// write appends the transaction to the log if a column changed that the log has. If the database
// follows another server, write sends the transaction there instead.
func (tx *Tx) write(changes []Change) error {
	if tx.d.send != nil && !tx.followed {
		return tx.d.send(changes)
	}
	if tx.d.log == nil {
		return nil
	}
	record := recordOf(changes, tx.comments)
	if record == nil {
		return nil
	}
	if err := tx.d.log.append(record, tx.durable); err != nil {
		return datum.Errorf("I/O error", "%v", err)
	}
	return nil
}
