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

// strong is a strong reference: the row cannot be deleted while it exists.
func strong(table string) datum.Base {
	b := id
	b.Table = table
	return b
}

// weak is a weak reference, which is removed when the row is deleted.
func weak(table string) datum.Base {
	b := strong(table)
	b.Weak = true
	return b
}

// These columns differ in their number of atoms: one has 1, maybe has 0 or 1, many has any number,
// some has at least 1. upTo has at most a number.
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

// ephemeral makes a column one that is not in the database's file.
func ephemeral(c Column) Column { c.Ephemeral = true; return c }

// fixed makes a column immutable.
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

// root makes a table one whose rows stay without references.
func root(t *Table) *Table { t.Root = true; return t }

// single limits a table to one row.
func single(t *Table) *Table { t.MaxRows = 1; return t }

// unique adds an index: no two rows may have the same values in these columns.
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
