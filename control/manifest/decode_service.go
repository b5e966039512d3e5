package manifest

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/antrail/antrail/control/cluster"
)

// Services and EndpointSlices.

// Annotations and labels of Services.
const (
	loadBalancerModeAnnotation = "service.antrea.io/load-balancer-mode"
	sourceRangesAnnotation     = "service.beta.kubernetes.io/load-balancer-source-ranges"
	topologyModeAnnotation     = "service.kubernetes.io/topology-mode"
	topologyHintsAnnotation    = "service.kubernetes.io/topology-aware-hints" // until Kubernetes 1.26
	serviceProxyLabel          = "service.kubernetes.io/service-proxy-name"
)

const (
	defaultAffinitySeconds = 10800 // three hours
	maxAffinitySeconds     = 86400
)

func decodeService(c *check, in *corev1.Service) cluster.Object {
	spec := &in.Spec
	s := &cluster.Service{
		Meta:                  c.meta,
		Type:                  decodeServiceType(c, spec.Type),
		Selector:              c.labels(specAt.Child("selector"), spec.Selector),
		Headless:              spec.ClusterIP == corev1.ClusterIPNone,
		SourceRanges:          decodeSourceRanges(c, in),
		AffinitySeconds:       decodeAffinity(c, spec),
		HealthCheckNodePort:   uint16(spec.HealthCheckNodePort),
		PublishNotReady:       spec.PublishNotReadyAddresses,
		LoadBalancerMode:      decodeLoadBalancerMode(c, in.Annotations),
		AllocateNodePortsOff:  !unless(spec.AllocateLoadBalancerNodePorts, true),
		ServiceProxyName:      in.Labels[serviceProxyLabel],
		LoadBalancerClassName: unless(spec.LoadBalancerClass, ""),
	}
	if s.Type == cluster.ExternalNameService {
		c.name(specAt.Child("externalName"), strings.TrimSuffix(spec.ExternalName, "."))
	}
	decodeTrafficPolicies(c, s, spec)
	decodeTopology(c, s, in)
	decodeServiceIPs(c, s, in)
	s.Ports = decodeServicePorts(c, s, spec.Ports)
	return s
}

func decodeServiceType(c *check, in corev1.ServiceType) cluster.ServiceType {
	if in == "" {
		return cluster.ClusterIPService
	}
	return oneOf(c, specAt.Child("type"), cluster.ServiceType(in),
		cluster.ClusterIPService, cluster.NodePortService, cluster.LoadBalancerService, cluster.ExternalNameService)
}

func decodeTrafficPolicies(c *check, s *cluster.Service, spec *corev1.ServiceSpec) {
	if p := spec.ExternalTrafficPolicy; p != "" {
		s.ExternalLocal = oneOf(c, specAt.Child("externalTrafficPolicy"), p, "Cluster", "Local") == "Local"
	}
	if p := unless(spec.InternalTrafficPolicy, ""); p != "" {
		s.InternalLocal = oneOf(c, specAt.Child("internalTrafficPolicy"), p, "Cluster", "Local") == "Local"
	}
	if n := spec.HealthCheckNodePort; n != 0 {
		c.port(specAt.Child("healthCheckNodePort"), n)
	}
}

func decodeTopology(c *check, s *cluster.Service, in *corev1.Service) {
	mode, given := in.Annotations[topologyModeAnnotation]
	if !given {
		mode = in.Annotations[topologyHintsAnnotation]
	}
	switch d := unless(in.Spec.TrafficDistribution, ""); d {
	case "":
	case "PreferClose", "PreferSameZone":
		s.Distribution = cluster.PreferSameZone
	case "PreferSameNode":
		s.Distribution = cluster.PreferSameNode
	default:
		c.unsupported(specAt.Child("trafficDistribution"), Clip(d), "PreferClose", "PreferSameZone", "PreferSameNode")
	}
	s.TopologyHints = strings.EqualFold(mode, "auto") || s.Distribution != ""
}

// decodeServiceIPs reads all addresses of the Service.
func decodeServiceIPs(c *check, s *cluster.Service, in *corev1.Service) {
	s.ClusterIPs = decodeClusterIPs(c, s, &in.Spec)
	for i, f := range in.Spec.IPFamilies {
		family := oneOf(c, specAt.Child("ipFamilies").Index(i), f, corev1.IPv4Protocol, corev1.IPv6Protocol)
		s.Families = append(s.Families, map[corev1.IPFamily]int{corev1.IPv4Protocol: 4, corev1.IPv6Protocol: 6}[family])
	}
	s.ExternalIPs = c.addrs(specAt.Child("externalIPs"), in.Spec.ExternalIPs)
	for i, a := range s.ExternalIPs {
		c.remote(specAt.Child("externalIPs").Index(i), a)
	}
	for i, ingress := range in.Status.LoadBalancer.Ingress {
		if ingress.IP == "" || unless(ingress.IPMode, "") == corev1.LoadBalancerIPModeProxy {
			continue
		}
		at := statusAt.Child("loadBalancer", "ingress").Index(i).Child("ip")
		s.LoadBalancerIPs = append(s.LoadBalancerIPs, c.addr(at, ingress.IP))
	}
}

