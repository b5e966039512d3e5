package flow

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/packet"
)

// Extraction makes the key of a packet from its bytes, by the rules of Open vSwitch's flow
// extraction:
//
//  - a header whose lengths do not fit contributes nothing: an IPv4 packet
//    with a wrong Total Length has dl_type 0x0800 and no addresses;
//  - Ethernet padding behind the IP packet is never read as payload;
//  - a later fragment has addresses and protocol, but no ports;
//  - ARP counts only for IPv4 over Ethernet, and an operation above 255 is 0;
//  - neighbour discovery options given twice void the ND fields.
//
// It is stricter in one point. If the version of an IP header differs from its EtherType, the
// header contributes nothing. Open vSwitch does not check this.
//
// It allocates nothing: a worker extracts into a key that it owns.

// Extract fills a key from a frame: headers from its bytes, tunnel fields from f.Tunnel, pkt_mark
// from f.Mark. The options of a tunnel are apart (SetTunnelOptions). Registers, conntrack fields
// and the other marks are zero. It returns the places of the headers.
func Extract(f *packet.Frame, inPort uint32, k *Key) packet.Layers {
	l := packet.ParseLayers(f.Bytes())
	ExtractAt(f, inPort, k, &l)
	return l
}

// ExtractAt is Extract for a frame whose header places are known.
func ExtractAt(f *packet.Frame, inPort uint32, k *Key, l *packet.Layers) {
	clear(k[:])
	k.putU32(offInPort, inPort)
	k.setTunnel(&f.Tunnel)
	k.putU32(offPktMark, f.Mark)
	k.setHeaders(f.Bytes(), l)
}

// Readdress reads the addresses and ports again after NAT has changed them in a frame. l has the
// places of the headers.
func Readdress(f *packet.Frame, l *packet.Layers, k *Key) {
	b := f.Bytes()
	if l.End == 0 {
		return
	}
	switch l.EtherType {
	case packet.EtherTypeIPv4:
		h := packet.IPv4(b[l.L3:])
		copy(k[offNwSrc:], h.SrcBytes())
		copy(k[offNwDst:], h.DstBytes())
	case packet.EtherTypeIPv6:
		h := packet.IPv6(b[l.L3:])
		copy(k[offIPv6Src:], h.SrcBytes())
		copy(k[offIPv6Dst:], h.DstBytes())
	}
	switch l.Proto {
	case packet.ProtoTCP, packet.ProtoUDP, packet.ProtoSCTP:
		if l.L4 != 0 {
			copy(k[offTpSrc:offTpDst+2], b[l.L4:])
		}
	}
}

// Refresh reads the header fields again after a frame has gained or lost a header (a VLAN tag).
// All other fields of the key stay.
func Refresh(f *packet.Frame, k *Key) packet.Layers {
	l := packet.ParseLayers(f.Bytes())
	clear(k[HeaderStart:])
	k.setHeaders(f.Bytes(), &l)
	return l
}

// setHeaders fills in the fields of a frame's headers, which must be zero.
func (k *Key) setHeaders(b []byte, l *packet.Layers) {
	k[offNwFrag] = l.Frag
	if len(b) < packet.EthernetLen {
		return
	}
	copy(k[offEthDst:offEthType], b) // destination, then source, as on the wire
	k.putU16(offEthType, l.EtherType)
	k.putU16(offVlanTCI, l.TCI)
	if l.End == 0 {
		return
	}
	switch l.EtherType {
	case packet.EtherTypeIPv4:
		k.setIPv4(packet.IPv4(b[l.L3:]))
	case packet.EtherTypeIPv6:
		k.setIPv6(packet.IPv6(b[l.L3:]), l.Proto)
	default:
		k.setARP(packet.ARP(b[l.L3:]))
	}
	if l.L4 != 0 {
		k.setL4(b[l.L4:l.End], l.Proto)
	}
}

func (k *Key) setTunnel(t *packet.Tunnel) {
	if !t.Src.IsValid() && !t.Dst.IsValid() && t.ID == 0 && t.TTL == 0 && t.TOS == 0 {
		return
	}
	binary.BigEndian.PutUint64(k[offTunID:], t.ID)
	k[offTunTTL], k[offTunTOS] = t.TTL, t.TOS
	k.putAddr(offTunSrc, offTunSrc6, t.Src)
	k.putAddr(offTunDst, offTunDst6, t.Dst)
}

// SetTunnelOptions fills in the fields tun_metadata from the options of a packet's Geneve header,
// by the table of its switch. It returns false if Open vSwitch drops the packet. That is so for a
// critical option that the table lacks (RFC 8926, section 3.5.1), or with another length there.
func (k *Key) SetTunnelOptions(all packet.TunnelOptions, table []TunnelOption) bool {
	for len(all) > 0 {
		class, kind, data, rest, ok := packet.NextOption(all)
		i := slices.IndexFunc(table, func(o TunnelOption) bool { return o.Class == class && o.Type == kind })
		switch {
		case !ok, i < 0 && packet.CriticalOption(kind), i >= 0 && len(data) != int(table[i].Size):
			return false
		case i >= 0:
			at, end := optionPlace(&table[i])
			copy(k[at:end], data)
			k[offTunPresent] |= 1 << table[i].Index
		}
		all = rest
	}
	return true
}

