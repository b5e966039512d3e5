package control

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// policyBuilder makes the entries of policies from the rules of package policy. Each rule is a part of
// its policy. If only addresses of a rule change, its other entries stay the same pointers, so they cost
// nothing in the ledger.
//
// The isolation of a Pod by NetworkPolicies is a part of the Pod.
type policyBuilder struct {
	clock    func() time.Time
	restored *Memory // for the first policies, or nil
	groupsOf func(cluster.Name) []uint32
	seen     *sightings
	config   policy.Config
	policies *policy.Policies
	rules    map[ledger.Part]*ledger.Desired // as last wanted
	peers    *peerSets
	isolated map[ledger.Part]bool
	refused  map[cluster.Key]error // as last reported
}

func newPolicyBuilder(groupsOf func(cluster.Name) []uint32, seen *sightings, clock func() time.Time) *policyBuilder {
	return &policyBuilder{
		clock: clock, groupsOf: groupsOf, seen: seen, rules: map[ledger.Part]*ledger.Desired{}, peers: newPeerSets(), isolated: map[ledger.Part]bool{},
	}
}

func (b *policyBuilder) settled(ledger.Part, *ledger.Desired) {}

func (b *policyBuilder) build(c *change, w *wants) {
	if !c.all && !c.touches(policyKinds...) {
		return
	}
	keys := c.keys
	if config := policyConfig(c.now); b.policies == nil || !reflect.DeepEqual(config, b.config) {
		keys = nil
		b.config = config
		config.Clock = b.clock
		b.policies = policy.New(config)
		if b.restored != nil {
			_ = b.policies.Restore(&b.restored.RuleNumbers) // Reconciler.Restore has checked it
			b.restored = nil
		}
	}
	ch := b.policies.Update(policy.Input{
		Cluster: c.now.Cluster, Changed: keys, Ports: connectedPorts(c.now), ServiceGroups: b.groupsOf,
	})
	if c.all {
		b.rebuild(c.now, w)
	} else {
		b.apply(c.now, ch, w)
	}
	b.reportProgress(c, w)
}

// realised returns the rules for the tables.
func (b *policyBuilder) realised() []*policy.RealisedRule {
	if b.policies == nil {
		return nil
	}
	return b.policies.Rules()
}

// mayReport reports whether policies let a Pod join a group.
func (b *policyBuilder) mayReport(m MulticastPod, group netip.Addr) bool {
	return b.policies == nil || b.policies.MayReport(m.key(), group, m.Report)
}

// policyKinds are the kinds of objects that rules depend on.
var policyKinds = []cluster.Kind{
	cluster.KindNodeConfig, cluster.KindNode, cluster.KindNamespace, cluster.KindPod, cluster.KindExternalEntity, cluster.KindService, cluster.KindTier, cluster.KindGroup, cluster.KindClusterGroup,
	cluster.KindNetworkPolicy, cluster.KindClusterNetworkPolicy, cluster.KindAntreaNetworkPolicy,
}

func policyConfig(v *view) policy.Config {
	return policy.Config{Features: v.config.Features, Families: familiesOf(v)}
}

func connectedPorts(v *view) map[cluster.Key]uint32 {
	ports := map[cluster.Key]uint32{}
	for _, p := range v.connected() {
		ports[p.Key] = v.ports[cluster.Name{Namespace: p.Key.Namespace, Name: p.Key.Name}].OFPort
	}
	for k, l := range v.links() {
		if _, lacks := v.entityHere(k); lacks == "" {
			ports[k] = l.Host.No
		}
	}
	return ports
}

// rebuild makes the entries of all rules again.
func (b *policyBuilder) rebuild(v *view, w *wants) {
	for p := range b.rules {
		w.want(p, nil)
	}
	for p := range b.isolated {
		w.want(p, nil)
	}
	b.peers.clear(w)
	clear(b.rules)
	clear(b.isolated)
	b.seen.clear()
	for _, r := range b.policies.Rules() {
		b.addRuleEntries(v, r, w)
	}
	for _, i := range b.policies.Isolations() {
		b.isolate(v, i, w)
	}
}

// apply makes the entries of a change.
func (b *policyBuilder) apply(v *view, ch *policy.Change, w *wants) {
	for _, c := range ch.Sets {
		b.peers.changeSet(v, c, w)
	}
	for _, r := range ch.Removed {
		b.peers.removeRule(r)
		delete(b.rules, rulePart(r))
		b.seen.forget(r)
		w.want(rulePart(r), nil)
	}
	for _, r := range ch.Added {
		b.addRuleEntries(v, r, w)
	}
	for i := range ch.Changed {
		b.readdress(v, &ch.Changed[i], w)
	}
	for _, i := range ch.Released {
		delete(b.isolated, isolationPart(i))
		w.want(isolationPart(i), nil)
	}
	for _, i := range ch.Isolated {
		b.isolate(v, i, w)
	}
	b.peers.dropUnused(w)
}

