package schema

import (
	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
)

// UUIDColumn and VersionColumn are the places of _uuid and _version, which every table has and no
// schema lists.
const UUIDColumn, VersionColumn = 0, 1

// hidden is the number of columns of a table that the schema's JSON leaves out.
const hidden = 2

// Column is a column of a table.
type Column struct {
	Name string
	Type datum.Type
	// Ephemeral is set if the column is not in the database's file.
	Ephemeral bool
	// Immutable is set if the column cannot change after the row's insertion.
	Immutable bool
}

// Table is a table. Columns[0] and Columns[1] are _uuid and _version.
type Table struct {
	Name    string
	Columns []Column
	// Root is set if rows stay without references.
	Root    bool
	MaxRows int // datum.Unlimited if there is no limit
	// Indexes are sets of columns, by place. No two rows have equal values in all columns of a set.
	Indexes [][]int
	// Refs are the places of the columns with references.
	Refs []int

	places map[string]int
}

// Place returns the index of a column in a row.
func (t *Table) Place(column string) (int, error) {
	i, ok := t.places[column]
	if !ok {
		return 0, datum.Errorf("unknown column", "table %s has no column %s", t.Name, column)
	}
	return i, nil
}

// Database is a database.
type Database struct {
	Name, Version string
	Tables        []*Table

	byName map[string]*Table
}

// Table returns a table by its name.
func (d *Database) Table(name string) (*Table, error) {
	t, ok := d.byName[name]
	if !ok {
		return nil, datum.Errorf("unknown table", "database %s has no table %s", d.Name, name)
	}
	return t, nil
}

// JSON is the <database-schema>.
func (d *Database) JSON() map[string]any {
	tables := map[string]any{}
	for _, t := range d.Tables {
		tables[t.Name] = t.json()
	}
	return map[string]any{"name": d.Name, "version": d.Version, "tables": tables}
}

// Text is the schema's JSON as text.
func (d *Database) Text() string {
	b, err := jsonrpc.Encode(d.JSON())
	if err != nil {
		panic(err) // strings and numbers are always written
	}
	return string(b)
}

func (t *Table) json() any {
	columns := map[string]any{}
	for _, c := range t.Columns[hidden:] {
		columns[c.Name] = c.json()
	}
	o := map[string]any{"columns": columns}
	if t.Root {
		o["isRoot"] = true
	}
	if t.MaxRows != datum.Unlimited {
		o["maxRows"] = t.MaxRows
	}
	var indexes [][]string
	for _, places := range t.Indexes {
		var names []string
		for _, p := range places {
			names = append(names, t.Columns[p].Name)
		}
		indexes = append(indexes, names)
	}
	if indexes != nil {
		o["indexes"] = indexes
	}
	return o
}

func (c *Column) json() any {
	o := map[string]any{"type": c.Type.JSON()}
	if c.Ephemeral {
		o["ephemeral"] = true
	}
	if c.Immutable {
		o["mutable"] = false
	}
	return o
}
