package store

import (
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

// Caller describes the sender of a transact request.
type Caller struct {
	// Owns reports whether the sender holds a lock.
	Owns func(lock string) bool
	// Waited is how long the request has waited for the conditions of its wait operations.
	Waited time.Duration
	// ReadOnly refuses operations that change rows.
	ReadOnly bool
}

// Outcome is the outcome of a transact request.
type Outcome struct {
	// Results are the members of the reply, one for each operation, and one more if the commit
	// failed.
	Results []any
	// Retry is not nil if a wait operation's condition does not hold yet. Then the request had no
	// effect. The next commit closes Retry.
	Retry <-chan struct{}
	// Left is how long the request may continue to wait; negative for no limit.
	Left time.Duration
}

// execution is a transact request in progress.
type execution struct {
	tx     *Tx
	caller Caller
	names  map[string]*rowName
	left   time.Duration // how long the request may continue to wait
}

// rowName is a "uuid-name": its UUID, and whether an insert has used it.
type rowName struct {
	id       datum.ID
	inserted bool
}

// errWait ends an execution that must wait.
var errWait = datum.Errorf("wait", "the condition does not hold yet")

// operation is the members of an <operation>.
type operation map[string]any

// kinds are the operations of RFC 7047 section 5.2, with their required and optional members other
// than "op".
var kinds = map[string]struct {
	must, may string
	writes    bool
	do        func(*execution, *schema.Table, operation) (any, error)
}{
	"insert":  {"table row", "uuid-name uuid", true, (*execution).insert},
	"select":  {"table where", "columns", false, (*execution).selectRows},
	"update":  {"table where row", "", true, (*execution).update},
	"mutate":  {"table where mutations", "", true, (*execution).mutate},
	"delete":  {"table where", "", true, (*execution).deleteRows},
	"wait":    {"table where until rows", "columns timeout", false, (*execution).wait},
	"commit":  {"durable", "", false, (*execution).commit},
	"abort":   {"", "", false, (*execution).abort},
	"comment": {"comment", "", false, (*execution).comment},
	"assert":  {"lock", "", false, (*execution).assert},
}

// Execute runs the operations of a transact request as one transaction.
func (d *Database) Execute(operations []any, caller Caller) Outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := &execution{tx: newTx(d), caller: caller, names: map[string]*rowName{}}
	results := make([]any, 0, len(operations)+1)
	for _, o := range operations {
		result, err := x.run(o)
		if err == errWait {
			return Outcome{Retry: d.changed, Left: x.left}
		}
		if err != nil {
			results = append(results, asJSON(err))
			return Outcome{Results: append(results, make([]any, len(operations)-len(results))...)}
		}
		results = append(results, result)
	}
	if err := x.tx.commit(); err != nil {
		results = append(results, asJSON(err))
	}
	return Outcome{Results: results}
}

func asJSON(err error) any {
	if e, ok := err.(*datum.Error); ok {
		return e.JSON()
	}
	return datum.Errorf("internal error", "%v", err).JSON()
}

// run checks an operation's members and executes it.
func (x *execution) run(v any) (any, error) {
	o, ok := v.(map[string]any)
	if !ok {
		return nil, datum.Syntaxf("an operation is an object")
	}
	name, _ := o["op"].(string)
	kind, ok := kinds[name]
	if !ok {
		return nil, datum.Syntaxf("there is no operation %q", name)
	}
	if err := checkMembers(o, name, strings.Fields("op "+kind.must), strings.Fields(kind.may)); err != nil {
		return nil, err
	}
	if kind.writes && x.caller.ReadOnly {
		return nil, datum.Errorf("not allowed", "database %s is read-only: operation %s is refused", x.tx.d.Schema.Name, name)
	}
	t, err := x.table(o)
	if err != nil {
		return nil, err
	}
	return kind.do(x, t, o)
}

func checkMembers(o operation, name string, must, may []string) error {
	for _, m := range must {
		if _, ok := o[m]; !ok {
			return datum.Syntaxf("operation %s lacks the member %q", name, m)
		}
	}
	for m := range o {
		if !slices.Contains(must, m) && !slices.Contains(may, m) {
			return datum.Syntaxf("operation %s has an unexpected member %q", name, m)
		}
	}
	return nil
}

