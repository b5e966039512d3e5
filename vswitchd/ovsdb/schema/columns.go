package schema

import (
	"fmt"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
)

// most32 is the largest value of columns of 32 bits.
const most32 = 1<<32 - 1

// text, number, flag and id are atoms without constraints.
var text, number, flag, id = datum.NewBase(datum.String), datum.NewBase(datum.Integer), datum.NewBase(datum.Boolean), datum.NewBase(datum.UUID)

// between is an integer from least to most.
func between(least, most int64) datum.Base {
	return datum.Base{Kind: datum.Integer, Least: least, Most: most}
}

// atLeast is an integer that has only a lower bound.
func atLeast(least int64) datum.Base {
	b := number
	b.Least = least
	return b
}

// oneOf is a string of a list.
func oneOf(words ...string) datum.Base {
	b := text
	b.Enum = words
	return b
}

// strong refers to a row, which stays while it is referred to.
func strong(table string) datum.Base {
	b := id
	b.Table = table
	return b
}

// weak refers to a row that may go.
func weak(table string) datum.Base {
	b := strong(table)
	b.Weak = true
	return b
}

// Columns by their number of atoms. one has one atom, maybe one or none, any any number, some at
// least one, and upTo up to a number.
func one(name string, b datum.Base) Column   { return count(name, b, 1, 1) }
func maybe(name string, b datum.Base) Column { return count(name, b, 0, 1) }
func many(name string, b datum.Base) Column  { return count(name, b, 0, datum.Unlimited) }
func some(name string, b datum.Base) Column  { return count(name, b, 1, datum.Unlimited) }

func upTo(most int, name string, b datum.Base) Column { return count(name, b, 0, most) }

func count(name string, b datum.Base, least, most int) Column {
	return Column{Name: name, Type: datum.Type{Key: b, Min: least, Max: most}}
}

// mapping is a column of pairs.
func mapping(name string, key, value datum.Base) Column {
	return Column{Name: name, Type: datum.Type{Key: key, Value: &value, Max: datum.Unlimited}}
}

// words is a column of pairs of strings.
func words(name string) Column { return mapping(name, text, text) }

// ephemeral is a column that does not outlive the process.
func ephemeral(c Column) Column { c.Ephemeral = true; return c }

// fixed is a column that keeps its first value.
func fixed(c Column) Column { c.Immutable = true; return c }

// table makes a table of its columns.
func table(name string, columns ...Column) *Table {
	t := &Table{Name: name, MaxRows: datum.Unlimited, places: map[string]int{}}
	t.Columns = append([]Column{fixed(one("_uuid", id)), ephemeral(fixed(one("_version", id)))}, columns...)
	for i, c := range t.Columns {
		if _, twice := t.places[c.Name]; twice {
			panic(fmt.Sprintf("table %s has column %s twice", name, c.Name))
		}
		t.places[c.Name] = i
		if c.Type.Key.Table != "" || c.Type.Value != nil && c.Type.Value.Table != "" {
			t.Refs = append(t.Refs, i)
		}
	}
	return t
}

// root says that rows stay by themselves.
func root(t *Table) *Table { t.Root = true; return t }

// single says that there is at most one row.
func single(t *Table) *Table { t.MaxRows = 1; return t }

// unique says that no two rows have the same values in some columns.
func unique(t *Table, columns ...string) *Table {
	var places []int
	for _, c := range columns {
		places = append(places, t.places[c])
	}
	t.Indexes = append(t.Indexes, places)
	return t
}

// database makes a database of its tables.
func database(name, version string, tables ...*Table) *Database {
	d := &Database{Name: name, Version: version, Tables: tables, byName: map[string]*Table{}}
	for _, t := range tables {
		d.byName[t.Name] = t
	}
	return d
}
