package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// The files that an agent leaves for the next one are beside its socket, on tmpfs if that is
// /run.

// BesideSocket is the path of one of the agent's files. Beside agent.sock it has its plain
// name. Beside another socket, its name begins with the socket's, so that several agents can
// share a directory.
func (c *Config) BesideSocket(file string) string {
	dir, name := filepath.Split(c.Socket)
	if name != filepath.Base(DefaultSocket) {
		file = strings.TrimSuffix(name, ".sock") + "." + file
	}
	return filepath.Join(dir, file)
}

// FactsFile is the file of the Node's facts.
func (c *Config) FactsFile() string { return c.BesideSocket("node.json") }

// CNIRecord is the file of the attached pods' ports and addresses.
func (c *Config) CNIRecord() string { return c.BesideSocket("cni.record") }

// PageFile is the file with the URL that admits the next browser.
func (c *Config) PageFile() string { return c.BesideSocket("page.url") }

// SwitchSocket is the socket of the switch that an agent with this socket launches.
func SwitchSocket(socket string) string { return (&Config{Socket: socket}).SwitchSocket() }

// SwitchSocket is the API socket of the agent's switch.
func (c *Config) SwitchSocket() string {
	if c.Switch != "" {
		return c.Switch
	}
	return c.BesideSocket("switch.sock")
}

// OwnsSwitch says whether the agent launches and ends the switch.
func (c *Config) OwnsSwitch() bool { return c.Switch == "" }

// SwitchDir is the directory of the agent's switch.
func (c *Config) SwitchDir() string { return c.SwitchSocket() + ".d" }

// AssignmentsFile is the file of objects' numbers; "" without objects.
func (c *Config) AssignmentsFile() string {
	if !c.FromObjects() {
		return ""
	}
	return c.BesideSocket("assignments.json")
}

// besideNames are the names of the files that an agent leaves for the next one. A replaced file is
// first written under its name with ".new".
var besideNames = []string{"ct.arena", "select.seed", "assignments.json", "assignments.json.new", "flows.snapshot", "networkpolicy.log", "node.record.new", "node.json", "node.json.new", "cni.record", "cni.record.new", "page.url", "page.url.new"}

// RecordFile is the record of changes that the agent made on the Node.
func (c *Config) RecordFile() string { return c.BesideSocket("node.record") }

// OwnFiles are the files that Uninstall removes. An audit log at another path belongs to the
// operator.
func (c *Config) OwnFiles() []string {
	var all []string
	for _, name := range besideNames {
		all = append(all, c.BesideSocket(name))
	}
	if log := c.BesideSocket("networkpolicy.log"); c.AuditLog.Path == log {
		for i := range *c.AuditLog.Keep {
			all = append(all, fmt.Sprintf("%s.%d", log, i+1))
		}
	}
	all = append(all, c.CNI.files()...)
	if c.OwnsSwitch() {
		for _, name := range []string{"ct.arena", "select.seed", "switch.flows", "switch.flows.new", ""} { // the directory, last
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
