package cluster

import (
	"net/netip"

	"github.com/antrail/antrail/tables"
)

// NodeConfig is antrail's own kind: what the switch of one Node is told about
// itself. On a live Node most of it is discovered (links, addresses) or learned
// (ports, from the CNI plugin). Its name is the Node's.
type NodeConfig struct {
	Meta
	Release      tables.Release // of Antrea, whose entries the switch has
	Gateway      GatewayPort
	Tunnel       TunnelPort
	TransportIPs []netip.Addr // this Node's addresses on the underlay
	// Encap is how packets go to Pods of other Nodes, TransportCIDRs where hybrid
	// mode needs no tunnel.
	Encap             tables.EncapMode
	TransportCIDRs    []netip.Prefix
	ServiceCIDRs      []netip.Prefix // where ClusterIPs come from
	NodePortAddresses []netip.Addr   // where NodePorts are served
	EgressExceptCIDRs []netip.Prefix // destinations that no Egress translates
	ProxyAll          bool
	// Features are Antrea's feature gates by name. See Feature.
	Features map[string]bool
	// DefaultDSR says that LoadBalancer Services which ask for no mode get DSR.
	DefaultDSR   bool
	PacketInRate uint32 // packets a second, 0: the default of the pipeline
	Ports        []SwitchPort
	Bypasses     []tables.Bypass // of an external Node
}

// External says whether the Node is a machine without Pods.
func (n *NodeConfig) External() bool { return n.Feature("ExternalNode", false) }

// Feature reports whether the named feature gate is on: as the NodeConfig
// says, else as byDefault.
func (n *NodeConfig) Feature(name string, byDefault bool) bool {
	if on, ok := n.Features[name]; ok {
		return on
	}
	return byDefault
}

// GatewayPort is the port to the Node itself.
type GatewayPort struct {
	Name   string
	OFPort uint32
	MAC    [6]byte
	IPs    []netip.Addr // one per family
}

// TunnelPort is the port to the other Nodes. Type is geneve, vxlan or gre, or not
// given: then it is whatever the agent's configuration says.
type TunnelPort struct {
	Name   string
	OFPort uint32
	Type   string
}

// SwitchPort is a port of this Node's switch: a Pod's when Pod is set, else one of a Role, or
// one that a TrafficControl or the L7 redirection names.
type SwitchPort struct {
	Name   string
	OFPort uint32
	Pod    Name // zero: no Pod's
	MAC    [6]byte
	Role   PortRole // of a port that leads to the Node's card or to the Node; none for a Pod's port
	VLAN   uint16   // of the underlay, of a Pod's port; 0: none
	Routed bool     // the Pod shares no Ethernet with others: the switch is its router
	Uplink string   // of RoleHost: the name of the port to the card
	Entity Name     // of RoleHost: the ExternalEntity that is behind the port
}

// PortRole is what a port is to the gates AntreaIPAM and ExternalNode.
type PortRole string

// The roles: the Node's card, and the port that the Node's own network is behind, which is
// RoleBridge with AntreaIPAM and RoleHost on an external Node. MAC of RoleBridge is that of the
// Node's own interface.
const (
	RoleUplink PortRole = "uplink"
	RoleBridge PortRole = "bridge"
	RoleHost   PortRole = "host"
)

// Node is a Node of the cluster.
type Node struct {
	Meta
	PodCIDRs []netip.Prefix // at most one per family
	// Addresses are the InternalIPs, then the ExternalIPs, each at most one
	// per family, as Antrea takes them.
	Addresses []netip.Addr
}

// Zone is the Node's topology zone; empty when it has none.
func (n *Node) Zone() string { return n.Labels["topology.kubernetes.io/zone"] }

// Namespace is a Namespace of the cluster. It always has the label
// kubernetes.io/metadata.name, as the API server sets it.
type Namespace struct {
	Meta
	Terminating bool
	// LogPolicies asks for a log of what K8s NetworkPolicies of the Namespace
	// allow and drop (annotation networkpolicy.antrea.io/enable-logging).
	LogPolicies bool
}

// PodPhase is a Pod's phase.
type PodPhase string

// The phases of a Pod.
const (
	PodPending   PodPhase = "Pending"
	PodRunning   PodPhase = "Running"
	PodSucceeded PodPhase = "Succeeded"
	PodFailed    PodPhase = "Failed"
	PodUnknown   PodPhase = "Unknown"
)

// Pod is a Pod of any Node.
type Pod struct {
	Meta
	NodeName       string
	IPs            []netip.Addr // at most one per family
	HostNetwork    bool         // its addresses are its Node's
	ServiceAccount string
	Phase          PodPhase
	Ready          bool // condition Ready is True
	Deleting       bool // has a deletionTimestamp
	Ports          []ContainerPort
	// UID is what the Node knows the Pod by: that of the kubelet's own manifest
	// for one that does not come from the API. Empty in most manifests.
	UID string
	// Attach is the Pod's AttachAnnotation, as it is written.
	Attach string
	// SwitchPort is what the CNI plugin gave the Pod; zero: nothing (PodPort).
	SwitchPort SwitchPort
}

// AttachAnnotation says how the CNI plugin attaches a Pod: layer2 or layer3. A Pod without it is
// attached as the CNI configuration says.
const AttachAnnotation = "antrail.io/attach"

// Terminated reports whether the Pod has ended for good (phase Succeeded or
// Failed): its addresses may belong to another Pod by now.
func (p *Pod) Terminated() bool { return p.Phase == PodSucceeded || p.Phase == PodFailed }

// Port finds the number of a container port by name and protocol. The first
// container that has it decides.
func (p *Pod) Port(name string, proto Protocol) (uint16, bool) {
	for _, c := range p.Ports {
		if c.Name == name && c.Protocol == proto {
			return c.Number, true
		}
	}
	return 0, false
}

// ContainerPort is a port that a container of a Pod names; Name may be empty.
type ContainerPort struct {
	Name     string
	Number   uint16
	Protocol Protocol
}

// ExternalEntity is an end of connections outside the cluster, such as an interface of an
// external Node, with what policies ask of a Pod: labels, addresses and named ports. Its
// Key.Kind is KindExternalEntity.
type ExternalEntity struct {
	Pod
	ExternalNode string // whose interface it is; empty: of none
}
