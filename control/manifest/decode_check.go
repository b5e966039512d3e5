package manifest

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	yaml "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/antrail/antrail/control/cluster"
)

// check is the state of decoding one object: its identity, place and faults. Each method turns one
// value into ours. A wrong value adds a fault and becomes zero. So the converters need no error
// paths, and all faults of an object are reported at once.
type check struct {
	meta     cluster.Meta
	file     string
	node     *yaml.Node
	lines    lineMap
	faults   field.ErrorList
	problems []Problem
}

func (c *check) invalid(p *field.Path, value any, format string, args ...any) {
	c.faults = append(c.faults, field.Invalid(p, value, fmt.Sprintf(format, args...)))
}

func (c *check) required(p *field.Path, reason string) {
	c.faults = append(c.faults, field.Required(p, reason))
}

func (c *check) forbidden(p *field.Path, reason string) {
	c.faults = append(c.faults, field.Forbidden(p, reason))
}

func (c *check) unsupported(p *field.Path, value string, supported ...string) {
	c.faults = append(c.faults, field.NotSupported(p, value, supported))
}

// all adds each of the reasons from apimachinery's checks.
func (c *check) all(p *field.Path, value any, reasons []string) {
	for _, r := range reasons {
		c.invalid(p, value, "%s", r)
	}
}

// metadata checks an object's name, namespace and labels.
func (c *check) metadata(in metav1.Object, s scope) {
	at := field.NewPath("metadata")
	if in.GetName() == "" {
		c.required(at.Child("name"), "an object has a name")
	} else {
		c.all(at.Child("name"), Clip(in.GetName()), nameFaults(c.meta.Key.Kind, in.GetName()))
	}
	if ns := in.GetNamespace(); ns != "" && s == clusterWide {
		c.forbidden(at.Child("namespace"), "the kind belongs to no namespace")
	} else if ns != "" {
		c.all(at.Child("namespace"), Clip(ns), validation.IsDNS1123Label(ns))
	}
	c.faults = append(c.faults, metavalidation.ValidateLabels(in.GetLabels(), at.Child("labels"))...)
	c.meta.Labels = in.GetLabels()
}

// nameFaults checks a name as the API server does for that kind.
func nameFaults(kind cluster.Kind, name string) []string {
	switch kind {
	case cluster.KindService, cluster.KindNamespace:
		return validation.IsDNS1123Label(name)
	}
	return validation.IsDNS1123Subdomain(name)
}

// name checks a reference to another object's name.
func (c *check) name(p *field.Path, name string) string {
	if name == "" {
		c.required(p, "")
	} else {
		c.all(p, Clip(name), validation.IsDNS1123Subdomain(name))
	}
	return name
}

// addr reads an address without a zone. An IPv4 address in IPv6 form becomes IPv4.
func (c *check) addr(p *field.Path, s string) netip.Addr {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		c.invalid(p, Clip(s), "is not an IP address")
		return netip.Addr{}
	}
	return a.Unmap()
}

func (c *check) addrs(p *field.Path, in []string) []netip.Addr {
	var out []netip.Addr
	for i, s := range in {
		out = append(out, c.addr(p.Index(i), s))
	}
	return out
}

// onePerFamily is addrs for lists with at most one IPv4 and one IPv6 address.
func (c *check) onePerFamily(p *field.Path, in []string) []netip.Addr {
	out := c.addrs(p, in)
	if len(out) > 2 || len(out) == 2 && out[0].Is4() == out[1].Is4() {
		c.invalid(p, len(out), "may hold at most one IPv4 and one IPv6 address")
		return nil
	}
	return out
}

// remote checks that another machine can send packets to an address.
func (c *check) remote(p *field.Path, a netip.Addr) {
	if !a.IsValid() {
		return
	}
	if a.IsUnspecified() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() {
		c.invalid(p, a.String(), "may not be unspecified, loopback, link-local or multicast")
	}
}

// prefix reads a prefix and clears the bits behind its length.
func (c *check) prefix(p *field.Path, s string) netip.Prefix {
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		c.invalid(p, Clip(s), "is not a CIDR such as 10.9.8.0/24 or 2001:db8::/64")
		return netip.Prefix{}
	}
	if prefix.Addr().Is4In6() {
		c.invalid(p, Clip(s), "is an IPv4 prefix in IPv6 form")
		return netip.Prefix{}
	}
	return prefix.Masked()
}