// table is the operation's table; nil if it has none.
func (x *execution) table(o operation) (*schema.Table, error) {
	v, ok := o["table"]
	if !ok {
		return nil, nil
	}
	name, ok := v.(string)
	if !ok {
		return nil, datum.Syntaxf("the member \"table\" is a string")
	}
	return x.tx.d.Schema.Table(name)
}

// id is the UUID of a name. A name may be used before its insert.
func (x *execution) id(name string) datum.ID { return x.name(name).id }

func (x *execution) name(name string) *rowName {
	if x.names[name] == nil {
		x.names[name] = &rowName{id: datum.NewID()}
	}
	return x.names[name]
}

func (x *execution) insert(t *schema.Table, o operation) (any, error) {
	id, err := x.newID(o)
	if err != nil {
		return nil, err
	}
	r := newRow(t, id)
	if err := x.assign(r, o["row"]); err != nil {
		return nil, err
	}
	if err := checkAll(r); err != nil {
		return nil, err
	}
	x.tx.putRow(r)
	return map[string]any{"uuid": datum.Ref(id).JSON()}, nil
}

// newID is the UUID of a new row: that of "uuid", that of "uuid-name", or a random one.
func (x *execution) newID(o operation) (id datum.ID, err error) {
	name, isNamed := o["uuid-name"]
	text, isGiven := o["uuid"]
	switch {
	case isNamed && isGiven:
		return id, datum.Syntaxf("\"uuid\" excludes \"uuid-name\"")
	case isNamed:
		return x.namedID(name)
	case !isGiven:
		return datum.NewID(), nil
	}
	s, _ := text.(string)
	if id, err = datum.ParseID(s); err != nil {
		return id, err
	}
	return id, x.checkFree(id)
}

// namedID is the UUID of a "uuid-name". Only one insert of the request may have it.
func (x *execution) namedID(v any) (id datum.ID, err error) {
	s, ok := v.(string)
	if !ok || s == "" {
		return id, datum.Syntaxf("\"uuid-name\" is a string with at least one character")
	}
	n := x.name(s)
	if n.inserted {
		return id, datum.Errorf("duplicate uuid-name", "two rows have the name %q", s)
	}
	n.inserted = true
	return n.id, nil
}

// checkFree returns an error if a row of any table has the UUID, because references are counted by
// UUID.
func (x *execution) checkFree(id datum.ID) error {
	for _, t := range x.tx.d.Schema.Tables {
		if x.tx.row(t, id) != nil {
			return datum.Errorf("duplicate uuid", "table %s has a row %s", t.Name, id)
		}
	}
	return nil
}

// assign reads a <row> into a row that is not part of the transaction yet.
func (x *execution) assign(r *Row, v any) error {
	columns, ok := v.(map[string]any)
	if !ok {
		return datum.Syntaxf("a row is an object")
	}
	for name, v := range columns {
		i, d, err := x.cell(r.Table, name, v)
		if err != nil {
			return err
		}
		if i < 2 {
			return datum.Violationf("column %s of table %s cannot be set", name, r.Table.Name)
		}
		r.Cells[i] = d
	}
	return nil
}

// cell reads a value for a column.
func (x *execution) cell(t *schema.Table, name string, v any) (place int, d datum.Datum, err error) {
	if place, err = t.Place(name); err != nil {
		return 0, d, err
	}
	if d, err = t.Columns[place].Type.Parse(v, x.id); err != nil {
		return 0, d, atColumn(t, place, err)
	}
	return place, d, nil
}

// columns reads the member "columns". Without it, all columns are meant.
func columns(t *schema.Table, o operation) (places []int, err error) {
	v, ok := o["columns"]
	if !ok {
		for i := range t.Columns {
			places = append(places, i)
		}
		return places, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, datum.Syntaxf("\"columns\" is an array of names")
	}
	for _, name := range list {
		s, ok := name.(string)
		if !ok {
			return nil, datum.Syntaxf("\"columns\" is an array of names")
		}
		i, err := t.Place(s)
		if err != nil {
			return nil, err
		}
		if slices.Contains(places, i) {
			return nil, datum.Syntaxf("column %s is named twice", s)
		}
		places = append(places, i)
	}
	return places, nil
}

// RowJSON is the JSON of some columns of a row.
func RowJSON(r *Row, places []int) map[string]any {
	o := make(map[string]any, len(places))
	for _, i := range places {
		o[r.Table.Columns[i].Name] = r.Table.Columns[i].Type.JSONOf(r.Cells[i])
	}
	return o
}

