package store

import (
	"fmt"
	"strings"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

// uniqueness has, for each index of a table, the row of each combination of values.
type uniqueness map[indexKey]datum.ID

// indexKey is an index of a table, and values of its columns as text.
type indexKey struct {
	table  *schema.Table
	index  int
	values string
}

// indexChange is what a transaction does to indexes.
type indexChange struct {
	to   uniqueness
	gone []indexKey
	come uniqueness
}

// with works out what changes do to the indexes. Two rows with equal values are an error.
func (u uniqueness) with(changes []Change) (*indexChange, error) {
	c := &indexChange{to: u, come: uniqueness{}}
	leaving := map[indexKey]bool{}
	for _, change := range changes {
		for _, k := range keysOf(change.Old) {
			c.gone, leaving[k] = append(c.gone, k), true
		}
	}
	for _, change := range changes {
		for _, k := range keysOf(change.New) {
			other, taken := c.come[k]
			if !taken && !leaving[k] {
				other, taken = u[k]
			}
			if taken {
				return nil, duplicate(k, other, change.New)
			}
			c.come[k] = change.New.ID()
		}
	}
	return c, nil
}

func (c *indexChange) apply() {
	for _, k := range c.gone {
		delete(c.to, k)
	}
	for k, id := range c.come {
		c.to[k] = id
	}
}

// keysOf are the keys of a row, one for each index of its table.
func keysOf(r *Row) (keys []indexKey) {
	if r == nil {
		return nil
	}
	for n, places := range r.Table.Indexes {
		var b strings.Builder
		for _, i := range places {
			fmt.Fprintf(&b, "%q", r.Table.Columns[i].Type.JSONOf(r.Cells[i]))
		}
		keys = append(keys, indexKey{r.Table, n, b.String()})
	}
	return keys
}

func duplicate(k indexKey, a datum.ID, b *Row) error {
	var names []string
	for _, i := range k.table.Indexes[k.index] {
		names = append(names, k.table.Columns[i].Name)
	}
	return datum.Violationf("two rows of table %s would have the same value %s in column %s: %s and %s",
		k.table.Name, k.values, strings.Join(names, ", "), a, b.ID())
}