func (c *check) prefixes(p *field.Path, in []string) []netip.Prefix {
	var out []netip.Prefix
	for i, s := range in {
		out = append(out, c.prefix(p.Index(i), s))
	}
	return out
}

// block reads a prefix and its exceptions. Each exception must be a strict part of the prefix.
func (c *check) block(p *field.Path, cidr string, except []string) cluster.IPBlock {
	b := cluster.IPBlock{CIDR: c.prefix(p.Child("cidr"), cidr)}
	for i, s := range except {
		at := p.Child("except").Index(i)
		e := c.prefix(at, s)
		if e.IsValid() && b.CIDR.IsValid() && !(b.CIDR.Contains(e.Addr()) && e.Bits() > b.CIDR.Bits()) {
			c.invalid(at, Clip(s), "must be a strict subset of `cidr` %s", b.CIDR)
			continue
		}
		b.Except = append(b.Except, e)
	}
	return b
}

// selector reads a label selector; nil stays nil.
func (c *check) selector(p *field.Path, in *metav1.LabelSelector) *cluster.Selector {
	if in == nil {
		return nil
	}
	faults := metavalidation.ValidateLabelSelector(in, metavalidation.LabelSelectorValidationOptions{}, p)
	if len(faults) > 0 {
		c.faults = append(c.faults, faults...)
		return &cluster.Selector{}
	}
	var rs []cluster.Requirement
	for k, v := range in.MatchLabels {
		rs = append(rs, cluster.Requirement{Label: k, Op: cluster.In, Values: []string{v}})
	}
	for _, e := range in.MatchExpressions {
		rs = append(rs, cluster.Requirement{Label: e.Key, Op: cluster.Operator(e.Operator), Values: e.Values})
	}
	s := cluster.NewSelector(rs...)
	return &s
}

// labels checks a map that is used as a selector.
func (c *check) labels(p *field.Path, in map[string]string) cluster.Labels {
	c.faults = append(c.faults, metavalidation.ValidateLabels(in, p)...)
	return maps.Clone(in)
}

// port checks a port number; 0 is none.
func (c *check) port(p *field.Path, n int32) uint16 {
	if n < 1 || n > 65535 {
		c.invalid(p, n, "must be between 1 and 65535, inclusive")
		return 0
	}
	return uint16(n)
}

// optionalPort checks a port number that may be omitted.
func (c *check) optionalPort(p *field.Path, n *int32) uint16 {
	if n == nil {
		return 0
	}
	return c.port(p, *n)
}

// portRef reads a port number or the name of one.
func (c *check) portRef(p *field.Path, in intstr.IntOrString) cluster.PortRef {
	if in.Type == intstr.Int {
		return cluster.PortRef{Number: c.port(p, in.IntVal)}
	}
	c.all(p, Clip(in.StrVal), validation.IsValidPortName(in.StrVal))
	return cluster.PortRef{Name: in.StrVal}
}

// protocol reads a layer-4 protocol; the default is TCP.
func (c *check) protocol(p *field.Path, in corev1.Protocol) cluster.Protocol {
	switch in {
	case "", corev1.ProtocolTCP:
		return cluster.TCP
	case corev1.ProtocolUDP:
		return cluster.UDP
	case corev1.ProtocolSCTP:
		return cluster.SCTP
	}
	c.unsupported(p, Clip(string(in)), "TCP", "UDP", "SCTP")
	return 0
}

// octet reads an optional number of eight bits.
func (c *check) octet(p *field.Path, n *int32) *uint8 {
	if n == nil {
		return nil
	}
	if *n < 0 || *n > 255 {
		c.invalid(p, *n, "must be between 0 and 255, inclusive")
		return nil
	}
	v := uint8(*n)
	return &v
}

// oneOf reads a value that must be one of those supported.
func oneOf[S ~string](c *check, p *field.Path, value S, supported ...S) S {
	if slices.Contains(supported, value) {
		return value
	}
	var names []string
	for _, s := range supported {
		names = append(names, string(s))
	}
	c.unsupported(p, Clip(string(value)), names...)
	return ""
}

// unless returns a pointer's value, or otherwise if it is nil.
func unless[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}
