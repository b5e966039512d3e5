package cluster

import (
	"fmt"
	"net/netip"
)

// PodSet chooses Pods by their labels and those of their namespaces. A nil
// selector does not restrict; a PodSet with both nil chooses nothing.
type PodSet struct {
	Pods       *Selector
	Namespaces *Selector
}

// Egress sends what some Pods send out of the cluster from one address.
type Egress struct {
	Meta
	AppliedTo PodSet
	// Addr is the address in use: the status' when set, else the spec's; not
	// valid when none is chosen yet.
	Addr netip.Addr
	// Node holds the address (status.egressNode); empty: none does yet.
	Node  string
	Pools []string // externalIPPool, externalIPPools
	// Bandwidth limits what leaves by the address; zero: nothing does.
	Bandwidth Bandwidth
}

// Bandwidth is a rate in kilobits a second, and what may leave at once, in kilobits.
type Bandwidth struct {
	Rate  uint32 `json:"rateKbps"`
	Burst uint32 `json:"burstKbit"`
}

// String is the rate, and the burst behind a slash; "" for no bandwidth.
func (b Bandwidth) String() string {
	if b == (Bandwidth{}) {
		return ""
	}
	return fmt.Sprintf("%dk/%dk", b.Rate, b.Burst)
}

// ExternalIPPool holds addresses for Egresses and the Nodes that may have them.
type ExternalIPPool struct {
	Meta
	Ranges []IPRange
	Nodes  Selector
}

// IPRange is the addresses First to Last, both included, of one family.
type IPRange struct{ First, Last netip.Addr }

// TrafficDirection is the direction of traffic, seen from the Pod.
type TrafficDirection string

// Directions of a TrafficControl.
const (
	DirectionIngress TrafficDirection = "Ingress"
	DirectionEgress  TrafficDirection = "Egress"
	DirectionBoth    TrafficDirection = "Both"
)

// TrafficControl mirrors the traffic of some Pods to a port, or redirects it
// there and takes it back at another.
type TrafficControl struct {
	Meta
	AppliedTo  PodSet
	Direction  TrafficDirection
	Redirect   bool // else mirror
	TargetPort TrafficPort
	ReturnPort *TrafficPort // of a redirect
}

// TrafficPortType says what a TrafficPort is.
type TrafficPortType string

// Types of ports: one made by the switch, a device that exists, or a tunnel.
const (
	OVSInternalPort TrafficPortType = "ovsInternal"
	DevicePort      TrafficPortType = "device"
	VXLANPort       TrafficPortType = "vxlan"
	GenevePort      TrafficPortType = "geneve"
	GREPort         TrafficPortType = "gre"
	ERSPANPort      TrafficPortType = "erspan"
)

// TrafficPort is a port that traffic is sent to or taken back from. Name is set
// for the first two types, the rest for tunnels.
type TrafficPort struct {
	Type     TrafficPortType
	Name     string
	RemoteIP netip.Addr
	// Key is the VNI, the GRE key or the ERSPAN session; 0: none.
	Key             uint32
	DestinationPort uint16 // 0: the protocol's own
	ERSPAN          *ERSPAN
}

// ERSPAN is what an ERSPAN tunnel has besides a session: version 1 has an
// index, version 2 a direction and a hardware ID.
type ERSPAN struct {
	Version    uint8
	Index      uint32
	Direction  uint8
	HardwareID uint8
}

// String is the port's name, or the kind of tunnel and where it leads.
func (p TrafficPort) String() string {
	if p.Name != "" {
		return p.Name
	}
	return string(p.Type) + " to " + p.RemoteIP.String()
}
