package server

import (
	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// events are the kinds of changes that a monitor may leave out.
var events = []string{initial, inserted, deleted, modified}

// The kinds of changes.
const initial, inserted, deleted, modified = "initial", "insert", "delete", "modify"

// monitor is a monitor of a client. The database's lock guards it.
type monitor struct {
	p       *peer
	id      any
	d       *store.Database
	dialect dialect
	tables  map[*schema.Table]*watch
	stop    func()
}

// watch is the part of a monitor about one table.
type watch struct {
	columns []watchedColumn
	// wants are the kinds of changes that the client gets.
	wants map[string]bool
	// where are conditions. A row must fulfil one of them.
	where []store.Condition
}

// watchedColumn is a column, with the kinds of changes that report it.
type watchedColumn struct {
	place int
	wants map[string]bool
}

// dialect is the format of a monitor's updates.
type dialect int

const (
	// dialectUpdate has old and new columns (RFC 7047 section 4.1.6).
	dialectUpdate dialect = iota
	// dialectUpdate2 has differences (ovsdb-server(7), "update2").
	dialectUpdate2
	// dialectUpdate3 has the last transaction, too (ovsdb-server(7), "update3").
	dialectUpdate3
)

// noTransaction is the last transaction of a database whose transactions have no ids: one that
// is not clustered.
var noTransaction = datum.ID{}.String()

// update is a <table-updates>: rows by table and UUID.
type update map[string]map[string]any

func (u update) add(r *store.Row, row any) {
	name := r.Table.Name
	if u[name] == nil {
		u[name] = map[string]any{}
	}
	u[name][r.ID().String()] = row
}

// initialReply is the reply to a monitor request: the present rows.
func (m *monitor) initialReply(v store.View) any {
	u := update{}
	for t, w := range m.tables {
		for r := range v.Rows(t) {
			if store.Any(w.where, r) {
				m.addRow(u, w, initial, nil, r)
			}
		}
	}
	if m.dialect == dialectUpdate3 {
		return []any{false, noTransaction, u}
	}
	return u
}

// sendChanges sends the changes of a transaction that the client watches.
func (m *monitor) sendChanges(changes []store.Change) {
	u := update{}
	for _, c := range changes {
		if w := m.tables[c.Row().Table]; w != nil {
			before := c.Old != nil && store.Any(w.where, c.Old)
			after := c.New != nil && store.Any(w.where, c.New)
			m.addChange(u, w, before, after, c)
		}
	}
	m.send(u)
}

// changeConditions replaces the conditions of tables, and sends the rows that come and go by that.
func (m *monitor) changeConditions(v store.View, changed map[*schema.Table][]store.Condition) {
	u := update{}
	for t, where := range changed {
		w := m.tables[t]
		for r := range v.Rows(t) {
			before, after := store.Any(w.where, r), store.Any(where, r)
			if before != after {
				m.addChange(u, w, before, after, store.Change{Old: r, New: r})
			}
		}
		w.where = where
	}
	m.send(u)
}

// addChange adds the change of a row that the client sees before it, after it, or both.
func (m *monitor) addChange(u update, w *watch, before, after bool, c store.Change) {
	switch {
	case before && after:
		m.addRow(u, w, modified, c.Old, c.New)
	case before:
		m.addRow(u, w, deleted, c.Old, nil)
	case after:
		m.addRow(u, w, inserted, nil, c.New)
	}
}

// send sends an update that is not empty.
func (m *monitor) send(u update) {
	switch {
	case len(u) == 0:
	case m.dialect == dialectUpdate:
		m.p.send(jsonrpc.Notification("update", m.id, u))
	case m.dialect == dialectUpdate2:
		m.p.send(jsonrpc.Notification("update2", m.id, u))
	default:
		m.p.send(jsonrpc.Notification("update3", m.id, noTransaction, u))
	}
}

// addRow adds a row's change in the monitor's dialect, if the client wants the event.
func (m *monitor) addRow(u update, w *watch, event string, before, after *store.Row) {
	if !w.wants[event] {
		return
	}
	row := after
	if row == nil {
		row = before
	}
	var o map[string]any
	if m.dialect == dialectUpdate {
		o = w.oldAndNew(event, before, after)
	} else {
		o = w.difference(event, before, after)
	}
	if o != nil {
		u.add(row, o)
	}
}

// oldAndNew is a <row-update>; nil if no watched column changed.
func (w *watch) oldAndNew(event string, before, after *store.Row) map[string]any {
	if event != modified {
		o, row := map[string]any{"new": nil}, after
		if event == deleted {
			o, row = map[string]any{"old": nil}, before
		}
		for name := range o {
			o[name] = w.rowColumns(event, row)
		}
		return o
	}
	old := map[string]any{}
	w.eachChanged(before, after, func(column *schema.Column, from, _ datum.Datum) {
		old[column.Name] = column.Type.JSONOf(from)
	})
	if len(old) == 0 {
		return nil
	}
	return map[string]any{"old": old, "new": w.rowColumns(event, after)}
}

// rowColumns are the columns of a row that a kind of change reports.
func (w *watch) rowColumns(event string, r *store.Row) map[string]any {
	var places []int
	for _, c := range w.columns {
		if c.wants[event] {
			places = append(places, c.place)
		}
	}
	return store.RowJSON(r, places)
}

// difference is a <row-update2>; nil if no watched column changed.
func (w *watch) difference(event string, before, after *store.Row) map[string]any {
	o := map[string]any{}
	switch event {
	case deleted:
		return map[string]any{deleted: nil}
	case modified:
		w.eachChanged(before, after, func(column *schema.Column, from, to datum.Datum) {
			o[column.Name] = column.Type.JSONOf(datum.Diff(&column.Type, from, to))
		})
		if len(o) == 0 {
			return nil
		}
		return map[string]any{modified: o}
	}
	for _, c := range w.columns {
		column := &after.Table.Columns[c.place]
		if d := after.Cells[c.place]; c.wants[event] && !datum.Equal(d, column.Type.Default()) {
			o[column.Name] = column.Type.JSONOf(d)
		}
	}
	return map[string]any{event: o}
}

// eachChanged calls a function with each watched column that changed.
func (w *watch) eachChanged(before, after *store.Row, f func(column *schema.Column, from, to datum.Datum)) {
	for _, c := range w.columns {
		if from, to := before.Cells[c.place], after.Cells[c.place]; c.wants[modified] && !datum.Equal(from, to) {
			f(&after.Table.Columns[c.place], from, to)
		}
	}
}
