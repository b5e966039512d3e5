// Package packettest builds packets for tests: plain functions that return the
// bytes of an Ethernet frame with valid lengths and checksums. Unset Options have
// fixed defaults, so a test names only the fields that it needs.
package packettest

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/packet"
)

// Options are the parts of a packet that tests can choose.
type Options struct {
	EthSrc, EthDst   [6]byte    // 02:00:00:00:00:01 and 02:00:00:00:00:02
	VLAN             uint16     // the tag's TCI; 0 for no tag
	Src, Dst         netip.Addr // 10.0.0.1 and 10.0.0.2, or fd00::1 and fd00::2
	SrcPort, DstPort uint16     // 1000 and 80
	TTL, TOS         uint8      // 64 and 0
	ID               uint16     // IPv4 Identification; 0
	FlagsOffset      uint16     // IPv4 Flags and Fragment Offset; 0
	IPOptions        []byte     // IPv4 options, a multiple of 4 bytes
	TCPFlags         uint16     // SYN
	TCPOptions       []byte     // a multiple of 4 bytes
	Seq, Ack         uint32     // TCP
	Window           uint16     // TCP; 65535
	ICMPID, ICMPSeq  uint16     // echo
	Reply            bool       // echo reply, ARP reply
	Payload          []byte
}

// Addr parses an address. It panics on other text.
func Addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// TCP4 is a TCP segment over IPv4.
func TCP4(o Options) []byte { return o.ipv4(packet.ProtoTCP, o.tcp()) }

// TCP6 is a TCP segment over IPv6.
func TCP6(o Options) []byte { return o.ipv6(packet.ProtoTCP, o.tcp()) }

// UDP4 is a UDP datagram over IPv4.
func UDP4(o Options) []byte { return o.ipv4(packet.ProtoUDP, o.udp()) }

// UDP6 is a UDP datagram over IPv6.
func UDP6(o Options) []byte { return o.ipv6(packet.ProtoUDP, o.udp()) }

// SCTP4 is an SCTP packet over IPv4. Payload is its chunks; the default is an
// INIT chunk of 20 bytes.
func SCTP4(o Options) []byte { return o.ipv4(packet.ProtoSCTP, o.sctp()) }

// SCTP6 is an SCTP packet over IPv6.
func SCTP6(o Options) []byte { return o.ipv6(packet.ProtoSCTP, o.sctp()) }

// ICMPEcho4 is an echo or, with Reply, an echo reply.
func ICMPEcho4(o Options) []byte {
	typ := uint8(packet.ICMPEcho)
	if o.Reply {
		typ = packet.ICMPEchoReply
	}
	return ICMP4(o, typ, 0, uint32(o.ICMPID)<<16|uint32(o.ICMPSeq))
}

// ICMPEcho6 is an ICMPv6 echo or, with Reply, an echo reply.
func ICMPEcho6(o Options) []byte {
	typ := uint8(packet.ICMPv6Echo)
	if o.Reply {
		typ = packet.ICMPv6EchoReply
	}
	return ICMP6(o, typ, 0, uint32(o.ICMPID)<<16|uint32(o.ICMPSeq))
}

// ICMP4 is any ICMP message. Payload follows its second word.
func ICMP4(o Options, typ, code uint8, rest uint32) []byte {
	return o.ipv4(packet.ProtoICMP, o.icmp(typ, code, rest))
}

// ICMP6 is any ICMPv6 message. Payload follows its second word.
func ICMP6(o Options, typ, code uint8, rest uint32) []byte {
	return o.ipv6(packet.ProtoICMPv6, o.icmp(typ, code, rest))
}

// ICMPError4 is an ICMP error of typ and code that quotes the IP header and the
// next n bytes of the frame about.
func ICMPError4(o Options, typ, code uint8, about []byte, n int) []byte {
	l := packet.ParseLayers(about)
	end := l.L3 + packet.IPv4(about[l.L3:]).HeaderLen() + n
	o.Payload = about[l.L3:min(end, l.End)]
	return ICMP4(o, typ, code, 0)
}

// NeighborSolicit6 asks for Dst from Src with the source link-layer address
// option.
func NeighborSolicit6(o Options) []byte {
	o.defaults6()
	target := o.Dst.As16()
	o.Payload = append(target[:], packet.NDOptionSourceLinkAddr, 1)
	o.Payload = append(o.Payload, o.EthSrc[:]...)
	o.TTL = 255
	return ICMP6(o, packet.ICMPv6NeighborSolicit, 0, 0)
}

// ARPRequest asks for Dst from Src; with Reply it answers that Src is at
// EthSrc.
func ARPRequest(o Options) []byte {
	o.defaults4()
	a := make(packet.ARP, packet.ARPLen)
	a.Init()
	a.SetSHA(o.EthSrc)
	a.SetSPA(o.Src.As4())
	a.SetTPA(o.Dst.As4())
	a.SetOp(packet.ARPRequest)
	if o.Reply {
		a.SetOp(packet.ARPReply)
		a.SetTHA(o.EthDst)
	}
	return o.ethernet(packet.EtherTypeARP, a)
}

