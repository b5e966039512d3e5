package daemon

import (
	"context"
	"strings"

	"github.com/antrail/antrail/vswitchd/unixctl"
)

// databaseCommands are the commands that only ovsdb-server has.
func (d *Daemon) databaseCommands() []unixctl.Command {
	return []unixctl.Command{
		{Name: "ovsdb-server/list-dbs", Run: func(context.Context, []string) (string, error) {
			return strings.Join(d.clients.Databases(), "\n"), nil
		}},
		{Name: "ovsdb-server/compact", Run: func(context.Context, []string) (string, error) { return "", d.db.Compact() }},
	}
}
