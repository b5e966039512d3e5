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

// LoadBalancerMode is how a LoadBalancer's replies travel.
type LoadBalancerMode uint8

// Modes of a LoadBalancer Service: what the Node's default says, by the Node
// that the request came in (NAT), or straight to the client (DSR). It is set
// by the annotation service.antrea.io/load-balancer-mode.
const (
	DefaultMode LoadBalancerMode = iota
	NATMode
	DSRMode
)

// Distribution is a Service's trafficDistribution: which endpoints are
// preferred. PreferClose is PreferSameZone's older name.
type Distribution string

// Distributions; the empty one prefers none.
const (
	PreferSameZone Distribution = "PreferSameZone"
	PreferSameNode Distribution = "PreferSameNode"
)

// Service is a Service of the cluster. An address that its manifest does not
// give is not there: none is allocated.
type Service struct {
	Meta
	Type ServiceType
	// Selector chooses the Pods behind the Service; empty: none are chosen, and
	// its EndpointSlices are written by somebody else.
	Selector Labels
	// ClusterIPs has at most one address per family; none for a headless
	// Service and for one without an address.
	ClusterIPs  []netip.Addr
	Headless    bool // clusterIP: None
	ExternalIPs []netip.Addr
	// LoadBalancerIPs are those of the status that reach the Node as
	// destination address (ipMode VIP).
	LoadBalancerIPs []netip.Addr
	SourceRanges    []netip.Prefix // loadBalancerSourceRanges; empty: all
	Ports           []ServicePort
	// AffinitySeconds keeps a client at its endpoint for so long (1 to 86400);
	// 0: sessionAffinity None.
	AffinitySeconds     uint32
	ExternalLocal       bool // externalTrafficPolicy: Local
	InternalLocal       bool // internalTrafficPolicy: Local
	HealthCheckNodePort uint16
	PublishNotReady     bool // publishNotReadyAddresses
	// Families are those of ipFamilies (4, 6); empty when not given.
	Families []int
	// TopologyHints says that hints of endpoints are to be followed: the
	// Service asks for them by annotation or by a Distribution.
	TopologyHints         bool
	Distribution          Distribution
	LoadBalancerMode      LoadBalancerMode
	AllocateNodePortsOff  bool   // allocateLoadBalancerNodePorts: false
	ServiceProxyName      string // not empty: another proxy serves it
	LoadBalancerClassName string
}

// ServicePort is one port of a Service. Name is empty only when it is the only
// one. NodePort is 0 when none is given.
type ServicePort struct {
	Name       string
	Protocol   Protocol
	Port       uint16
	TargetPort PortRef // never zero: the Port when the manifest gives none
	NodePort   uint16
}

// EndpointSlice is a part of a Service's endpoints.
type EndpointSlice struct {
	Meta
	Service   Name // label kubernetes.io/service-name; Name empty: no Service's
	Family    int  // 4 or 6; 0 for names (addressType FQDN)
	Ports     []EndpointPort
	Endpoints []Endpoint
	Derived   bool // made from Pods by the store
}

// EndpointPort is a port of all endpoints in a slice, under the name of the
// ServicePort that it belongs to. Number 0 is any port.
type EndpointPort struct {
	Name     string
	Protocol Protocol
	Number   uint16
}

// Endpoint is one place that serves a Service. The conditions are as they
// count: ready is true when unset, serving as ready, terminating false.
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
	Pod         Name     // targetRef, when it is a Pod
}
