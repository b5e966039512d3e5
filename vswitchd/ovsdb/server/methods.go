package server

import (
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// methods are the requests whose reply needs no order among updates. transact and the monitors
// are not among them.
var methods = map[string]func(*conn, []any) (any, error){
	"echo":                func(_ *conn, params []any) (any, error) { return params, nil },
	"list_dbs":            func(c *conn, _ []any) (any, error) { return c.s.Databases(), nil },
	"get_schema":          (*conn).getSchema,
	"get_server_id":       func(c *conn, _ []any) (any, error) { return c.s.id.String(), nil },
	"set_db_change_aware": setDBChangeAware,
	"lock":                func(c *conn, params []any) (any, error) { return c.lock(params, false) },
	"steal":               func(c *conn, params []any) (any, error) { return c.lock(params, true) },
	"unlock":              (*conn).unlock,
	"monitor_cond_change": (*conn).monitorCondChange,
	"monitor_cancel":      (*conn).monitorCancel,
}

// dialects are the requests that begin a monitor.
var dialects = map[string]dialect{"monitor": dialectUpdate, "monitor_cond": dialectUpdate2, "monitor_cond_since": dialectUpdate3}

// database finds the database that the first parameter names.
func (c *conn) database(params []any) (*store.Database, error) {
	if len(params) == 0 {
		return nil, datum.Syntaxf("the request lacks the name of a database")
	}
	name, ok := params[0].(string)
	if !ok {
		return nil, datum.Syntaxf("the name of a database is a string")
	}
	d := c.s.dbs[name]
	if d == nil {
		return nil, datum.Errorf("unknown database", "there is no database %q", name)
	}
	return d, nil
}

func (c *conn) getSchema(params []any) (any, error) {
	d, err := c.database(params)
	if err != nil {
		return nil, err
	}
	return d.Schema.JSON(), nil
}

// setDBChangeAware takes note that a client follows changes of the list of databases. The list
// never changes, so there is nothing to tell.
func setDBChangeAware(_ *conn, params []any) (any, error) {
	if len(params) == 1 {
		if _, ok := params[0].(bool); ok {
			return map[string]any{}, nil
		}
	}
	return nil, datum.Syntaxf("set_db_change_aware has one parameter, true or false")
}

// oneText is the only parameter of a request, a string.
func oneText(params []any, what string) (string, error) {
	if len(params) == 1 {
		if s, ok := params[0].(string); ok {
			return s, nil
		}
	}
	return "", datum.Syntaxf("%s is expected as the one parameter", what)
}
