package replica

import (
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// operations are the operations of a transaction that makes the changes on a server with these
// columns. A switch does not insert or delete rows there, so each operation is an update.
func operations(changes []store.Change, has columns) (all []any, err error) {
	for _, c := range changes {
		if c.Old == nil || c.New == nil {
			return nil, datum.Errorf("not supported", "row %s of table %s: a switch neither inserts nor deletes rows of another server", c.Row().ID(), c.Row().Table.Name)
		}
		t, row := c.New.Table, map[string]any{}
		for i := range t.Columns {
			column := &t.Columns[i]
			if i != schema.UUIDColumn && i != schema.VersionColumn && has[t.Name][column.Name] && !datum.Equal(c.Old.Cells[i], c.New.Cells[i]) {
				row[column.Name] = column.Type.JSONOf(c.New.Cells[i])
			}
		}
		if len(row) == 0 {
			continue
		}
		all = append(all, map[string]any{
			"op": "update", "table": t.Name, "row": row,
			"where": []any{[]any{"_uuid", "==", []any{"uuid", c.New.ID().String()}}},
		})
	}
	return all, nil
}

// columns are the columns that both sides know, by table.
type columns map[string]map[string]bool

// commonColumns are the columns that are in a schema and in another server's schema.
func commonColumns(ours *schema.Database, theirs any) columns {
	has := columns{}
	tables, _ := member(theirs, "tables").(map[string]any)
	for _, t := range ours.Tables {
		known, _ := member(tables[t.Name], "columns").(map[string]any)
		for i := range t.Columns {
			if name := t.Columns[i].Name; known[name] != nil {
				if has[t.Name] == nil {
					has[t.Name] = map[string]bool{}
				}
				has[t.Name][name] = true
			}
		}
	}
	return has
}

// monitorRequests are the requests of a monitor of all these columns.
func (c columns) monitorRequests() map[string]any {
	all := map[string]any{}
	for table, names := range c {
		list := []any{}
		for name := range names {
			list = append(list, name)
		}
		all[table] = map[string]any{"columns": list}
	}
	return all
}

// member is a member of a JSON object; nil if v is not an object or lacks the member.
func member(v any, name string) any {
	o, _ := v.(map[string]any)
	return o[name]
}
