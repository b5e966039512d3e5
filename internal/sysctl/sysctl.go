// Package sysctl writes settings of the kernel's network: those of the calling thread's network
// namespace. A container without privilege can only read its /proc/sys. If the Node's directory
// is mounted at /host/proc/sys/net, it writes there. The writer's namespace decides whose
// settings change, not the origin of the directory (proc_sys(5)).
package sysctl

import (
	"os"
	"strings"
)

const (
	// Root is the directory of all settings.
	Root = "/proc/sys/"
	// nodeNet is where a container can write those of the network.
	nodeNet = "/host" + Root + "net/"
)

// Read is the value of a file below Root, without the line's end.
func Read(file string) (string, error) {
	b, err := os.ReadFile(file)
	return strings.TrimSpace(string(b)), err
}

// Write sets the value of a file below Root.
func Write(file, value string) error { return os.WriteFile(place(file, nodeNet), []byte(value), 0o644) }

// place is the path at which a setting of the network can be written.
func place(file, mounted string) string {
	name, ok := strings.CutPrefix(file, Root+"net/")
	if _, err := os.Stat(mounted); err != nil || !ok {
		return file
	}
	return mounted + name
}
