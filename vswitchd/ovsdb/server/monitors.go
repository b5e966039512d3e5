package server

import (
	"errors"
	"slices"
	"sync"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// monitors are the monitors of a client.
type monitors struct {
	p   *peer
	max int

	mu   sync.Mutex
	byID map[string]*monitor // by their ids as text
}

// start begins a monitor. The reply has the present rows. The database's lock is held until the
// reply is in the outbox, so no update overtakes it.
func (l *monitors) start(d *store.Database, request *jsonrpc.Message, speak dialect) error {
	params := request.Params
	if len(params) < 3 || len(params) > 4 || len(params) == 4 && speak != dialectUpdate3 {
		return datum.Syntaxf("a monitor has %d parameters: expected a database, an id and requests", len(params))
	}
	m := &monitor{p: l.p, id: params[1], d: d, dialect: speak}
	var err error
	if m.tables, err = parseTables(d, params[2], speak != dialectUpdate); err != nil {
		return err
	}
	if err := l.addMonitor(m); err != nil {
		return err
	}
	m.stop = d.Observe(func(v store.View) { l.p.send(jsonrpc.Reply(request.ID, m.initialReply(v))) }, m.sendChanges)
	return nil
}

func (l *monitors) addMonitor(m *monitor) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID[key(m.id)] != nil {
		return datum.Syntaxf("the client already has a monitor with the id %s", key(m.id))
	}
	if len(l.byID) >= l.max {
		return datum.Errorf("resources exhausted", "the client already has %d monitors", len(l.byID))
	}
	l.byID[key(m.id)] = m
	return nil
}

// findMonitor is the monitor with an id; nil if there is none.
func (l *monitors) findMonitor(id any) *monitor {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[key(id)]
}

// rename changes the id of a monitor. The new id must be free.
func (l *monitors) rename(from, to any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if key(from) != key(to) && l.byID[key(to)] != nil {
		return datum.Syntaxf("the client already has a monitor with the id %s", key(to))
	}
	m := l.byID[key(from)]
	delete(l.byID, key(from))
	l.byID[key(to)] = m
	return nil
}

// removeMonitor removes and returns the monitor with an id; nil if there is none.
func (l *monitors) removeMonitor(id any) *monitor {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.byID[key(id)]
	delete(l.byID, key(id))
	return m
}

// stopAll ends all monitors of a disconnected client.
func (l *monitors) stopAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.byID {
		m.stop()
	}
	clear(l.byID)
}

func (l *monitors) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byID)
}

// errUnknownMonitor is the error of RFC 7047 section 4.1.7.
var errUnknownMonitor = errors.New("unknown monitor")

func (l *monitors) cancel(params []any) error {
	if len(params) != 1 {
		return datum.Syntaxf("the id of a monitor is expected as the one parameter")
	}
	m := l.removeMonitor(params[0])
	if m == nil {
		return errUnknownMonitor
	}
	m.stop()
	return nil
}

// change replaces the conditions of a monitor. Rows that only fulfil the new conditions are reported
// as inserted, and rows that only fulfil the old ones as deleted.
func (l *monitors) change(params []any) error {
	if len(params) != 3 {
		return datum.Syntaxf("the id of a monitor, its new id and conditions are expected")
	}
	m := l.findMonitor(params[0])
	if m == nil || m.dialect == dialectUpdate {
		return datum.Errorf("unknown monitor", "there is no monitor with conditions and the id %s", key(params[0]))
	}
	changed, err := m.parseChange(params[2])
	if err != nil {
		return err
	}
	if err := l.rename(params[0], params[1]); err != nil {
		return err
	}
	m.d.Read(func(v store.View) {
		m.id = params[1]
		m.changeConditions(v, changed)
	})
	return nil
}

