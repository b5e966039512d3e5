package server

import (
	"maps"
	"slices"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// databases are the databases of a server, and the server's id. They never change.
type databases struct {
	id     datum.ID
	byName map[string]*store.Database
}

// newDatabases adds the database _Server, which lists the others.
func newDatabases(all []*store.Database) (*databases, error) {
	d := &databases{datum.NewID(), map[string]*store.Database{}}
	list := store.New(schema.Server())
	for _, one := range append(slices.Clone(all), list) {
		d.byName[one.Schema.Name] = one
	}
	return d, list.Transact("", d.insertRows)
}

// insertRows inserts the rows of _Server.
func (d *databases) insertRows(tx *store.Tx) error {
	for _, one := range d.byName {
		row := map[string]datum.Datum{
			"name": datum.One(datum.Text(one.Schema.Name)), "model": datum.One(datum.Text("standalone")),
			"connected": datum.One(datum.Bool(true)), "leader": datum.One(datum.Bool(true)),
			"schema": datum.One(datum.Text(one.Schema.Text())),
		}
		if _, err := tx.Insert("Database", row); err != nil {
			return err
		}
	}
	return nil
}

func (d *databases) names() []string { return slices.Sorted(maps.Keys(d.byName)) }

// findDatabase is the database that the first parameter names.
func (d *databases) findDatabase(params []any) (*store.Database, error) {
	if len(params) == 0 {
		return nil, datum.Syntaxf("the request lacks the name of a database")
	}
	name, ok := params[0].(string)
	if !ok {
		return nil, datum.Syntaxf("the name of a database is a string")
	}
	one := d.byName[name]
	if one == nil {
		return nil, datum.Errorf("unknown database", "there is no database %q", name)
	}
	return one, nil
}

// size counts the rows of all databases, and their columns.
func (d *databases) size() (rows, cells int) {
	for _, one := range d.byName {
		r, c := one.Size()
		rows, cells = rows+r, cells+c
	}
	return rows, cells
}
