package tables

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/tables/layout"
)

// Features are the features of Antrea that add tables and entries. A table of a feature that is
// off does not exist, and gotos skip it.
type Features struct {
	Proxy          bool // AntreaProxy: Services in the pipeline
	ProxyAll       bool // NodePort and external addresses too
	AntreaPolicy   bool
	Egress         bool
	EgressQoS      bool // EgressTrafficShaping: a rate for an address of an Egress
	TrafficControl bool
	L7Policy       bool
	DSR            bool // LoadBalancer in direct server return mode
	Multicast      bool // of IPv4
	FlexibleIPAM   bool // AntreaIPAM: Pods with addresses of the underlay; see Config.Uplink
	ExternalNode   bool // a machine without Pods: only the tables of policies and links
}

// Release is the release of Antrea whose entries a pipeline has. All releases have the same
// tables.
type Release uint8

// The releases: v1.15, which Antrea's pipeline document describes, and v2.
const (
	V115 Release = iota
	V2
)

// releaseNames are the names of the releases.
var releaseNames = [...]string{V115: "v1.15", V2: "v2"}

// String is v1.15 or v2.
func (r Release) String() string { return releaseNames[r] }

// ParseRelease reads the name of a release; "" is v1.15.
func ParseRelease(s string) (Release, error) {
	if i := slices.Index(releaseNames[:], s); i >= 0 {
		return Release(i), nil
	}
	if s != "" {
		return V115, fmt.Errorf("%q is neither v1.15 nor v2", s)
	}
	return V115, nil
}

// GatewayNo is the number of the port to the Node, unless the configuration gives another.
func (r Release) GatewayNo() uint32 { return [...]uint32{V115: 2, V2: 32769}[r] }

// TunnelNo is GatewayNo for the tunnel.
func (r Release) TunnelNo() uint32 { return [...]uint32{V115: 1, V2: 32768}[r] }

// PacketInRate is how many packets a second each meter of packet-ins lets through by default.
// Antrea's agent has the same rate.
func (r Release) PacketInRate() uint32 { return [...]uint32{V115: 500, V2: 5000}[r] }

// Config has everything that a Node's entries depend on and that stays the same while its agent
// runs. The families of PodCIDRs decide between IPv4 and IPv6 entries.
type Config struct {
	Release           Release
	Features          Features
	Gateway           Port
	GatewayIPs        []netip.Addr // one per family
	Tunnel            Port
	Uplink, Bridge    Port           // with FlexibleIPAM: the Node's card, and the Node's own network behind the switch
	PodCIDRs          []netip.Prefix // this Node's, one per family
	NodeIPs           []netip.Addr   // this Node's addresses
	TransportIPs      []netip.Addr   // sources of the tunnel; none: all
	Encap             EncapMode
	TransportCIDRs    []netip.Prefix // where hybrid mode needs no tunnel
	ServiceCIDRs      []netip.Prefix
	NodePortAddresses []netip.Addr
	EgressExcept      []netip.Prefix // never translated by an Egress
	L7Target          Port           // antrea-l7-tap0
	L7Return          Port           // antrea-l7-tap1
	ControllerID      uint16         // id= of controller actions
	PacketInRate      uint32         // packets a second for each meter; 0: the release's default
	Bypasses          []Bypass       // of an external Node
	CookieRound       uint16         // the 16 highest bits of every cookie; 0 leaves cookies out
}

// Port is a port of the switch.
type Port = layout.Port

// Pod is a Pod of this Node with its port. With FlexibleIPAM, a Pod without an address in
// PodCIDRs is on the underlay.
type Pod struct {
	Port Port
	IPs  []netip.Addr
	VLAN uint16 // of the underlay; 0: none
	// Routed is set if the Pod shares no Ethernet with others: the switch is its router.
	Routed bool
}

// ExternalLink is a card of an external Node, and the machine's own network behind the switch.
// Packets from one leave by the other.
type ExternalLink struct{ Uplink, Host Port }

