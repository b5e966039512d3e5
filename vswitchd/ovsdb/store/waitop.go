package store

import (
	"slices"
	"time"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

func (x *execution) wait(t *schema.Table, o operation) (any, error) {
	places, err := columns(t, o)
	if err != nil {
		return nil, err
	}
	until, _ := o["until"].(string)
	if until != "==" && until != "!=" {
		return nil, datum.Syntaxf(`"until" is "==" or "!="`)
	}
	wanted, err := x.wantedRows(t, places, o["rows"])
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	if _, err := x.eachMatching(t, o, func(r *Row) error { found[project(r, places)] = true; return nil }); err != nil {
		return nil, err
	}
	if sameKeys(found, wanted) == (until == "==") {
		return map[string]any{}, nil
	}
	return nil, x.waitOn(o)
}

// wantedRows reads the rows of a wait operation, as text of the columns that are compared.
func (x *execution) wantedRows(t *schema.Table, places []int, v any) (map[string]bool, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, datum.Syntaxf("\"rows\" is an array of rows")
	}
	wanted := map[string]bool{}
	for _, v := range list {
		r := newRow(t, datum.ID{})
		members, ok := v.(map[string]any)
		if !ok {
			return nil, datum.Syntaxf("a row is an object")
		}
		for name, v := range members {
			i, d, err := x.cell(t, name, v)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(places, i) {
				return nil, datum.Syntaxf("column %s is not among the \"columns\" of the wait operation", name)
			}
			r.Cells[i] = d
		}
		wanted[project(r, places)] = true
	}
	return wanted, nil
}

// project is some columns of a row as text that is equal for equal columns.
func project(r *Row, places []int) string {
	b, err := jsonrpc.Encode(RowJSON(r, places))
	if err != nil {
		panic(err) // strings and numbers are always written
	}
	return string(b)
}

func sameKeys(a, b map[string]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return len(a) == len(b)
}

// waitOn is called if the condition of a wait operation does not hold. The request must wait, or
// has waited for as long as the operation allows.
func (x *execution) waitOn(o operation) error {
	v, ok := o["timeout"]
	if !ok {
		x.left = -1
		return errWait
	}
	ms, err := milliseconds(v)
	if err != nil {
		return err
	}
	if x.left = ms - x.caller.Waited; x.left <= 0 {
		return datum.Errorf("timed out", "the condition of the wait operation did not come to hold within %v", ms)
	}
	return errWait
}

func milliseconds(v any) (time.Duration, error) {
	t := datum.Type{Key: datum.NewBase(datum.Integer), Min: 1, Max: 1}
	t.Key.Least, t.Key.Most = 0, int64(longestWait/time.Millisecond)
	d, err := t.Parse(v, nil)
	if err == nil {
		err = t.Check(d)
	}
	if err != nil {
		return 0, err
	}
	return time.Duration(d.Keys[0].Num) * time.Millisecond, nil
}

// longestWait is the largest "timeout" of a wait operation.
const longestWait = 365 * 24 * time.Hour