func (x *execution) selectRows(t *schema.Table, o operation) (any, error) {
	places, err := columns(t, o)
	if err != nil {
		return nil, err
	}
	rows := []any{}
	_, err = x.eachMatching(t, o, func(r *Row) error { rows = append(rows, RowJSON(r, places)); return nil })
	return map[string]any{"rows": rows}, err
}

// eachMatching calls a function with each row that matches "where", and counts them.
func (x *execution) eachMatching(t *schema.Table, o operation, f func(*Row) error) (n int, err error) {
	where, err := parseWhere(t, o["where"], x.id)
	if err != nil {
		return 0, err
	}
	for _, r := range x.matching(t, where) {
		if err := f(r); err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// matching are the rows that fulfil all conditions.
func (x *execution) matching(t *schema.Table, where []Condition) (rows []*Row) {
	for _, c := range where {
		if id, ok := c.names(); ok {
			if r := x.tx.row(t, id); r != nil && all(where, r) {
				return []*Row{r}
			}
			return nil
		}
	}
	for r := range x.tx.rowsOf(t) {
		if all(where, r) {
			rows = append(rows, r)
		}
	}
	return rows
}

func (x *execution) update(t *schema.Table, o operation) (any, error) {
	type assignment struct {
		place int
		value datum.Datum
	}
	var row []assignment
	members, ok := o["row"].(map[string]any)
	if !ok {
		return nil, datum.Syntaxf("a row is an object")
	}
	for name, v := range members {
		i, d, err := x.cell(t, name, v)
		if err == nil {
			err = mutable(t, i)
		}
		if err == nil {
			err = checkCell(t, i, d)
		}
		if err != nil {
			return nil, err
		}
		row = append(row, assignment{i, d})
	}
	return x.changeEach(t, o, func(r *Row) error {
		for _, a := range row {
			r.Cells[a.place] = a.value
		}
		return nil
	})
}

func mutable(t *schema.Table, place int) error {
	if t.Columns[place].Immutable {
		return datum.Violationf("column %s of table %s is immutable", t.Columns[place].Name, t.Name)
	}
	return nil
}

// changeEach changes each row that matches, and returns how many there are.
func (x *execution) changeEach(t *schema.Table, o operation, change func(*Row) error) (any, error) {
	n, err := x.eachMatching(t, o, func(r *Row) error { return change(x.tx.editableRow(t, r.ID())) })
	return map[string]any{"count": n}, err
}

func (x *execution) mutate(t *schema.Table, o operation) (any, error) {
	mutations, err := x.parseMutations(t, o["mutations"])
	if err != nil {
		return nil, err
	}
	return x.changeEach(t, o, func(r *Row) error {
		for _, m := range mutations {
			if err := m.apply(r); err != nil {
				return err
			}
		}
		return nil
	})
}

func (x *execution) deleteRows(t *schema.Table, o operation) (any, error) {
	n, err := x.eachMatching(t, o, func(r *Row) error { x.tx.remove(t, r.ID()); return nil })
	return map[string]any{"count": n}, err
}

func (x *execution) commit(_ *schema.Table, o operation) (any, error) {
	durable, ok := o["durable"].(bool)
	if !ok {
		return nil, datum.Syntaxf("\"durable\" is true or false")
	}
	x.tx.durable = x.tx.durable || durable
	return map[string]any{}, nil
}

func (x *execution) abort(*schema.Table, operation) (any, error) {
	return nil, datum.Errorf("aborted", "the request asks to abort")
}

func (x *execution) comment(_ *schema.Table, o operation) (any, error) {
	text, ok := o["comment"].(string)
	if !ok {
		return nil, datum.Syntaxf("\"comment\" is a string")
	}
	x.tx.comments = append(x.tx.comments, text)
	return map[string]any{}, nil
}

func (x *execution) assert(_ *schema.Table, o operation) (any, error) {
	lock, ok := o["lock"].(string)
	if !ok {
		return nil, datum.Syntaxf("\"lock\" is a string")
	}
	if x.caller.Owns == nil || !x.caller.Owns(lock) {
		return nil, datum.Errorf("not owner", "the client does not hold the lock %q", lock)
	}
	return map[string]any{}, nil
}