// rulePart is the part of a rule.
func rulePart(r *policy.RealisedRule) ledger.Part {
	name := r.Key.FieldPath()
	if r.Key.Part != "" {
		name += " for " + r.Key.Part
	}
	return ledger.Part{Object: r.Key.Policy, Name: name}
}

func ruleOrigin(r *policy.RealisedRule, more string) *ledger.Origin {
	return &ledger.Origin{Object: r.Key.Policy, Field: r.Key.FieldPath() + more, Rule: r.Name}
}

// addRuleEntries makes all entries of a rule, except those of shared addresses.
func (b *policyBuilder) addRuleEntries(v *view, r *policy.RealisedRule, w *wants) {
	d := &ledger.Desired{}
	d.AddEntries(*ruleOrigin(r, ""), v.pipeline.RuleActions(r.Rule)...)
	d.AddEntries(*ruleOrigin(r, ""), v.pipeline.RuleClauses(r.Rule)...)
	if r.Rule.L7VLAN != 0 {
		d.AddEntries(*ruleOrigin(r, ".l7Protocols"), v.pipeline.L7Redirection()...)
	}
	d.Clauses = b.peers.addRule(v, r, w)
	b.rules[rulePart(r)] = d
	b.seen.noteRule(r)
	w.want(rulePart(r), d)
}

// readdress adds the entries of addresses that a rule gained, and removes those of addresses that it
// lost.
func (b *policyBuilder) readdress(v *view, c *policy.AddressChange, w *wants) {
	part := rulePart(c.RealisedRule)
	entries := func(from, to []tables.Address) (all []*flow.Entry) {
		for _, a := range from {
			all = append(all, v.pipeline.ClauseEntry(c.Rule, tables.ClauseFrom, a)...)
		}
		for _, a := range to {
			all = append(all, v.pipeline.ClauseEntry(c.Rule, tables.ClauseTo, a)...)
		}
		return all
	}
	was := b.rules[part]
	d := &ledger.Desired{Clauses: was.Clauses, Entries: minus(was.Entries, entries(c.From.Removed, c.To.Removed))}
	d.AddEntries(*ruleOrigin(c.RealisedRule, ""), entries(c.From.Added, c.To.Added)...)
	b.rules[part] = d
	b.seen.noteRule(c.RealisedRule)
	w.want(part, d)
}

// minus returns the entries of all that share no identity with gone.
func minus(all []ledger.Wanted, gone []*flow.Entry) []ledger.Wanted {
	left := map[flow.Identity]bool{}
	for _, e := range gone {
		left[e.Identity()] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(w ledger.Wanted) bool {
		return len(left) > 0 && left[w.Entry.Identity()]
	})
}

func isolationPart(i policy.Isolation) ledger.Part {
	direction := "ingress"
	if i.Direction == tables.Egress {
		direction = "egress"
	}
	return ledger.Part{Object: cluster.Key{Kind: cluster.KindPod, Namespace: i.Pod.Namespace, Name: i.Pod.Name}, Name: isolationName + direction}
}

// isolationName is the prefix of the names of parts that isolate a Pod.
const isolationName = "isolated for "

// cutIsolation returns the direction in such a name.
func cutIsolation(name string) (direction string, ok bool) {
	return strings.CutPrefix(name, isolationName)
}

func (b *policyBuilder) isolate(v *view, i policy.Isolation, w *wants) {
	p := isolationPart(i)
	pod := tables.Pod{Port: tables.Port{No: i.Port}, IPs: i.IPs}
	d := &ledger.Desired{}
	drop := v.pipeline.DefaultDrop
	if i.Log {
		drop = v.pipeline.LoggedDefaultDrop
	}
	d.AddEntries(ledger.Origin{Object: p.Object, Field: p.Name}, drop(i.Direction, pod)...)
	b.isolated[p] = true
	w.want(p, d)
}

// reportProgress reports the states of policies.
func (b *policyBuilder) reportProgress(c *change, w *wants) {
	for _, k := range slices.Concat(affected(c, cluster.KindNetworkPolicy, c.now.NetworkPolicies),
		affected(c, cluster.KindClusterNetworkPolicy, c.now.AntreaPolicies), affected(c, cluster.KindAntreaNetworkPolicy, c.now.AntreaPolicies)) {
		if c.now.Object(k) != nil {
			w.fine(k)
		}
	}
	refused := b.policies.Refused()
	for k := range b.refused {
		if refused[k] == nil && c.now.Object(k) != nil {
			w.fine(k)
		}
	}
	b.refused = refused
	for _, k := range slices.SortedFunc(maps.Keys(refused), cluster.Key.Compare) {
		w.refuse(k, "%s", refused[k])
	}
	if !c.now.config.Features.AntreaPolicy {
		for k := range c.now.AntreaPolicies {
			w.ignore(k, "the feature AntreaPolicy is off")
		}
	}
}
