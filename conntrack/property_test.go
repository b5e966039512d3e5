package conntrack

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// Properties of every packet that NAT translates, checked on random ones.

// natProperty is a random packet, translated there and back.
type natProperty struct {
	*bench
	*rand.Rand
}

// address is a random one of a family, never the unspecified one.
func (p *natProperty) address(f tuple.Family) tuple.Address {
	a := tuple.Address{Lo: uint64(p.Uint32()) | 1<<24}
	if f == tuple.IPv6 {
		a = tuple.Address{Hi: p.Uint64(), Lo: p.Uint64() | 1}
	}
	return a
}

func (p *natProperty) port() uint16 { return uint16(1 + p.IntN(65535)) }

// packet is a random request with a random payload, its key, and whether it is
// UDP without a checksum.
func (p *natProperty) packet() (k tuple.Key, payload []byte, bare bool) {
	k.Family = []tuple.Family{tuple.IPv4, tuple.IPv6}[p.IntN(2)]
	k.Src, k.Dst = p.address(k.Family), p.address(k.Family)
	k.Proto = []uint8{packet.ProtoTCP, packet.ProtoUDP, packet.ProtoSCTP, packet.ProtoICMP}[p.IntN(4)]
	k.SrcPort, k.DstPort = p.port(), p.port()
	payload = make([]byte, p.IntN(64))
	if p.IntN(8) > 0 { // else zeros
		for i := range payload {
			payload[i] = byte(p.Uint32())
		}
	}
	switch k.Proto {
	case packet.ProtoUDP:
		bare = k.Family == tuple.IPv4 && p.IntN(8) == 0
	case packet.ProtoICMP:
		k.SrcPort, k.DstPort = uint16(p.IntN(65536)), uint16(packet.ICMPEcho)<<8
		if k.Family == tuple.IPv6 {
			k.Proto, k.DstPort = packet.ProtoICMPv6, uint16(packet.ICMPv6Echo)<<8
		}
	}
	return k, payload, bare
}

// build is the packet of a key, with full checksums.
func (p *natProperty) build(k *tuple.Key, payload []byte, bare bool) []byte {
	h := make([]byte, map[uint8]int{packet.ProtoTCP: packet.TCPLen, packet.ProtoSCTP: 28}[k.Proto])
	if len(h) == 0 {
		h = make([]byte, packet.UDPLen) // as long as that of an echo
	}
	switch k.Proto {
	case packet.ProtoTCP:
		packet.TCP(h).SetHeaderLen(packet.TCPLen)
		packet.TCP(h).SetFlags(packet.TCPSyn)
	case packet.ProtoUDP:
		packet.UDP(h).SetLength(uint16(len(h) + len(payload)))
	case packet.ProtoSCTP:
		payload = nil
		copy(h[12:], []byte{packet.SCTPInit, 0, 0, 16, 0, 0, 0, 7})
	}
	h = append(h, payload...)
	writePorts(h, k)
	b := frame(k.Src.Addr(k.Family).String(), k.Dst.Addr(k.Family).String(), k.Proto, h)
	if l := packet.ParseLayers(b); bare {
		packet.UDP(b[l.L4:]).SetChecksum(0)
	}
	return b
}

// writePorts writes a key's ports over a transport header.
func writePorts(h []byte, k *tuple.Key) {
	switch k.Proto {
	case packet.ProtoICMP, packet.ProtoICMPv6:
		packet.ICMP(h).SetType(k.ICMPType())
		packet.ICMP(h).SetID(k.SrcPort)
	default:
		packet.UDP(h).SetSrcPort(k.SrcPort)
		packet.UDP(h).SetDstPort(k.DstPort)
	}
}

