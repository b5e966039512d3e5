package learn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// A failure says what was expected and what happened instead, by which entry. Then it says
// why the learner's entries did not change that, and gives a hint.

// mostOwn is the most entries of the learner in a failure.
const mostOwn = 4

// explain is the full text of a failure.
func (c *checking) explain(e *Expectation, w *Way, failure string) (string, error) {
	lines := []string{failure + ".", "But " + w.Ending()}
	lines = append(lines, w.culprit(e)...)
	own, err := c.own(e, w)
	if err != nil {
		return "", err
	}
	lines = append(lines, own...)
	lines = append(lines, c.pending()...)
	if e.Why != "" {
		lines = append(lines, e.Why)
	}
	return strings.Join(lines, "\n"), nil
}

// culprit is the entry that decided the way: in the table where the packet was to be
// dropped, otherwise the last one.
func (w *Way) culprit(e *Expectation) []string {
	for i := range w.Hops {
		for _, v := range visits(w.Hops[i].Trace) {
			if v.table == e.Dropped {
				return []string{fmt.Sprintf("In table %s it met the entry\n    %s", v.table, shown(&v, w.Hops[i].Trace.Names))}
			}
		}
	}
	all := visits(w.last().Trace)
	if len(all) == 0 || len(w.Left) > 0 && e.Leaves == "" {
		return nil
	}
	v, names := &all[len(all)-1], w.last().Trace.Names
	told := []string{fmt.Sprintf("The last table was %s, with the entry\n    %s", v.table, shown(v, names))}
	if w.last().Trace.Verdict.Reason == telemetry.DropNoSuchPort {
		told = append(told, v.noPort(names)...)
	}
	return told
}

// noPort names a port number without a port. If its digits in hexadecimal are a port's
// decimal number, it suggests that port.
func (v *visit) noPort(n *flow.Names) (told []string) {
	if v.entry == nil {
		return nil
	}
	for _, a := range v.entry.Actions {
		out, is := a.(flow.OutputReg)
		if !is {
			continue
		}
		number := uint32(out.Src.Get(&v.key).Lo)
		text := fmt.Sprintf("%s is %#x, which is port %d, and there is none.", flow.FieldByID(out.Src.Field).Name, number, number)
		meant, err := strconv.ParseUint(strconv.FormatUint(uint64(number), 16), 10, 32)
		if name := n.Port(uint32(meant)); err == nil && name != "" {
			text += fmt.Sprintf(" %s is port %d, which is %#x.", name, meant, meant)
		}
		told = append(told, text)
	}
	return told
}

// shown is a visit's entry as a dump shows it.
func shown(v *visit, n *flow.Names) string {
	if v.entry == nil {
		return "(none: no entry matches)"
	}
	return line(v.entry, n)
}

// own says how each entry that the learner added or removed affected a way.
func (c *checking) own(e *Expectation, w *Way) ([]string, error) {
	before, err := c.box.lesson.nodes(c.start)
	if err != nil {
		return nil, err
	}
	var told, aside []string
	seen := map[string]bool{} // objects want the same entries on several Nodes
	for i, n := range c.box.nodes {
		brought, gone := entriesBut(n.program, before[i].program), entriesBut(before[i].program, n.program)
		for _, mine := range brought {
			text, met := n.about(mine, w)
			if seen[line(mine, n.program.Names)] || c.aside(n, mine, w) {
				continue
			}
			seen[line(mine, n.program.Names)] = true
			text = "Your entry" + c.origin(n, mine) + "\n    " + line(mine, n.program.Names) + "\n" + text + "."
			if met {
				told = append(told, text)
			} else {
				aside = append(aside, text)
			}
		}
		for _, lost := range gone {
			if v := w.missed(n.name, lost, n.program.Names); v != nil && e.Dropped == "" && !n.has(lost) {
				told = append(told, "An entry of the beginning is gone, which would have been taken in "+v.table+":\n    "+line(lost, n.program.Names))
			}
		}
	}
	told = append(told, c.groups(w)...)
	if len(told) == 0 {
		told = aside
	}
	if len(told) > mostOwn {
		told = append(told[:mostOwn], fmt.Sprintf("(and %d more of your entries)", len(told)-mostOwn))
	}
	if len(told) == 0 && len(c.files.differing(c.start)) == 0 {
		told = []string{"Nothing in your files is changed yet."}
	}
	return told, nil
}

