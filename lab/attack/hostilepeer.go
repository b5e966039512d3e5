package attack

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/lab/raw"
	"github.com/antrail/antrail/packet"
)

// Packets of connections that the kernel may forward itself. The attacker knows a real
// packet. Its copies have another sender, another network, or a flag that the real one
// lacks.
//
//  1. Through the tunnel, the program at the Node's link must leave them to the tunnel's port.
//     They have no UDP checksum, because the program takes no others.
//  2. From a pod, the filter must leave them to the switch.
//
// Port and switch drop them with a named reason.

// question is a datagram between the other pods.
var question = bytes.Repeat([]byte("?"), 32)

// imitation makes a copy of a real packet, with the attack's marker as its payload.
type imitation func(context.Context, *stage) (frame []byte, err error)

// imitate sends an imitation through the tunnel to node-a, from a namespace and with a VNI.
func imitate(from string, vni uint32, hear imitation) func(context.Context, *stage) (int, error) {
	return func(ctx context.Context, s *stage) (int, error) {
		inner, err := hear(ctx, s)
		if err != nil {
			return 0, err
		}
		return s.sendInner(from, s.lab.Topology.TunnelEnd(s.node(nodeA)), vni, inner)
	}
}

// imitateAsPod sends an imitation by the attacker's link, with its pod's MAC and with the
// attacker's.
func imitateAsPod(ctx context.Context, s *stage) (int, error) {
	frame, err := hearOnNode(ctx, s)
	if err != nil {
		return 0, err
	}
	own := s.pod(attacker).mac
	return s.sendAll([][]byte{frame, withSource(slices.Clone(frame), own)}, forgeries)
}

// hearDatagram has db-a ask client-b by UDP until the kernel forwards the answers, if it
// may. It returns one of the answers.
func hearDatagram(ctx context.Context, s *stage) (frame []byte, err error) {
	stop, err := s.answerUDP("client-b")
	if err != nil {
		return nil, err
	}
	defer stop()
	asking := path{"db-a", "client-b", echoPort}
	var c net.Conn
	if err := s.lab.In(asking.from, func() error {
		c, err = net.Dial("udp", s.target(asking))
		return err
	}); err != nil {
		return nil, err
	}
	s.held = append(s.held, c) // a packet to a closed port would be answered
	if err := s.askUntilOffloaded(ctx, c); err != nil {
		return nil, err
	}
	return s.hear("underlay", nodeA, s.lab.Topology.Tunnel.Overhead(false), path{asking.to, asking.from, echoPort}, func() error { return ask(c) })
}

// ask sends a question, and waits for its answer.
func ask(c net.Conn) error {
	if _, err := c.Write(question); err != nil {
		return err
	}
	c.SetReadDeadline(time.Now().Add(waitAtMost))
	_, err := c.Read(make([]byte, len(question)))
	return err
}

// askUntilOffloaded asks until node-a's kernel forwards the answers. Without offload it asks a
// few times.
func (s *stage) askUntilOffloaded(ctx context.Context, c net.Conn) error {
	may, err := s.mayOffload(ctx, tunnelPort, "db-a")
	if err != nil {
		return err
	}
	const rounds, questions = 100, 50
	for range rounds {
		for range questions {
			if err := ask(c); err != nil {
				return err
			}
		}
		if away, err := s.isOffloaded(ctx, c); err != nil || away || !may {
			return err
		}
	}
	return damage{fmt.Errorf("the kernel does not forward the connection after %d questions", rounds*questions)}
}

// mayOffload says whether the kernel of node-a may forward between two ports.
func (s *stage) mayOffload(ctx context.Context, names ...string) (bool, error) {
	var all []api.PortRecord
	if err := s.agent(nodeA).JSON(ctx, "/ports", nil, &all); err != nil {
		return false, err
	}
	on := 0
	for _, p := range all {
		if p.Offload.On && slices.Contains(names, p.Name) {
			on++
		}
	}
	return on == len(names), nil
}

// isOffloaded says whether a pod's connection is forwarded by node-a's kernel.
func (s *stage) isOffloaded(ctx context.Context, c net.Conn) (bool, error) {
	var all []api.Connection
	if err := s.agent(nodeA).JSON(ctx, "/conntrack", nil, &all); err != nil {
		return false, err
	}
	own := c.LocalAddr().(*net.UDPAddr).AddrPort()
	return slices.ContainsFunc(all, func(c api.Connection) bool {
		return c.Offloaded && c.Orig.Src == own.Addr() && c.Orig.SrcPort == own.Port()
	}), nil
}

