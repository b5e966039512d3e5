package tuple

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"

	"github.com/antrail/antrail/packet"
)

// Address is an IPv4 or IPv6 address without Go pointers. An IPv4 address is in the low 32 bits.
// The key has the family.
type Address struct{ Hi, Lo uint64 }

// Family is the network layer of a key.
type Family uint8

// The families.
const (
	IPv4 Family = 4
	IPv6 Family = 6
)

// FamilyOf is the family of an address.
func FamilyOf(a netip.Addr) Family {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

// Key is one direction of a connection in one zone. A packet is looked up by its key. Keys are
// compared whole, so every field is always set.
//
// For ICMP, SrcPort is the identifier and DstPort is type and code, so that the reverse key has
// the type of the reply (CT-5). Protocols without ports have 0 in both.
type Key struct {
	Src, Dst         Address
	SrcPort, DstPort uint16
	Zone             uint16
	Proto            uint8
	Family           Family
}

// The directions of a connection, as indices of pairs.
const (
	Original = 0
	Reply    = 1
)

// makeAddress makes an address from 4 or 16 bytes of a header.
func makeAddress(b []byte) Address {
	if len(b) == 4 {
		return Address{Lo: uint64(binary.BigEndian.Uint32(b))}
	}
	return Address{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

// AddressOf makes an address from a netip.Addr of either family.
func AddressOf(a netip.Addr) Address {
	if a.Is4() {
		b := a.As4()
		return makeAddress(b[:])
	}
	b := a.As16()
	return makeAddress(b[:])
}

// put writes the address to 4 or 16 bytes of a header.
func (a Address) put(b []byte) {
	if len(b) == 4 {
		binary.BigEndian.PutUint32(b, uint32(a.Lo))
		return
	}
	binary.BigEndian.PutUint64(b, a.Hi)
	binary.BigEndian.PutUint64(b[8:], a.Lo)
}

// Addr is the address as a netip.Addr.
func (a Address) Addr(f Family) netip.Addr {
	if f == IPv4 {
		return netip.AddrFrom4([4]byte{byte(a.Lo >> 24), byte(a.Lo >> 16), byte(a.Lo >> 8), byte(a.Lo)})
	}
	return netip.AddrFrom16(a.bytes())
}

// Add is the address plus n.
func (a Address) Add(n uint64) Address {
	lo := a.Lo + n
	if lo < a.Lo {
		a.Hi++
	}
	return Address{a.Hi, lo}
}

// Reversed is the key of the reply: addresses and ports are swapped. For ICMP the identifier
// stays, and the type is the reply's.
func (k *Key) Reversed() (r Key) {
	k.Reverse(&r)
	return r
}

// Reverse writes the key of the reply to r (see Load).
func (k *Key) Reverse(r *Key) {
	r.Src.Hi, r.Src.Lo, r.Dst.Hi, r.Dst.Lo = k.Dst.Hi, k.Dst.Lo, k.Src.Hi, k.Src.Lo
	r.Zone, r.Proto, r.Family = k.Zone, k.Proto, k.Family
	if k.ICMP() {
		r.SrcPort, r.DstPort = k.SrcPort, uint16(answerType(k.Proto, k.ICMPType()))<<8|k.DstPort&0xff
		return
	}
	r.SrcPort, r.DstPort = k.DstPort, k.SrcPort
}

// Equal says whether two keys are equal, with few branches.
func (k *Key) Equal(o *Key) bool {
	return (k.Src.Hi^o.Src.Hi)|(k.Src.Lo^o.Src.Lo)|(k.Dst.Hi^o.Dst.Hi)|(k.Dst.Lo^o.Dst.Lo) == 0 &&
		k.SrcPort == o.SrcPort && k.DstPort == o.DstPort && k.Zone == o.Zone && k.Proto == o.Proto && k.Family == o.Family
}

// ICMP says whether the protocol is ICMP or ICMPv6.
func (k *Key) ICMP() bool { return k.Proto == packet.ProtoICMP || k.Proto == packet.ProtoICMPv6 }

// TCP says whether the protocol is TCP.
func (k *Key) TCP() bool { return k.Proto == packet.ProtoTCP }

// ICMPType is the type in an ICMP key.
func (k *Key) ICMPType() uint8 { return uint8(k.DstPort >> 8) }

// HasPorts says whether NAT can change a port, or an identifier, of this protocol.
func (k *Key) HasPorts() bool {
	switch k.Proto {
	case packet.ProtoTCP, packet.ProtoUDP, packet.ProtoSCTP, packet.ProtoICMP, packet.ProtoICMPv6:
		return true
	}
	return false
}

// ShownPorts is the ports in the form of ct_tp_src and ct_tp_dst. For ICMP they are type and code
// (CT-4).
func (k *Key) ShownPorts() (src, dst uint16) {
	if k.ICMP() {
		return k.DstPort >> 8, k.DstPort & 0xff
	}
	return k.SrcPort, k.DstPort
}

// Words is a key as five numbers. Hashes and cells use this form.
type Words [5]uint64

// Words is the key as five numbers.
func (k *Key) Words() (w Words) {
	k.Store(&w)
	return w
}

// Store writes the key as words to w (see Load).
func (k *Key) Store(w *Words) {
	w[0], w[1], w[2], w[3] = k.Src.Hi, k.Src.Lo, k.Dst.Hi, k.Dst.Lo
	w[4] = uint64(k.SrcPort)<<48 | uint64(k.DstPort)<<32 | uint64(k.Zone)<<16 | uint64(k.Proto)<<8 | uint64(k.Family)
}

// Equal says whether the words are equal, without a call and with one branch.
func (w *Words) Equal(o *Words) bool {
	return (w[0]^o[0])|(w[1]^o[1])|(w[2]^o[2])|(w[3]^o[3])|(w[4]^o[4]) == 0
}

// Zone is the key's zone.
func (w *Words) Zone() uint16 { return uint16(w[4] >> 16) }

// Proto is the key's protocol.
func (w *Words) Proto() uint8 { return uint8(w[4] >> 8) }

// Load reads a key from words that other goroutines may be writing. The caller checks whether the
// words belong together.
//
// On the packet path a key is filled field by field, in place. A copy right after that, 16 bytes
// at a time, would wait until the stores of the fields have left the processor.
func (k *Key) Load(w *[len(Words{})]atomic.Uint64) {
	k.Src.Hi, k.Src.Lo, k.Dst.Hi, k.Dst.Lo = w[0].Load(), w[1].Load(), w[2].Load(), w[3].Load()
	last := w[4].Load()
	k.SrcPort, k.DstPort, k.Zone = uint16(last>>48), uint16(last>>32), uint16(last>>16)
	k.Proto, k.Family = uint8(last>>8), Family(last)
}
