package agent

import (
	"path/filepath"
	"strings"
)

// The files that an agent keeps for the next one lie beside its socket, on tmpfs if that
// is /run.

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
