package manifest

import (
	"cmp"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/internal/printable"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Antrea-native policies. The checks are those of the API's schema and of Antrea's webhooks.

const (
	minPolicyPriority = 1
	maxPolicyPriority = 10000
)

func decodeAntreaPolicy(c *check, in *antreaPolicyManifest) cluster.Object {
	p := &cluster.AntreaPolicy{Meta: c.meta, UID: string(in.UID), Generation: in.Generation, Tier: strings.ToLower(in.Spec.Tier)}
	p.Tier = cmp.Or(p.Tier, cluster.DefaultTier)
	switch prio := in.Spec.Priority; {
	case prio == nil:
		c.required(specAt.Child("priority"), "")
	case *prio < minPolicyPriority || *prio > maxPolicyPriority || math.IsNaN(*prio):
		c.invalid(specAt.Child("priority"), *prio, "must be between %d and %d, inclusive", minPolicyPriority, maxPolicyPriority)
	default:
		p.Priority = *prio
	}
	r := ruleDecoding{check: c, policy: p, names: map[string]bool{}}
	p.AppliedTo = r.appliedTo(specAt.Child("appliedTo"), in.Spec.AppliedTo, len(in.Spec.Egress) == 0)
	p.Ingress = r.rules(specAt.Child("ingress"), in.Spec.Ingress, ingressRule)
	p.Egress = r.rules(specAt.Child("egress"), in.Spec.Egress, egressRule)
	return p
}

// ruleDecoding is the state of decoding the rules of one policy.
type ruleDecoding struct {
	*check
	policy *cluster.AntreaPolicy
	names  map[string]bool
}

// ruleSide is the field with the peers of a rule.
type ruleSide string

const (
	ingressRule ruleSide = "from"
	egressRule  ruleSide = "to"
)

func (r *ruleDecoding) rules(at *field.Path, in []ruleManifest, side ruleSide) []cluster.PolicyRule {
	var out []cluster.PolicyRule
	for i := range in {
		out = append(out, r.rule(at.Index(i), &in[i], side))
	}
	return out
}

func (r *ruleDecoding) rule(at *field.Path, in *ruleManifest, side ruleSide) cluster.PolicyRule {
	rule := cluster.PolicyRule{
		Name:      r.ruleName(at.Child("name"), in.Name),
		Action:    r.action(at.Child("action"), in.Action),
		Protocols: r.protocols(at.Child("protocols"), in.Protocols),
		AppliedTo: r.appliedTo(at.Child("appliedTo"), in.AppliedTo, side == ingressRule),
		Log:       in.EnableLogging,
		LogLabel:  in.LogLabel,
		L7:        r.l7(at.Child("l7Protocols"), in),
	}
	r.all(at.Child("logLabel"), Clip(in.LogLabel), validation.IsValidLabelValue(in.LogLabel))
	for i, p := range in.Ports {
		rule.Ports = append(rule.Ports, decodePolicyPort(r.check, at.Child("ports").Index(i), p))
	}
	r.ruleScope(at, in)
	rule.Peers = r.peers(at, in, side)
	rule.ToServices = r.toServices(at.Child("toServices"), in, side)
	return rule
}

// ruleName is a rule's name in printable form, because Kubernetes accepts any text.
func (r *ruleDecoding) ruleName(at *field.Path, name string) string {
	name = printable.Text(name)
	if name != "" && r.names[name] {
		r.faults = append(r.faults, field.Duplicate(at, Clip(name)))
	}
	r.names[name] = true
	return name
}

func (r *ruleDecoding) action(at *field.Path, in *string) cluster.RuleAction {
	if in == nil {
		r.required(at, "a rule has an action")
		return ""
	}
	a := oneOf(r.check, at, cluster.RuleAction(*in), cluster.ActionAllow, cluster.ActionDrop, cluster.ActionReject, cluster.ActionPass)
	if a == cluster.ActionPass && r.policy.Tier == "baseline" {
		r.forbidden(at, "Pass has nothing to pass to in the baseline tier")
	}
	return a
}

// ruleScope checks that either the policy or each rule has an appliedTo.
func (r *ruleDecoding) ruleScope(at *field.Path, in *ruleManifest) {
	byPolicy, byRule := len(r.policy.AppliedTo) > 0, len(in.AppliedTo) > 0
	switch {
	case byPolicy && byRule:
		r.forbidden(at.Child("appliedTo"), "may not be set in a rule when the policy has one")
	case !byPolicy && !byRule:
		r.required(at.Child("appliedTo"), "must be set in the policy or in each of its rules")
	}
}

// modes returns the alternatives of an appliedTo or peer that are used.
func modes(used map[string]bool) []string {
	var names []string
	for name, is := range used {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// oneMode checks that exactly one alternative is used.
func (c *check) oneMode(at *field.Path, used map[string]bool) {
	switch names := modes(used); {
	case len(names) == 0:
		c.required(at, "must select something")
	case len(names) > 1:
		c.forbidden(at, strings.Join(names, " and ")+" may not be set together")
	}
}

func (r *ruleDecoding) appliedTo(at *field.Path, in []appliedToManifest, mayBeService bool) []cluster.AppliedTo {
	var out []cluster.AppliedTo
	services := 0
	for i := range in {
		a := r.oneAppliedTo(at.Index(i), &in[i])
		if a.Service != nil {
			services++
			if !mayBeService {
				r.forbidden(at.Index(i).Child("service"), "only ingress rules may be applied to a Service")
			}
		}
		out = append(out, a)
	}
	if services > 0 && services < len(in) {
		r.forbidden(at, "a Service may not be set together with other selectors")
	}
	return out
}

func (r *ruleDecoding) oneAppliedTo(at *field.Path, in *appliedToManifest) cluster.AppliedTo {
	r.oneMode(at, map[string]bool{
		"podSelector or namespaceSelector": in.PodSelector != nil || in.NamespaceSelector != nil && in.ExternalEntitySelector == nil,
		"externalEntitySelector":           in.ExternalEntitySelector != nil,
		"group":                            in.Group != "",
		"serviceAccount":                   in.ServiceAccount != nil,
		"service":                          in.Service != nil,
		"nodeSelector":                     in.NodeSelector != nil,
	})
	if r.namespaced() {
		r.clusterOnly(at.Child("namespaceSelector"), in.NamespaceSelector != nil)
		r.clusterOnly(at.Child("nodeSelector"), in.NodeSelector != nil)
	}
	return cluster.AppliedTo{
		Pods:             r.selector(at.Child("podSelector"), in.PodSelector),
		Namespaces:       r.selector(at.Child("namespaceSelector"), in.NamespaceSelector),
		ExternalEntities: r.selector(at.Child("externalEntitySelector"), in.ExternalEntitySelector),
		Group:            r.group(at.Child("group"), in.Group),
		ServiceAccount:   r.reference(at.Child("serviceAccount"), in.ServiceAccount),
		Service:          r.reference(at.Child("service"), in.Service),
		Nodes:            r.selector(at.Child("nodeSelector"), in.NodeSelector),
	}
}

// namespaced reports whether the policy is Antrea's NetworkPolicy.
func (r *ruleDecoding) namespaced() bool { return r.meta.Key.Kind == cluster.KindAntreaNetworkPolicy }

func (r *ruleDecoding) clusterOnly(at *field.Path, set bool) {
	if set {
		r.forbidden(at, "may be set in a ClusterNetworkPolicy only")
	}
}

func (c *check) group(at *field.Path, name string) string {
	if name == "" {
		return ""
	}
	return c.name(at, name)
}

// reference reads a name and its namespace. Both are required.
func (c *check) reference(at *field.Path, in *nameManifest) *cluster.Name {
	if in == nil {
		return nil
	}
	return &cluster.Name{Namespace: c.name(at.Child("namespace"), in.Namespace), Name: c.name(at.Child("name"), in.Name)}
}

func (r *ruleDecoding) peers(at *field.Path, in *ruleManifest, side ruleSide) []cluster.PolicyPeer {
	peers, other := in.From, in.To
	if side == egressRule {
		peers, other = in.To, in.From
	}
	if len(other) > 0 {
		r.forbidden(at, "an ingress rule has `from` and no `to`, an egress rule has `to` and no `from`")
	}
	var out []cluster.PolicyPeer
	for i := range peers {
		out = append(out, r.peer(at.Child(string(side)).Index(i), &peers[i], side))
	}
	return out
}

func (r *ruleDecoding) peer(at *field.Path, in *peerManifest, side ruleSide) cluster.PolicyPeer {
	r.peerModes(at, in, side)
	p := cluster.PolicyPeer{
		Pods:             r.selector(at.Child("podSelector"), in.PodSelector),
		Namespaces:       r.selector(at.Child("namespaceSelector"), in.NamespaceSelector),
		PeerNamespaces:   r.peerNamespaces(at.Child("namespaces"), in.Namespaces),
		ExternalEntities: r.selector(at.Child("externalEntitySelector"), in.ExternalEntitySelector),
		Group:            r.group(at.Child("group"), in.Group),
		FQDN:             r.fqdn(at.Child("fqdn"), in.FQDN),
		ServiceAccount:   r.reference(at.Child("serviceAccount"), in.ServiceAccount),
		Nodes:            r.selector(at.Child("nodeSelector"), in.NodeSelector),
		ClusterSet:       in.Scope == "ClusterSet",
	}
	if in.Scope != "" {
		oneOf(r.check, at.Child("scope"), in.Scope, "Cluster", "ClusterSet")
	}
	if in.IPBlock != nil {
		b := r.block(at.Child("ipBlock"), in.IPBlock.CIDR, in.IPBlock.Except)
		p.IPBlock = &b
	}
	return p
}

// peerModes checks that the ways of choosing peers may be combined.
func (r *ruleDecoding) peerModes(at *field.Path, in *peerManifest, side ruleSide) {
	entities := in.ExternalEntitySelector != nil
	namespaces := in.NamespaceSelector != nil || in.Namespaces != nil
	r.oneMode(at, map[string]bool{
		"podSelector or namespaces": in.PodSelector != nil || namespaces && !entities,
		"ipBlock":                   in.IPBlock != nil,
		"externalEntitySelector":    entities,
		"group":                     in.Group != "",
		"fqdn":                      in.FQDN != "",
		"serviceAccount":            in.ServiceAccount != nil,
		"nodeSelector":              in.NodeSelector != nil,
	})
	if in.NamespaceSelector != nil && in.Namespaces != nil {
		r.forbidden(at, "namespaces and namespaceSelector may not be set together")
	}
	if in.FQDN != "" && side == ingressRule {
		r.forbidden(at.Child("fqdn"), "may be set in egress rules only")
	}
	if in.Scope == "ClusterSet" && side == egressRule {
		r.forbidden(at.Child("scope"), "ClusterSet may be set in ingress rules only")
	}
	if r.namespaced() {
		r.clusterOnly(at.Child("namespaces"), in.Namespaces != nil)
	}
}

func (r *ruleDecoding) peerNamespaces(at *field.Path, in *namespacesManifest) *cluster.PeerNamespaces {
	if in == nil {
		return nil
	}
	if (in.Match != "") == (len(in.SameLabels) > 0) {
		r.invalid(at, Clip(in.Match), "must have either match or sameLabels")
	}
	if in.Match != "" {
		oneOf(r.check, at.Child("match"), in.Match, "Self")
	}
	for i, l := range in.SameLabels {
		r.all(at.Child("sameLabels").Index(i), Clip(l), validation.IsQualifiedName(l))
	}
	return &cluster.PeerNamespaces{Self: in.Match == "Self", SameLabels: in.SameLabels}
}

// fqdnPattern matches a domain name. maxFQDN is its limit without the last dot. With that count in
// the pattern, each start of the program would take 4 ms longer.
var fqdnPattern = regexp.MustCompile(`^[a-zA-Z0-9*]([a-zA-Z0-9*_.-]*[a-zA-Z0-9*])?\.?$`)

const maxFQDN = 253

func (c *check) fqdn(at *field.Path, name string) string {
	if name != "" && (len(strings.TrimSuffix(name, ".")) > maxFQDN || !fqdnPattern.MatchString(name)) {
		c.invalid(at, Clip(name), "is not a domain name; * stands for any part")
	}
	return name
}

func (r *ruleDecoding) toServices(at *field.Path, in *ruleManifest, side ruleSide) []cluster.Name {
	if len(in.ToServices) == 0 {
		return nil
	}
	if side == ingressRule {
		r.forbidden(at, "may be set in egress rules only")
	}
	if len(in.To) > 0 || len(in.Ports) > 0 || len(in.Protocols) > 0 {
		r.forbidden(at, "may not be set together with to, ports or protocols")
	}
	var out []cluster.Name
	for i, s := range in.ToServices {
		at := at.Index(i)
		ns := s.Namespace
		if ns == "" && r.namespaced() {
			ns = r.meta.Key.Namespace
		}
		if s.Scope != "" && s.Scope != "Cluster" {
			r.unsupported(at.Child("scope"), Clip(s.Scope), "Cluster")
		}
		out = append(out, cluster.Name{Namespace: r.name(at.Child("namespace"), ns), Name: r.name(at.Child("name"), s.Name)})
	}
	return out
}

// igmpTypes are the messages in the API: query, and the reports of versions 1, 2 and 3.
var igmpTypes = []uint8{0x11, 0x12, 0x16, 0x22}

func (c *check) protocols(at *field.Path, in []protocolManifest) []cluster.PolicyProtocol {
	var out []cluster.PolicyProtocol
	for i, p := range in {
		at := at.Index(i)
		c.oneMode(at, map[string]bool{"icmp": p.ICMP != nil, "igmp": p.IGMP != nil})
		var proto cluster.PolicyProtocol
		if p.ICMP != nil {
			proto.ICMP = &cluster.ICMPProtocol{
				Type: c.octet(at.Child("icmp", "icmpType"), p.ICMP.ICMPType),
				Code: c.octet(at.Child("icmp", "icmpCode"), p.ICMP.ICMPCode),
			}
		}
		if p.IGMP != nil {
			proto.IGMP = &cluster.IGMPProtocol{
				Type:  c.octet(at.Child("igmp", "igmpType"), p.IGMP.IGMPType),
				Group: c.multicast(at.Child("igmp", "groupAddress"), p.IGMP.GroupAddress),
			}
			if t := proto.IGMP.Type; t != nil && !slices.Contains(igmpTypes, *t) {
				c.invalid(at.Child("igmp", "igmpType"), *t, "is none of 0x11, 0x12, 0x16 and 0x22")
			}
		}
		out = append(out, proto)
	}
	return out
}

func (c *check) multicast(at *field.Path, s string) netip.Addr {
	if s == "" {
		return netip.Addr{}
	}
	a := c.addr(at, s)
	if a.IsValid() && !a.IsMulticast() {
		c.invalid(at, Clip(s), "is not a multicast address")
	}
	return a
}

var httpMethods = []string{"GET", "POST", "PUT", "HEAD", "DELETE", "TRACE", "OPTIONS", "CONNECT", "PATCH"}

// l7 reads the protocols for an application-aware engine, which sees allowed TCP connections only.
func (r *ruleDecoding) l7(at *field.Path, in *ruleManifest) []cluster.L7Protocol {
	if len(in.L7Protocols) == 0 {
		return nil
	}
	if unless(in.Action, "") != string(cluster.ActionAllow) {
		r.forbidden(at, "may be set in rules with action Allow only")
	}
	if len(in.ToServices) > 0 || len(in.Protocols) > 0 {
		r.forbidden(at, "may not be set together with toServices or protocols")
	}
	for _, p := range in.Ports {
		if p.Protocol != "" && p.Protocol != "TCP" {
			r.forbidden(at, "may be set with TCP ports only")
		}
	}
	var out []cluster.L7Protocol
	for i, p := range in.L7Protocols {
		r.oneMode(at.Index(i), map[string]bool{"http": p.HTTP != nil, "tls": p.TLS != nil})
		var l7 cluster.L7Protocol
		if p.HTTP != nil {
			if p.HTTP.Method != "" {
				oneOf(r.check, at.Index(i).Child("http", "method"), p.HTTP.Method, httpMethods...)
			}
			l7.HTTP = &cluster.L7HTTP{Host: p.HTTP.Host, Method: p.HTTP.Method, Path: p.HTTP.Path}
		}
		if p.TLS != nil {
			l7.TLS = &cluster.L7TLS{SNI: p.TLS.SNI}
		}
		out = append(out, l7)
	}
	return out
}
