package layout

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Node is the Node that a program is built for: the ports of a switch, and the addresses behind
// them. A port with number 0 does not exist.
type Node struct {
	Uplink Port // the Node's card
	// Bridge is the Node's own network; flow.PortLocal in Open vSwitch. In program uplink it may
	// be missing: the card then stays the kernel's.
	Bridge  Port
	Gateway Port // the router of the pods
	// Router is the MAC address of the next hop on the uplink. With it, program uplink sends to
	// the outside directly. If it is zero, the host routes.
	Router  [6]byte
	Tunnel  Port       // to the other Nodes
	NodeIP  netip.Addr // on the uplink
	PodCIDR netip.Prefix
	// GatewayIP is the address of the pods' router.
	GatewayIP netip.Addr
	Pods      []Pod
	Peers     []Peer
	Services  []Service
	Policies  []Policy
}

// Port is a port of the switch.
type Port struct {
	Name string
	No   uint32
	MAC  [6]byte
}

// Pod is a Pod of this Node with its port.
type Pod struct {
	Port Port
	IPs  []netip.Addr
	// Link is the MAC address of the switch's end of the pod's link, if the program routes to
	// each pod by itself.
	Link [6]byte
}

// Peer is another Node.
type Peer struct {
	NodeIPs    []netip.Addr
	PodCIDRs   []netip.Prefix
	GatewayIPs []netip.Addr // the first address of each PodCIDR
}

// Service is a virtual address with one endpoint.
type Service struct {
	Proto    uint8 // IP protocol: 6 or 17
	Addr     netip.AddrPort
	Endpoint netip.AddrPort
}

// Policy limits what one pod may receive and send. Sources have the pod's port, destinations
// their own. A pod without a policy may send and receive all.
type Policy struct {
	Pod     netip.Addr
	Ingress *[]Rule // nil: everything
	Egress  *[]Rule
}

// Rule allows one protocol and port. Other is the far end; if it is not valid, every one.
type Rule struct {
	Proto uint8
	Port  uint16
	Other netip.Prefix
}

// Ports are the existing ports, those of pods last.
func (n *Node) Ports() (all []Port) {
	for _, p := range []Port{n.Uplink, n.Bridge, n.Gateway, n.Tunnel} {
		if p.No != 0 {
			all = append(all, p)
		}
	}
	for _, p := range n.Pods {
		all = append(all, p.Port)
	}
	return all
}

// Check returns an error for ports and pods that no switch can have. Programs call it first.
func (n *Node) Check() error {
	var errs []error
	numbers := map[uint32]string{}
	for _, p := range n.Ports() {
		if other := numbers[p.No]; other != "" {
			errs = append(errs, fmt.Errorf("ports %s and %s both have number %d", other, p.Name, p.No))
		}
		numbers[p.No] = p.Name
	}
	for _, p := range n.Pods {
		if !slices.ContainsFunc(p.IPs, netip.Addr.Is4) {
			errs = append(errs, fmt.Errorf("pod %s has no IPv4 address", p.Port.Name))
		}
	}
	return errors.Join(errs...)
}

// NewPod makes a pod of a port and an address.
func NewPod(p Port, ip netip.Addr) Pod {
	return Pod{Port: p, IPs: []netip.Addr{ip}, Link: LinkMAC(p.No)}
}

// LinkMAC is the MAC address of the switch's end of a routed pod's link. It holds the port's
// number (RFC 7042, section 2.1: locally administered).
func LinkMAC(no uint32) [6]byte {
	return [6]byte{0x02, 0xfe, byte(no >> 24), byte(no >> 16), byte(no >> 8), byte(no)}
}

// IP is the pod's IPv4 address, not valid if it has none.
func (p *Pod) IP() netip.Addr {
	for _, ip := range p.IPs {
		if ip.Is4() {
			return ip
		}
	}
	return netip.Addr{}
}
