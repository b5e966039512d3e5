// Package sysctl writes settings of the kernel's network, those of the calling
// thread's network namespace. A container that is not privileged can only read
// its /proc/sys; one that the Node's is mounted in at /host/proc/sys/net writes
// there: whose settings those are is decided by the writer's namespace, not by
// where the directory comes from (proc_sys(5)).
package sysctl

import (
	"os"
	"strings"
)

const (
	// Root is where settings have their names.
	Root = "/proc/sys/"
	// nodeNet is where a container has those of the network to write to.
	nodeNet = "/host" + Root + "net/"
)

// Read is the value of a file below Root, without the line's end.
func Read(file string) (string, error) {
	b, err := os.ReadFile(file)
	return strings.TrimSpace(string(b)), err
}

// Write sets the value of a file below Root.
func Write(file, value string) error { return os.WriteFile(place(file, nodeNet), []byte(value), 0o644) }

// place is where a file of the network can be written.
func place(file, mounted string) string {
	name, ok := strings.CutPrefix(file, Root+"net/")
	if _, err := os.Stat(mounted); err != nil || !ok {
		return file
	}
	return mounted + name
}
