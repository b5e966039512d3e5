package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// The decisions of policies on the walk, and why a packet is dropped.

// decisions are the policies' decisions on this Node: on the sender, if it is here, and on the
// receiver, if the packet arrives there.
func (r teller) decisions() (all []api.WhyDecision) {
	denied := r.denied()
	for _, d := range []struct {
		tables.Direction
		field  tables.Field
		wanted bool
	}{
		{tables.Egress, tables.TFEgressConjIDField, r.from.place.Port != 0},
		{tables.Ingress, tables.TFIngressConjIDField, r.delivers()},
	} {
		direction := strings.ToLower(d.Direction.String())
		rule := r.p.Objects.RuleByID(r.last(d.field))
		if denied != nil && denied.Key.Direction == d.Direction {
			rule = denied
		}
		decision := api.WhyDecision{Node: r.self.Node, Direction: direction, Policies: []string{}}
		isolating, isolated := r.isolation(direction)
		switch {
		case isolated:
			decision.Isolated, decision.Policies = true, isolating
		case rule != nil:
			r.name(&decision, rule)
		case !d.wanted:
			continue
		}
		all = append(all, decision)
	}
	return all
}

// name adds the rule that decided.
func (r teller) name(d *api.WhyDecision, rule *policy.RealisedRule) {
	d.Action, d.Policies, d.Rule = policy.ActionOf(rule.Rule.Action), []string{objectText(rule.Key.Policy)}, rule.Title()
	d.Tier, d.Priority = r.p.Objects.RankOf(rule.Key.Policy)
}

// delivers says whether the packet leaves to a Pod of this Node.
func (r teller) delivers() bool {
	return slices.ContainsFunc(r.t.Verdict.Outputs, func(no uint32) bool {
		_, ok := r.p.Objects.PodAt(no)
		return ok
	})
}

// last is the last nonzero value of a register on the walk; 0 if there is none.
func (r teller) last(f tables.Field) (id uint32) {
	for i := range r.t.Steps {
		if now := uint32(f.Get(&r.t.Steps[i].After).Lo); now != 0 && r.t.Steps[i].Kind == telemetry.StepEntry {
			id = now
		}
	}
	return id
}

// denied is the rule that dropped or rejected the packet; nil if none did.
func (r teller) denied() *policy.RealisedRule {
	mark := tables.APDenyRegMark
	for i := range r.t.Steps {
		if k := &r.t.Steps[i].After; mark.Field.Get(k).Lo == mark.Value {
			return r.p.Objects.RuleByID(uint32(tables.APConjIDField.Get(k).Lo))
		}
	}
	return nil
}

// isolation returns the policies that isolate the Pod where the packet ended.
func (r teller) isolation(direction string) (policies []string, isolated bool) {
	for _, o := range r.origins("") {
		d, ok := control.Isolates(o)
		isolated = isolated || ok && d == direction
	}
	for _, o := range r.origins("") {
		if isolated && o.Object.Kind == cluster.KindNetworkPolicy && o.Field == "spec.podSelector" {
			policies = append(policies, objectText(o.Object))
		}
	}
	return policies, isolated
}

// denial says why the packet was dropped, and what to do.
func (r teller) denial(w *api.WhyWay) (why, advice string) {
	for _, d := range w.Decisions {
		switch {
		case d.Isolated:
			return r.isolatedText(&d)
		case d.Action == cluster.ActionDrop || d.Action == cluster.ActionReject:
			verb := map[cluster.RuleAction]string{cluster.ActionDrop: "drops", cluster.ActionReject: "rejects"}[d.Action]
			return fmt.Sprintf("%s %s %s (%s)", d.Policies[0], verb, w.What, d.Where()),
				"to allow it, change that rule or add an earlier one; antrail get policies -o wide counts what each rule denied"
		}
	}
	if r.noEndpoint() {
		service := r.service()
		return fmt.Sprintf("%s has no endpoint for %s, so the switch rejects packets of %s", service, r.dial(), &r.from),
			"check that Pods match its selector and are ready: antrail get services, kubectl get endpointslices"
	}
	return r.otherDenial()
}

// isolatedText describes an implicit deny: no rule dropped the packet, but none allowed it.
func (r teller) isolatedText(d *api.WhyDecision) (why, advice string) {
	server, _ := r.server()
	pod, other := server, "from "+r.from.String()
	if d.Direction == "egress" {
		pod, other = r.from.String(), "to "+server
	}
	verb := " isolates "
	if len(d.Policies) != 1 {
		verb = " isolate "
	}
	who := cmp.Or(strings.Join(d.Policies, ", "), "policies")
	return fmt.Sprintf("%s%s%s for %s, and no rule allows %s %s", who, verb, pod, d.Direction, r.dial(), other),
		fmt.Sprintf("to allow it, a policy for %s needs an %s rule that allows %s %s", pod, d.Direction, r.dial(), other)
}

// noEndpoint says whether the packet went to the agent because its Service has no endpoint.
func (r teller) noEndpoint() bool {
	return slices.ContainsFunc(r.t.Steps, func(s telemetry.Step) bool {
		c, ok := s.Action.(flow.Controller)
		return s.Kind == telemetry.StepPacketIn && ok && tables.NoEndpoint(c.UserData, &s.After, r.t.Names.Table(s.Table))
	})
}

// otherDenial describes a drop without a policy.
func (r teller) otherDenial() (why, advice string) {
	v := &r.t.Verdict
	if v.Reason == telemetry.NotDropped {
		return fmt.Sprintf("%s goes no further: %s", r.what(), v.Text(r.t.Names)), ""
	}
	if port, missing := r.atMissingPort(); missing {
		if f, broken := r.p.LinkFault(port); broken {
			return r.what() + " ends at Pod " + r.p.podAt(port) + r.p.brokenText(port), f.Next
		}
	}
	s := fmt.Sprintf("%s ends in table %s (%s): %s", r.what(), TableName(r.t.Names, v.Table), v.Reason, v.Reason.Sentence())
	if nobody := r.nobody(&r.to.place); nobody != "" {
		return nobody + "; " + s, "antrail get pods lists the Pods' addresses"
	}
	advice = fmt.Sprintf("antrail dump-flows %s --explain shows what that table lets pass", TableName(r.t.Names, v.Table))
	for _, o := range r.origins(TableName(r.t.Names, v.Table)) {
		if o.Object.Kind != cluster.KindNodeConfig {
			return s + " The entry is there for " + objectText(o.Object) + ".", advice
		}
	}
	return s, advice
}

// atMissingPort is the port of a Pod whose link is gone, if the packet was dropped because its
// port is not in the switch.
func (r teller) atMissingPort() (port uint32, ok bool) {
	if r.t.Verdict.Reason != telemetry.DropNoSuchPort {
		return 0, false
	}
	port = r.last(tables.TargetOFPortField)
	return port, r.p.podAt(port) != ""
}
