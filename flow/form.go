package flow

import (
	"net"
	"net/netip"
	"strconv"

	"github.com/antrail/antrail/packet"
)

// A Form is the way a field's values are written: 80, 0x50, 10.0.0.1, +new-est.
// Here is the printing side; the reading side is in form_read.go.

// Form is how a field's values are written.
type Form uint8

// The forms. PortNumber is a port's name or number; the …Bits are words for
// single bits.
const (
	Decimal Form = iota
	Hex
	MACAddress
	IPv4Address
	IPv6Address
	PortNumber
	CTStateBits
	TCPFlagBits
	FragmentBits
	TunnelFlagBits
)

// flagWords names single bits: words[i] is bit i.
var flagWords = map[Form][]string{
	CTStateBits:    {"new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"},
	TCPFlagBits:    {"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns", "[200]", "[400]", "[800]"},
	TunnelFlagBits: {"oam"},
}

// Flags are the words for the bits of a form, from bit 0 up. It is empty for a form without
// flags. The list must not be changed.
func (f Form) Flags() []string { return flagWords[f] }

// fragment is a word for a value and mask of ip_frag.
type fragment struct {
	word        string
	value, mask uint64
}

var fragments = []fragment{
	{"no", 0, packet.FragAny | packet.FragLater},
	{"first", packet.FragAny, packet.FragAny | packet.FragLater},
	{"later", packet.FragAny | packet.FragLater, packet.FragAny | packet.FragLater},
	{"yes", packet.FragAny, packet.FragAny},
	{"later", packet.FragLater, packet.FragLater},
	{"not_later", 0, packet.FragLater},
}

// appendExact writes a whole field's value.
func appendExact(b []byte, f *Field, v Value, n *Names) []byte {
	switch f.Form {
	case Decimal:
		return strconv.AppendUint(b, v.Lo, 10)
	case MACAddress:
		return appendMAC(b, v)
	case IPv4Address:
		return ipv4Of(v).AppendTo(b)
	case IPv6Address:
		return appendIPv6(b, v)
	case PortNumber:
		return appendPort(b, PortOf16(uint32(v.Lo)), n)
	case CTStateBits, TCPFlagBits, TunnelFlagBits:
		return appendFlags(b, f.Form, v.Lo)
	case FragmentBits:
		return appendFragment(b, v.Lo, packet.FragAny|packet.FragLater)
	}
	return appendHex(b, v)
}

// appendMasked writes value/mask as set_field does. It leaves out a mask that covers the field,
// and writes a prefix length for addresses where one fits.
func appendMasked(b []byte, f *Field, v, mask Value, n *Names) []byte {
	b = appendExact(b, f, v, n)
	if mask == Ones(f.Bits) {
		return b
	}
	b = append(b, '/')
	switch f.Form {
	case MACAddress:
		return appendMAC(b, mask)
	case IPv4Address, IPv6Address:
		return appendNetmask(b, f, mask)
	}
	return appendHex(b, mask)
}

// appendNetmask writes the mask of an address: 24, or 255.0.255.0.
func appendNetmask(b []byte, f *Field, mask Value) []byte {
	if n, ok := prefixLen(mask, f.Bits); ok {
		return strconv.AppendInt(b, int64(n), 10)
	}
	if f.Form == IPv4Address {
		return ipv4Of(mask).AppendTo(b)
	}
	return appendIPv6(b, mask)
}

// appendIPv6 writes an address as C's inet_ntop does: like netip, but the last 32 bits as an IPv4
// address if only those are set.
func appendIPv6(b []byte, v Value) []byte {
	if v.Hi == 0 && v.Lo>>32 == 0 && v.Lo>>16 != 0 {
		return ipv4Of(v).AppendTo(append(b, "::"...))
	}
	return ipv6Of(v).AppendTo(b)
}

// prefixLen is the number of leading ones of a mask of width bits. It is false if other ones
// follow.
func prefixLen(mask Value, width int) (int, bool) {
	for n := range width + 1 {
		if mask == Ones(n).Shl(width-n) {
			return n, true
		}
	}
	return 0, false
}

