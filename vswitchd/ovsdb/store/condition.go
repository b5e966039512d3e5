package store

import (
	"slices"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

// Condition is a <condition> of RFC 7047 section 5.1. In monitors it may be true or false, too.
type Condition struct {
	constant, holds bool // true or false
	place           int
	function        string
	value           datum.Datum
}

// functions are the comparisons of a column with a value.
var functions = map[string]func(column, value datum.Datum) bool{
	"==":       datum.Equal,
	"!=":       func(a, b datum.Datum) bool { return !datum.Equal(a, b) },
	"includes": datum.Includes,
	"excludes": datum.Excludes,
	"<":        ordered(func(order int) bool { return order < 0 }),
	"<=":       ordered(func(order int) bool { return order <= 0 }),
	">":        ordered(func(order int) bool { return order > 0 }),
	">=":       ordered(func(order int) bool { return order >= 0 }),
}

// ordered compares a column of one integer. An empty column fulfils no comparison.
func ordered(holds func(order int) bool) func(column, value datum.Datum) bool {
	return func(column, value datum.Datum) bool {
		return len(column.Keys) == 1 && len(value.Keys) == 1 && holds(datum.Compare(column.Keys[0], value.Keys[0]))
	}
}

// parseWhere reads the conditions of an operation.
func parseWhere(t *schema.Table, v any, names datum.Names) (all []Condition, err error) {
	list, ok := v.([]any)
	if !ok {
		return nil, datum.Syntaxf("\"where\" is an array of conditions")
	}
	for _, v := range list {
		c, err := parseCondition(t, v, names)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// ParseConditions reads the "where" of a monitor (ovsdb-server(7)).
func ParseConditions(t *schema.Table, v any) ([]Condition, error) { return parseWhere(t, v, nil) }

func parseCondition(t *schema.Table, v any, names datum.Names) (c Condition, err error) {
	if holds, ok := v.(bool); ok {
		return Condition{constant: true, holds: holds}, nil
	}
	name, function, value, err := triple(v, "condition")
	if err != nil {
		return c, err
	}
	if c.place, err = t.Place(name); err != nil {
		return c, err
	}
	if functions[function] == nil {
		return c, datum.Errorf("unknown function", "there is no function %q", function)
	}
	column := &t.Columns[c.place].Type
	if slices.Contains([]string{"<", "<=", ">", ">="}, function) && (column.Key.Kind != datum.Integer || column.IsComposite() || column.Value != nil) {
		return c, datum.Syntaxf("function %q needs a column of one integer, and column %s of table %s is none", function, name, t.Name)
	}
	c.function = function
	if c.value, err = column.Parse(value, names); err != nil {
		return c, atColumn(t, c.place, err)
	}
	return c, nil
}

// triple reads [COLUMN, WORD, VALUE].
func triple(v any, what string) (column, word string, value any, err error) {
	list, _ := v.([]any)
	if len(list) == 3 {
		c, isText := list[0].(string)
		w, isWord := list[1].(string)
		if isText && isWord {
			return c, w, list[2], nil
		}
	}
	return "", "", nil, datum.Syntaxf("a %s is an array of a column, a word and a value", what)
}

// Holds reports whether a row fulfils a condition.
func (c *Condition) Holds(r *Row) bool {
	if c.constant {
		return c.holds
	}
	return functions[c.function](r.Cells[c.place], c.value)
}

// names returns the UUID of the only row that can fulfil a condition, if it compares _uuid.
func (c *Condition) names() (id datum.ID, ok bool) {
	if c.constant || c.place != schema.UUIDColumn || c.function != "==" || len(c.value.Keys) != 1 {
		return id, false
	}
	return c.value.Keys[0].ID, true
}

// all reports whether a row fulfils all conditions, as operations require.
func all(conditions []Condition, r *Row) bool {
	for i := range conditions {
		if !conditions[i].Holds(r) {
			return false
		}
	}
	return true
}

// Any reports whether a row fulfils one of the conditions, as monitors require, or there are none.
func Any(conditions []Condition, r *Row) bool {
	for i := range conditions {
		if conditions[i].Holds(r) {
			return true
		}
	}
	return len(conditions) == 0
}