// optionPlace is the place of an option's data in a key.
func optionPlace(o *TunnelOption) (from, to int) {
	to = offTunData + MaxTunMetadata*(int(o.Index)+1)
	return to - int(o.Size), to
}

// TunnelOptions are the options of a packet that leaves by a Geneve tunnel. Their fields are
// present. They are in the order of their numbers, as in Open vSwitch.
func (k *Key) TunnelOptions(table []TunnelOption) packet.TunnelOptions {
	if k[offTunPresent] == 0 {
		return ""
	}
	var room [TunMetadataFields * (4 + MaxTunMetadata)]byte
	b := room[:0]
	for i := range table {
		if o := &table[i]; k[offTunPresent]>>o.Index&1 != 0 {
			from, to := optionPlace(o)
			b = packet.AppendOption(b, o.Class, o.Type, k[from:to])
		}
	}
	return packet.TunnelOptions(b)
}

// putAddr writes an address at off4 or off16 by its family. It ignores an unset one.
func (k *Key) putAddr(off4, off16 int, a netip.Addr) {
	switch {
	case a.Is4():
		b := a.As4()
		copy(k[off4:], b[:])
	case a.Is6():
		b := a.As16()
		copy(k[off16:], b[:])
	}
}

func (k *Key) putU16(off int, v uint16) { binary.BigEndian.PutUint16(k[off:], v) }

func (k *Key) setIPv4(h packet.IPv4) {
	copy(k[offNwSrc:], h.SrcBytes())
	copy(k[offNwDst:], h.DstBytes())
	k[offNwProto], k[offNwTOS], k[offNwTTL] = h.Proto(), h.TOS(), h.TTL()
}

// setIPv6 fills in the addresses, also if the extension headers do not fit. It fills in the rest
// only if they do; proto is 0 if they do not.
func (k *Key) setIPv6(h packet.IPv6, proto uint8) {
	copy(k[offIPv6Src:], h.SrcBytes())
	copy(k[offIPv6Dst:], h.DstBytes())
	if proto == packet.ProtoHopByHop {
		return
	}
	k.putU32(offIPv6Label, h.FlowLabel())
	k[offNwProto], k[offNwTOS], k[offNwTTL] = proto, h.TrafficClass(), h.HopLimit()
}

func (k *Key) setARP(h packet.ARP) {
	spa, tpa := h.SPA().As4(), h.TPA().As4()
	sha, tha := h.SHA(), h.THA()
	copy(k[offNwSrc:], spa[:])
	copy(k[offNwDst:], tpa[:])
	copy(k[offArpSHA:], sha[:])
	copy(k[offArpTHA:], tha[:])
	if op := h.Op(); op <= 0xff {
		k.putU16(offArpOp, op)
	}
}

// setL4 reads the transport header in b, which has at least its fixed part.
func (k *Key) setL4(b []byte, proto uint8) {
	switch proto {
	case packet.ProtoTCP:
		k.putU16(offTCPFlags, packet.TCP(b).Flags())
		copy(k[offTpSrc:offTpDst+2], b) // both ports, as on the wire
	case packet.ProtoUDP, packet.ProtoSCTP:
		copy(k[offTpSrc:offTpDst+2], b)
	case packet.ProtoICMP, packet.ProtoIGMP:
		k.setICMP(packet.ICMP(b))
	case packet.ProtoICMPv6:
		k.setICMP(packet.ICMP(b))
		if nd := packet.ND(b); nd.Valid() {
			k.setND(nd)
		}
	}
}

func (k *Key) setICMP(h packet.ICMP) {
	k[offTpSrc+1], k[offTpDst+1] = h.Type(), h.Code()
}

// setND fills in nd_target, nd_sll and nd_tll. An Ethernet address given twice
// voids all three, as in Open vSwitch.
func (k *Key) setND(h packet.ND) {
	var sll, tll [6]byte
	for o, more := h.Options(), true; more; {
		var typ uint8
		var value []byte
		if typ, value, o, more = o.Next(); !more || len(value) != len(sll) {
			continue
		}
		addr := &sll
		switch typ {
		case packet.NDOptionSourceLinkAddr:
		case packet.NDOptionTargetLinkAddr:
			addr = &tll
		default:
			continue
		}
		if *addr != [6]byte{} {
			return
		}
		*addr = [6]byte(value)
	}
	copy(k[offNDTarget:], h.Target())
	copy(k[offArpSHA:], sll[:])
	copy(k[offArpTHA:], tll[:])
}
