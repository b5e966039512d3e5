package cluster

import (
	"net/netip"
)

// NetworkPolicy is a networking.k8s.io/v1 NetworkPolicy. A Pod that a policy selects for a
// direction is isolated in it: only traffic that some rule allows passes.
type NetworkPolicy struct {
	Meta
	Pods    Selector // of the policy's namespace; the empty selector: all
	Ingress bool     // policyTypes, with the API's default filled in
	Egress  bool
	// IngressRules and EgressRules may be empty for an isolating policy. Rules
	// of a direction that the policy does not isolate have no effect.
	IngressRules []NetworkPolicyRule
	EgressRules  []NetworkPolicyRule
}

// NetworkPolicyRule allows traffic with any of the peers at any of the ports.
// No peers: any peer; no ports: any port and protocol.
type NetworkPolicyRule struct {
	Peers []NetworkPolicyPeer
	Ports []PolicyPort
}

// NetworkPolicyPeer is either an IPBlock or selectors. With Pods alone, it is
// those Pods of the policy's namespace; with Namespaces alone, all Pods of
// those; with both, those Pods of those namespaces.
type NetworkPolicyPeer struct {
	IPBlock    *IPBlock
	Pods       *Selector
	Namespaces *Selector
}

// PolicyPort is one protocol with its ports. A zero Port means all ports. With EndPort, the
// ports are Port to EndPort, both included. Only Antrea-native policies have source ports; 0
// means any.
type PolicyPort struct {
	Protocol      Protocol
	Port          PortRef
	EndPort       uint16
	SourcePort    uint16
	SourceEndPort uint16
}

// AntreaPolicy is a ClusterNetworkPolicy or a NetworkPolicy of crd.antrea.io/v1beta1, as its
// Key.Kind says. Key.Namespace is empty for the former.
type AntreaPolicy struct {
	Meta
	// UID and Generation identify this state of the policy. They are zero if no API server
	// gave them.
	UID        string
	Generation int64
	Tier       string  // name of a Tier, in lower case; application when none is given
	Priority   float64 // 1 to 10000, lower first
	// AppliedTo is empty when every rule has its own.
	AppliedTo []AppliedTo
	Ingress   []PolicyRule // in order: the first match decides
	Egress    []PolicyRule
}

// RuleAction is the action of an Antrea-native rule.
type RuleAction string

// Actions of a rule. Pass skips later Antrea-native rules: K8s NetworkPolicies and the
// Baseline tier decide.
const (
	ActionAllow  RuleAction = "Allow"
	ActionDrop   RuleAction = "Drop"
	ActionReject RuleAction = "Reject"
	ActionPass   RuleAction = "Pass"
)

// PolicyRule is a rule of an AntreaPolicy. No Peers and no ToServices: any
// peer; no Ports and no Protocols: all traffic. Ports and Protocols are
// alternatives of one list.
type PolicyRule struct {
	Name       string
	Action     RuleAction
	Peers      []PolicyPeer // from of an ingress rule, to of an egress rule
	ToServices []Name       // egress only
	Ports      []PolicyPort
	Protocols  []PolicyProtocol
	AppliedTo  []AppliedTo // in place of the policy's
	Log        bool
	LogLabel   string
	L7         []L7Protocol
}

// AppliedTo chooses what a policy or rule applies to. Exactly one way is used:
// selectors (Pods and Namespaces may go together), a group, a service account,
// a Service, or Nodes.
type AppliedTo struct {
	Pods             *Selector
	Namespaces       *Selector
	ExternalEntities *Selector
	Group            string // ClusterGroup, or Group of a namespaced policy
	ServiceAccount   *Name
	Service          *Name // NodePort traffic to it, ingress rules only
	Nodes            *Selector
}

// PolicyPeer is one peer of an Antrea-native rule. Exactly one way is used, as
// for AppliedTo; Namespaces may go with Pods.
type PolicyPeer struct {
	IPBlock          *IPBlock
	Pods             *Selector
	Namespaces       *Selector
	PeerNamespaces   *PeerNamespaces // with Pods or alone, ClusterNetworkPolicy only
	ExternalEntities *Selector
	Group            string
	FQDN             string // egress only
	ServiceAccount   *Name
	Nodes            *Selector
	ClusterSet       bool // scope ClusterSet: Pods of other clusters too
}

// PeerNamespaces chooses namespaces relative to that of the Pod that the policy applies to: the
// same namespace, or those with equal values of some labels.
type PeerNamespaces struct {
	Self       bool
	SameLabels []string
}

// PolicyProtocol is ICMP (ICMPv6 for IPv6 peers) or IGMP: exactly one is set.
type PolicyProtocol struct {
	ICMP *ICMPProtocol
	IGMP *IGMPProtocol
}

// ICMPProtocol matches ICMP messages; a nil part matches any.
type ICMPProtocol struct {
	Type *uint8
	Code *uint8
}

// IGMPProtocol matches IGMP messages; nil or an invalid address matches any.
type IGMPProtocol struct {
	Type  *uint8
	Group netip.Addr
}

// L7Protocol matches what the application-aware engine lets through: exactly one field is
// set. Empty strings match anything.
type L7Protocol struct {
	HTTP *L7HTTP
	TLS  *L7TLS
}

// L7HTTP matches HTTP requests.
type L7HTTP struct{ Host, Method, Path string }

// L7TLS matches TLS connections by server name indication.
type L7TLS struct{ SNI string }

// Tier is a rank of Antrea-native policies: lower Priority (0 to 255) first.
type Tier struct {
	Meta
	Priority int32
}

// BaselineTier is the priority of the tier whose policies come after those of
// Kubernetes.
const BaselineTier = 253

// DefaultTier is the name of the tier of policies that name none.
const DefaultTier = "application"

// Group is a ClusterGroup or Group of crd.antrea.io/v1beta1, as its Key.Kind says. Exactly one
// way is used: selectors, IPBlocks, a Service, or child groups of the same kind and namespace.
type Group struct {
	Meta
	Pods             *Selector
	Namespaces       *Selector
	ExternalEntities *Selector
	IPBlocks         []IPBlock
	Service          *Name
	ChildGroups      []string
}
