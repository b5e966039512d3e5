package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tunnel"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// tunnelFrames is what the capture counts.
type tunnelFrames struct {
	toB, toA int
	udp      bool
	sources  map[layers.UDPPort]bool // outer source ports of UDP
}

// underlay captures the underlay while two pods talk across it, and reads every
// frame with a parser that is not ours: the tunnel's kind between the Nodes, with
// right addresses, lengths and checksums, and not one pod address outside a tunnel.
// Without a tunnel between the Nodes, it is pods' packets as they are.
func underlay(ctx context.Context, w *world) (string, error) {
	s, err := w.raw("underlay", "node-a")
	if err != nil {
		return "", err
	}
	defer s.Close()
	if _, err := w.ping("client-a", "client-b", waitAtMost); err != nil {
		return "", err
	}
	if _, err := w.transfer(ctx, "client-b", w.sink("client-a"), megabyte); err != nil {
		return "", err
	}
	all, err := s.Drain()
	if err != nil {
		return "", err
	}
	n := tunnelFrames{udp: w.lab.Topology.Tunnel.Port() != 0, sources: make(map[layers.UDPPort]bool)}
	for i, frame := range all {
		if err := w.tunnelFrame(frame, &n); err != nil {
			return "", fmt.Errorf("frame %d of the capture, %x: %w", i+1, frame[:min(len(frame), 100)], err)
		}
	}
	if n.toA < megabyte/podMSS || n.toB < 3 {
		return "", fmt.Errorf("only %d frames to node-b and %d to node-a were captured", n.toB, n.toA)
	}
	way := w.lab.Topology.Tunnel.String()
	if w.lab.Topology.Encap != tables.Encap {
		way = "no tunnel"
	}
	return fmt.Sprintf("%v: %d frames to node-b, %d to node-a, %d outer source ports", way, n.toB, n.toA, len(n.sources)), nil
}

// podMSS is the most that one TCP segment of a pod carries: 1500 without a tunnel,
// less 40.
const podMSS = 1460

// tunnelFrame checks one captured frame.
func (w *world) tunnelFrame(frame []byte, n *tunnelFrames) error {
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	header := p.Layer(headers[w.lab.Topology.Tunnel])
	if w.lab.Topology.Encap != tables.Encap {
		if header != nil {
			return errors.New("a tunnel where there is to be none")
		}
		return w.plainFrame(p, n)
	}
	if header == nil {
		return w.untunnelled(p)
	}
	if !plain(header) {
		return fmt.Errorf("header of the tunnel: %+v", header)
	}
	if err := checksums(p); err != nil {
		return err
	}
	nodes := w.lab.Topology.Nodes
	return n.count(p, w.lab.Topology.TunnelEnd(&nodes[0]), w.lab.Topology.TunnelEnd(&nodes[1]))
}

// headers are the parser's names for the tunnels' headers.
var headers = map[tunnel.Kind]gopacket.LayerType{
	tunnel.KindGeneve: layers.LayerTypeGeneve, tunnel.KindVXLAN: layers.LayerTypeVXLAN, tunnel.KindGRE: layers.LayerTypeGRE,
}

// plain says whether a tunnel's header is that of an Ethernet frame in network 0,
// and nothing more.
func plain(header gopacket.Layer) bool {
	const frame = layers.EthernetTypeTransparentEthernetBridging
	switch h := header.(type) {
	case *layers.Geneve:
		return h.Version == 0 && h.Protocol == frame && h.VNI == 0 && !h.CriticalOption && !h.OAMPacket
	case *layers.VXLAN:
		return h.ValidIDFlag && h.VNI == 0 && !h.GBPExtension
	case *layers.GRE:
		return h.Version == 0 && h.Protocol == frame && h.KeyPresent && h.Key == 0 && !h.ChecksumPresent && !h.SeqPresent && !h.RoutingPresent
	}
	return false
}

// untunnelled lets ARP and other traffic of the underlay pass, but no packet of
// a pod.
func (w *world) untunnelled(p gopacket.Packet) error {
	ip := p.NetworkLayer()
	if ip == nil {
		return nil
	}
	for _, a := range endsOf(ip) {
		for _, n := range w.lab.Topology.Nodes {
			if n.PodCIDR.V4.Contains(a) || n.PodCIDR.V6.Contains(a) {
				return errors.New("a pod's address outside the tunnel")
			}
		}
	}
	return nil
}

// plainFrame checks one captured frame where pods' packets go as they are.
func (w *world) plainFrame(p gopacket.Packet, n *tunnelFrames) error {
	if p.NetworkLayer() == nil {
		return nil
	}
	var at [2]int // of the Node whose pod it is, from 1 on
	for i, a := range endsOf(p.NetworkLayer()) {
		for j, node := range w.lab.Topology.Nodes {
			if node.PodCIDR.V4.Contains(a) || node.PodCIDR.V6.Contains(a) {
				at[i] = j + 1
			}
		}
	}
	switch at {
	case [2]int{1, 2}:
		n.toB++
	case [2]int{2, 1}:
		n.toA++
	default:
		return nil
	}
	return checksums(p)
}

// endsOf are the source and destination of an IP packet of either family.
func endsOf(ip gopacket.NetworkLayer) [2]netip.Addr {
	src, dst := ip.NetworkFlow().Endpoints()
	var ends [2]netip.Addr
	for i, e := range []gopacket.Endpoint{src, dst} {
		ends[i], _ = netip.AddrFromSlice(e.Raw())
	}
	return ends
}

// count sorts a tunnel frame by its direction: outer addresses are the Nodes',
// and the inner frame is there.
func (n *tunnelFrames) count(p gopacket.Packet, a, b netip.Addr) error {
	var ips []gopacket.NetworkLayer
	for _, l := range p.Layers() {
		if ip, ok := l.(gopacket.NetworkLayer); ok {
			ips = append(ips, ip)
		}
	}
	if len(ips) == 0 || len(ips) == 1 && p.Layer(layers.LayerTypeARP) == nil {
		return errors.New("no inner packet")
	}
	if n.udp {
		n.sources[p.Layer(layers.LayerTypeUDP).(*layers.UDP).SrcPort] = true
	}
	switch outer := endsOf(ips[0]); outer {
	case [2]netip.Addr{a, b}:
		n.toB++
	case [2]netip.Addr{b, a}:
		n.toA++
	default:
		return fmt.Errorf("outer addresses %v", outer)
	}
	return nil
}

// checksums verifies outer and inner ones. TCP, UDP and ICMPv6 need to be told
// which IP header they belong to: the last one before them.
func checksums(p gopacket.Packet) error {
	var ip gopacket.NetworkLayer
	for _, l := range p.Layers() {
		switch l := l.(type) {
		case gopacket.NetworkLayer:
			ip = l
		case *layers.UDP:
			l.SetNetworkLayerForChecksum(ip)
		case *layers.ICMPv6:
			l.SetNetworkLayerForChecksum(ip)
		case *layers.TCP:
			l.SetNetworkLayerForChecksum(ip)
		case *gopacket.DecodeFailure:
			return l.Error()
		}
	}
	err, wrong := p.VerifyChecksums()
	if err == nil && len(wrong) > 0 {
		err = fmt.Errorf("checksum of %s is %#x, want %#x", wrong[0].Layer.LayerType(), wrong[0].Actual, wrong[0].Correct)
	}
	return err
}
