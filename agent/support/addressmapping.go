package support

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
)

// mapping replaces addresses by a key that is forgotten with the archive. Two addresses with a
// common prefix have a common prefix of the same length afterwards. So a reader still sees
// which address is of which range (Xu and others, "Prefix-preserving IP address anonymization",
// 2002).
type mapping struct{ key []byte }

// flips says whether a bit is inverted. It is the same for all addresses with the same bits
// before it.
func (m mapping) flips(before []byte, bit int) bool {
	h := hmac.New(sha256.New, m.key)
	var place [2]byte
	binary.BigEndian.PutUint16(place[:], uint16(bit)<<1|uint16(len(before)>>4&1))
	h.Write(place[:])
	h.Write(before)
	return h.Sum(nil)[0]&1 != 0
}

// bits replaces all bits after the first kept ones. The first of them is always inverted, so
// that no address or prefix is its own replacement.
func (m mapping) bits(from []byte, kept int) []byte {
	to, before := slices.Clone(from), make([]byte, len(from))
	for bit := range 8 * len(from) {
		mask := byte(0x80) >> (bit % 8)
		if bit == kept || bit > kept && m.flips(before, bit) {
			to[bit/8] ^= mask
		}
		before[bit/8] |= from[bit/8] & mask
	}
	return to
}

// wellKnown are addresses that say nothing of a Node: unspecified, loopback, link-local IPv4
// (also Antrea's virtual ones), multicast, and netmasks.
var wellKnown = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
	netip.MustParsePrefix("::/64"), netip.MustParsePrefix("ff00::/8"),
}

// linkLocal addresses keep their prefix. Others keep their first bits: a private address
// becomes a private one, and none becomes one of wellKnown.
var linkLocal = netip.MustParsePrefix("fe80::/64")

const keptIPv4, keptIPv6 = 8, 16

// addr is the replacement of an address. For a prefix, bits is its length, and the other bits
// are 0.
func (m mapping) addr(a netip.Addr, bits int) netip.Addr {
	if slices.ContainsFunc(wellKnown, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return a
	}
	kept := keptIPv6
	switch {
	case a.Is4():
		kept = keptIPv4
	case linkLocal.Contains(a):
		kept = linkLocal.Bits()
	}
	to, _ := netip.AddrFromSlice(m.bits(a.AsSlice(), kept))
	if bits < a.BitLen() {
		to = netip.PrefixFrom(to, bits).Masked().Addr()
	}
	return to
}

// mac is the replacement of a MAC address: a local one, which is multicast if the original was.
// Broadcast, IP multicast and Antrea's virtual address stay.
func (m mapping) mac(a net.HardwareAddr) net.HardwareAddr {
	virtual := net.HardwareAddr{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	same := func(b byte) bool { return !slices.ContainsFunc(a[1:], func(c byte) bool { return c != b }) }
	if slices.Equal(a, virtual) || same(0) || same(0xff) || a[0] == 0x33 && a[1] == 0x33 || a[0] == 1 && a[1] == 0 {
		return a
	}
	h := hmac.New(sha256.New, m.key)
	h.Write(a)
	to := net.HardwareAddr(h.Sum(nil)[:6])
	to[0] = to[0]&^3 | 2 | a[0]&1
	return to
}