// appendHex writes 0x2f, and zero as 0, like C's %#x.
func appendHex(b []byte, v Value) []byte {
	if v.IsZero() {
		return append(b, '0')
	}
	b = append(b, "0x"...)
	if v.Hi == 0 {
		return strconv.AppendUint(b, v.Lo, 16)
	}
	b = strconv.AppendUint(b, v.Hi, 16)
	return appendPadded(b, v.Lo, 16)
}

// appendPlainHex writes 0x2f, and 0x0 for zero.
func appendPlainHex(b []byte, v uint64) []byte {
	return strconv.AppendUint(append(b, "0x"...), v, 16)
}

// appendPadded writes n hexadecimal digits.
func appendPadded(b []byte, v uint64, n int) []byte {
	for i := n - 1; i >= 0; i-- {
		b = append(b, "0123456789abcdef"[v>>(4*i)&15])
	}
	return b
}

func appendMAC(b []byte, v Value) []byte {
	for i := 5; i >= 0; i-- {
		b = appendPadded(b, v.Lo>>(8*i)&0xff, 2)
		if i > 0 {
			b = append(b, ':')
		}
	}
	return b
}

// appendFlags writes set bits as words: new|trk, or 0 when there are none.
func appendFlags(b []byte, form Form, bits uint64) []byte {
	start := len(b)
	for i, w := range flagWords[form] {
		if bits>>i&1 == 0 {
			continue
		}
		if len(b) > start {
			b = append(b, '|')
		}
		b = append(b, w...)
	}
	if len(b) == start {
		b = append(b, '0')
	}
	return b
}

// appendFlagsMasked writes +new-est.
func appendFlagsMasked(b []byte, form Form, bits, mask uint64) []byte {
	for i, w := range flagWords[form] {
		switch {
		case mask>>i&1 == 0:
			continue
		case bits>>i&1 != 0:
			b = append(b, '+')
		default:
			b = append(b, '-')
		}
		b = append(b, w...)
	}
	return b
}

func appendFragment(b []byte, v, mask uint64) []byte {
	for _, f := range fragments {
		if f.value == v && f.mask == mask {
			return append(b, f.word...)
		}
	}
	return append(b, "<error>"...) // later without any: no packet has this; OVS's word
}

// ValueOfMAC is a hardware address as a Value.
func ValueOfMAC(mac net.HardwareAddr) Value {
	var v Value
	for _, c := range mac {
		v.Lo = v.Lo<<8 | uint64(c)
	}
	return v
}

// ValueOfAddr is an IP address as a Value: 32 or 128 bits.
func ValueOfAddr(a netip.Addr) Value {
	var v Value
	for _, c := range a.AsSlice() {
		v = v.Shl(8)
		v.Lo |= uint64(c)
	}
	return v
}

// Addr is the way back from ValueOfAddr, for 32 or 128 bits.
func (v Value) Addr(bits int) netip.Addr {
	if bits == 32 {
		return ipv4Of(v)
	}
	return ipv6Of(v)
}

// AddrIn is an address of a packet: from v6 in an IPv6 packet, otherwise from v4. It is 0.0.0.0
// if the packet has none.
func AddrIn(k *Key, v4, v6 FieldID) netip.Addr {
	if FieldByID(EthType).Get(k).Lo == packet.EtherTypeIPv6 {
		return ipv6Of(FieldByID(v6).Get(k))
	}
	return ipv4Of(FieldByID(v4).Get(k))
}

// MAC is the way back from ValueOfMAC.
func (v Value) MAC() (mac [6]byte) {
	for i := range mac {
		mac[i] = byte(v.Lo >> (8 * (len(mac) - 1 - i)))
	}
	return mac
}

func ipv4Of(v Value) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(v.Lo >> 24), byte(v.Lo >> 16), byte(v.Lo >> 8), byte(v.Lo)})
}

func ipv6Of(v Value) netip.Addr {
	var a [16]byte
	for i := 15; i >= 0; i-- {
		a[i] = byte(v.Lo)
		v = v.Shr(8)
	}
	return netip.AddrFrom16(a)
}
