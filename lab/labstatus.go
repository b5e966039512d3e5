package lab

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/antrail/antrail/agent/api"
)

// Status is a lab as `antrail lab status` shows it.
type Status struct {
	ID    string       `json:"id"`
	State string       `json:"state"` // up, starting, dead
	Nodes []NodeStatus `json:"nodes"`
}

// NodeStatus is a Node with its pods.
type NodeStatus struct {
	Name      string         `json:"name"`
	Addresses []netip.Addr   `json:"addresses"`
	PodCIDRs  []netip.Prefix `json:"podCIDRs"`
	Agent     string         `json:"agent"` // ready, or why not
	PID       int            `json:"pid"`
	Socket    string         `json:"socket"`
	Pods      []PodStatus    `json:"pods"`
	// Notes name Pods whose links are down, and Nodes that do not answer this Node.
	Notes []string `json:"notes,omitempty"`
}

// ready is the value of NodeStatus.Agent for an agent that forwards.
const ready = "ready"

// PodStatus is one pod.
type PodStatus struct {
	Name      string       `json:"name"`
	Addresses []netip.Addr `json:"addresses"`
	MAC       string       `json:"mac"`
	OFPort    uint32       `json:"ofPort"`
	Namespace string       `json:"namespace"` // "" if it is gone
}

// Status reads the lab's current state, and asks its agents.
func (l *Lab) Status(ctx context.Context) *Status {
	s := &Status{ID: l.State.ID, State: l.stateWord()}
	for i := range l.Topology.Nodes {
		s.Nodes = append(s.Nodes, l.nodeStatus(ctx, &l.Topology.Nodes[i]))
	}
	return s
}

func (l *Lab) stateWord() string {
	switch {
	case l.Dead():
		return "dead"
	case l.State.Up:
		return "up"
	}
	return "starting"
}

func (l *Lab) nodeStatus(ctx context.Context, n *Node) NodeStatus {
	s := NodeStatus{
		Name: n.Name, Addresses: addrsOf(n.Address).Both(), PodCIDRs: n.PodCIDR.Both(),
		Agent: ready, Socket: l.Socket(n.Name),
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	client := api.NewClient(s.Socket)
	if err := client.Ready(ctx); err != nil {
		s.Agent = err.Error()
	} else if drops, err := client.DroppedPackets(ctx, &api.DropQuery{Last: 1}); err == nil && drops.Note != "" {
		s.Notes = strings.Split(drops.Note, "\n")
	}
	for _, a := range l.State.Agents {
		if a.Node != n.Name {
			continue
		}
		s.PID = a.Process.PID
		if s.Agent != ready && !a.Process.alive() {
			s.Agent = fmt.Sprintf("its agent has ended (log: %s); to start another: %s", l.Log(n.Name), l.startCommand(n.Name))
		}
	}
	for _, p := range n.Pods {
		ns, err := l.Namespace(p.Name)
		if err != nil {
			ns = ""
		}
		s.Pods = append(s.Pods, PodStatus{p.Name, p.Address.Both(), p.MAC.String(), p.OFPort, string(ns)})
	}
	return s
}

// startCommand is a shell command that starts a Node's agent. It works in any directory: it
// has the program's whole path and names the lab.
func (l *Lab) startCommand(node string) string {
	binary, err := os.Executable()
	if err != nil {
		binary = "antrail"
	}
	words := []string{binary, "lab", "exec", "--lab", l.State.ID, node, "--", binary, "agent", "--config", l.configFile(node)}
	for i, w := range words {
		words[i] = shellWord(w)
	}
	line := strings.Join(words, " ")
	if dir := filepath.Dir(l.Dir); os.Getenv(stateEnv) != "" {
		line = stateEnv + "=" + shellWord(dir) + " " + line
	}
	return line
}

// shellWord quotes a word for a shell.
func shellWord(w string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"
	if w != "" && strings.Trim(w, plain) == "" {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// Write prints the status as a table.
func (s *Status) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "lab %s\t%s\n\n", s.ID, s.State)
	fmt.Fprintln(t, "NODE\tADDRESSES\tPOD CIDRS\tAGENT\tPID\tSOCKET")
	var below []string // errors and notes go below the table, because they are long
	for _, n := range s.Nodes {
		word := n.Agent
		if word != ready {
			word = "not ready"
			below = append(below, n.Name+": "+n.Agent)
		}
		for _, note := range n.Notes {
			below = append(below, n.Name+": "+note)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", n.Name, join(n.Addresses), join(n.PodCIDRs), word, n.PID, n.Socket)
	}
	fmt.Fprintln(t, "\nPOD\tADDRESSES\tMAC\tPORT\tNAMESPACE")
	for _, n := range s.Nodes {
		for _, p := range n.Pods {
			ns := cmp.Or(p.Namespace, "(gone)")
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", p.Name, join(p.Addresses), p.MAC, p.OFPort, ns)
		}
	}
	for i, line := range below {
		if i == 0 {
			fmt.Fprintln(t)
		}
		fmt.Fprintln(t, line)
	}
	return t.Flush()
}

// join joins addresses or prefixes with commas.
func join[T fmt.Stringer](all []T) string {
	var words []string
	for _, a := range all {
		words = append(words, a.String())
	}
	return strings.Join(words, ", ")
}
