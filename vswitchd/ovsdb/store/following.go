package store

import (
	"errors"
	"strings"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

// ErrAway is returned if the server of a database's rows does not answer.
var ErrAway = errors.New("the database's server is away")

// Elsewhere makes Transact send transactions to another server: send gets the changes before they
// are made here. An error of send refuses the transaction. send may wait, so only one goroutine
// should use the database. Call Elsewhere before the first transaction.
func (d *Database) Elsewhere(send func([]Change) error) { d.send = send }

// Follow applies the updates of another server's monitor (RFC 7047 section 4.1.6): {TABLE: {UUID:
// {"new": {COLUMN: VALUE}}}}. A row without "new" is deleted. With all, rows without an update are
// deleted, too.
func (d *Database) Follow(updates map[string]any, all bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	tx := newTx(d)
	tx.followed = true
	if all {
		for _, t := range d.Schema.Tables {
			for id := range d.tables[t] {
				tx.remove(t, id)
			}
		}
	}
	for name, v := range updates {
		t, err := d.Schema.Table(name)
		if err != nil {
			return err
		}
		rows, ok := v.(map[string]any)
		if !ok {
			return datum.Errorf("syntax error", "table %s is not an object", name)
		}
		for id, row := range rows {
			if err := tx.follow(t, id, row); err != nil {
				return err
			}
		}
	}
	return tx.commit()
}

// follow applies the update of one row.
func (tx *Tx) follow(t *schema.Table, name string, update any) error {
	id, err := datum.ParseID(name)
	if err != nil {
		return err
	}
	versions, ok := update.(map[string]any)
	if !ok {
		return datum.Errorf("syntax error", "row %s of table %s is not an object", name, t.Name)
	}
	columns, ok := versions["new"].(map[string]any)
	if !ok {
		tx.remove(t, id)
		return nil
	}
	r := newRow(t, id)
	for column, v := range columns {
		if strings.HasPrefix(column, "_") {
			continue
		}
		i, err := t.Place(column)
		if err != nil {
			return err
		}
		if r.Cells[i], err = t.Columns[i].Type.Parse(v, nil); err != nil {
			return atColumn(t, i, err)
		}
	}
	if old := tx.d.tables[t][id]; old != nil {
		r.Cells[schema.VersionColumn] = old.Cells[schema.VersionColumn]
	}
	tx.putRow(r)
	return nil
}
