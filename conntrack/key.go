package conntrack

import (
	"encoding/binary"
	"net/netip"

	"github.com/antrail/antrail/packet"
)

// address is an IPv4 or IPv6 address without Go pointers. An IPv4 address lies
// in the low 32 bits; the key beside it says which family it is.
type address struct{ hi, lo uint64 }

// family is the network layer of a key.
type family uint8

const (
	ipv4 family = 4
	ipv6 family = 6
)

// key is one direction of a connection in one zone: what a packet is looked up
// by. Keys are compared whole, so every field is always set.
//
// For ICMP, srcPort is the identifier and dstPort type and code, so that the
// reverse key carries the type of the answer (CT-5). Protocols without ports
// have 0 in both.
type key struct {
	src, dst         address
	srcPort, dstPort uint16
	zone             uint16
	proto            uint8
	family           family
}

// The directions of a connection: index into entry.keys and entry.tcp.
const (
	original = 0
	reply    = 1
)

// makeAddress reads an address from 4 or 16 bytes of a header.
func makeAddress(b []byte) address {
	if len(b) == 4 {
		return address{lo: uint64(binary.BigEndian.Uint32(b))}
	}
	return address{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

// addressOf is a netip address of either family.
func addressOf(a netip.Addr) address {
	if a.Is4() {
		b := a.As4()
		return makeAddress(b[:])
	}
	b := a.As16()
	return makeAddress(b[:])
}

// put writes the address over the 4 or 16 bytes of a header.
func (a address) put(b []byte) {
	if len(b) == 4 {
		binary.BigEndian.PutUint32(b, uint32(a.lo))
		return
	}
	binary.BigEndian.PutUint64(b, a.hi)
	binary.BigEndian.PutUint64(b[8:], a.lo)
}

// netip is the address as others see it.
func (a address) netip(f family) netip.Addr {
	var b [16]byte
	a.put(b[:])
	if f == ipv4 {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return netip.AddrFrom16(b)
}

// add is the address n further on.
func (a address) add(n uint64) address {
	lo := a.lo + n
	if lo < a.lo {
		a.hi++
	}
	return address{a.hi, lo}
}

// reversed is the key of the answer: addresses and ports swapped; for ICMP the
// identifier stays and the type is the answering one.
func (k *key) reversed() key {
	r := *k
	r.src, r.dst = k.dst, k.src
	if k.icmp() {
		r.dstPort = uint16(answerType(k.proto, k.icmpType()))<<8 | k.dstPort&0xff
		return r
	}
	r.srcPort, r.dstPort = k.dstPort, k.srcPort
	return r
}

func (k *key) icmp() bool { return k.proto == packet.ProtoICMP || k.proto == packet.ProtoICMPv6 }

func (k *key) sctp() bool { return k.proto == packet.ProtoSCTP }

func (k *key) icmpType() uint8 { return uint8(k.dstPort >> 8) }

// hasPorts says whether NAT can move a port of this protocol, or an
// identifier.
func (k *key) hasPorts() bool {
	switch k.proto {
	case packet.ProtoTCP, packet.ProtoUDP, packet.ProtoSCTP, packet.ProtoICMP, packet.ProtoICMPv6:
		return true
	}
	return false
}

// tuple is the key as ct_nw_src and its kin show it: ICMP type and code in the
// ports (CT-4).
func (k *key) tuple() Tuple {
	t := Tuple{
		Src: k.src.netip(k.family), Dst: k.dst.netip(k.family), Proto: k.proto,
		SrcPort: k.srcPort, DstPort: k.dstPort,
	}
	if k.icmp() {
		t.SrcPort, t.DstPort = k.dstPort>>8, k.dstPort&0xff
	}
	return t
}

// words is the key as five numbers, for the hash and for a cell.
func (k *key) words() keyWords {
	last := uint64(k.srcPort)<<48 | uint64(k.dstPort)<<32 | uint64(k.zone)<<16 | uint64(k.proto)<<8 | uint64(k.family)
	return keyWords{k.src.hi, k.src.lo, k.dst.hi, k.dst.lo, last}
}

// key is the inverse of key.words.
func (w *keyWords) key() key {
	return key{
		src: address{w[0], w[1]}, dst: address{w[2], w[3]},
		srcPort: uint16(w[4] >> 48), dstPort: uint16(w[4] >> 32), zone: uint16(w[4] >> 16),
		proto: uint8(w[4] >> 8), family: family(w[4]),
	}
}