// Bypass is traffic of an external Node that no policy decides on.
type Bypass struct {
	Direction Direction
	Proto     uint8 // IP protocol; 0: any
	Peer      netip.Prefix
	Port      uint16 // of the destination; 0: any
}

// Peer is another Node.
type Peer struct {
	NodeIPs    []netip.Addr
	PodCIDRs   []netip.Prefix
	GatewayIPs []netip.Addr // the first address of each PodCIDR
}

// Endpoint is one address that a Service sends to.
type Endpoint struct {
	Proto uint8 // IP protocol: 6 (TCP), 17 (UDP) or 132 (SCTP)
	Addr  netip.AddrPort
	Local bool // a Pod of this Node
	// Host is set for an endpoint in a Node's network namespace. It is not marked as a remote
	// Pod, wherever it is.
	Host bool
}

// EndpointGroup is the group that chooses an endpoint for a Service. Without
// endpoints, connections are refused.
type EndpointGroup struct {
	ID        uint32
	Affinity  bool
	Endpoints []Endpoint
}

// ServiceAddress is one address and port at which a Service is reached.
type ServiceAddress struct {
	Proto    uint8
	Addr     netip.Addr // not valid for a NodePort: any address of the Node
	Family   Family     // of a NodePort
	Port     uint16
	External bool   // NodePort, LoadBalancer or external IP
	Group    uint32 // where connections go
	// ClusterGroup, if not 0, gets connections from this Node and its Pods. Group then holds
	// local endpoints only (externalTrafficPolicy Local).
	ClusterGroup uint32
	// AffinitySeconds is how long a client stays at its endpoint; 0 means none.
	AffinitySeconds uint16
	// SourceRanges, if not empty, are the only sources that may connect
	// (loadBalancerSourceRanges).
	SourceRanges []netip.Prefix
	// DSR sends replies straight to the client (IPv4 only). LocalGroup gets connections that
	// another Node has already spread.
	DSR        bool
	LocalGroup uint32
}

// Family is IPv4 or IPv6.
type Family uint8

// The families.
const (
	IPv4 Family = 4
	IPv6 Family = 6
)

// Direction reports whether a rule filters packets to its Pods or from them.
type Direction uint8

// Directions of a rule.
const (
	Ingress Direction = iota
	Egress
)

// String is Ingress or Egress, as policies write it.
func (d Direction) String() string {
	if d == Egress {
		return "Egress"
	}
	return "Ingress"
}

// PolicyKind says which tables hold a rule.
type PolicyKind uint8

// Kinds of rules.
//
// - K8sPolicy: of K8s NetworkPolicies.
// - AntreaPolicy: of Antrea-native policies in any tier but Baseline.
// - BaselinePolicy: of the Baseline tier.
// - MulticastPolicy: egress rules whose peers are multicast groups, and ingress rules about IGMP queries.
// - ReportPolicy: egress rules about membership reports. They have no entries: the agent decides.
const (
	K8sPolicy PolicyKind = iota
	AntreaPolicy
	BaselinePolicy
	MulticastPolicy
	ReportPolicy
)

// Action is what a rule does.
type Action uint8

// Actions of a rule.
const (
	Allow Action = iota
	Drop
	Reject
	Pass
)

// Clause is one of the conditions of a rule.
type Clause uint8

// The clauses, in the order in which they are numbered.
const (
	ClauseFrom Clause = iota
	ClauseTo
	ClauseService
	numClauses
)

// Rule is a policy rule as the tables see it: a conjunction of two or three clauses. From and To
// are one clause each, Services one unless they are empty. Every IP packet fulfils a From or To
// that is any. No packet fulfils one that is empty and not any.
//
// In large sets, addresses change one by one: see ClauseEntry.
type Rule struct {
	ID        uint32 // conjunction id
	Direction Direction
	Kind      PolicyKind
	Priority  uint16 // of Antrea-native and Baseline rules
	Action    Action
	From, To  []Address
	AnyFrom   bool // From matches every source, whatever its list says
	AnyTo     bool
	Services  []L4Match // empty: any
	Log       bool
	L7VLAN    uint16 // not 0: redirect to the application-aware engine
	// Families are those of the rule's entries; none: all of the pipeline's.
	Families []Family
}

