package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// From a spec to its parts. A rule that applies to no Pod of this Node has no part. Otherwise
// the Pods that it applies to are split by these differences:
//
//   - the numbers of named ports, for ingress;
//   - the namespaces that relative peers (Self, sameLabels) mean.
//
// For egress, each of these parts is split again, by the numbers of named ports at the peers.
// Peers without the named ports keep only the ports given by number. So do blocks, Nodes and
// Services, because they have no named ports.

// subjects are the Pods of this Node for which a rule means the same.
type subjects struct {
	shared   *AddressSet // nil: pods and services
	pods     []member
	services []uint32 // groups of Services that the rule applies to
	matches  []tables.L4Match
	space    string // the namespace of all pods, if peers are relative
}

// peerPart has the peers for which a rule means the same.
type peerPart struct {
	shared    *AddressSet      // nil: addresses
	addresses []tables.Address // sorted
	any       bool
	matches   []tables.L4Match
}

// realise computes the parts of a spec, without ids and priorities.
func (p *Policies) realise(s *policySpec) map[string]*RealisedRule {
	parts := map[string]*RealisedRule{}
	if s.isolates && !s.noRules {
		return parts
	}
	var relative []*podSet
	shared := s.shared
	s.shared = nil
	for key, sub := range p.split(s) {
		peers, used := p.peersOf(s, sub)
		relative = append(relative, used...)
		for peerKey, peer := range peers {
			if r, ok := p.rule(s, sub, peer); ok {
				parts[joinPart(key, peerKey)] = r
			}
		}
	}
	for _, set := range s.relative {
		p.peers.releaseSet(set, s)
	}
	for _, u := range shared {
		p.shared.releaseSet(u)
	}
	s.relative = relative
	return parts
}

func joinPart(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ";" + b
}

// split groups the local Pods that a rule applies to into subjects. The key of a group is
// stable. Services that the rule applies to are one more group, without named ports.
func (p *Policies) split(s *policySpec) map[string]*subjects {
	if s.sharesSubjects() {
		return p.sharedSubjects(s)
	}
	all := map[string]*subjects{}
	for _, m := range localMembers(s.local) {
		key, sub, ok := p.subject(s, m.pod)
		if !ok {
			continue
		}
		if all[key] == nil {
			all[key] = sub
		}
		all[key].pods = append(all[key].pods, m)
	}
	fixed, ok := s.fixedMatches(p.config.Families)
	if groups := p.groupsOf(s.services); ok && len(groups) > 0 {
		all["service"] = &subjects{services: groups, matches: fixed}
	}
	return all
}

// sharesSubjects reports whether a rule means the same for all that it applies to. It then
// applies to Pods only.
func (s *policySpec) sharesSubjects() bool {
	return len(s.services)+len(s.peers.relative) == 0 && (s.key.Direction == tables.Egress || !s.hasNamedPorts())
}

// sharedSubjects is split for a rule that means the same for all Pods.
func (p *Policies) sharedSubjects(s *policySpec) map[string]*subjects {
	of := subjectsByPort
	if s.key.Direction == tables.Egress {
		of = subjectsByAddress
	}
	u := p.shared.acquireSet(of, s.local, nil, p.config.Families)
	s.shared = append(s.shared, u)
	if len(u.Addresses()) == 0 {
		return nil
	}
	fixed, _ := s.fixedMatches(p.config.Families)
	return map[string]*subjects{"": {shared: u, matches: fixed}}
}

// subject returns the meaning of a rule for one Pod. The key is equal for Pods for which the
// rule means the same. It returns false if the rule has no meaning for the Pod.
func (p *Policies) subject(s *policySpec, pod *cluster.Pod) (key string, sub *subjects, ok bool) {
	fixed, fixedOK := s.fixedMatches(p.config.Families)
	sub = &subjects{matches: fixed}
	if s.key.Direction == tables.Ingress && s.hasNamedPorts() {
		named, matches := s.namedMatches(pod)
		if named == "" && !fixedOK {
			return "", nil, false
		}
		key, sub.matches = named, append(slices.Clone(fixed), matches...)
	}
	if len(s.peers.relative) > 0 {
		relation, ok := p.relation(s, pod.Key.Namespace)
		if !ok {
			return "", nil, false
		}
		key, sub.space = joinPart(key, relation), pod.Key.Namespace
	}
	return key, sub, true
}

