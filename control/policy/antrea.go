package policy

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/control/numbers"
	"github.com/antrail/antrail/tables"
)

// Reasons to refuse a policy: the pipeline lacks what it needs, or it makes no sense there.
var (
	errIGMPType        = errors.New("igmpType needs the feature Multicast: flow entries do not match the type of an IGMP message")
	errIGMPRule        = errors.New("a rule of IGMP is outside tier Baseline, allows or drops, does not log, and has no peers and no other protocols")
	errIGMPDirection   = errors.New("an ingress rule of IGMP is about queries (igmpType 0x11, group 224.0.0.1), an egress rule about reports (0x12, 0x16, 0x22)")
	errMulticastRule   = errors.New("a rule of multicast groups is an egress rule outside tier Baseline, and has no other peers")
	errMulticastAction = errors.New("a rule of multicast groups allows or drops, and neither logs nor redirects")
	errNoL7            = errors.New("the feature L7NetworkPolicy is off")
	errNoServices      = errors.New("toServices: an external Node has no Services")
	errBaseline        = errors.New("rules of the baseline tier cannot Pass: there is nothing behind it")
)

// planner makes the specs of one Antrea-native policy.
type planner struct {
	cluster  *cluster.Cluster
	features tables.Features
	policy   *cluster.AntreaPolicy
	tier     int32
	plan     *policyPlan
}

// planAntreaPolicy turns an Antrea-native policy into specs, one for each rule.
func planAntreaPolicy(c *cluster.Cluster, f tables.Features, ap *cluster.AntreaPolicy) (*policyPlan, error) {
	p := &planner{cluster: c, features: f, policy: ap, plan: &policyPlan{borrows: true}}
	if err := manifest.Unbuilt(ap); err != nil {
		return p.plan, err
	}
	name := cmp.Or(ap.Tier, cluster.DefaultTier)
	tier := c.Tier(name)
	if tier == nil {
		return p.plan, fmt.Errorf("spec.tier: there is no Tier %q", name)
	}
	p.tier = tier.Priority
	p.plan.blocks = map[tables.Direction]numbers.Block{
		tables.Ingress: {Tier: p.tier, Priority: ap.Priority, Size: len(ap.Ingress)},
		tables.Egress:  {Tier: p.tier, Priority: ap.Priority, Size: len(ap.Egress)},
	}
	return p.plan, errors.Join(p.rules(tables.Ingress, "ingress", ap.Ingress), p.rules(tables.Egress, "egress", ap.Egress))
}

func (p *planner) rules(d tables.Direction, field string, rules []cluster.PolicyRule) error {
	for i := range rules {
		spec, err := p.rule(RuleKey{Policy: p.policy.Key, Direction: d, Index: i}, &rules[i])
		if err != nil {
			return fmt.Errorf("spec.%s[%d]: %w", field, i, err)
		}
		p.plan.specs = append(p.plan.specs, spec)
	}
	return nil
}

// rule turns one rule into a spec.
func (p *planner) rule(key RuleKey, r *cluster.PolicyRule) (*policySpec, error) {
	spec := &policySpec{
		key: key, name: r.Name, kind: tables.AntreaPolicy,
		order: numbers.Order{Tier: p.tier, Priority: p.policy.Priority, Index: key.Index},
		ports: r.Ports, proto: r.Protocols, log: r.Log, logLabel: r.LogLabel, l7: r.L7,
	}
	if p.tier >= cluster.BaselineTier {
		spec.kind = tables.BaselinePolicy
	}
	spec.action = ruleActions[r.Action]
	if len(spec.l7) > 0 && !p.features.L7Policy {
		return nil, errNoL7
	}
	if spec.kind == tables.BaselinePolicy && spec.action == tables.Pass {
		return nil, errBaseline
	}
	if p.features.ExternalNode && len(r.ToServices) > 0 {
		return nil, errNoServices
	}
	if err := p.applied(spec, r); err != nil {
		return nil, err
	}
	if err := p.peers(spec, r); err != nil {
		return nil, err
	}
	return spec, p.multicast(spec)
}

