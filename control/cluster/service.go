package cluster

import "net/netip"

// ServiceType is a Service's type.
type ServiceType string

// The types of Services.
const (
	ClusterIPService    ServiceType = "ClusterIP"
	NodePortService     ServiceType = "NodePort"
	LoadBalancerService ServiceType = "LoadBalancer"
	ExternalNameService ServiceType = "ExternalName"
)

// LoadBalancerMode is the way of a LoadBalancer's replies.
type LoadBalancerMode uint8

// Modes of a LoadBalancer Service: the Node's default, through the Node that received the
// request (NAT), or straight to the client (DSR). The annotation
// service.antrea.io/load-balancer-mode sets the mode.
const (
	DefaultMode LoadBalancerMode = iota
	NATMode
	DSRMode
)

// Distribution is a Service's trafficDistribution: the endpoints that it prefers. PreferClose
// is the older name of PreferSameZone.
type Distribution string

// Distributions; the empty one prefers none.
const (
	PreferSameZone Distribution = "PreferSameZone"
	PreferSameNode Distribution = "PreferSameNode"
)

// Service is a Service of the cluster. It has only the addresses that its manifest gives:
// antrail allocates none.
type Service struct {
	Meta
	Type ServiceType
	// Selector chooses the Pods behind the Service. If it is empty, another party writes the
	// Service's EndpointSlices.
	Selector Labels
	// ClusterIPs has at most one address per family. A headless Service and one without an
	// address have none.
	ClusterIPs  []netip.Addr
	Headless    bool // clusterIP: None
	ExternalIPs []netip.Addr
	// LoadBalancerIPs are the addresses of the status that packets still have as destination
	// when they reach the Node (ipMode VIP).
	LoadBalancerIPs []netip.Addr
	SourceRanges    []netip.Prefix // loadBalancerSourceRanges; empty: all
	Ports           []ServicePort
	// AffinitySeconds is how long a client keeps its endpoint (1 to 86400); 0:
	// sessionAffinity None.
	AffinitySeconds     uint32
	ExternalLocal       bool // externalTrafficPolicy: Local
	InternalLocal       bool // internalTrafficPolicy: Local
	HealthCheckNodePort uint16
	PublishNotReady     bool // publishNotReadyAddresses
	// Families are those of ipFamilies (4, 6); empty when not given.
	Families []int
	// TopologyHints makes the proxy follow the hints of endpoints. The Service asks for this
	// by annotation or by a Distribution.
	TopologyHints         bool
	Distribution          Distribution
	LoadBalancerMode      LoadBalancerMode
	AllocateNodePortsOff  bool   // allocateLoadBalancerNodePorts: false
	ServiceProxyName      string // not empty: another proxy serves it
	LoadBalancerClassName string
}

// ServicePort is one port of a Service. Name may be empty only if the Service has one port.
// NodePort is 0 if none is given.
type ServicePort struct {
	Name       string
	Protocol   Protocol
	Port       uint16
	TargetPort PortRef // equal to Port if the manifest gives none
	NodePort   uint16
}

// EndpointSlice is a part of a Service's endpoints.
type EndpointSlice struct {
	Meta
	Service   Name // label kubernetes.io/service-name; Name empty: of no Service
	Family    int  // 4 or 6; 0 for names (addressType FQDN)
	Ports     []EndpointPort
	Endpoints []Endpoint
	Derived   bool // made from Pods by the store
}

// EndpointPort is a port of all endpoints in a slice. Its name is that of the ServicePort it
// belongs to. Number 0 means any port.
type EndpointPort struct {
	Name     string
	Protocol Protocol
	Number   uint16
}

// Endpoint is one place that serves a Service. The conditions have their defaults: an unset
// ready is true, serving equals ready, terminating is false.
type Endpoint struct {
	// Addresses are interchangeable; proxies use the first.
	Addresses   []netip.Addr
	Ready       bool
	Serving     bool
	Terminating bool
	NodeName    string
	Zone        string
	ForZones    []string // hints; empty: none given
	ForNodes    []string // hints; empty: none given
	Pod         Name     // targetRef, if that is a Pod
}
