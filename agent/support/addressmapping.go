package support

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
)

// mapping replaces addresses by a key that is forgotten with the archive. Two addresses that share a
// prefix share one as long afterwards (Xu and others, "Prefix-preserving IP address anonymization", 2002), so a
// reader still sees which address is of which range.
type mapping struct{ key []byte }

// flips says whether a bit is turned: the same for all addresses with the same bits before it.
func (m mapping) flips(before []byte, bit int) bool {
	h := hmac.New(sha256.New, m.key)
	var place [2]byte
	binary.BigEndian.PutUint16(place[:], uint16(bit)<<1|uint16(len(before)>>4&1))
	h.Write(place[:])
	h.Write(before)
	return h.Sum(nil)[0]&1 != 0
}

// bits replaces all bits behind the first kept ones. The first of them is always turned, so that no address or
// prefix is its own replacement by chance.
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

// wellKnown are addresses that say nothing of a Node: unspecified, loopback, link-local of IPv4 (Antrea's virtual
// ones among them), multicast, and netmasks.
var wellKnown = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
	netip.MustParsePrefix("::/64"), netip.MustParsePrefix("ff00::/8"),
}

// linkLocal addresses keep their prefix. Others keep their first bits, so that a private address is replaced by a
// private one, and none by one of wellKnown.
var linkLocal = netip.MustParsePrefix("fe80::/64")

const keptIPv4, keptIPv6 = 8, 16

// addr is what replaces an address. In a prefix, bits are those that it has, and the others are 0.
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

// mac is what replaces a MAC address: a local one, of multicast if it was. Addresses that say nothing of a
// Node stay: of broadcast, of all multicast, and Antrea's virtual one.
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
