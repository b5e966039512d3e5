package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// The files that an agent keeps for the next one lie beside its socket, on tmpfs if that
// is /run.

// BesideSocket is the path of a file of the agent's own: beside agent.sock under
// its plain name; beside another socket, as several agents of one machine have
// them, under that one's name too.
func (c *Config) BesideSocket(file string) string {
	dir, name := filepath.Split(c.Socket)
	if name != filepath.Base(DefaultSocket) {
		file = strings.TrimSuffix(name, ".sock") + "." + file
	}
	return filepath.Join(dir, file)
}

// FactsFile is where they are kept.
func (c *Config) FactsFile() string { return c.BesideSocket("node.json") }

// CNIRecord tells which pod has what.
func (c *Config) CNIRecord() string { return c.BesideSocket("cni.record") }

// PageFile has the URL that lets the next browser in.
func (c *Config) PageFile() string { return c.BesideSocket("page.url") }

// SwitchSocket is where the door of the switch is that the agent of a socket launches.
func SwitchSocket(socket string) string { return (&Config{Socket: socket}).SwitchSocket() }

// SwitchSocket is where the door of the agent's switch is.
func (c *Config) SwitchSocket() string {
	if c.Switch != "" {
		return c.Switch
	}
	return c.BesideSocket("switch.sock")
}

// OwnsSwitch says whether the agent launches and ends the switch.
func (c *Config) OwnsSwitch() bool { return c.Switch == "" }

// SwitchDir is the directory of that switch.
func (c *Config) SwitchDir() string { return c.SwitchSocket() + ".d" }

// AssignmentsFile is where the numbers that objects were given are kept; "" without objects.
func (c *Config) AssignmentsFile() string {
	if !c.FromObjects() {
		return ""
	}
	return c.BesideSocket("assignments.json")
}

// besides are the names of the files that an agent keeps for the next one. A file that is
// replaced as a whole is first written under its name with ".new".
var besides = []string{"ct.arena", "select.seed", "assignments.json", "assignments.json.new", "flows.snapshot", "networkpolicy.log", "node.record.new", "node.json", "node.json.new", "cni.record", "cni.record.new", "page.url", "page.url.new"}

// RecordFile tells what was changed on the Node.
func (c *Config) RecordFile() string { return c.BesideSocket("node.record") }

// OwnFiles are those that go with Uninstall. A log of policies that the
// configuration puts elsewhere is the operator's.
func (c *Config) OwnFiles() []string {
	var all []string
	for _, name := range besides {
		all = append(all, c.BesideSocket(name))
	}
	if log := c.BesideSocket("networkpolicy.log"); c.AuditLog.Path == log {
		for i := range *c.AuditLog.Keep {
			all = append(all, fmt.Sprintf("%s.%d", log, i+1))
		}
	}
	all = append(all, c.CNI.files()...)
	if c.OwnsSwitch() {
		for _, name := range []string{"ct.arena", "select.seed", "switch.flows", "switch.flows.new", ""} { // the directory comes last
			all = append(all, filepath.Join(c.SwitchDir(), name))
		}
		all = append(all, c.SwitchSocket(), c.BesideSocket("launch.sock"))
	}
	all = append(all, c.Socket)
	for i, f := range all {
		if whole, err := filepath.Abs(f); err == nil {
			all[i] = whole
		}
	}
	return all
}