// parseChange reads {TABLE: [{"where": CONDITIONS}]}.
func (m *monitor) parseChange(v any) (map[*schema.Table][]store.Condition, error) {
	requests, ok := v.(map[string]any)
	if !ok {
		return nil, datum.Syntaxf("the changes of a monitor are an object")
	}
	changed := map[*schema.Table][]store.Condition{}
	for name, v := range requests {
		t, err := m.d.Schema.Table(name)
		if err != nil {
			return nil, err
		}
		if m.tables[t] == nil {
			return nil, datum.Errorf("unknown table", "the monitor does not watch table %s", name)
		}
		w := &watch{wants: map[string]bool{}}
		for _, request := range listOf(v) {
			if err := w.addConditions(t, request, []string{"where"}); err != nil {
				return nil, err
			}
		}
		changed[t] = w.where
	}
	return changed, nil
}

// listOf are the requests for a table, from one request or an array.
func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// parseTables reads the <monitor-requests> of a monitor.
func parseTables(d *store.Database, v any, conditional bool) (map[*schema.Table]*watch, error) {
	requests, ok := v.(map[string]any)
	if !ok {
		return nil, datum.Syntaxf("the requests of a monitor are an object")
	}
	tables := map[*schema.Table]*watch{}
	for name, v := range requests {
		t, err := d.Schema.Table(name)
		if err != nil {
			return nil, err
		}
		w := &watch{wants: map[string]bool{}}
		for _, request := range listOf(v) {
			if err := w.addRequest(t, request, conditional); err != nil {
				return nil, err
			}
		}
		tables[t] = w
	}
	return tables, nil
}

// addRequest reads one <monitor-request>.
func (w *watch) addRequest(t *schema.Table, v any, conditional bool) error {
	members := []string{"columns", "select"}
	if conditional {
		members = append(members, "where")
	}
	if err := w.addConditions(t, v, members); err != nil {
		return err
	}
	o := v.(map[string]any)
	wants, err := parseSelect(o["select"])
	if err != nil {
		return err
	}
	for _, e := range events {
		w.wants[e] = w.wants[e] || wants[e]
	}
	return w.addColumns(t, o["columns"], wants)
}

// addConditions checks the members of a request and reads its conditions. A request without
// conditions selects all rows.
func (w *watch) addConditions(t *schema.Table, v any, members []string) error {
	o, ok := v.(map[string]any)
	if !ok {
		return datum.Syntaxf("a request of a monitor for table %s is an object", t.Name)
	}
	for name := range o {
		if !slices.Contains(members, name) {
			return datum.Syntaxf("a request of a monitor for table %s has an unexpected member %q", t.Name, name)
		}
	}
	where := []any{true}
	if v, ok := o["where"]; ok {
		if where, ok = v.([]any); !ok {
			return datum.Syntaxf("\"where\" is an array of conditions")
		}
	}
	conditions, err := store.ParseConditions(t, where)
	w.where = append(w.where, conditions...)
	return err
}

// parseSelect reads a <monitor-select>: the kinds of changes that the client gets.
func parseSelect(v any) (map[string]bool, error) {
	wants := map[string]bool{}
	for _, e := range events {
		wants[e] = true
	}
	if v == nil {
		return wants, nil
	}
	o, ok := v.(map[string]any)
	if !ok {
		return nil, datum.Syntaxf("\"select\" is an object")
	}
	for e, v := range o {
		want, ok := v.(bool)
		if !ok || !slices.Contains(events, e) {
			return nil, datum.Syntaxf("\"select\" has an unexpected member %q", e)
		}
		wants[e] = want
	}
	return wants, nil
}

// addColumns reads the names of columns. Without names, it adds all columns except _uuid.
func (w *watch) addColumns(t *schema.Table, v any, wants map[string]bool) error {
	if v == nil {
		for i := schema.VersionColumn; i < len(t.Columns); i++ {
			w.columns = append(w.columns, watchedColumn{i, wants})
		}
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		return datum.Syntaxf("\"columns\" is an array of names")
	}
	for _, v := range list {
		name, ok := v.(string)
		if !ok {
			return datum.Syntaxf("\"columns\" is an array of names")
		}
		i, err := t.Place(name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(w.columns, func(c watchedColumn) bool { return c.place == i }) {
			return datum.Syntaxf("column %s of table %s is named twice", name, t.Name)
		}
		w.columns = append(w.columns, watchedColumn{i, wants})
	}
	return nil
}
