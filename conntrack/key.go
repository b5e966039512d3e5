package conntrack

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"

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
	if f == ipv4 {
		return netip.AddrFrom4([4]byte{byte(a.lo >> 24), byte(a.lo >> 16), byte(a.lo >> 8), byte(a.lo)})
	}
	return netip.AddrFrom16(a.bytes())
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
func (k *key) reversed() (r key) {
	k.reverse(&r)
	return r
}

// reverse is reversed in its place (see load).
func (k *key) reverse(r *key) {
	r.src.hi, r.src.lo, r.dst.hi, r.dst.lo = k.dst.hi, k.dst.lo, k.src.hi, k.src.lo
	r.zone, r.proto, r.family = k.zone, k.proto, k.family
	if k.icmp() {
		r.srcPort, r.dstPort = k.srcPort, uint16(answerType(k.proto, k.icmpType()))<<8|k.dstPort&0xff
		return
	}
	r.srcPort, r.dstPort = k.dstPort, k.srcPort
}

// same says whether two keys are the same (see keyWords.same).
func (k *key) same(o *key) bool {
	return (k.src.hi^o.src.hi)|(k.src.lo^o.src.lo)|(k.dst.hi^o.dst.hi)|(k.dst.lo^o.dst.lo) == 0 &&
		k.srcPort == o.srcPort && k.dstPort == o.dstPort && k.zone == o.zone && k.proto == o.proto && k.family == o.family
}

func (k *key) icmp() bool { return k.proto == packet.ProtoICMP || k.proto == packet.ProtoICMPv6 }

func (k *key) tcp() bool { return k.proto == packet.ProtoTCP }

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

// show writes the key as ct_nw_src and its kin show it: ICMP type and code in
// the ports (CT-4).
func (k *key) show(t *Tuple) {
	t.Src, t.Dst, t.Proto = k.src.netip(k.family), k.dst.netip(k.family), k.proto
	t.SrcPort, t.DstPort = k.shownPorts()
}

// shownPorts is the ports, or ICMP's type and code.
func (k *key) shownPorts() (src, dst uint16) {
	if k.icmp() {
		return k.dstPort >> 8, k.dstPort & 0xff
	}
	return k.srcPort, k.dstPort
}

// words is the key as five numbers, for the hash and for a cell.
func (k *key) words() (w keyWords) {
	k.store(&w)
	return w
}

// store is words in their place (see load).
func (k *key) store(w *keyWords) {
	w[0], w[1], w[2], w[3] = k.src.hi, k.src.lo, k.dst.hi, k.dst.lo
	w[4] = uint64(k.srcPort)<<48 | uint64(k.dstPort)<<32 | uint64(k.zone)<<16 | uint64(k.proto)<<8 | uint64(k.family)
}

// same says whether the words are those of w: told without a jump, and without a call.
func (w *keyWords) same(o *keyWords) bool {
	return (w[0]^o[0])|(w[1]^o[1])|(w[2]^o[2])|(w[3]^o[3])|(w[4]^o[4]) == 0
}

// zone is key.zone of words.
func (w *keyWords) zone() uint16 { return uint16(w[4] >> 16) }

// proto is key.proto of words.
func (w *keyWords) proto() uint8 { return uint8(w[4] >> 8) }

// load is the inverse of words, from a cell. On the packet path a key is filled
// in its place, field by field: a copy made right afterwards, 16 bytes at a time,
// waits until the stores of its fields have left the processor.
func (k *key) load(w *[len(keyWords{})]atomic.Uint64) {
	k.src.hi, k.src.lo, k.dst.hi, k.dst.lo = w[0].Load(), w[1].Load(), w[2].Load(), w[3].Load()
	last := w[4].Load()
	k.srcPort, k.dstPort, k.zone = uint16(last>>48), uint16(last>>32), uint16(last>>16)
	k.proto, k.family = uint8(last>>8), family(last)
}