// groups says what the learner's groups chose on a way.
func (c *checking) groups(w *Way) (told []string) {
	for i := range w.Hops {
		h := &w.Hops[i]
		for _, st := range h.Trace.Steps {
			if st.Kind == telemetry.StepBucket && c.brought(st.Group, h.Trace.Names) {
				bucket := flow.ActionsText(st.Group.Buckets[st.Bucket].Actions, flow.Format{Names: h.Trace.Names})
				told = append(told, fmt.Sprintf("Your group %d chose its bucket %d\n    %s", st.Group.ID, st.Group.Buckets[st.Bucket].ID, bucket))
			}
		}
	}
	return slices.Compact(told)
}

// brought says whether the learner has added or changed a group.
func (c *checking) brought(g *flow.Group, n *flow.Names) bool {
	text := strings.TrimSpace(g.Text(n))
	return strings.Contains(c.files.Text[groupsFile], text) && !strings.Contains(c.start.Text[groupsFile], text)
}

// aside says whether an object's entry is left out: because it is a clause, or of IPv6 for
// a packet of another protocol.
func (c *checking) aside(n *runningNode, e *flow.Entry, w *Way) bool {
	other := e.Match.Implies(flow.NeedIPv6) && w.etherType() != packet.EtherTypeIPv6
	return c.origin(n, e) != "" && (isClause(e) || other)
}

// etherType is the packet's EtherType on arrival.
func (w *Way) etherType() uint64 {
	return flow.FieldByID(flow.EthType).Get(&w.Hops[0].Trace.Start).Lo
}

// origin names the object that an entry comes from; "" if the learner wrote the entry.
func (c *checking) origin(n *runningNode, e *flow.Entry) string {
	if n.objects == nil || slices.Contains(c.box.lesson.Tables, tableName(n.program.Names, e.Table)) {
		return ""
	}
	for _, o := range n.objects.OriginsOf(e) {
		if o.Object != (cluster.Key{}) {
			return ", which " + o.String() + " wants,"
		}
	}
	return ""
}

// entriesBut are the entries of a program that are not identical in another.
func entriesBut(p, other *flow.Program) (rest []*flow.Entry) {
	have := map[string]bool{}
	for _, e := range other.Entries {
		have[line(e, other.Names)] = true
	}
	for _, e := range p.Entries {
		if !have[line(e, p.Names)] {
			rest = append(rest, e)
		}
	}
	return rest
}

// about says how an entry of a Node affected a way. met says whether the way came to its
// table.
func (n *runningNode) about(e *flow.Entry, w *Way) (text string, met bool) {
	table := tableName(n.program.Names, e.Table)
	text = "was never asked: the packet did not come to table " + table
	for i := range w.Hops {
		if w.Hops[i].Node != n.name {
			continue
		}
		for _, v := range visits(w.Hops[i].Trace) {
			if v.table != table {
				continue
			}
			if text, met = v.why(e, n.program), true; text == taken {
				return text, met
			}
		}
	}
	return text, met
}

// has says whether the program has an entry of the same identity, with any actions.
func (n *runningNode) has(e *flow.Entry) bool {
	return slices.ContainsFunc(n.program.Entries, func(x *flow.Entry) bool { return x.Identity() == e.Identity() })
}

// missed is the visit at which a way would have met an entry of a Node, or nil.
func (w *Way) missed(node string, e *flow.Entry, n *flow.Names) *visit {
	for i := range w.Hops {
		for _, v := range visits(w.Hops[i].Trace) {
			fits := w.Hops[i].Node == node && v.table == tableName(n, e.Table) && e.Match.Matches(&v.key) && !isClause(e)
			if fits && (v.entry == nil || v.entry.Priority <= e.Priority) {
				return &v
			}
		}
	}
	return nil
}

// pending names the learner's objects that are pending.
func (c *checking) pending() (told []string) {
	n := c.box.nodes[0]
	if n.objects == nil || c.files.Text[objectsFile] == "" {
		return nil
	}
	for _, o := range manifest.Decode(objectsFile, []byte(c.files.Text[objectsFile])).Objects {
		if s, known := n.objects.Status(o.Metadata().Key); known && s.State == ledger.Pending {
			told = append(told, fmt.Sprintf("%s is pending: %s.", s.Object, s.Reason))
		}
	}
	return told
}
