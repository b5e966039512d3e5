package store

import (
	"slices"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

// Row is a row of a table. It never changes.
type Row struct {
	Table *schema.Table
	// Cells are the columns, in the order of Table.Columns.
	Cells []datum.Datum
}

// newRow makes a row whose columns have their defaults.
func newRow(t *schema.Table, id datum.ID) *Row {
	r := &Row{Table: t, Cells: make([]datum.Datum, len(t.Columns))}
	for i := range t.Columns {
		r.Cells[i] = t.Columns[i].Type.Default()
	}
	r.Cells[schema.UUIDColumn] = datum.One(datum.Ref(id))
	return r
}

// clone copies a row, so that the copy may be changed.
func (r *Row) clone() *Row { return &Row{r.Table, slices.Clone(r.Cells)} }

// ID is the row's UUID.
func (r *Row) ID() datum.ID { return r.Cells[schema.UUIDColumn].Keys[0].ID }

// Get returns a column. The name must be one of the table's.
func (r *Row) Get(column string) datum.Datum {
	i, err := r.Table.Place(column)
	if err != nil {
		panic(err) // a mistake in the caller
	}
	return r.Cells[i]
}

// Text is a column of one string, or "".
func (r *Row) Text(column string) string {
	if d := r.Get(column); len(d.Keys) > 0 {
		return d.Keys[0].Str
	}
	return ""
}

// Texts is a set of strings.
func (r *Row) Texts(column string) (all []string) {
	for _, k := range r.Get(column).Keys {
		all = append(all, k.Str)
	}
	return all
}

// Number is a column of one integer or one boolean. ok is false if the column is empty.
func (r *Row) Number(column string) (n int64, ok bool) {
	if d := r.Get(column); len(d.Keys) > 0 {
		return d.Keys[0].Num, true
	}
	return 0, false
}

// Numbers is a set of integers.
func (r *Row) Numbers(column string) (all []int64) {
	for _, k := range r.Get(column).Keys {
		all = append(all, k.Num)
	}
	return all
}

// Map is a map of strings to strings.
func (r *Row) Map(column string) map[string]string {
	d, m := r.Get(column), map[string]string{}
	for i, k := range d.Keys {
		m[k.Str] = d.Values[i].Str
	}
	return m
}

// Refs are the UUIDs of a set of references.
func (r *Row) Refs(column string) (all []datum.ID) {
	for _, k := range r.Get(column).Keys {
		all = append(all, k.ID)
	}
	return all
}

// sameCells reports whether two rows have equal columns, their versions aside.
func sameCells(a, b *Row) bool {
	for i := range a.Cells {
		if i != schema.VersionColumn && !datum.Equal(a.Cells[i], b.Cells[i]) {
			return false
		}
	}
	return true
}