// TestNATProperties: a translated packet is, to the byte, the packet that the
// other tuple would have had from the start, so every difference of a checksum
// is what a whole computation gives (CT-29); and what answers it leaves as an
// answer to what came in, to the byte (CT-3).
func TestNATProperties(t *testing.T) {
	seed := seeds(t)
	p := &natProperty{newBench(t, Config{Max: 1 << 12, Timeouts: proto.DefaultTimeouts()}), rand.New(rand.NewPCG(seed, 0))}
	for i := range steps(t, 1_000_000) / 2 { // two packets each
		if i%2000 == 0 {
			p.Flush()
		}
		k, payload, bare := p.packet()
		came := p.build(&k, payload, bare)
		n := &NAT{Source: p.IntN(2) == 0}
		n.Destination = !n.Source
		n.AddrMin = p.address(k.Family).Addr(k.Family)
		if n.AddrMax = n.AddrMin; p.IntN(2) == 0 {
			n.PortMin = p.port()
			n.PortMax = n.PortMin
		}
		p.enter(came)
		if p.ct(Request{Commit: true, NAT: n}); p.verdict.Drop == DropNATExhausted {
			continue // another random connection has the tuple
		}
		went := p.wireKey()
		if got, want := p.frame.Bytes(), p.build(&went, payload, bare); !bytes.Equal(got, want) {
			t.Fatalf("%+v through %+v left as\n%x, want\n%x", k, n, got, want)
		}
		back := went.Reversed()
		p.enter(p.build(&back, payload, bare))
		if state := p.ct(Request{NAT: &NAT{}}); k.Proto != packet.ProtoSCTP && p.meta.State&Tracked == 0 {
			t.Fatalf("the answer to %+v is %s", went, state)
		}
		answer := k.Reversed()
		if got, want := p.frame.Bytes(), p.build(&answer, payload, bare); p.meta.State&Invalid == 0 && !bytes.Equal(got, want) {
			t.Fatalf("the answer to %+v through %+v left as\n%x, want\n%x", k, n, got, want)
		}
	}
}

// wireKey is the key of the packet as it now is.
func (p *natProperty) wireKey() tuple.Key {
	var s tuple.Packet
	if !s.Read(p.frame.Bytes(), &p.layers, 0) {
		p.Fatal("the packet cannot be read any more")
	}
	return s.Key
}

// TestAnswerOfZeros: the checksum of an echo reply of nothing but zeros is
// 0xffff; the difference that NAT applies would lead to 0, which is wrong there.
func TestAnswerOfZeros(t *testing.T) {
	b := newBench(t, Config{})
	b.want(echoFrame(client, service, packet.ICMPEcho, 0), commitNAT("dst=10.0.0.2"), "new|trk|dnat")
	h := packet.ICMP(make([]byte, packet.ICMPLen+4))
	b.want(frame(server, client, packet.ProtoICMP, h), unNAT, "est|rpl|trk|snat")
	b.wantTuple("src=10.96.0.10,dst=10.0.0.1,id=0,type=0,code=0")
	b.want(errorFrame(server, client, 3, 1, frame(client, server, packet.ProtoICMP, h), 0), unNAT, "inv|trk")
}

// TestForceOnTranslatedPacket: force in the reply direction ends a connection
// whose translated answer shows the tuple of another one. The packet belongs to
// that one then; it does not get a second entry under the same key.
func TestForceOnTranslatedPacket(t *testing.T) {
	b := newBench(t, Config{})
	b.want(udpFrame(client, service, 1234, 53), commitNAT("dst=10.0.0.2:53"), "new|trk|dnat")
	other := udpFrame(service, client, 53, 1234) // as the answer will look
	b.want(other, commitNAT("src=10.9.9.9"), "new|trk|snat")
	b.want(udpFrame(server, client, 53, 1234), unNAT, "est|rpl|trk|snat")
	b.wantTuple("src=10.96.0.10,dst=10.0.0.1,sport=53,dport=1234")
	r := commit
	r.Force = true
	if got := b.ct(r); got != "new|trk" {
		t.Errorf("ct_state %s, want new|trk", got)
	}
	b.wantDump("udp,orig=(src=10.96.0.10,dst=10.0.0.1,sport=53,dport=1234),reply=(src=10.0.0.1,dst=10.9.9.9,sport=1234,dport=53),zone=100,timeout=30")
}
