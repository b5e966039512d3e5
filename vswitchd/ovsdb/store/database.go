package store

import (
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

// Change is a transaction's change of a row. Old is nil for an inserted row, New for a deleted one.
type Change struct{ Old, New *Row }

// Row is the row after the change, or the deleted row.
func (c Change) Row() *Row {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// Database has the rows of one database. Several goroutines may use it.
type Database struct {
	Schema *schema.Database
	// Log gets errors that occur after a transaction; nil discards them.
	Log *slog.Logger

	mu        sync.Mutex
	tables    map[*schema.Table]map[datum.ID]*Row
	refs      map[datum.ID]int // the number of strong references to a row
	unique    uniqueness
	log       *logFile             // nil if there is no file
	send      func([]Change) error // sends changes to the server that has the rows; nil if that is this one
	observers []*observer
	changed   chan struct{} // closed by the next commit
}

type observer struct{ onChange func([]Change) }

// New makes an empty database without a file.
func New(s *schema.Database) *Database {
	d := &Database{
		Schema: s, tables: map[*schema.Table]map[datum.ID]*Row{}, refs: map[datum.ID]int{},
		unique: uniqueness{}, changed: make(chan struct{}),
	}
	for _, t := range s.Tables {
		d.tables[t] = map[datum.ID]*Row{}
	}
	return d
}

// Close closes the database's file.
func (d *Database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.log == nil {
		return nil
	}
	return d.log.close()
}

// View has the rows at one moment. It is only valid in the function that gets it.
type View struct{ d *Database }

// Rows are the rows of a table, in no order.
func (v View) Rows(t *schema.Table) iter.Seq[*Row] { return maps.Values(v.d.tables[t]) }

// Named are the rows of the table with a name, which must be in the schema.
func (v View) Named(table string) iter.Seq[*Row] { return v.Rows(v.d.mustTable(table)) }

// Row is a row, or nil.
func (v View) Row(table string, id datum.ID) *Row { return v.d.tables[v.d.mustTable(table)][id] }

func (d *Database) mustTable(name string) *schema.Table {
	t, err := d.Schema.Table(name)
	if err != nil {
		panic(err) // a mistake in the caller
	}
	return t
}

// Read calls f with the rows. f must not call the database.
func (d *Database) Read(f func(View)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(View{d})
}

// Observe calls first with the rows, and from then on onChange with the changes of each transaction.
// onChange gets each change once. The database's lock is held, so neither may call the database or
// wait. stop ends the calls.
func (d *Database) Observe(first func(View), onChange func([]Change)) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if first != nil {
		first(View{d})
	}
	o := &observer{onChange}
	d.observers = append(d.observers, o)
	return func() { d.removeObserver(o) }
}

func (d *Database) removeObserver(o *observer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.observers = slices.DeleteFunc(slices.Clone(d.observers), func(p *observer) bool { return p == o })
}

// Size counts the rows and their columns, as memory/show of ovsdb-server does.
func (d *Database) Size() (rows, cells int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for t, all := range d.tables {
		rows += len(all)
		cells += len(all) * len(t.Columns)
	}
	return rows, cells
}

// publish stores the changes of a transaction, and calls the observers.
func (d *Database) publish(changes []Change) {
	for _, c := range changes {
		rows := d.tables[c.Row().Table]
		if c.New == nil {
			delete(rows, c.Old.ID())
		} else {
			rows[c.New.ID()] = c.New
		}
	}
	close(d.changed)
	d.changed = make(chan struct{})
	for _, o := range d.observers {
		o.onChange(changes)
	}
}