func (o *Options) defaults() {
	if o.EthSrc == [6]byte{} {
		o.EthSrc = [6]byte{2, 0, 0, 0, 0, 1}
	}
	if o.EthDst == [6]byte{} {
		o.EthDst = [6]byte{2, 0, 0, 0, 0, 2}
	}
	setDefault(&o.TTL, 64)
	setDefault(&o.SrcPort, 1000)
	setDefault(&o.DstPort, 80)
	setDefault(&o.Window, 65535)
	setDefault(&o.TCPFlags, packet.TCPSyn)
}

func setDefault[T comparable](p *T, v T) {
	if *p == *new(T) {
		*p = v
	}
}

func (o *Options) defaults4() {
	o.defaults()
	setDefault(&o.Src, Addr("10.0.0.1"))
	setDefault(&o.Dst, Addr("10.0.0.2"))
}

func (o *Options) defaults6() {
	o.defaults()
	setDefault(&o.Src, Addr("fd00::1"))
	setDefault(&o.Dst, Addr("fd00::2"))
}

func (o *Options) ethernet(etherType uint16, payload []byte) []byte {
	e := make(packet.Ethernet, packet.EthernetLen, packet.EthernetLen+packet.VLANLen+len(payload))
	e.SetSrc(o.EthSrc)
	e.SetDst(o.EthDst)
	e.SetType(etherType)
	if o.VLAN != 0 {
		e.SetType(packet.EtherTypeVLAN)
		e = append(e, byte(o.VLAN>>8), byte(o.VLAN), byte(etherType>>8), byte(etherType))
	}
	return append(e, payload...)
}

func (o *Options) ipv4(proto uint8, payload []byte) []byte {
	o.defaults4()
	n := packet.IPv4Len + len(o.IPOptions)
	h := make(packet.IPv4, n)
	h.Init()
	h[0] = 4<<4 | byte(n/4)
	copy(h[packet.IPv4Len:], o.IPOptions)
	h.SetTOS(o.TOS)
	h.SetTotalLen(uint16(n + len(payload)))
	h.SetID(o.ID)
	h.SetFlagsOffset(o.FlagsOffset)
	h.SetTTL(o.TTL)
	h.SetProto(proto)
	h.SetSrc(o.Src)
	h.SetDst(o.Dst)
	h.UpdateChecksum()
	return withChecksum(o.ethernet(packet.EtherTypeIPv4, append(h, payload...)))
}

func (o *Options) ipv6(proto uint8, payload []byte) []byte {
	o.defaults6()
	h := make(packet.IPv6, packet.IPv6Len)
	h.SetFirst(o.TOS, 0)
	h.SetPayloadLen(uint16(len(payload)))
	h.SetNextHeader(proto)
	h.SetHopLimit(o.TTL)
	h.SetSrc(o.Src)
	h.SetDst(o.Dst)
	return withChecksum(o.ethernet(packet.EtherTypeIPv6, append(h, payload...)))
}

func withChecksum(b []byte) []byte {
	l := packet.ParseLayers(b)
	l.SetL4Checksum(b)
	return b
}

func (o *Options) tcp() []byte {
	o.defaults()
	n := packet.TCPLen + len(o.TCPOptions)
	h := make(packet.TCP, n)
	h.SetSrcPort(o.SrcPort)
	h.SetDstPort(o.DstPort)
	h.SetSeq(o.Seq)
	h.SetAck(o.Ack)
	h.SetHeaderLen(n)
	h.SetFlags(o.TCPFlags)
	h.SetWindow(o.Window)
	copy(h[packet.TCPLen:], o.TCPOptions)
	return append(h, o.Payload...)
}

func (o *Options) udp() []byte {
	o.defaults()
	h := make(packet.UDP, packet.UDPLen)
	h.SetSrcPort(o.SrcPort)
	h.SetDstPort(o.DstPort)
	h.SetLength(uint16(packet.UDPLen + len(o.Payload)))
	return append(h, o.Payload...)
}

func (o *Options) sctp() []byte {
	o.defaults()
	h := make(packet.SCTP, packet.SCTPLen)
	h.SetSrcPort(o.SrcPort)
	h.SetDstPort(o.DstPort)
	chunks := o.Payload
	if chunks == nil {
		chunks = slices.Concat([]byte{packet.SCTPInit, 0, 0, 20}, make([]byte, 16))
	}
	return append(h, chunks...)
}

func (o *Options) icmp(typ, code uint8, rest uint32) []byte {
	h := make(packet.ICMP, packet.ICMPLen)
	h.SetType(typ)
	h.SetCode(code)
	h.SetRest(rest)
	return append(h, o.Payload...)
}
