package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// The actions of a rule on a packet that fulfils its clauses.
//
//	Allow   commit the connection under the rule's id, go on to the metrics
//	Drop    mark the packet denied; the metrics drop it
//	Reject  likewise, and the switch answers
//	Pass    leave the decision to K8s policies
//
// A rule that logs also sends the packet to the agent. If it allows, ct() commits
// a copy that goes on, and the original goes to the agent. For the other actions,
// a group makes the copy.

func (p *Pipeline) ruleActions(r Rule) []*flow.Entry {
	if r.Kind == MulticastPolicy {
		return p.multicastActions(r)
	}
	switch r.Action {
	case Drop:
		return p.conjEntry(r, p.deny(r, DispositionDropRegMark))
	case Reject:
		return p.conjEntry(r, p.deny(r, DispositionRejectRegMark))
	case Pass:
		return p.conjEntry(r, p.pass(r))
	}
	var all []*flow.Entry
	for _, f := range p.familiesOf(r) {
		all = append(all, p.conjEntry(r, p.allow(r, f), f.ip())...)
	}
	return all
}

func (p *Pipeline) conjEntry(r Rule, actions []flow.Action, terms ...term) []*flow.Entry {
	m := match(append(terms, layout.Exact(flow.ConjID, uint64(r.ID)))...)
	return []*flow.Entry{p.entry(forPolicies, r.table(), r.actionPriority(), m, actions...)}
}

func (p *Pipeline) allow(r Rule, f Family) []flow.Action {
	s := sides[r.Direction]
	exec := []flow.Action{s.label.Set(uint64(r.ID))}
	if r.L7VLAN != 0 {
		exec = append(exec, L7NPRedirectCTMark.Set(), L7NPRuleVlanIDCTLabel.Set(uint64(r.L7VLAN)))
	}
	actions := []flow.Action{s.conjID.Set(uint64(r.ID)), p.inZone(layout.Commit(f.zone(), p.id(s.metric), exec...))}
	if !r.Log {
		return actions
	}
	actions = append(actions, DispositionAllowRegMark.Set())
	if r.L7VLAN != 0 {
		actions = append(actions, L7NPRedirectRegMark.Set())
	}
	return append(actions, OutputToControllerRegMark.Set(), PacketInOperationField.Set(PacketInLogging),
		p.decidedIn(r.table()), p.goTo(tableOutput))
}

// deny marks a packet as denied. To log or answer, it also makes a packet-in.
func (p *Pipeline) deny(r Rule, disposition Mark) []flow.Action {
	s := sides[r.Direction]
	actions := []flow.Action{APConjIDField.Set(uint64(r.ID)), APDenyRegMark.Set()}
	op := uint64(0)
	if r.Log {
		op |= PacketInLogging
		actions = append(actions, disposition.Set())
	}
	if r.Action == Reject {
		op |= PacketInReject
	}
	if op == 0 {
		return append(actions, p.goTo(s.metric))
	}
	return append(actions, PacketInOperationField.Set(op), p.decidedIn(r.table()),
		flow.GroupAction{ID: s.metricGroup})
}

func (p *Pipeline) pass(r Rule) []flow.Action {
	s := sides[r.Direction]
	actions := []flow.Action{s.conjID.Set(uint64(r.ID))}
	if !r.Log {
		return append(actions, p.goTo(s.k8s))
	}
	return append(actions, DispositionPassRegMark.Set(), PacketInOperationField.Set(PacketInLogging),
		p.decidedIn(r.table()), flow.GroupAction{ID: s.k8sGroup})
}

// decidedIn writes the table of the decision for the agent.
func (p *Pipeline) decidedIn(t table) flow.Action { return PacketInTableField.Set(uint64(p.id(t))) }

// logDrop sends a packet to the agent and nowhere else.
func (p *Pipeline) logDrop(t table) []flow.Action {
	return []flow.Action{
		DispositionDropRegMark.Set(), PacketInOperationField.Set(PacketInLogging),
		OutputToControllerRegMark.Set(), p.decidedIn(t), p.goTo(tableOutput),
	}
}
