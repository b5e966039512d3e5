package preflight

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Capability is a capability that an agent keeps.
type Capability struct {
	Name string // as capabilities(7) has it
	Bit  uint   // its number
	For  string // the agent's reason for it
}

// needed are the capabilities that every agent needs. An agent that launches the switch as
// a child also needs forChild. Some configurations need those of forSome. docs/security.md
// has the same lists.
var (
	needed = []Capability{
		{"CAP_CHOWN", unix.CAP_CHOWN, "the switch's directory, which belongs to another user"},
		{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN, "links, addresses, routes, nftables, sysctls of the network, XDP and tcx"},
		{"CAP_NET_RAW", unix.CAP_NET_RAW, "packet sockets of pods' ports"},
		{"CAP_SYS_ADMIN", unix.CAP_SYS_ADMIN, "pods' network namespaces, and BPF"},
	}
	forChild = []Capability{
		{"CAP_DAC_OVERRIDE", unix.CAP_DAC_OVERRIDE, "the switch's directory, while the child is root"},
		{"CAP_KILL", unix.CAP_KILL, "to end a child that does not become the switch"},
		{"CAP_SETGID", unix.CAP_SETGID, "the child's group"},
		{"CAP_SETPCAP", unix.CAP_SETPCAP, "the child's empty bounding set, and the agent's own"},
		{"CAP_SETUID", unix.CAP_SETUID, "the child's user"},
	}
	forSome = []Capability{
		{"CAP_DAC_OVERRIDE", unix.CAP_DAC_OVERRIDE, "files and directories of the configuration that belong to other users"},
		{"CAP_IPC_LOCK", unix.CAP_IPC_LOCK, "driver afxdp, if the limit of locked memory is small"},
		{"CAP_NET_BIND_SERVICE", unix.CAP_NET_BIND_SERVICE, "the page, metrics and the tunnel at ports below 1024"},
		{"CAP_SYS_PTRACE", unix.CAP_SYS_PTRACE, "pods' network namespaces that the runtime names by /proc/PID/ns/net"},
	}
)

// Kept is the mask of the capabilities that an agent keeps. Bit n is capability n. child
// says that the agent launches its switch as a child.
func Kept(child bool) (mask uint64) {
	all := slices.Concat(needed, forSome)
	if child {
		all = append(all, forChild...)
	}
	for _, c := range all {
		mask |= 1 << c.Bit
	}
	return mask
}

// without are the names of the missing capabilities.
func without(have uint64, all []Capability) string {
	var missing []string
	for _, n := range all {
		if have&(1<<n.Bit) == 0 {
			missing = append(missing, n.Name)
		}
	}
	return strings.Join(missing, ", ")
}

func capabilities(*Config) Line {
	const check = "capabilities"
	have, err := effective()
	if err != nil {
		return Line{Warn, check, err.Error(), "mount /proc"}
	}
	if missing := without(have, needed); missing != "" {
		return Line{Fail, check, "missing: " + missing, "run as root, or with these capabilities"}
	}
	if missing := without(have, forChild); missing != "" {
		return ok(check, "enough for a switch that waits (--await); to launch the switch as a child, the agent also needs %s", missing)
	}
	return ok(check, "all that an agent needs")
}

// effective are the effective capabilities of this process.
func effective() (uint64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), "\nCapEff:")
	line, _, _ := strings.Cut(after, "\n")
	return strconv.ParseUint(strings.TrimSpace(line), 16, 64)
}
