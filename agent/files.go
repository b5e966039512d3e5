package agent

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/antrail/antrail/conntrack"
)

// The files that an agent keeps for the next one lie beside its socket, on tmpfs if that
// is /run.

// arenaFile is where the connections are kept (switchd).
func (c *Config) arenaFile() string { return c.besideSocket("ct.arena") }

// seedFile is where the seed of select groups is kept (switchd).
func (c *Config) seedFile() string { return c.besideSocket("select.seed") }

// besideSocket is the path of a file of the agent's own: beside agent.sock under
// its plain name; beside another socket, as several agents of one machine have
// them, under that one's name too.
func (c *Config) besideSocket(file string) string {
	dir, name := filepath.Split(c.Socket)
	if name != filepath.Base(DefaultSocket) {
		file = strings.TrimSuffix(name, ".sock") + "." + file
	}
	return filepath.Join(dir, file)
}

// logRestored says what became of the connections of the agent before.
func logRestored(log *slog.Logger, path string, r conntrack.Restored) {
	if r.Empty != "" {
		log.Info("no connections restored", "file", path, "why", r.Empty)
		return
	}
	log.Info(fmt.Sprintf("%d connections restored, %d torn, in %v", r.Entries, r.Torn, r.Took),
		"file", path, "expired", r.Expired, "refused", r.Refused)
}