func decodeClusterIPs(c *check, s *cluster.Service, spec *corev1.ServiceSpec) []netip.Addr {
	ips := spec.ClusterIPs
	switch {
	case s.Type == cluster.ExternalNameService:
		return nil
	case len(ips) == 0 && spec.ClusterIP != "":
		ips = []string{spec.ClusterIP}
	case len(ips) > 0 && spec.ClusterIP == "":
		s.Headless = ips[0] == corev1.ClusterIPNone
	case len(ips) > 0 && spec.ClusterIP != ips[0]:
		c.invalid(specAt.Child("clusterIPs"), Clip(ips[0]), "must begin with clusterIP")
	}
	if !s.Headless {
		return c.onePerFamily(specAt.Child("clusterIPs"), ips)
	}
	if len(ips) > 1 {
		c.invalid(specAt.Child("clusterIPs"), len(ips), "must hold None only")
	}
	return nil
}

func decodeSourceRanges(c *check, in *corev1.Service) []netip.Prefix {
	at, ranges := specAt.Child("loadBalancerSourceRanges"), in.Spec.LoadBalancerSourceRanges
	if text := strings.TrimSpace(in.Annotations[sourceRangesAnnotation]); len(ranges) == 0 && text != "" {
		at, ranges = field.NewPath("metadata", "annotations").Key(sourceRangesAnnotation), strings.Split(text, ",")
	}
	var out []netip.Prefix
	for i, r := range ranges {
		out = append(out, c.prefix(at.Index(i), strings.TrimSpace(r)))
	}
	return out
}

func decodeAffinity(c *check, spec *corev1.ServiceSpec) uint32 {
	switch spec.SessionAffinity {
	case "", corev1.ServiceAffinityNone:
		if spec.SessionAffinityConfig != nil {
			c.forbidden(specAt.Child("sessionAffinityConfig"), "is for sessionAffinity ClientIP only")
		}
		return 0
	case corev1.ServiceAffinityClientIP:
	default:
		c.unsupported(specAt.Child("sessionAffinity"), Clip(string(spec.SessionAffinity)), "ClientIP", "None")
		return 0
	}
	cfg := spec.SessionAffinityConfig
	if cfg == nil || cfg.ClientIP == nil || cfg.ClientIP.TimeoutSeconds == nil {
		return defaultAffinitySeconds
	}
	seconds := *cfg.ClientIP.TimeoutSeconds
	if seconds < 1 || seconds > maxAffinitySeconds {
		c.invalid(specAt.Child("sessionAffinityConfig", "clientIP", "timeoutSeconds"), seconds,
			"must be between 1 and %d, inclusive", maxAffinitySeconds)
		return 0
	}
	return uint32(seconds)
}

func decodeLoadBalancerMode(c *check, annotations map[string]string) cluster.LoadBalancerMode {
	switch mode := strings.ToLower(annotations[loadBalancerModeAnnotation]); mode {
	case "":
		return cluster.DefaultMode
	case "nat":
		return cluster.NATMode
	case "dsr":
		return cluster.DSRMode
	default:
		c.unsupported(field.NewPath("metadata", "annotations").Key(loadBalancerModeAnnotation), Clip(mode), "nat", "dsr")
		return cluster.DefaultMode
	}
}

// servicePortKey must be unique among the ports of a Service.
type servicePortKey struct {
	protocol cluster.Protocol
	port     uint16
}

func decodeServicePorts(c *check, s *cluster.Service, in []corev1.ServicePort) []cluster.ServicePort {
	at := specAt.Child("ports")
	if len(in) == 0 && !s.Headless && s.Type != cluster.ExternalNameService {
		c.required(at, "a Service has a port unless it is headless")
	}
	var out []cluster.ServicePort
	names, numbers := map[string]bool{}, map[servicePortKey]bool{}
	for i := range in {
		p := decodeServicePort(c, s, at.Index(i), &in[i])
		if p.Name == "" && len(in) > 1 {
			c.required(at.Index(i).Child("name"), "each of several ports has a name")
		} else if names[p.Name] {
			c.faults = append(c.faults, field.Duplicate(at.Index(i).Child("name"), p.Name))
		}
		if key := (servicePortKey{p.Protocol, p.Port}); numbers[key] && p.Port != 0 {
			c.faults = append(c.faults, field.Duplicate(at.Index(i).Child("port"), p.Port))
		} else {
			numbers[key] = true
		}
		names[p.Name] = true
		out = append(out, p)
	}
	return out
}

