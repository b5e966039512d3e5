package main

import (
	"fmt"
	"os"
	"strings"
)

// withoutPrivilege are the lines of a switch's status in /proc.
var withoutPrivilege = []string{
	"CapPrm: 0000000000000000", "CapEff: 0000000000000000", "CapBnd: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2", "Uid: 64081 64081 64081 64081",
}

// confined checks the privileges of every Node's switch.
func (c *cluster) confined() (string, error) {
	var seen []string
	for _, n := range c.nodes {
		pid, err := n.switchProcess()
		if err != nil {
			return "", err
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return "", err
		}
		status := strings.Join(strings.Fields(string(text)), " ")
		for _, want := range withoutPrivilege {
			if !strings.Contains(status, want) {
				return "", fmt.Errorf("%s: process %d: no %q in %s", n.name, pid, want, status)
			}
		}
		seen = append(seen, fmt.Sprintf("%s process %d", n.name, pid))
	}
	return strings.Join(seen, ", ") + ": user 64081, no capability, Seccomp 2", nil
}

// switchProcess is the switch that the Node's agent launched.
func (n *node) switchProcess() (pid int, err error) {
	for _, pid := range n.processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may end meanwhile
		if strings.Contains(string(line), "antrail\x00switch\x00") {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("%s has no switch among %v", n.name, n.processes())
}
