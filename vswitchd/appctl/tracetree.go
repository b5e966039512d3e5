package appctl

import (
	"fmt"
	"strings"

	"github.com/antrail/antrail/flow"
)

// The output of ofproto/trace is a tree: tables and buckets have actions. Each ct() with a table
// begins another pass, which is printed behind the present one.

// nodeKind is the kind of a node.
type nodeKind int

const (
	nodeTable  nodeKind = iota // a table, or the begin of a later pass: has nodes below
	nodeBucket                 // has nodes below
	nodeAction
	nodeDetail
	nodeWarning
)

// prefixes stand before the text of a node.
var prefixes = map[nodeKind]string{nodeDetail: " -> ", nodeWarning: " >> "}

// node is one line, with the lines below it.
type node struct {
	kind nodeKind
	text string
	subs []*node
}

// addLine adds a line below.
func (n *node) addLine(kind nodeKind, format string, args ...any) *node {
	sub := &node{kind: kind, text: fmt.Sprintf(format, args...)}
	n.subs = append(n.subs, sub)
	return sub
}

// write writes the lines below. A table at the end of a list has the list's own indentation, so a
// chain of tables does not move to the right.
func (n *node) write(b *strings.Builder, level int) {
	for i, sub := range n.subs {
		below := level
		if i+1 < len(n.subs) || sub.kind != nodeTable {
			below++
		}
		fmt.Fprintf(b, "%s%s%s\n", strings.Repeat("    ", below), prefixes[sub.kind], sub.text)
		sub.write(b, level+2*(below-level))
	}
}

// pass is the part of a walk from its begin or a ct() to the next ct().
type pass struct {
	number int // 0 for the first
	// state is the ct_state at the begin, and given is set if it is from --ct-next. answer is the
	// number of its ct(), from 0.
	state  uint64
	given  bool
	answer int

	node       node
	start, key flow.Key // at the begin; at the present step
	before     flow.Key // before the last step
	base       flow.Key // after the datapath's actions so far
	actions    []string // of the datapath
	later      []*pass  // the passes that its ct() actions begin
}

// write writes a pass.
func (p *pass) write(b *strings.Builder, bridge string, n *flow.Names) {
	if p.number != 0 {
		line := strings.Repeat("=", 79)
		state := "default ct_state=trk|new (use --ct-next to customize)"
		if p.given {
			state = "ct_state=" + stateText(p.state)
		}
		fmt.Fprintf(b, "\n%s\nrecirc(%#x) - resume conntrack with %s\n%s\n\n", line, p.number, state, line)
	}
	title := fmt.Sprintf("bridge(%q)", bridge)
	fmt.Fprintf(b, "Flow: %s\n\n%s\n%s\n", flowText(&p.start, p.number, n), title, strings.Repeat("-", len(title)))
	p.node.write(b, 0)
	final := "unchanged"
	if p.key != p.start {
		final = flowText(&p.key, p.number, n)
	}
	actions := "drop"
	if len(p.actions) > 0 {
		actions = strings.Join(p.actions, ",")
	}
	fmt.Fprintf(b, "\nFinal flow: %s\nDatapath actions: %s\n", final, actions)
}

// writePasses writes a pass and those that it begins, in the order of inOrder.
func writePasses(first *pass, bridge string, n *flow.Names) string {
	var b strings.Builder
	for _, p := range inOrder(first) {
		p.write(&b, bridge, n)
	}
	return b.String()
}

// inOrder are a pass and those that it begins, breadth first, as Open vSwitch resumes them.
func inOrder(first *pass) (all []*pass) {
	all = []*pass{first}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].later...)
	}
	return all
}

// stateText is ct_state in words.
func stateText(state uint64) string {
	var words []string
	for i, w := range flow.CTStateBits.Flags() {
		if state>>i&1 != 0 {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return "0"
	}
	return strings.Join(words, "|")
}