// multicast recognises a rule about multicast groups, which has a table of its own.
func (p *planner) multicast(s *policySpec) error {
	groups := 0
	if slices.ContainsFunc(s.proto, func(x cluster.PolicyProtocol) bool { return x.IGMP != nil }) {
		return p.igmp(s)
	}
	for _, b := range s.peers.blocks {
		if b.CIDR.Addr().Is4() && b.CIDR.Addr().IsMulticast() {
			groups++
		}
	}
	others := len(s.peers.blocks) - groups + len(s.peers.choices) + len(s.peers.relative) + len(s.peers.nodes) + len(s.peers.services)
	switch {
	case !p.features.Multicast || groups == 0:
		return nil
	case s.key.Direction != tables.Egress || s.kind == tables.BaselinePolicy || others > 0:
		return errMulticastRule
	case s.action != tables.Allow && s.action != tables.Drop || s.log || len(s.l7) > 0:
		return errMulticastAction
	}
	s.kind = tables.MulticastPolicy
	return nil
}

// allHosts is the destination of queries (RFC 3376, section 4.1.12).
var allHosts = netip.AddrFrom4([4]byte{224, 0, 0, 1})

// igmp checks a rule of IGMP and chooses its kind. Without Multicast it is a rule about the
// IP protocol.
func (p *planner) igmp(s *policySpec) error {
	s.proto = slices.Clone(s.proto)
	ingress := s.key.Direction == tables.Ingress
	for i, x := range s.proto {
		switch {
		case !p.features.Multicast && x.IGMP != nil && x.IGMP.Type != nil:
			return errIGMPType
		case !p.features.Multicast:
		case x.IGMP == nil || s.kind == tables.BaselinePolicy || !s.peers.any || s.action != tables.Allow && s.action != tables.Drop ||
			s.log || len(s.ports)+len(s.l7)+len(s.services) > 0:
			return errIGMPRule
		case x.IGMP.Type != nil && (*x.IGMP.Type == igmpQuery) != ingress, ingress && x.IGMP.Group.IsValid() && x.IGMP.Group != allHosts:
			return errIGMPDirection
		case ingress:
			s.proto[i].IGMP = &cluster.IGMPProtocol{Group: allHosts}
		}
	}
	if p.features.Multicast {
		s.kind = tables.ReportPolicy
		if ingress {
			s.kind = tables.MulticastPolicy
		}
	}
	return nil
}

var ruleActions = map[cluster.RuleAction]tables.Action{
	cluster.ActionAllow: tables.Allow, cluster.ActionDrop: tables.Drop, cluster.ActionReject: tables.Reject, cluster.ActionPass: tables.Pass,
}

// ActionOf is the RuleAction for an action of the tables.
func ActionOf(a tables.Action) cluster.RuleAction {
	for name, action := range ruleActions {
		if action == a {
			return name
		}
	}
	return ""
}

// applied sets what a rule applies to: its own appliedTo, or else the policy's.
func (p *planner) applied(spec *policySpec, r *cluster.PolicyRule) error {
	list := r.AppliedTo
	if len(list) == 0 {
		list = p.policy.AppliedTo
	}
	for _, a := range list {
		switch {
		case a.Service != nil:
			spec.services = append(spec.services, *a.Service)
		case a.Group != "":
			var members peerSpec
			if err := p.group(a.Group, &members); err != nil {
				return err
			}
			spec.applied = append(spec.applied, members.choices...)
		case a.ExternalEntities != nil:
			spec.applied = append(spec.applied, chooseEntities(p.policy.Key.Namespace, a.ExternalEntities, a.Namespaces))
		case a.ServiceAccount != nil:
			spec.applied = append(spec.applied, accountPods(*a.ServiceAccount))
		case a.Pods != nil || a.Namespaces != nil:
			spec.applied = append(spec.applied, choosePods(p.policy.Key.Namespace, a.Pods, a.Namespaces))
		}
	}
	return nil
}

