package tables

import (
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// The entries of policy rules, in the eight tables that hold them.
//
// A rule is a conjunction (ovs-fields(7), conjunctive match fields): From, To and
// Services are its clauses 1, 2 and 3. Without Services it has two. Each address,
// port or Service is an entry of its own that fulfils a clause. So a rule of m
// sources, n destinations and k ports has m+n+k entries, not m·n·k. A packet that
// fulfils all clauses is looked up again as conj_id=ID. That entry says what the
// rule does with it (policy_action.go).
//
// Two rules of the same priority may need entries with the same match. The caller
// merges them into one entry with the conjunction actions of both.

// side has the differences between the egress and the ingress tables.
type side struct {
	antrea, k8s, fallback, metric table
	// conjID holds the rule's id for traces, label holds it in the connection.
	conjID, label Field
	// k8sGroup and metricGroup log a packet and send it on to the table of that
	// name.
	k8sGroup, metricGroup uint32
}

// sides by Direction.
var sides = [...]side{
	Egress: {
		tableAntreaPolicyEgressRule, tableEgressRule, tableEgressDefaultRule, tableEgressMetric,
		TFEgressConjIDField, EgressRuleCTLabel, groupEgressRule, groupEgressMetric,
	},
	Ingress: {
		tableAntreaPolicyIngressRule, tableIngressRule, tableIngressDefaultRule, tableIngressMetric,
		TFIngressConjIDField, IngressRuleCTLabel, groupIngressRule, groupIngressMetric,
	},
}

// table is the table that holds a rule.
func (r Rule) table() table {
	s := sides[r.Direction]
	switch r.Kind {
	case AntreaPolicy:
		return s.antrea
	case BaselinePolicy:
		return s.fallback
	case MulticastPolicy:
		return multicastTables[r.Direction].rule
	}
	return s.k8s
}

// multicastTables hold and count the rules for multicast.
var multicastTables = map[Direction]struct{ rule, metric table }{
	Egress:  {tableMulticastEgressRule, tableMulticastEgressMetric},
	Ingress: {tableMulticastIngressRule, tableMulticastIngressMetric},
}

// hasEntries reports whether a rule has entries.
func (p *Pipeline) hasEntries(r Rule) bool { return r.Kind != ReportPolicy && p.has(r.table()) }

// actionPriority and clausePriority: all K8s rules have the same priority,
// because they only allow.
func (r Rule) actionPriority() uint16 {
	if r.Kind == K8sPolicy {
		return priorityLow
	}
	return r.Priority
}

func (r Rule) clausePriority() uint16 {
	if r.Kind == K8sPolicy {
		return priorityNormal
	}
	return r.Priority
}

// policyTable is a table of one direction.
type policyTable struct {
	direction Direction
	table     table
}

func (p *Pipeline) established(f Family, t policyTable, priority uint16) (all []*flow.Entry) {
	for _, state := range []uint64{layout.CtEst, layout.CtRel} {
		all = append(all, p.entry(forPolicies, t.table, priority,
			match(f.ip(), layout.CtState(state, layout.CtNew)), p.goTo(sides[t.direction].metric)))
	}
	return all
}

// familiesOf are the families that a rule's entries are made for.
func (p *Pipeline) familiesOf(r Rule) []Family {
	if len(r.Families) == 0 {
		return p.families
	}
	return r.Families
}

// clauses are the clauses of a rule. A place is the clause's number in the
// conjunction, from 1, or 0 if the rule has no such clause.
type clauses struct {
	place [numClauses]uint8
	n     uint8
}

// clausesOf numbers From, To and Services. From and To are always clauses: one
// that is any has one entry that matches every packet of a family. So a rule
// keeps its numbers when its peers change. Services that are any are no clause,
// because their entry would have the match of another clause's.
func clausesOf(r Rule) clauses {
	c := clauses{place: [numClauses]uint8{ClauseFrom: 1, ClauseTo: 2}, n: 2}
	if len(r.Services) > 0 && !slices.Contains(r.Services, L4Match{}) {
		c.n++
		c.place[ClauseService] = c.n
	}
	return c
}

// clauseEntries makes entries that fulfil a clause, one for each match.
func (p *Pipeline) clauseEntries(r Rule, c Clause, matches []flow.Match) (all []*flow.Entry) {
	action, ok := p.Conjunction(r, c)
	if !ok {
		return nil
	}
	for _, m := range matches {
		all = append(all, p.entry(forPolicies, r.table(), r.clausePriority(), m, action))
	}
	return all
}

// fromEntries, toEntries and serviceEntries are the entries of whole clauses.
func (p *Pipeline) fromEntries(r Rule) []*flow.Entry {
	if r.AnyFrom {
		return p.clauseEntries(r, ClauseFrom, p.anySource(r))
	}
	return p.clauseEntries(r, ClauseFrom, addressMatches(r, ClauseFrom, r.From))
}

func (p *Pipeline) toEntries(r Rule) []*flow.Entry {
	if r.AnyTo {
		return p.clauseEntries(r, ClauseTo, p.anyMatches(r))
	}
	return p.clauseEntries(r, ClauseTo, addressMatches(r, ClauseTo, r.To))
}

func (p *Pipeline) serviceEntries(r Rule) []*flow.Entry {
	var matches []flow.Match
	for _, l4 := range r.Services {
		matches = append(matches, l4.matches(p.familiesOf(r))...)
	}
	return p.clauseEntries(r, ClauseService, matches)
}

func (p *Pipeline) anyMatches(r Rule) (all []flow.Match) {
	for _, f := range p.familiesOf(r) {
		all = append(all, match(f.ip()))
	}
	return all
}

// anySource is anyMatches for From. If the rule is applied to a Service, it
// matches new connections only.
func (p *Pipeline) anySource(r Rule) []flow.Match {
	matches := p.anyMatches(r)
	if protectsService(r) {
		for i := range matches {
			layout.CtState(layout.CtNew, 0)(&matches[i])
		}
	}
	return matches
}

func addressMatches(r Rule, c Clause, addrs []Address) []flow.Match {
	toService := c == ClauseFrom && protectsService(r)
	matches := make([]flow.Match, 0, len(addrs))
	for _, a := range addrs {
		matches = append(matches, match(a.term(c, toService)))
	}
	return matches
}

// protectsService reports whether a rule is applied to a Service. Its sources are
// then matched in the connection's original tuple, because the packet's own
// source may already be translated.
func protectsService(r Rule) bool {
	return slices.ContainsFunc(r.To, func(a Address) bool { return a.Service != nil })
}

// term is the match of an address in a clause.
func (a Address) term(c Clause, toService bool) term {
	switch {
	case a.Service != nil:
		return ServiceGroupIDField.Is(uint64(a.Service.Group))
	case a.Group != 0:
		return ServiceGroupIDField.Is(uint64(a.Group))
	case a.Port != 0:
		return TargetOFPortField.Is(uint64(a.Port))
	case c == ClauseTo:
		return dstIn(a.Prefix.Masked())
	case toService:
		return func(m *flow.Match) {
			layout.CtState(layout.CtNew, 0)(m)
			ctSrcIn(a.Prefix.Masked())(m)
		}
	}
	return srcIn(a.Prefix.Masked())
}
