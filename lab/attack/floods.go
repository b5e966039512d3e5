package attack

import (
	"context"
	"encoding/binary"
	"net/netip"
	"net/url"
	"time"

	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// Floods are packets that a pod may send, as fast as it can.

// stranger is an unused address outside (RFC 5737, RFC 3849).
var stranger = lab.Dual[netip.Addr]{V4: netip.MustParseAddr("198.51.100.1"), V6: netip.MustParseAddr("2001:db8::1")}

// out are the options of packets to the stranger.
func (s *stage) out() packettest.Options {
	o := s.to("web-b")
	o.Dst = stranger.Of(s.v6)
	return o
}

// bothPorts changes a frame's ports from packet to packet, so that each is a flow of its
// own.
func bothPorts(frame []byte) func(i int) {
	l := packet.ParseLayers(frame)
	return func(i int) {
		const first, many = 1024, 60000
		binary.BigEndian.PutUint16(frame[l.L4:], uint16(first+i%many))
		binary.BigEndian.PutUint16(frame[l.L4+2:], uint16(first+i/many))
		l.SetL4Checksum(frame)
	}
}

// sourcePorts changes only the source port, among many.
func sourcePorts(frame []byte, many int) func(i int) {
	l := packet.ParseLayers(frame)
	return func(i int) {
		const first = 1024
		binary.BigEndian.PutUint16(frame[l.L4:], uint16(first+i%many))
		l.SetL4Checksum(frame)
	}
}

func floodSYN(_ context.Context, s *stage) (int, error) {
	f := s.tcp(s.out())
	return s.flood(f, bothPorts(f))
}

func floodOneSided(_ context.Context, s *stage) (int, error) {
	f := s.udp(s.out())
	return s.flood(f, bothPorts(f))
}

func floodFlows(_ context.Context, s *stage) (int, error) {
	f := s.udp(s.to("client-b"))
	return s.flood(f, bothPorts(f))
}

func floodAnswered(_ context.Context, s *stage) (int, error) {
	const flows = 64
	stop, err := s.answerUDP("client-b")
	if err != nil {
		return 0, err
	}
	defer stop()
	o := s.to("client-b")
	o.DstPort = echoPort
	f := s.udp(o)
	return s.flood(f, sourcePorts(f, flows))
}

// floodSmall sends the shortest frames of one flow.
func floodSmall(_ context.Context, s *stage) (int, error) {
	o := s.to("client-b")
	o.DstPort, o.Payload = echoPort, s.marker
	return s.flood(s.udp(o), nil)
}

// floodFragments sends first fragments without the others.
func floodFragments(_ context.Context, s *stage) (int, error) {
	const cut, whole = 256, 512
	o := s.to("client-b")
	o.Payload = make([]byte, whole)
	f := packettest.Split(s.udp(o), 1, cut)[0]
	if s.v6 {
		id := packet.EthernetLen + packet.IPv6Len + 4
		return s.flood(f, func(i int) { binary.BigEndian.PutUint32(f[id:], uint32(i)) })
	}
	h := packet.IPv4(f[packet.EthernetLen:])
	return s.flood(f, func(i int) {
		h.SetID(uint16(i))
		h.UpdateChecksum()
	})
}

// floodNeighbours sends ARP requests, or neighbour solicitations.
func floodNeighbours(_ context.Context, s *stage) (int, error) {
	return s.flood(s.neighbourRequest(), nil)
}

// floodPort opens connections to a port.
func floodPort(port uint16) func(context.Context, *stage) (int, error) {
	return func(_ context.Context, s *stage) (int, error) {
		o := s.to("web-a")
		o.DstPort = port
		f := s.tcp(o)
		return s.flood(f, sourcePorts(f, 60000))
	}
}

// gsoPort is the destination port of the GSO frames. They all have the same source port.
const gsoPort = 47001

// gsoMarker is both ports, as bytes.
var gsoMarker = []byte{47000 >> 8, 47000 & 0xff, gsoPort >> 8, gsoPort & 0xff}

// mostUDP is the most datagrams of one frame that any kernel accepts (UDP_MAX_SEGMENTS,
// headers included).
const mostUDP = 120

// lie sends frames to the other Node that ask to be cut into very many segments.
func lie(tcp bool, size int) func(context.Context, *stage) (int, error) {
	return func(ctx context.Context, s *stage) (int, error) {
		const most = 2000
		ns, err := s.lab.Namespace(attacker)
		if err != nil {
			return 0, err
		}
		o := s.to("client-b")
		g := GSO{
			Namespace: ns, Interface: "eth0", SrcMAC: o.EthSrc, DstMAC: o.EthDst, Src: o.Src, Dst: o.Dst, DstPort: gsoPort,
			TCP: tcp, Size: size, Count: most, Lasts: s.length,
		}
		if !tcp {
			g.Payload = mostUDP * size
		}
		sent, err := g.Send(ctx)
		return sent.Frames, err
	}
}

// fillConnections makes more answered UDP connections than the table can hold, slowly
// enough that the other side answers each.
func fillConnections(_ context.Context, s *stage) (sent int, err error) {
	const burst, pause = 256, 5 * time.Millisecond
	stop, err := s.answerUDP("client-b")
	if err != nil {
		return 0, err
	}
	defer stop()
	o := s.to("client-b")
	o.DstPort = echoPort
	f := s.udp(o)
	next := sourcePorts(f, 60000)
	for ; sent < tableSize*3/2; sent++ {
		if sent%burst == 0 {
			time.Sleep(pause)
		}
		next(sent)
		if err := s.socket.Send(f); err != nil {
			return sent, err
		}
	}
	time.Sleep(s.length) // others connect while the table is full
	return sent, nil
}

// forgetConnections removes the attacker's connections from both Nodes.
func forgetConnections(ctx context.Context, s *stage) error {
	for _, n := range s.lab.Topology.Nodes {
		q := url.Values{"address": {s.pod(attacker).address.String()}}
		if _, err := s.agent(n.Name).Delete(ctx, "/conntrack", q); err != nil {
			return err
		}
	}
	return nil
}
