package tables

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/tables/layout"
)

// Features are the features of Antrea that add tables and entries. A table of
// a feature that is off does not exist, and the gotos of others move on to the
// next table.
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
	ExternalNode   bool // a machine without Pods: no table but those of policies and links
}

// Release is the release of Antrea whose entries a pipeline has. The tables are the
// same in all.
type Release uint8

// The releases: v1.15, which the documents describe, and v2.
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

// GatewayNo is the number of the port to the Node, if the configuration does not say.
func (r Release) GatewayNo() uint32 { return [...]uint32{V115: 2, V2: 32769}[r] }

// TunnelNo is GatewayNo for the tunnel.
func (r Release) TunnelNo() uint32 { return [...]uint32{V115: 1, V2: 32768}[r] }

// PacketInRate is how many packets a second each meter of packet-ins lets through if the
// configuration does not say, as Antrea's agent has it.
func (r Release) PacketInRate() uint32 { return [...]uint32{V115: 500, V2: 5000}[r] }

// Config is what the entries of a Node depend on and what does not change
// while its agent runs. IPv4 and IPv6 entries are made for the families of
// PodCIDRs.
type Config struct {
	Release           Release
	Features          Features
	Gateway           Port
	GatewayIPs        []netip.Addr // one per family
	Tunnel            Port
	Uplink, Bridge    Port           // with FlexibleIPAM: the Node's card, and the Node's own network behind the switch
	PodCIDRs          []netip.Prefix // this Node's, one per family
	NodeIPs           []netip.Addr   // this Node's addresses
	TransportIPs      []netip.Addr   // those that the tunnel goes from; none: all
	Encap             EncapMode
	TransportCIDRs    []netip.Prefix // where hybrid mode needs no tunnel
	ServiceCIDRs      []netip.Prefix
	NodePortAddresses []netip.Addr
	EgressExcept      []netip.Prefix // never translated by an Egress
	L7Target          Port           // antrea-l7-tap0
	L7Return          Port           // antrea-l7-tap1
	ControllerID      uint16         // id= of controller actions
	PacketInRate      uint32         // packets a second for each meter; 0: the release's
	Bypasses          []Bypass       // of an external Node
	CookieRound       uint16         // the 16 highest bits of every cookie; 0 leaves cookies out
}

// Port is a port of the switch.
type Port = layout.Port

// Pod is a Pod of this Node with its port. With FlexibleIPAM, a Pod that has no address in
// PodCIDRs is on the underlay.
type Pod struct {
	Port Port
	IPs  []netip.Addr
	VLAN uint16 // of the underlay; 0: none
	// Routed is a Pod that shares no Ethernet with others: the switch is its router.
	Routed bool
}

// ExternalLink is a card of an external Node, and the machine's own network behind the
// switch. What comes in by one of the two leaves by the other.
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
	Proto uint8 // IP protocol: 6, 17 or 132
	Addr  netip.AddrPort
	Local bool // on this Node: a Pod of its own
	// Host is an endpoint in a Node's network namespace: it is not marked as a
	// remote Pod, wherever it is.
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
	// ClusterGroup, when not 0, is where connections go that come from this
	// Node or its Pods although Group holds local endpoints only
	// (externalTrafficPolicy Local).
	ClusterGroup uint32
	// AffinitySeconds keeps a client at its endpoint for so long; 0 does not.
	AffinitySeconds uint16
	// SourceRanges, when not empty, are the only sources that may connect
	// (loadBalancerSourceRanges).
	SourceRanges []netip.Prefix
	// DSR sends replies straight to the client (IPv4 only); LocalGroup is where
	// connections go that another Node has already spread.
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

// Direction is whom a policy rule protects from whom.
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

// PolicyKind says in which tables a rule stands.
type PolicyKind uint8

// Kinds of rules: those of K8s NetworkPolicies, of Antrea-native policies in
// any tier but Baseline, and of Baseline. Two more kinds allow or drop. The first are egress
// rules of Antrea-native policies whose peers are multicast groups, and ingress rules about
// queries of IGMP. The second are egress rules about membership reports, which have no
// entries: the agent decides.
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

