package node

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/antrail/antrail/cni"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
)

// An attachment gets addresses, a port number, a MAC address and a link name. Addresses and
// numbers are handed out in a circle, so that a returned one stays unused for as long as
// possible.

// Numbers of pods' ports. Lower numbers are for the gateway, the tunnel and the ports of a
// NodeConfig. OpenFlow's reserved numbers begin at 0xff00.
const (
	firstPort = 0x1000
	lastPort  = 0xfeff

	// Pipeline v2 uses these for the tunnel, the gateway and the uplink.
	firstReserved = 0x8000
	lastReserved  = 0x8003
)

// maxName is the length of a link's name, in bytes (IFNAMSIZ without the final zero).
const maxName = 15

// Taken are the addresses and port numbers in use that are in no record.
type Taken struct {
	Addrs map[netip.Addr]bool
	Ports map[uint32]bool
}

// isTaken says whether an error is CodeNoAddress.
func isTaken(err error) bool {
	var e *types.Error
	return errors.As(err, &e) && e.Code == cni.CodeNoAddress
}

// reserve gives an attachment its addresses, numbers and names, and writes it to the
// record.
func (n *Node) reserve(a attachment, r *cni.Request) (attachment, error) {
	taken := n.Switch.Taken(r.Pod)
	err := n.record.change(func(c *content) (err error) {
		if r.Delegated {
			err = n.takeGiven(c, &a, r.IPAM, taken)
		} else {
			err = n.takeNext(c, &a, taken)
		}
		if err == nil && a.Routed {
			err = a.dropPrefixLengths()
		}
		if err != nil {
			return err
		}
		c.Serial++
		a.Serial = c.Serial
		a.MAC = a.mac().String()
		a.Link = c.linkName(&a)
		a.Table = c.table(&a)
		a.OFPort, err = c.nextPort(taken.Ports)
		c.LastPort = a.OFPort
		c.Attachments = append(c.Attachments, a)
		return err
	})
	return a, err
}

// takeNext gives the attachment an address of each of the Node's ranges.
func (n *Node) takeNext(c *content, a *attachment, taken Taken) error {
	all := c.addrs(taken.Addrs)
	for _, g := range n.Gateways {
		all[g] = true
	}
	c.LastIPs = slices.DeleteFunc(c.LastIPs, func(last netip.Addr) bool {
		return !slices.ContainsFunc(n.CIDRs, func(r netip.Prefix) bool { return r.Contains(last) })
	})
	for _, r := range n.CIDRs {
		ip, ok := pick(r, c.last(r), all)
		if !ok {
			return types.NewError(cni.CodeNoAddress, fmt.Sprintf("no address is left in %v", r), "")
		}
		a.IPs = append(a.IPs, netip.PrefixFrom(ip, r.Bits()))
		c.LastIPs = append(slices.DeleteFunc(c.LastIPs, r.Contains), ip)
	}
	return nil
}

// addrs are the addresses in use: the attachments' and others.
func (c *content) addrs(others map[netip.Addr]bool) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for a := range others {
		all[a] = true
	}
	for _, a := range c.Attachments {
		for _, ip := range a.IPs {
			all[ip.Addr()] = true
		}
	}
	return all
}

// last is the address of a range that was given last. If none was, it is the range's own.
func (c *content) last(r netip.Prefix) netip.Addr {
	if i := slices.IndexFunc(c.LastIPs, r.Contains); i >= 0 {
		return c.LastIPs[i]
	}
	return r.Masked().Addr()
}

// pick is the next free address of a range after a given one, in a circle. It skips the
// first address, the range's name (RFC 4291, section 2.6.1, for IPv6), and IPv4's broadcast
// address.
func pick(r netip.Prefix, after netip.Addr, taken map[netip.Addr]bool) (netip.Addr, bool) {
	first := r.Masked().Addr()
	if r.Bits() < first.BitLen() {
		first = first.Next()
	}
	for range len(taken) + 3 { // each step passes a taken address, the broadcast address or the end
		after = after.Next()
		if !after.IsValid() || !r.Contains(after) {
			after = first
		}
		if !taken[after] && !isBroadcast(r, after) {
			return after, true
		}
	}
	return netip.Addr{}, false
}

func isBroadcast(r netip.Prefix, a netip.Addr) bool {
	next := a.Next()
	return a.Is4() && r.Bits() < 31 && (!next.IsValid() || !r.Contains(next))
}