// Address is one member of a rule's From or To: exactly one part is set.
type Address struct {
	Prefix  netip.Prefix // nw_src or nw_dst
	Port    uint32       // the port of a Pod of this Node that an ingress rule protects
	Group   uint32       // a Service, by its group (toServices)
	Service *ServiceRef  // a Service that the rule is applied to
}

// ServiceRef is a Service that a rule is applied to.
type ServiceRef struct{ Group uint32 }

// L4Match is one protocol, port or range of a rule. A range becomes masked matches.
type L4Match struct {
	Proto           uint8 // IP protocol; 0 any
	Port, EndPort   uint16
	SrcPort, SrcEnd uint16
	ICMPType        *uint8
	ICMPCode        *uint8
	GroupAddress    netip.Addr // of an IGMP match
	IGMPType        *uint8     // of a ReportPolicy
}

// EgressIP is the source address of some Pods' packets outside the cluster. One Node has it.
type EgressIP struct {
	Addr netip.Addr
	Mark uint8 // pkt_mark, 1 to 255, if the address is on this Node; otherwise 0
}

// EgressLimit is the rate at which packets may leave the cluster under an address of this Node.
// Rate is in kilobits a second, Burst in kilobits. A kilobit is 1000 bits.
type EgressLimit struct {
	Mark        uint8 // the address's mark, from 1
	Rate, Burst uint32
}

// MulticastGroup is a multicast address, the ports of this Node's Pods and the other Nodes that
// have members, in order.
type MulticastGroup struct {
	ID    uint32 // of its OpenFlow group, from FirstMulticastGroup
	Addr  netip.Addr
	Ports []uint32
	Nodes []netip.Addr // tunnel destinations
}

// TrafficControl mirrors or redirects the traffic of Pods.
type TrafficControl struct {
	Redirect        bool // otherwise mirror
	Target          Port
	Return          *Port // if Redirect
	Ingress, Egress bool
	PodPorts        []uint32
}

// EncapMode is how packets reach Pods of other Nodes (Antrea's trafficEncapMode).
type EncapMode uint8

// The modes.
const (
	Encap      EncapMode = iota // all through the tunnel
	NoEncap                     // all by the gateway and the underlay's routes; no tunnel port
	Hybrid                      // to Nodes in TransportCIDRs by the gateway, to others through the tunnel
	PolicyOnly                  // by the gateway, wherever another CNI's routes lead (networkPolicyOnly)
)

var encapModes = [...]string{Encap: "encap", NoEncap: "noEncap", Hybrid: "hybrid", PolicyOnly: "networkPolicyOnly"}

// EncapModeNamed is the mode with a name as in a configuration. The empty name is encap.
func EncapModeNamed(name string) (EncapMode, error) {
	if name == "" {
		return Encap, nil
	}
	if i := slices.Index(encapModes[:], name); i >= 0 {
		return EncapMode(i), nil
	}
	return 0, fmt.Errorf("%q is none of encap, noEncap, hybrid and networkPolicyOnly", name)
}

// String is the name as in a configuration.
func (m EncapMode) String() string { return encapModes[m] }

// HasTunnel reports whether a Node has a tunnel port.
func (m EncapMode) HasTunnel() bool { return m == Encap || m == Hybrid }

// NextHop is the next hop for packets to a Node's Pods without a tunnel, in the family of pods.
// It is not valid if they use the tunnel or have no way. nodeIPs are that Node's addresses, and
// subnets are those that hybrid mode reaches without a tunnel.
func (m EncapMode) NextHop(nodeIPs []netip.Addr, subnets []netip.Prefix, pods netip.Addr) netip.Addr {
	for _, a := range nodeIPs {
		if m == Encap || m == PolicyOnly || familyOf(a) != familyOf(pods) {
			continue
		}
		if m == NoEncap || slices.ContainsFunc(subnets, func(s netip.Prefix) bool { return s.Contains(a) }) {
			return a
		}
	}
	return netip.Addr{}
}