// Rule is a policy rule as the tables know it: a conjunction of two or three
// clauses. From and To are a clause each, Services one unless they are empty. A
// From or To that is any is fulfilled by every IP packet. One that is empty and
// not any is fulfilled by no packet.
//
// The addresses of large sets change one by one: see ClauseEntry.
type Rule struct {
	ID        uint32 // conjunction id
	Direction Direction
	Kind      PolicyKind
	Priority  uint16 // of Antrea-native and Baseline rules
	Action    Action
	From, To  []Address
	AnyFrom   bool // From is every source, whatever its list says
	AnyTo     bool
	Services  []L4Match // empty: any
	Log       bool
	L7VLAN    uint16 // not 0: redirect to the application-aware engine
	// Families are those that the rule's entries are made for; none: all of the
	// pipeline's.
	Families []Family
}

// Address is one member of a rule's From or To: exactly one part is set.
type Address struct {
	Prefix  netip.Prefix // nw_src or nw_dst
	Port    uint32       // the port of a Pod of this Node that ingress rules protect
	Group   uint32       // a Service, by its group (toServices)
	Service *ServiceRef  // appliedTo a Service
}

// ServiceRef is a Service that a rule is applied to.
type ServiceRef struct{ Group uint32 }

// L4Match is one protocol, port or range of a rule. Ranges become masked
// matches.
type L4Match struct {
	Proto           uint8 // IP protocol; 0 any
	Port, EndPort   uint16
	SrcPort, SrcEnd uint16
	ICMPType        *uint8
	ICMPCode        *uint8
	GroupAddress    netip.Addr // of an IGMP match
	IGMPType        *uint8     // of a ReportPolicy
}

// EgressIP is the address under which the traffic of some Pods leaves the
// cluster, on the Node that has it.
type EgressIP struct {
	Addr netip.Addr
	Mark uint8 // pkt_mark, 1 to 255, when the address is on this Node; 0 else
}

// EgressLimit is what may leave the cluster under an address of this Node, in
// kilobits a second and kilobits at once. A kilobit is 1000 bits.
type EgressLimit struct {
	Mark        uint8 // the address', from 1
	Rate, Burst uint32
}

// MulticastGroup is a multicast address with the ports of this Node's Pods and the
// other Nodes that have members, in order.
type MulticastGroup struct {
	ID    uint32 // of its group, from FirstMulticastGroup
	Addr  netip.Addr
	Ports []uint32
	Nodes []netip.Addr // addresses that the tunnel goes to
}

// TrafficControl mirrors or redirects the traffic of Pods.
type TrafficControl struct {
	Redirect        bool // else mirror
	Target          Port
	Return          *Port // of a redirect
	Ingress, Egress bool
	PodPorts        []uint32
}

// EncapMode is how packets go to Pods of other Nodes (Antrea's trafficEncapMode).
type EncapMode uint8

// The modes.
const (
	Encap      EncapMode = iota // all through the tunnel
	NoEncap                     // all by the gateway and the underlay's routes; there is no tunnel port
	Hybrid                      // to Nodes in TransportCIDRs by the gateway, to others through the tunnel
	PolicyOnly                  // by the gateway, wherever another CNI's routes lead (networkPolicyOnly)
)

var encapModes = [...]string{Encap: "encap", NoEncap: "noEncap", Hybrid: "hybrid", PolicyOnly: "networkPolicyOnly"}

// EncapModeNamed is the mode with a name as in a configuration; the empty name is
// encap's.
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

// HasTunnel says whether a Node has a port to the tunnel.
func (m EncapMode) HasTunnel() bool { return m == Encap || m == Hybrid }

// NextHop is the address to which packets for Pods of a Node go without a tunnel,
// those of the given address's family; not valid where they go through the tunnel,
// or nowhere. nodeIPs are the Node's addresses, subnets those that hybrid mode
// goes by.
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