// localMembers returns the Pods of some sets, without duplicates, by name.
func localMembers(sets []*podSet) []member {
	seen := map[cluster.Key]member{}
	for _, set := range sets {
		for name, m := range set.members {
			seen[name] = m
		}
	}
	all := make([]member, 0, len(seen))
	for _, m := range seen {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b member) int { return a.pod.Key.Compare(b.pod.Key) })
	return all
}

// relation is equal for namespaces whose Pods have the same relative peers. It returns false if
// the rule means nothing for a namespace, because that lacks a label.
func (p *Policies) relation(s *policySpec, namespace string) (string, bool) {
	var words []string
	for _, r := range s.peers.relative {
		if r.Self {
			words = append(words, "namespace="+namespace)
			continue
		}
		sel, ok := sameLabels(p.cluster.NamespaceLabels(namespace), r.SameLabels)
		if !ok {
			return "", false
		}
		words = append(words, sel.String())
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ";"), true
}

// sameLabels chooses the namespaces with the values that have gives to the named labels. It
// returns false if have lacks one of them.
func sameLabels(have cluster.Labels, names []string) (cluster.Selector, bool) {
	want := cluster.Labels{}
	for _, name := range names {
		value, ok := have[name]
		if !ok {
			return cluster.Selector{}, false
		}
		want[name] = value
	}
	return cluster.SelectLabels(want), true
}

