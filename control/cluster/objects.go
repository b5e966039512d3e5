package cluster

import (
	"cmp"
	"fmt"
	"net/netip"
)

// Kind names a type of object. It is the kind of the manifest, except that Antrea's
// NetworkPolicy and that of Kubernetes have different Kinds.
type Kind string

// The kinds of objects that a snapshot holds.
const (
	KindNodeConfig           Kind = "NodeConfig" // antrail.io
	KindNode                 Kind = "Node"
	KindNamespace            Kind = "Namespace"
	KindPod                  Kind = "Pod"
	KindExternalEntity       Kind = "ExternalEntity"
	KindService              Kind = "Service"
	KindEndpointSlice        Kind = "EndpointSlice"
	KindNetworkPolicy        Kind = "NetworkPolicy" // networking.k8s.io
	KindClusterNetworkPolicy Kind = "ClusterNetworkPolicy"
	KindAntreaNetworkPolicy  Kind = "AntreaNetworkPolicy" // NetworkPolicy of crd.antrea.io
	KindTier                 Kind = "Tier"
	KindClusterGroup         Kind = "ClusterGroup"
	KindGroup                Kind = "Group"
	KindEgress               Kind = "Egress"
	KindExternalIPPool       Kind = "ExternalIPPool"
	KindTrafficControl       Kind = "TrafficControl"
	KindTraceflow            Kind = "Traceflow"
)

// Key is the identity of an object. Namespace is empty for cluster-scoped kinds.
type Key struct {
	Kind      Kind
	Namespace string
	Name      string
}

// String gives Kind/name or Kind/namespace/name.
func (k Key) String() string {
	if k.Namespace == "" {
		return fmt.Sprintf("%s/%s", k.Kind, k.Name)
	}
	return fmt.Sprintf("%s/%s/%s", k.Kind, k.Namespace, k.Name)
}

// Compare orders keys by kind, namespace and name; it returns -1, 0 or 1.
func (k Key) Compare(o Key) int {
	return cmp.Or(
		cmp.Compare(k.Kind, o.Kind),
		cmp.Compare(k.Namespace, o.Namespace),
		cmp.Compare(k.Name, o.Name),
	)
}

// Source is the place of an object: a file and the line at which its document begins, counted
// from 1. Default tiers and derived EndpointSlices are in no file and have the zero Source.
type Source struct {
	File string
	Line int
}

// String gives file:line, or only the file if the line is 0.
func (s Source) String() string {
	switch {
	case s.File == "":
		return "built in"
	case s.Line == 0:
		return s.File
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}

// Labels are the labels of an object.
type Labels map[string]string

// Meta is the part that all objects have. It is embedded, so an object's key is obj.Key and
// its labels are obj.Labels.
type Meta struct {
	Key    Key
	Labels Labels
	Source Source
}

// Metadata returns the object's own Meta. It makes every type that embeds Meta an Object.
func (m *Meta) Metadata() *Meta { return m }

// Object is a pointer to any type of this package that a snapshot holds (see Cluster).
type Object interface {
	Metadata() *Meta
}

// Name is a namespaced reference from one object to another.
type Name struct {
	Namespace string
	Name      string
}

// Protocol is a layer-4 protocol as an IP protocol number.
type Protocol uint8

// The protocols of Services and policies.
const (
	TCP  Protocol = 6
	UDP  Protocol = 17
	SCTP Protocol = 132
)

// String gives the name as Kubernetes writes it.
func (p Protocol) String() string {
	switch p {
	case TCP:
		return "TCP"
	case UDP:
		return "UDP"
	case SCTP:
		return "SCTP"
	}
	return fmt.Sprintf("protocol %d", uint8(p))
}

// PortRef is a port by number or by the name that a container gives it. The zero PortRef
// means any port.
type PortRef struct {
	Name   string
	Number uint16
}

// IsZero reports whether no port is named.
func (p PortRef) IsZero() bool { return p == PortRef{} }

// IPBlock is a prefix without some prefixes inside it. Both are masked: no
// address bit behind the prefix length is set.
type IPBlock struct {
	CIDR   netip.Prefix
	Except []netip.Prefix
}