// accountPods chooses the Pods of a service account.
func accountPods(account cluster.Name) podChoice {
	return podChoice{namespace: account.Namespace, serviceAccount: account.Name}
}

// peers sets the peers of a rule. Without peers any address matches. Peers that choose no Pod
// match nothing.
func (p *planner) peers(spec *policySpec, r *cluster.PolicyRule) error {
	to := &spec.peers
	to.any = len(r.Peers) == 0 && len(r.ToServices) == 0
	to.services = r.ToServices
	for i := range r.Peers {
		if err := p.peer(to, &r.Peers[i]); err != nil {
			return fmt.Errorf("peer %d: %w", i, err)
		}
	}
	return nil
}

func (p *planner) peer(to *peerSpec, peer *cluster.PolicyPeer) error {
	switch {
	case peer.IPBlock != nil:
		to.blocks = append(to.blocks, *peer.IPBlock)
	case peer.Group != "":
		return p.group(peer.Group, to)
	case peer.ServiceAccount != nil:
		to.choices = append(to.choices, accountPods(*peer.ServiceAccount))
	case peer.Nodes != nil:
		to.nodes = append(to.nodes, *peer.Nodes)
	case peer.ExternalEntities != nil:
		to.choices = append(to.choices, chooseEntities(p.policy.Key.Namespace, peer.ExternalEntities, peer.Namespaces))
	case peer.PeerNamespaces != nil:
		to.relative = append(to.relative, relativePeer{*peer.PeerNamespaces, peer.Pods})
	case peer.Pods != nil || peer.Namespaces != nil:
		to.choices = append(to.choices, choosePods(p.policy.Key.Namespace, peer.Pods, peer.Namespaces))
	}
	return nil
}

// group adds the members of a ClusterGroup (for a policy without a namespace) or a Group. A
// missing group has none.
func (p *planner) group(name string, to *peerSpec) error {
	kind := cluster.KindClusterGroup
	if p.policy.Key.Namespace != "" {
		kind = cluster.KindGroup
	}
	w := groupWalk{p.cluster, to, map[cluster.Key]bool{}}
	return w.addGroup(cluster.Key{Kind: kind, Namespace: p.policy.Key.Namespace, Name: name})
}

// groupWalk collects the members of a group and its child groups.
type groupWalk struct {
	cluster *cluster.Cluster
	to      *peerSpec
	within  map[cluster.Key]bool // groups whose children are being added
}

func (w *groupWalk) addGroup(k cluster.Key) error {
	if w.within[k] {
		return fmt.Errorf("%s is a child of itself", k)
	}
	g := w.cluster.Groups[k]
	if g == nil {
		return nil
	}
	w.to.blocks = append(w.to.blocks, g.IPBlocks...)
	if g.ExternalEntities != nil {
		w.to.choices = append(w.to.choices, chooseEntities(k.Namespace, g.ExternalEntities, g.Namespaces))
	} else if g.Pods != nil || g.Namespaces != nil {
		w.to.choices = append(w.to.choices, choosePods(k.Namespace, g.Pods, g.Namespaces))
	}
	if g.Service != nil {
		w.addService(*g.Service)
	}
	w.within[k] = true
	defer delete(w.within, k)
	for _, child := range g.ChildGroups {
		if err := w.addGroup(cluster.Key{Kind: k.Kind, Namespace: k.Namespace, Name: child}); err != nil {
			return err
		}
	}
	return nil
}

// addService adds the Pods behind a Service. A Service without a selector adds none.
func (w *groupWalk) addService(n cluster.Name) {
	if svc := w.cluster.Service(n); svc != nil && len(svc.Selector) > 0 {
		pods := cluster.SelectLabels(svc.Selector)
		w.to.choices = append(w.to.choices, podChoice{namespace: n.Namespace, pods: &pods})
	}
}
