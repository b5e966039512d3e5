package cluster

import (
	"net/netip"

	"github.com/antrail/antrail/tables"
)

// NodeConfig is antrail's own kind: the configuration of one Node's switch. On a live Node
// the agent discovers most of it (links, addresses) or learns it from the CNI plugin (ports).
// Its name is the Node's.
type NodeConfig struct {
	Meta
	Release      tables.Release // the Antrea release whose entries the switch has
	Gateway      GatewayPort
	Tunnel       TunnelPort
	TransportIPs []netip.Addr // this Node's addresses on the underlay
	// Encap is how packets reach Pods of other Nodes. TransportCIDRs are the addresses that
	// hybrid mode reaches without a tunnel.
	Encap             tables.EncapMode
	TransportCIDRs    []netip.Prefix
	ServiceCIDRs      []netip.Prefix // where ClusterIPs come from
	NodePortAddresses []netip.Addr   // where NodePorts are served
	EgressExceptCIDRs []netip.Prefix // destinations that no Egress translates
	ProxyAll          bool
	// Features are Antrea's feature gates by name. See Feature.
	Features map[string]bool
	// DefaultDSR gives DSR to LoadBalancer Services that ask for no mode.
	DefaultDSR   bool
	PacketInRate uint32 // packets a second; 0: the pipeline's default
	Ports        []SwitchPort
	Bypasses     []tables.Bypass // of an external Node
}

// External reports whether the Node is a machine without Pods.
func (n *NodeConfig) External() bool { return n.Feature("ExternalNode", false) }

// Feature reports whether the named feature gate is on. If the NodeConfig does not set the
// gate, the answer is byDefault.
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

// TunnelPort is the port to the other Nodes. Type is geneve, vxlan or gre; empty: the agent's
// configuration decides.
type TunnelPort struct {
	Name   string
	OFPort uint32
	Type   string
}

// SwitchPort is a port of this Node's switch. It belongs to a Pod if Pod is set, and has a
// Role otherwise. A port without both is one that a TrafficControl or the L7 redirection names.
type SwitchPort struct {
	Name   string
	OFPort uint32
	Pod    Name // zero: not a Pod's port
	MAC    [6]byte
	Role   PortRole // of a port to the Node's card or to the Node; empty for a Pod's port
	VLAN   uint16   // of the underlay, of a Pod's port; 0: none
	Routed bool     // the Pod shares no Ethernet segment: the switch is its router
	Uplink string   // of RoleHost: the name of the port to the card
	Entity Name     // of RoleHost: the ExternalEntity that is behind the port
}

// PortRole is the part that a port has under the gates AntreaIPAM and ExternalNode.
type PortRole string

// The roles. RoleUplink is the Node's card. Behind RoleBridge (AntreaIPAM) and RoleHost (an
// external Node) is the Node's own network. MAC of RoleBridge is that of the Node's own
// interface.
const (
	RoleUplink PortRole = "uplink"
	RoleBridge PortRole = "bridge"
	RoleHost   PortRole = "host"
)

// Node is a Node of the cluster.
type Node struct {
	Meta
	PodCIDRs []netip.Prefix // at most one per family
	// Addresses are the InternalIPs, then the ExternalIPs, each at most one per family. This
	// is Antrea's choice.
	Addresses []netip.Addr
}

// Zone is the Node's topology zone; empty if it has none.
func (n *Node) Zone() string { return n.Labels["topology.kubernetes.io/zone"] }

// Namespace is a Namespace of the cluster. It always has the label
// kubernetes.io/metadata.name, as the API server sets it.
type Namespace struct {
	Meta
	Terminating bool
	// LogPolicies asks for a log of what K8s NetworkPolicies of the Namespace allow and drop
	// (annotation networkpolicy.antrea.io/enable-logging).
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
	// UID is the one by which the Node knows the Pod. For a static Pod it is that of the
	// kubelet's manifest. It is empty in most manifests.
	UID string
	// Attach is the value of the Pod's AttachAnnotation.
	Attach string
	// SwitchPort is the port that the CNI plugin made for the Pod; zero: none (PodPort).
	SwitchPort SwitchPort
}

// AttachAnnotation says how the CNI plugin attaches a Pod: layer2 or layer3. For a Pod without
// it the CNI configuration decides.
const AttachAnnotation = "antrail.io/attach"

// Terminated reports whether the Pod has ended (phase Succeeded or Failed). Its addresses may
// belong to another Pod by now.
func (p *Pod) Terminated() bool { return p.Phase == PodSucceeded || p.Phase == PodFailed }

// Port finds the number of a container port by name and protocol. If several containers have
// it, the first one counts.
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
// external Node. Policies use its labels, addresses and named ports like those of a Pod. Its
// Key.Kind is KindExternalEntity.
type ExternalEntity struct {
	Pod
	ExternalNode string // the Node whose interface it is; empty: none
}