func decodeServicePort(c *check, s *cluster.Service, at *field.Path, in *corev1.ServicePort) cluster.ServicePort {
	if in.Name != "" {
		c.all(at.Child("name"), Clip(in.Name), validation.IsDNS1123Label(in.Name))
	}
	p := cluster.ServicePort{
		Name:     in.Name,
		Protocol: c.protocol(at.Child("protocol"), in.Protocol),
		Port:     c.port(at.Child("port"), in.Port),
	}
	p.TargetPort = cluster.PortRef{Number: p.Port}
	if in.TargetPort.String() != "0" && in.TargetPort.String() != "" {
		p.TargetPort = c.portRef(at.Child("targetPort"), in.TargetPort)
	}
	if in.NodePort == 0 {
		return p
	}
	p.NodePort = c.port(at.Child("nodePort"), in.NodePort)
	if s.Type != cluster.NodePortService && s.Type != cluster.LoadBalancerService {
		c.forbidden(at.Child("nodePort"), "may not be used when `type` is '"+string(s.Type)+"'")
	}
	return p
}

// Limits of an EndpointSlice, equal to the API server's.
const (
	maxEndpoints     = 1000
	maxSlicePorts    = 20000
	maxEndpointAddrs = 100
)

func decodeEndpointSlice(c *check, in *discoveryv1.EndpointSlice) cluster.Object {
	s := &cluster.EndpointSlice{
		Meta:   c.meta,
		Family: map[discoveryv1.AddressType]int{discoveryv1.AddressTypeIPv4: 4, discoveryv1.AddressTypeIPv6: 6}[in.AddressType],
	}
	oneOf(c, field.NewPath("addressType"), in.AddressType,
		discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN)
	if name := in.Labels[discoveryv1.LabelServiceName]; name != "" {
		s.Service = cluster.Name{Namespace: c.meta.Key.Namespace, Name: name}
	}
	if len(in.Endpoints) > maxEndpoints {
		c.faults = append(c.faults, field.TooMany(field.NewPath("endpoints"), len(in.Endpoints), maxEndpoints))
		return s
	}
	s.Ports = decodeEndpointPorts(c, in.Ports)
	for i := range in.Endpoints {
		s.Endpoints = append(s.Endpoints, decodeEndpoint(c, s.Family, field.NewPath("endpoints").Index(i), &in.Endpoints[i]))
	}
	return s
}

func decodeEndpointPorts(c *check, in []discoveryv1.EndpointPort) []cluster.EndpointPort {
	at := field.NewPath("ports")
	if len(in) > maxSlicePorts {
		c.faults = append(c.faults, field.TooMany(at, len(in), maxSlicePorts))
		return nil
	}
	var out []cluster.EndpointPort
	names := map[string]bool{}
	for i, p := range in {
		at := at.Index(i)
		port := cluster.EndpointPort{
			Name:     unless(p.Name, ""),
			Protocol: c.protocol(at.Child("protocol"), unless(p.Protocol, "")),
			Number:   c.optionalPort(at.Child("port"), p.Port),
		}
		if names[port.Name] {
			c.faults = append(c.faults, field.Duplicate(at.Child("name"), port.Name))
		}
		names[port.Name] = true
		out = append(out, port)
	}
	return out
}

func decodeEndpoint(c *check, family int, at *field.Path, in *discoveryv1.Endpoint) cluster.Endpoint {
	e := cluster.Endpoint{
		Ready:       unless(in.Conditions.Ready, true),
		Terminating: unless(in.Conditions.Terminating, false),
		NodeName:    unless(in.NodeName, ""),
		Zone:        unless(in.Zone, ""),
	}
	e.Serving = unless(in.Conditions.Serving, e.Ready)
	if t := in.TargetRef; t != nil && t.Kind == "Pod" {
		e.Pod = cluster.Name{Namespace: t.Namespace, Name: t.Name}
	}
	if h := in.Hints; h != nil {
		for _, z := range h.ForZones {
			e.ForZones = append(e.ForZones, z.Name)
		}
		for _, n := range h.ForNodes {
			e.ForNodes = append(e.ForNodes, n.Name)
		}
	}
	e.Addresses = decodeEndpointAddrs(c, family, at.Child("addresses"), in.Addresses)
	return e
}

func decodeEndpointAddrs(c *check, family int, at *field.Path, in []string) []netip.Addr {
	if len(in) == 0 {
		c.required(at, "an endpoint has an address")
	}
	if len(in) > maxEndpointAddrs {
		c.faults = append(c.faults, field.TooMany(at, len(in), maxEndpointAddrs))
		return nil
	}
	if family == 0 {
		return nil // names
	}
	out := c.addrs(at, in)
	for i, a := range out {
		c.remote(at.Index(i), a)
		if a.IsValid() && a.Is4() != (family == 4) {
			c.invalid(at.Index(i), a.String(), "is not of the slice's addressType")
		}
	}
	return slices.Clip(out)
}
