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

// Egress gives one source address to the traffic that some Pods send out of the cluster.
type Egress struct {
	Meta
	AppliedTo PodSet
	// Addr is the address in use: that of the status if set, otherwise that of the spec. It is
	// invalid until one is chosen.
	Addr netip.Addr
	// Node holds the address (status.egressNode); empty: no Node does yet.
	Node  string
	Pools []string // externalIPPool, externalIPPools
	// Bandwidth limits the traffic with this source address; zero: no limit.
	Bandwidth Bandwidth
}

// Bandwidth is a rate in kilobits a second, and a burst in kilobits.
type Bandwidth struct {
	Rate  uint32 `json:"rateKbps"`
	Burst uint32 `json:"burstKbit"`
}

// String is the rate, a slash and the burst; "" for the zero Bandwidth.
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

// TrafficControl mirrors the traffic of some Pods to a port, or redirects it to that port and
// receives it back from another.
type TrafficControl struct {
	Meta
	AppliedTo  PodSet
	Direction  TrafficDirection
	Redirect   bool // false: mirror
	TargetPort TrafficPort
	ReturnPort *TrafficPort // of a redirect
}

// TrafficPortType says what a TrafficPort is.
type TrafficPortType string

// Types of ports: one that the switch makes, a device that exists, or a tunnel.
const (
	OVSInternalPort TrafficPortType = "ovsInternal"
	DevicePort      TrafficPortType = "device"
	VXLANPort       TrafficPortType = "vxlan"
	GenevePort      TrafficPortType = "geneve"
	GREPort         TrafficPortType = "gre"
	ERSPANPort      TrafficPortType = "erspan"
)

// TrafficPort is a port that receives traffic or returns it. The first two types have a Name,
// tunnels the other fields.
type TrafficPort struct {
	Type     TrafficPortType
	Name     string
	RemoteIP netip.Addr
	// Key is the VNI, the GRE key or the ERSPAN session; 0: none.
	Key             uint32
	DestinationPort uint16 // 0: the protocol's own
	ERSPAN          *ERSPAN
}

// ERSPAN holds the fields of an ERSPAN tunnel other than the session: version 1 has an
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
