package control

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/tables"
)

// The ends of a connection, seen from this Node: a Pod or Service by name, or the owner of an
// address.

// Place is one end of a connection.
type Place struct {
	// Object is the Pod, Service or Node that has the addresses; zero: unknown.
	Object cluster.Key
	Node   string       // the Pod's Node, or the Node itself; "": none
	Addrs  []netip.Addr // at most one per family for a Pod
	// Port is the switch port of a Pod of this Node; 0: not connected.
	Port uint32
	// Tunnel says that packets from there reach this Node through the tunnel.
	Tunnel bool
}

// Self describes a Node for its own switch.
type Self struct {
	Node             string
	Gateway          tables.Port
	GatewayAddresses []netip.Addr
	Tunnel           tables.Port // its number is 0 without a tunnel
	External         bool        // a machine without Pods
	Uplink, Bridge   tables.Port // with the gate AntreaIPAM; otherwise their numbers are 0
	Addresses        []netip.Addr
	PodCIDRs         []netip.Prefix
}

// Self is this Node. It returns an error while its pipeline is unknown.
func (r *Reconciler) Self() (Self, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		return Self{Node: r.node}, errNoView
	}
	c := &r.view.config
	s := Self{Node: r.node, External: c.Features.ExternalNode, Gateway: c.Gateway, GatewayAddresses: c.GatewayIPs, Addresses: c.NodeIPs, PodCIDRs: c.PodCIDRs}
	if c.Encap.HasTunnel() {
		s.Tunnel = c.Tunnel
	}
	if c.Features.FlexibleIPAM {
		s.Uplink, s.Bridge = c.Uplink, c.Bridge
	}
	return s, nil
}

// PodPlace finds a Pod by name. It returns an error if there is no such Pod with an address.
func (r *Reconciler) PodPlace(n cluster.Name) (Place, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		return Place{}, errNoView
	}
	pod := r.view.Pod(n)
	if pod == nil || len(pod.IPs) == 0 || pod.Terminated() {
		return Place{}, r.view.noPod(n)
	}
	return r.view.podPlace(pod), nil
}

func (v *view) podPlace(pod *cluster.Pod) Place {
	p := Place{Object: pod.Key, Node: pod.NodeName, Addrs: pod.IPs}
	if v.here[pod.Key] != nil {
		p.Port = v.ports[cluster.Name{Namespace: pod.Key.Namespace, Name: pod.Key.Name}].OFPort
	}
	p.Tunnel = pod.NodeName != v.node && !pod.HostNetwork && v.tunnelTo(pod.NodeName, pod.IPs)
	return p
}

// tunnelTo reports whether packets from Pods of another Node reach this Node through the tunnel.
func (v *view) tunnelTo(node string, pods []netip.Addr) bool {
	if v.config.Encap == tables.Encap || !v.config.Encap.HasTunnel() {
		return v.config.Encap == tables.Encap
	}
	n := v.Cluster.Node(node)
	return n != nil && !slices.ContainsFunc(pods, func(a netip.Addr) bool {
		return v.config.Encap.NextHop(n.Addresses, v.config.TransportCIDRs, a).IsValid()
	})
}

// PlaceOf finds the owner of an address: a Pod, a Node, or a Service with that address. An address
// without an owner is a Place too.
func (r *Reconciler) PlaceOf(a netip.Addr) Place {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		return Place{Addrs: []netip.Addr{a}}
	}
	for _, pod := range r.view.Pods {
		if slices.Contains(pod.IPs, a) && !pod.Terminated() && !pod.HostNetwork {
			p := r.view.podPlace(pod)
			p.Addrs = []netip.Addr{a}
			return p
		}
	}
	return r.view.ownedPlace(a)
}

// ownedPlace is PlaceOf for addresses that do not belong to Pods.
func (v *view) ownedPlace(a netip.Addr) Place {
	p := Place{Addrs: []netip.Addr{a}}
	for _, n := range v.Nodes {
		if slices.Contains(n.Addresses, a) {
			p.Object, p.Node = n.Key, n.Key.Name
		}
	}
	if slices.Contains(v.config.GatewayIPs, a) {
		p.Object, p.Node = cluster.Key{Kind: cluster.KindNode, Name: v.node}, v.node
	}
	for _, s := range v.Services {
		if slices.Contains(s.ClusterIPs, a) || slices.Contains(s.ExternalIPs, a) || slices.Contains(s.LoadBalancerIPs, a) {
			p.Object = s.Key
		}
	}
	return p
}

// PodPort is the number of a Pod's port by its name in the Pod's containers.
func (r *Reconciler) PodPort(n cluster.Name, port string, proto cluster.Protocol) (uint16, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view != nil {
		if pod := r.view.Pod(n); pod != nil {
			if number, ok := pod.Port(port, proto); ok {
				return number, nil
			}
		}
	}
	return 0, fmt.Errorf("the Pod %s/%s names no %s port %q", n.Namespace, n.Name, proto, port)
}

// ServicePlace finds a Service by name, and one of its ports by name or number. "" means its only
// port. The error lists the ports.
func (r *Reconciler) ServicePlace(n cluster.Name, port string) (Place, cluster.ServicePort, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		return Place{}, cluster.ServicePort{}, errNoView
	}
	svc := r.view.Service(n)
	if svc == nil {
		return Place{}, cluster.ServicePort{}, r.view.noService(n)
	}
	p := Place{Object: svc.Key, Addrs: slices.Concat(svc.ClusterIPs, svc.ExternalIPs, svc.LoadBalancerIPs)}
	if len(p.Addrs) == 0 {
		return p, cluster.ServicePort{}, fmt.Errorf("the Service %s/%s has no address; ask for a Node's address and the nodePort", n.Namespace, n.Name)
	}
	var names []string
	for _, have := range svc.Ports {
		number := strconv.Itoa(int(have.Port))
		if port == number || port == have.Name && port != "" || port == "" && len(svc.Ports) == 1 {
			return p, have, nil
		}
		names = append(names, number)
	}
	return p, cluster.ServicePort{}, fmt.Errorf("the Service %s/%s has no port %q; it has %v", n.Namespace, n.Name, port, names)
}

// RankOf returns the tier of an Antrea-native policy and its priority there. The tier is "" for any
// other object.
func (r *Reconciler) RankOf(policy cluster.Key) (tier string, priority float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil || r.view.AntreaPolicies[policy] == nil {
		return "", 0
	}
	p := r.view.AntreaPolicies[policy]
	return p.Tier, p.Priority
}

// NodeAt is the Node that receives packets to an address of the underlay. It has the address, or
// holds it for an Egress. It is "" if there is no such Node.
func (r *Reconciler) NodeAt(a netip.Addr) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		return ""
	}
	for _, n := range r.view.Nodes {
		if slices.Contains(n.Addresses, a) {
			return n.Key.Name
		}
	}
	for _, at := range placeEgresses(r.view) {
		if at.addr == a {
			return at.node
		}
	}
	return ""
}

// Isolates reports whether an entry isolates a Pod because of K8s policies. Then Object is the Pod,
// and direction is ingress or egress.
func Isolates(o ledger.Origin) (direction string, ok bool) {
	if o.Object.Kind != cluster.KindPod {
		return "", false
	}
	return cutIsolation(o.Field)
}
