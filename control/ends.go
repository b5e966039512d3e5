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

// Where the ends of a connection that somebody describes are, as this Node sees
// it: a Pod or a Service by its name, an address by who has it.

// Place is one end of a connection.
type Place struct {
	// Object is the Pod, Service or Node that has the addresses; zero: nobody here
	// knows of one.
	Object cluster.Key
	Node   string       // where the Pod runs, or the Node itself; "": on none
	Addrs  []netip.Addr // at most one per family for a Pod
	// Port is the port of a Pod of this Node in the switch. A Pod of this Node
	// without one is not connected.
	Port uint32
	// Tunnel says that packets from there to this Node come in through the tunnel.
	Tunnel bool
}

// Self is what a Node's switch knows of the Node itself.
type Self struct {
	Node             string
	Gateway          tables.Port
	GatewayAddresses []netip.Addr
	Tunnel           tables.Port // its number is 0 where there is none
	External         bool        // a machine without Pods
	Uplink, Bridge   tables.Port // with the gate AntreaIPAM; their numbers are 0 without it
	Addresses        []netip.Addr
	PodCIDRs         []netip.Prefix
}

// Self is this Node. The error says that its pipeline is not there yet.
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

// PodPlace finds a Pod by its name. The error says that there is none with an
// address.
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

// tunnelTo says whether what Pods of another Node send to this one comes through
// the tunnel.
func (v *view) tunnelTo(node string, pods []netip.Addr) bool {
	if v.config.Encap == tables.Encap || !v.config.Encap.HasTunnel() {
		return v.config.Encap == tables.Encap
	}
	n := v.Cluster.Node(node)
	return n != nil && !slices.ContainsFunc(pods, func(a netip.Addr) bool {
		return v.config.Encap.NextHop(n.Addresses, v.config.TransportCIDRs, a).IsValid()
	})
}

// PlaceOf finds who has an address: a Pod, a Node, or a Service with an address of
// its own. One that nobody has is a place too.
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

// ownedPlace is PlaceOf for addresses that are no Pod's.
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

// PodPort is the number of a port of a Pod by its name in the Pod's containers.
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

// ServicePlace finds a Service by its name, and one of its ports by name or number;
// "" is its only one. The error names the ports there are.
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

// RankOf is where an Antrea-native policy stands: its tier, and its priority there;
// "" for any other object.
func (r *Reconciler) RankOf(policy cluster.Key) (tier string, priority float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil || r.view.AntreaPolicies[policy] == nil {
		return "", 0
	}
	p := r.view.AntreaPolicies[policy]
	return p.Tier, p.Priority
}

// NodeAt is the Node that packets to an address of the underlay go to: it has the
// address, or that of an Egress; "" for nobody's.
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

// Isolates says whether an entry is there because Kubernetes policies isolate a
// Pod: Object is the Pod, direction ingress or egress.
func Isolates(o ledger.Origin) (direction string, ok bool) {
	if o.Object.Kind != cluster.KindPod {
		return "", false
	}
	return cutIsolation(o.Field)
}