// groupsOf returns the group ids of Services, sorted.
func (p *Policies) groupsOf(services []cluster.Name) (all []uint32) {
	if p.groups == nil {
		return nil
	}
	for _, n := range services {
		all = append(all, p.groups(n)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// peersOf splits the peers of a rule for some subjects. It also returns the sets of relative
// peers; each of them needs a releaseSet.
func (p *Policies) peersOf(s *policySpec, sub *subjects) (parts map[string]*peerPart, used []*podSet) {
	for _, r := range s.peers.relative {
		if sub.space != "" {
			used = append(used, p.peersFor(s)(p.relativeChoice(r, sub.space), s))
		}
	}
	sets := append(slices.Clone(s.remote), used...)
	if s.splitsPeers() {
		return p.splitPeers(s, sets), used
	}
	part := &peerPart{any: s.peers.any, matches: sub.matches}
	if !part.any && !s.noRules {
		part.shared = p.peerAddresses(s, sets)
	}
	return map[string]*peerPart{"": part}, used
}

// splitsPeers reports whether a rule depends on the port names of its peers.
func (s *policySpec) splitsPeers() bool { return s.key.Direction == tables.Egress && s.hasNamedPorts() }

// relativeChoice chooses the Pods that a relative peer means for Pods of a namespace.
func (p *Policies) relativeChoice(r relativePeer, namespace string) podChoice {
	if r.Self {
		return podChoice{namespace: namespace, pods: r.pods}
	}
	sel, _ := sameLabels(p.cluster.NamespaceLabels(namespace), r.SameLabels)
	return podChoice{namespaces: &sel, pods: r.pods}
}

// peerAddresses is the AddressSet of a rule's peers.
func (p *Policies) peerAddresses(s *policySpec, sets []*podSet) *AddressSet {
	u := p.shared.acquireSet(peersOfRules, sets, sortAddresses(p.fixedAddresses(s)), p.config.Families)
	s.shared = append(s.shared, u)
	return u
}

// fixedAddresses returns the peers that are not Pods.
func (p *Policies) fixedAddresses(s *policySpec) (all []tables.Address) {
	for _, b := range s.peers.blocks {
		all = append(all, blockAddresses(b, p.config.Families)...)
	}
	for _, sel := range s.peers.nodes {
		all = append(all, p.nodeAddresses(sel)...)
	}
	for _, id := range p.groupsOf(s.peers.services) {
		all = append(all, tables.Address{Group: id})
	}
	return all
}

// nodeAddresses returns the addresses of chosen Nodes and of their gateways. From its gateway a
// Node reaches its Pods.
func (p *Policies) nodeAddresses(sel cluster.Selector) (all []tables.Address) {
	for _, n := range p.cluster.Nodes {
		if !sel.Matches(n.Labels) {
			continue
		}
		ips := slices.Clone(n.Addresses)
		for _, cidr := range n.PodCIDRs {
			ips = append(ips, cidr.Masked().Addr().Next())
		}
		for _, ip := range ips {
			if hasFamily(p.config.Families, ip) {
				all = append(all, hostAddress(ip))
			}
		}
	}
	return all
}

// splitPeers groups the peers of an egress rule by the numbers of its named ports there. If any
// address is a peer, so is every Pod, because it may have the named ports.
func (p *Policies) splitPeers(s *policySpec, sets []*podSet) map[string]*peerPart {
	fixed, fixedOK := s.fixedMatches(p.config.Families)
	parts := map[string]*peerPart{}
	for _, set := range sets {
		for _, m := range set.members {
			key, named := s.namedMatches(m.pod)
			if key == "" && (!fixedOK || s.peers.any) {
				continue
			}
			if parts[key] == nil {
				parts[key] = &peerPart{matches: append(slices.Clone(fixed), named...)}
			}
			parts[key].addresses = podAddresses(parts[key].addresses, m.pod, p.config.Families)
		}
	}
	rest := p.fixedAddresses(s)
	if fixedOK && (s.peers.any || len(rest) > 0) {
		if parts[""] == nil {
			parts[""] = &peerPart{matches: fixed}
		}
		parts[""].any = s.peers.any
		parts[""].addresses = append(parts[""].addresses, rest...)
	}
	for _, part := range parts {
		part.addresses = sortAddresses(part.addresses)
	}
	return parts
}

// rule builds a part for the tables. It returns false if the part applies to no address.
func (p *Policies) rule(s *policySpec, sub *subjects, peer *peerPart) (*RealisedRule, bool) {
	realised := &RealisedRule{Name: s.name, LogLabel: s.logLabel, Peers: peer.shared, Subjects: sub.shared, Rule: tables.Rule{
		Direction: s.key.Direction, Kind: s.kind, Action: s.action, Log: s.log,
		Services: peer.matches, Families: p.config.Families,
	}}
	r := &realised.Rule
	applied := appliedAddresses(s.key.Direction, sub, p.config.Families)
	if s.key.Direction == tables.Ingress {
		r.From, r.AnyFrom, r.To = peer.addresses, peer.any, applied
	} else {
		r.From, r.To, r.AnyTo = applied, peer.addresses, peer.any
	}
	return realised, sub.shared != nil || len(applied) > 0
}

// appliedAddresses returns the subjects of a rule: for ingress by port, for egress by address.
func appliedAddresses(d tables.Direction, sub *subjects, families []tables.Family) (all []tables.Address) {
	for _, id := range sub.services {
		all = append(all, tables.Address{Service: &tables.ServiceRef{Group: id}})
	}
	for _, m := range sub.pods {
		if d == tables.Ingress {
			all = append(all, tables.Address{Port: m.port})
		} else {
			all = podAddresses(all, m.pod, families)
		}
	}
	return sortAddresses(all)
}

// FieldPath is the rule's place in the manifest of its policy. An isolation without rules has
// the path of the empty list of rules.
func (k RuleKey) FieldPath() string {
	field := "ingress"
	if k.Direction == tables.Egress {
		field = "egress"
	}
	if k.Index == isolationIndex {
		return "spec." + field
	}
	return fmt.Sprintf("spec.%s[%d]", field, k.Index)
}

// familyIPs returns the addresses of a Pod that are of the given families.
func familyIPs(p *cluster.Pod, families []tables.Family) (ips []netip.Addr) {
	for _, ip := range p.IPs {
		if ip = ip.Unmap(); hasFamily(families, ip) {
			ips = append(ips, ip)
		}
	}
	return ips
}