// hearOnNode returns a segment between two pods of node-a.
func hearOnNode(_ context.Context, s *stage) ([]byte, error) {
	p := streamPaths[0]
	return s.hear(p.from, "eth0", 0, path{p.to, p.from, p.port}, nil)
}

// hearReset returns a segment from a pod of node-b to one of node-a, as a RST at another sequence
// number (RFC 5961, section 3.2).
func hearReset(_ context.Context, s *stage) ([]byte, error) {
	p := streamPaths[1]
	frame, err := s.hear("underlay", nodeA, s.lab.Topology.Tunnel.Overhead(false), path{p.to, p.from, p.port}, nil)
	if err != nil {
		return nil, err
	}
	l := packet.ParseLayers(frame)
	h := packet.TCP(frame[l.L4:])
	h.SetSeq(h.Seq() + 1<<29)
	h.SetFlags(packet.TCPRst | packet.TCPAck)
	l.SetL4Checksum(frame)
	return frame, nil
}

// hear captures on a link in a namespace until it sees a packet with a payload from a port
// of one pod to another. If ask is not nil, it causes the packet. outer is the number of
// bytes before the frame. The marker replaces the payload.
func (s *stage) hear(where, link string, outer int, p path, ask func() error) (frame []byte, err error) {
	var tap *raw.Socket
	if err := s.lab.In(where, func() error {
		tap, err = raw.Open(link)
		return err
	}); err != nil {
		return nil, fmt.Errorf("capture on %s in %s: %w", link, where, err)
	}
	defer tap.Close()
	if ask != nil {
		if err := ask(); err != nil {
			return nil, err
		}
	}
	for began := time.Now(); time.Since(began) < mostAwaited; {
		b, err := tap.Receive(10 * time.Millisecond)
		if err != nil {
			return nil, err
		}
		if len(b) > outer && s.isOf(b[outer:], p) {
			return withPayload(b[outer:], s.marker), nil
		}
	}
	return nil, fmt.Errorf("no packet from %s to %s on %s in %s", p.from, p.to, link, where)
}

// isOf says whether a frame is from a port of one pod to another, and has a payload.
func (s *stage) isOf(b []byte, p path) bool {
	l := packet.ParseLayers(b)
	if l.L4 == 0 || l.Proto != packet.ProtoTCP && l.Proto != packet.ProtoUDP {
		return false
	}
	src, dst := packet.IPv6(b[l.L3:]).Src, packet.IPv6(b[l.L3:]).Dst
	if l.EtherType == packet.EtherTypeIPv4 {
		src, dst = packet.IPv4(b[l.L3:]).Src, packet.IPv4(b[l.L3:]).Dst
	}
	return src() == s.pod(p.from).address && dst() == s.pod(p.to).address && packet.UDP(b[l.L4:]).SrcPort() == uint16(p.port) && l.End > payloadAt(b, &l)
}

// payloadAt is the offset of a TCP or UDP payload.
func payloadAt(b []byte, l *packet.Layers) int {
	if l.Proto == packet.ProtoTCP {
		return l.L4 + packet.TCP(b[l.L4:]).HeaderLen()
	}
	return l.L4 + packet.UDPLen
}

// withPayload is a frame with another TCP or UDP payload.
func withPayload(frame, payload []byte) []byte {
	l := packet.ParseLayers(frame)
	b := append(slices.Clone(frame[:payloadAt(frame, &l)]), payload...)
	if ip := b[l.L3:]; l.EtherType == packet.EtherTypeIPv6 {
		packet.IPv6(ip).SetPayloadLen(uint16(len(ip) - packet.IPv6Len))
	} else {
		packet.IPv4(ip).SetTotalLen(uint16(len(ip)))
		packet.IPv4(ip).UpdateChecksum()
	}
	if l.Proto == packet.ProtoUDP {
		packet.UDP(b[l.L4:]).SetLength(uint16(len(b) - l.L4))
	}
	l = packet.ParseLayers(b)
	l.SetL4Checksum(b)
	return b
}
