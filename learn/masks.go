package learn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/flow"
)

// Why an entry was not taken. Of the matching entries, a table takes the one with the
// highest priority. So the entry does not match, or another one has a higher priority.

// unmet are the fields of a packet that differ from a match, in words. If the protocol or
// the ICMP type differs, the fields within it mean nothing and are left out.
func unmet(m *flow.Match, k *flow.Key, n *flow.Names) (texts []string) {
	ids := m.Unmet(k)
	outer := []flow.FieldID{flow.EthType, flow.IPProto}
	if isICMP(k) {
		outer = append(outer, flow.TCPSrc) // the type, under the name that Unmet has for it
	}
	for _, first := range outer {
		if slices.Contains(ids, first) {
			ids = []flow.FieldID{first}
			break
		}
	}
	for _, id := range ids {
		value, mask := m.Get(id)
		has := flow.FieldByID(id).Get(k)
		texts = append(texts, fmt.Sprintf("it asks for %s, the packet has %s", alone(m, id, value, mask, n), alone(m, id, has, flow.Ones(flow.FieldByID(id).Bits), n)))
	}
	return texts
}

// alone is a field as in a match of m's protocol, without the protocol's word if there is
// another one.
func alone(m *flow.Match, id flow.FieldID, value, mask flow.Value, n *flow.Names) string {
	var one flow.Match
	for _, protocol := range []flow.FieldID{flow.EthType, flow.IPProto} {
		if v, mask := m.Get(protocol); !mask.IsZero() && protocol != id {
			one.Add(protocol, v, mask)
		}
	}
	word := one.Text(n)
	one.Add(id, value, mask)
	text := one.Text(n)
	if rest, ok := strings.CutPrefix(text, word); ok && strings.Trim(rest, ",") != "" {
		return strings.Trim(rest, ",")
	}
	return strings.Trim(strings.Replace(text, ","+word, "", 1), ",")
}

// taken is the result of why for the entry that a packet met.
const taken = "was taken"

// why says whether a table's entry took a packet, and why not.
func (v *visit) why(e *flow.Entry, p *flow.Program) string {
	n, m := p.Names, e.Match.Expand()
	switch texts := unmet(&m, &v.key, n); {
	case v.entry != nil && identity(v.entry, n) == identity(e, n):
		return taken
	case slices.Equal(m.Unmet(&v.key), []flow.FieldID{flow.ConjID}):
		return "was not taken: " + v.incomplete(e, p)
	case len(texts) > 0:
		return "was not taken: " + strings.Join(texts, "; ")
	case isClause(e):
		return v.clauseWhy(e, p)
	case v.entry != nil && e.Priority < v.entry.Priority:
		return fmt.Sprintf("was not taken: it matches, but its priority %d is below the %d of the entry that was taken", e.Priority, v.entry.Priority)
	}
	return fmt.Sprintf("was not taken: it matches, and so does another entry of priority %d; which of them is taken nobody promises", e.Priority)
}

// luck names a table where two entries of one priority match the packet; "" if there is
// none. The way is then right only by chance.
func (s *Sandbox) luck(w *Way) string {
	for i := range w.Hops {
		n, err := s.node(w.Hops[i].Node)
		if err != nil {
			continue
		}
		for _, v := range visits(w.Hops[i].Trace) {
			if e := v.rival(n.program); e != nil {
				return fmt.Sprintf("%s went as it should, but by luck: of two entries with priority %d that match, nobody promises which is taken.\n    %s\n    %s",
					w.Packet, e.Priority, line(v.entry, n.program.Names), line(e, n.program.Names))
			}
		}
	}
	return ""
}

// rival is another matching entry of the same priority with other actions, or nil.
func (v *visit) rival(p *flow.Program) *flow.Entry {
	for _, e := range p.Entries {
		if v.entry == nil || e.Table != v.entry.Table || e.Priority != v.entry.Priority || isClause(e) || !e.Match.Matches(&v.key) {
			continue
		}
		if flow.ActionsText(e.Actions, flow.Format{Names: p.Names}) != flow.ActionsText(v.entry.Actions, flow.Format{Names: p.Names}) {
			return e
		}
	}
	return nil
}

// candidates are a table's entries that match a packet or differ in one field, with the
// reason, highest priority first. rest is the number of the others.
func (v *visit) candidates(p *flow.Program) (texts []string, rest int) {
	var in []*flow.Entry
	for _, e := range p.Entries {
		if tableName(p.Names, e.Table) == v.table {
			in = append(in, e)
		}
	}
	slices.SortStableFunc(in, func(a, b *flow.Entry) int { return int(b.Priority) - int(a.Priority) })
	for _, e := range in {
		m := e.Match.Expand()
		if len(unmet(&m, &v.key, p.Names)) > 1 || len(texts) == mostCandidates {
			rest++
			continue
		}
		texts = append(texts, fmt.Sprintf("%s actions=%s\n      %s", entryText(e, p.Names), flow.ActionsText(e.Actions, flow.Format{Names: p.Names}), v.why(e, p)))
	}
	return texts, rest
}

// mostCandidates is the most entries that fit on a screen.
const mostCandidates = 10
