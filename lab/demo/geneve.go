package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// tunnelFrames is what the capture counts.
type tunnelFrames struct {
	toB, toA int
	sources  map[layers.UDPPort]bool // outer source ports
}

// geneve captures the underlay while two pods talk across it, and reads every
// frame with a parser that is not ours: Geneve between the Nodes, with right
// addresses, lengths and checksums, and not one pod address outside a tunnel.
func geneve(ctx context.Context, w *world) (string, error) {
	s, err := w.raw("underlay", "node-a")
	if err != nil {
		return "", err
	}
	defer s.close()
	if _, err := w.ping("client-a", "client-b", patience); err != nil {
		return "", err
	}
	if _, err := w.transfer(ctx, "client-b", w.sink("client-a"), megabyte); err != nil {
		return "", err
	}
	all, err := s.drain()
	if err != nil {
		return "", err
	}
	n := tunnelFrames{sources: make(map[layers.UDPPort]bool)}
	for i, frame := range all {
		if err := w.tunnelFrame(frame, &n); err != nil {
			return "", fmt.Errorf("frame %d of the capture, %x: %w", i+1, frame[:min(len(frame), 100)], err)
		}
	}
	if n.toA < megabyte/podMSS || n.toB < 3 {
		return "", fmt.Errorf("only %d frames to node-b and %d to node-a were captured", n.toB, n.toA)
	}
	return fmt.Sprintf("%d frames to node-b, %d to node-a, %d outer source ports", n.toB, n.toA, len(n.sources)), nil
}

// podMSS is the most that one TCP segment of a pod carries: 1450 less 40.
const podMSS = 1410

// tunnelFrame checks one captured frame.
func (w *world) tunnelFrame(frame []byte, n *tunnelFrames) error {
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	g, ok := p.Layer(layers.LayerTypeGeneve).(*layers.Geneve)
	if !ok {
		return w.untunnelled(p)
	}
	if g.Version != 0 || g.Protocol != layers.EthernetTypeTransparentEthernetBridging || g.VNI != 0 || g.CriticalOption || g.OAMPacket {
		return fmt.Errorf("header of the tunnel: %+v", g)
	}
	if err := checksums(p); err != nil {
		return err
	}
	nodes := w.lab.Topology.Nodes
	return n.count(p, w.lab.Topology.TunnelEnd(&nodes[0]), w.lab.Topology.TunnelEnd(&nodes[1]))
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
	n.sources[p.Layer(layers.LayerTypeUDP).(*layers.UDP).SrcPort] = true
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