// takeGiven gives the attachment the addresses of an IPAM plugin. Each must be in a range
// of this Node, because the switch forwards no other address to a pod.
func (n *Node) takeGiven(c *content, a *attachment, given *types100.Result, taken Taken) error {
	all := c.addrs(taken.Addrs)
	for _, ip := range given.IPs {
		p, err := prefixOf(ip.Address)
		if err != nil {
			return cni.Errorf(types.ErrInvalidNetworkConfig, "the IPAM plugin's address", err)
		}
		gateway, ok := n.gateway(p.Addr())
		switch {
		case !ok || !slices.ContainsFunc(n.CIDRs, func(r netip.Prefix) bool { return r.Contains(p.Addr()) }):
			return types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf("the IPAM plugin gave %v, which is not in this Node's ranges", p), fmt.Sprintf("expected an address in %v", n.CIDRs))
		case ip.Gateway != nil && !ip.Gateway.Equal(gateway.AsSlice()):
			return types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf("the IPAM plugin gave gateway %v", ip.Gateway), fmt.Sprintf("expected %v, this Node's", gateway))
		case all[p.Addr()] || p.Addr() == gateway:
			return types.NewError(cni.CodeNoAddress, fmt.Sprintf("the IPAM plugin gave %v, which is in use", p.Addr()), "")
		case slices.ContainsFunc(a.IPs, func(o netip.Prefix) bool { return o.Addr().Is4() == p.Addr().Is4() }):
			return types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf("the IPAM plugin gave %v, a second address of its family", p), "")
		}
		a.IPs = append(a.IPs, p)
	}
	if len(a.IPs) == 0 {
		return types.NewError(types.ErrInvalidNetworkConfig, "the IPAM plugin gave no address", "")
	}
	a.Routes = given.Routes
	return nil
}

// gateway is the Node's gateway address of like's family.
func (n *Node) gateway(like netip.Addr) (netip.Addr, bool) {
	for _, g := range n.Gateways {
		if g.Is4() == like.Is4() {
			return g, true
		}
	}
	return netip.Addr{}, false
}

// prefixOf is an IPNet as a prefix.
func prefixOf(n net.IPNet) (netip.Prefix, error) {
	a, ok := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	a = a.Unmap()
	if !ok || bits == 0 || bits == 128 && a.Is4() {
		return netip.Prefix{}, fmt.Errorf("%v is not an address with a prefix length", &n)
	}
	return netip.PrefixFrom(a, ones), nil
}

// ipNet is a prefix as an IPNet.
func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// macOf makes a locally administered MAC address from an IP address: 0a:58 and the
// four bytes of IPv4, or 0e and a hash of IPv6.
func macOf(a netip.Addr) net.HardwareAddr {
	if a.Is4() {
		b := a.As4()
		return net.HardwareAddr{0x0a, 0x58, b[0], b[1], b[2], b[3]}
	}
	b := a.As16()
	sum := sha256.Sum256(b[:])
	return append(net.HardwareAddr{0x0e}, sum[:5]...)
}

func parseMAC(text string) (mac [6]byte, err error) {
	m, err := net.ParseMAC(text)
	if err == nil && len(m) != len(mac) {
		err = fmt.Errorf("%s is not an Ethernet address", text)
	}
	copy(mac[:], m)
	return mac, err
}

// linkName is a free name for the Node's end. It begins with the Pod's name and depends
// only on Pod, sandbox and interface.
func (c *content) linkName(a *attachment) string {
	for salt := 0; ; salt++ {
		name := nameOf(a.Pod.Name, a.Attachment, salt)
		if !slices.ContainsFunc(c.Attachments, func(o attachment) bool { return o.Link == name }) {
			return name
		}
	}
}

var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// nameOf is up to 6 bytes of the Pod's name, and 40 bits of a hash.
func nameOf(pod string, k cni.Attachment, salt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", k.Container, k.Interface, salt))
	pod = strings.ReplaceAll(pod, ".", "-")
	pod = strings.TrimRight(pod[:min(len(pod), 6)], "-")
	return pod + "-" + lower.EncodeToString(sum[:5])
}

// table is the routing table of an attachment. A sandbox's first interface has the main
// table, 0. Each further one has a table of its own.
func (c *content) table(a *attachment) int {
	const further = 1000
	main, most := false, further-1
	for _, o := range c.Attachments {
		if o.Container == a.Container {
			main, most = main || o.Table == 0, max(most, o.Table)
		}
	}
	if !main {
		return 0
	}
	return most + 1
}

// nextPort is the next free port number after the last one, in a circle.
func (c *content) nextPort(taken map[uint32]bool) (uint32, error) {
	have := map[uint32]bool{}
	for _, a := range c.Attachments {
		have[a.OFPort] = true
	}
	no := c.LastPort
	for range lastPort - firstPort + 1 {
		if no++; no < firstPort || no > lastPort {
			no = firstPort
		}
		if !have[no] && !taken[no] && (no < firstReserved || no > lastReserved) {
			return no, nil
		}
	}
	return 0, types.NewError(cni.CodeNoAddress, "no port number is left", "")
}
