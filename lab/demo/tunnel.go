package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/tables"
)

// tunnelFrames are the counts of a capture.
type tunnelFrames struct {
	toB, toA int
	udp      bool
	sources  map[uint16]bool // outer source ports of UDP
}

// underlay captures on the underlay while two pods talk across it, and reads each frame
// with the second reader (captured.go). Between the Nodes it expects the lab's tunnel, with
// right addresses, lengths and checksums, and no pod address outside it. Without a tunnel
// it expects pods' packets as they are.
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
	n := tunnelFrames{udp: w.lab.Topology.Tunnel.Port() != 0, sources: make(map[uint16]bool)}
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

// podMSS is the most payload of a pod's TCP segment, in bytes: an MTU of 1500 without a
// tunnel, less 40.
const podMSS = 1460

// tunnelFrame checks one captured frame.
func (w *world) tunnelFrame(frame []byte, n *tunnelFrames) error {
	var c captured
	if err := c.frame(frame); err != nil {
		return err
	}
	if w.lab.Topology.Encap != tables.Encap {
		if c.header != nil {
			return errors.New("a tunnel, expected none in this encap mode")
		}
		return w.plainFrame(&c, n)
	}
	switch {
	case c.header == nil:
		return w.untunnelled(&c)
	case c.kind != w.lab.Topology.Tunnel || !c.plain():
		return fmt.Errorf("header of %v: %x", c.kind, c.header)
	case c.wrong != nil:
		return c.wrong
	}
	nodes := w.lab.Topology.Nodes
	return n.count(&c, w.lab.Topology.TunnelEnd(&nodes[0]), w.lab.Topology.TunnelEnd(&nodes[1]))
}

// untunnelled accepts ARP and other traffic of the underlay, but no packet of a pod.
func (w *world) untunnelled(c *captured) error {
	if len(c.ends) == 0 {
		return nil
	}
	for _, a := range c.ends[0] {
		for _, n := range w.lab.Topology.Nodes {
			if n.PodCIDR.V4.Contains(a) || n.PodCIDR.V6.Contains(a) {
				return errors.New("a pod's address outside the tunnel")
			}
		}
	}
	return nil
}

// plainFrame checks one captured frame without a tunnel.
func (w *world) plainFrame(c *captured, n *tunnelFrames) error {
	if len(c.ends) == 0 {
		return nil
	}
	var at [2]int // the Node of each pod, counted from 1
	for i, a := range c.ends[0] {
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
	return c.wrong
}

// count counts a tunnel frame by its direction. The outer addresses must be the Nodes', and
// there must be an inner frame.
func (n *tunnelFrames) count(c *captured, a, b netip.Addr) error {
	if len(c.ends) < 2 && !c.arp {
		return errors.New("no inner packet")
	}
	if n.udp {
		n.sources[c.source] = true
	}
	switch outer := c.ends[0]; outer {
	case [2]netip.Addr{a, b}:
		n.toB++
	case [2]netip.Addr{b, a}:
		n.toA++
	default:
		return fmt.Errorf("outer addresses %v", outer)
	}
	return nil
}
