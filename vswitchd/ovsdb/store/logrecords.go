package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

// minCompaction is the least size of a log that is compacted, in bytes.
const minCompaction = 1 << 20

// Open opens a database with a file, which may be one of ovsdb-server. It cuts off an incomplete
// record that a crash has left at the end, which has cut bytes.
func Open(path string, s *schema.Database) (d *Database, cut int64, err error) {
	d = New(s)
	l := &loader{d: d}
	log, cut, err := openLog(path, l.record)
	if err != nil {
		return nil, 0, err
	}
	if err := l.finish(); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("%s: %w", path, err), log.close())
	}
	d.log = log
	if l.schema != s.Text() {
		err = d.log.replace(d.snapshot("compacted")...)
	}
	if err != nil {
		return nil, 0, errors.Join(err, log.close())
	}
	return d, cut, nil
}

// loader applies the records of a log to an empty database.
type loader struct {
	d      *Database
	schema string // the log's first record; "" before it was read
}

func (l *loader) record(r map[string]any) error {
	if l.schema != "" {
		return l.transaction(r)
	}
	if r["name"] != l.d.Schema.Name {
		return fmt.Errorf("the database is %v, %s is expected", r["name"], l.d.Schema.Name)
	}
	b, err := jsonrpc.Encode(r)
	l.schema = string(b)
	return err
}

// transaction applies one record: {TABLE: {UUID: null or {COLUMN: VALUE}}}. Members that begin with
// "_" are about the transaction itself.
func (l *loader) transaction(r map[string]any) error {
	diff, _ := r["_is_diff"].(bool)
	for name, v := range r {
		if strings.HasPrefix(name, "_") {
			continue
		}
		t, err := l.d.Schema.Table(name)
		if err != nil {
			return err
		}
		rows, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("table %s is not an object", name)
		}
		for id, columns := range rows {
			if err := l.row(t, id, columns, diff); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loader) row(t *schema.Table, name string, v any, diff bool) error {
	id, err := datum.ParseID(name)
	if err != nil {
		return err
	}
	rows := l.d.tables[t]
	if v == nil {
		delete(rows, id)
		return nil
	}
	columns, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("row %s of table %s is not an object", name, t.Name)
	}
	r := rows[id]
	if r == nil {
		r, diff = newRow(t, id), false
		r.Cells[schema.VersionColumn] = datum.One(datum.Ref(datum.NewID()))
		rows[id] = r
	}
	for c, v := range columns {
		if err := l.cell(r, c, v, diff); err != nil {
			return fmt.Errorf("row %s: %w", name, err)
		}
	}
	return nil
}

func (l *loader) cell(r *Row, column string, v any, diff bool) error {
	i, err := r.Table.Place(column)
	if err != nil {
		return err
	}
	t := &r.Table.Columns[i].Type
	d, err := t.Parse(v, nil)
	if err != nil {
		return atColumn(r.Table, i, err)
	}
	if diff {
		d = datum.Apply(t, r.Cells[i], d)
	}
	if !r.Table.Columns[i].Ephemeral {
		r.Cells[i] = d
	}
	return nil
}

// finish checks constraints, references and indexes, as a commit does. It makes the counts of
// references and the indexes.
func (l *loader) finish() error {
	tx := newTx(l.d)
	var all []Change
	for _, rows := range l.d.tables {
		for _, r := range rows {
			if err := checkAll(r); err != nil {
				return err
			}
			if err := tx.checkRefs(r); err != nil {
				return err
			}
			eachRef(r, func(_ int, to *datum.Base, id datum.ID) {
				if !to.Weak {
					l.d.refs[id]++
				}
			})
			all = append(all, Change{New: r})
		}
	}
	index, err := l.d.unique.with(all)
	if err == nil {
		index.apply()
	}
	return err
}

// recordOf is the log's record of a transaction; nil if only ephemeral columns changed.
func recordOf(changes []Change, comments []string) map[string]any {
	record := map[string]any{}
	for _, c := range changes {
		columns, keep := persistent(c)
		if !keep {
			continue
		}
		name := c.Row().Table.Name
		if record[name] == nil {
			record[name] = map[string]any{}
		}
		record[name].(map[string]any)[c.Row().ID().String()] = columns
	}
	if len(record) == 0 {
		return nil
	}
	record["_date"] = json.Number(fmt.Sprint(time.Now().UnixMilli()))
	if len(comments) > 0 {
		record["_comment"] = strings.Join(comments, "\n")
	}
	return record
}

// persistent are the columns of a change for the log; nil for a deleted row. keep is false if only
// ephemeral columns changed.
func persistent(c Change) (columns any, keep bool) {
	if c.New == nil {
		return nil, true
	}
	before := c.Old
	if before == nil {
		before = newRow(c.New.Table, c.New.ID())
	}
	o := map[string]any{}
	for i := range c.New.Cells {
		column := &c.New.Table.Columns[i]
		if !column.Ephemeral && !datum.Equal(before.Cells[i], c.New.Cells[i]) {
			o[column.Name] = column.Type.JSONOf(c.New.Cells[i])
		}
	}
	return o, c.Old == nil || len(o) > 0
}

// snapshot has the records of a log with only the present rows.
func (d *Database) snapshot(comment string) []map[string]any {
	var all []Change
	for _, rows := range d.tables {
		for _, r := range rows {
			all = append(all, Change{New: r})
		}
	}
	records := []map[string]any{d.Schema.JSON()}
	if r := recordOf(all, []string{comment}); r != nil {
		records = append(records, r)
	}
	return records
}

// compactIfLong compacts a log that has grown to four times its size after the last compaction. If
// that fails, the log only stays long, because it has all transactions.
func (d *Database) compactIfLong() {
	if d.log == nil || d.log.size < max(4*d.log.base, minCompaction) {
		return
	}
	d.log.base = d.log.size // if the compaction fails, the next try comes later
	if err := d.log.replace(d.snapshot("compacted")...); err != nil && d.Log != nil {
		d.Log.Warn("the database was not compacted", "file", d.log.path, "err", err)
	}
}

// Compact rewrites the database's file with only the present rows.
func (d *Database) Compact() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.log == nil {
		return nil
	}
	return d.log.replace(d.snapshot("compacted")...)
}
