package demo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/tunnel"
)

// A second reader of frames: it shares no code with packages packet and tunnel. It knows
// only what the lab's pods send.

// Numbers of Ethernet (IEEE 802), IP and tunnels (IANA).
const (
	typeIPv4, typeARP, typeIPv6, typeBridged = 0x0800, 0x0806, 0x86dd, 0x6558
	protoICMP, protoTCP, protoUDP            = 1, 6, 17
	protoGRE, protoICMPv6                    = 47, 58
	portGeneve, portVXLAN                    = 6081, 4789
)

// captured are the contents of a frame.
type captured struct {
	ends   [][2]netip.Addr // of each IP packet, outermost first
	source uint16          // outer source port of the tunnel
	header []byte          // of the tunnel; nil without one
	kind   tunnel.Kind     // of the tunnel, if there is one
	arp    bool
	wrong  error // the first wrong checksum
}

// errShort is the error of a frame that ends within a header.
var errShort = errors.New("the frame ends within a header")

// frame reads an Ethernet frame.
func (c *captured) frame(b []byte) error {
	const header = 14
	if len(b) < header {
		return errShort
	}
	switch binary.BigEndian.Uint16(b[12:]) {
	case typeIPv4:
		return c.ipv4(b[header:])
	case typeIPv6:
		return c.ipv6(b[header:])
	case typeARP:
		c.arp = true
	}
	return nil
}

// ipv4 reads a packet (RFC 791). It does not read into fragments.
func (c *captured) ipv4(b []byte) error {
	if len(b) < 20 {
		return errShort
	}
	header, total := int(b[0]&0xf)*4, int(binary.BigEndian.Uint16(b[2:]))
	if b[0]>>4 != 4 || header < 20 || total < header || total > len(b) {
		return fmt.Errorf("an IPv4 header that begins with %x, of a packet of %d bytes", b[:4], len(b))
	}
	c.check("IPv4", sum(b[:header]))
	src, dst := b[12:16], b[16:20]
	c.addEnds(src, dst)
	if binary.BigEndian.Uint16(b[6:])&0x3fff != 0 {
		return nil
	}
	return c.transport(b[9], b[header:total], src, dst)
}

// ipv6 reads a packet without extension headers (RFC 8200).
func (c *captured) ipv6(b []byte) error {
	const header = 40
	if len(b) < header {
		return errShort
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if b[0]>>4 != 6 || header+n > len(b) {
		return fmt.Errorf("an IPv6 header that begins with %x, of a packet of %d bytes", b[:6], len(b))
	}
	src, dst := b[8:24], b[24:40]
	c.addEnds(src, dst)
	return c.transport(b[6], b[header:header+n], src, dst)
}

func (c *captured) addEnds(src, dst []byte) {
	a, _ := netip.AddrFromSlice(src)
	b, _ := netip.AddrFromSlice(dst)
	c.ends = append(c.ends, [2]netip.Addr{a, b})
}

// transport reads an IP packet's payload.
func (c *captured) transport(proto byte, b, src, dst []byte) error {
	pseudo := sum(src, dst, []byte{0, proto}, binary.BigEndian.AppendUint16(nil, uint16(len(b))))
	switch proto {
	case protoICMP:
		c.check("ICMP", sum(b))
	case protoTCP:
		c.check("TCP", pseudo+sum(b))
	case protoICMPv6:
		c.check("ICMPv6", pseudo+sum(b))
	case protoUDP:
		return c.udp(b, pseudo)
	case protoGRE:
		return c.gre(b)
	}
	return nil
}

// udp reads a datagram (RFC 768). Checksum 0 means none.
func (c *captured) udp(b []byte, pseudo uint64) error {
	const header = 8
	if len(b) < header {
		return errShort
	}
	if binary.BigEndian.Uint16(b[6:]) != 0 {
		c.check("UDP", pseudo+sum(b))
	}
	source, port, b := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), b[header:]
	if port != portGeneve && port != portVXLAN || c.header != nil {
		return nil
	}
	if len(b) < 8 {
		return errShort
	}
	n := 8
	if c.kind = tunnel.KindVXLAN; port == portGeneve {
		c.kind, n = tunnel.KindGeneve, 8+int(b[0]&0x3f)*4 // with options
	}
	return c.inner(source, b, n)
}

// gre reads a header of RFC 2890. Optional words follow the first.
func (c *captured) gre(b []byte) error {
	if len(b) < 4 {
		return errShort
	}
	n := 4
	for _, optional := range []byte{0x80, 0x20, 0x10} { // checksum, key, sequence number
		if b[0]&optional != 0 {
			n += 4
		}
	}
	c.kind = tunnel.KindGRE
	return c.inner(0, b, n)
}

// inner reads the frame in a tunnel, behind a header of n bytes.
func (c *captured) inner(source uint16, b []byte, n int) error {
	if len(b) < n {
		return errShort
	}
	c.source, c.header = source, b[:n]
	return c.frame(b[n:])
}

// plain says whether the tunnel's header is of an Ethernet frame in network 0, without
// options.
func (c *captured) plain() bool {
	h := c.header
	switch c.kind {
	case tunnel.KindGeneve: // RFC 8926: version 0, no OAM packet, no critical option
		return h[0]>>6 == 0 && h[1] == 0 && binary.BigEndian.Uint16(h[2:]) == typeBridged && network(h) == 0
	case tunnel.KindVXLAN: // RFC 7348: the flag I alone
		return h[0] == 0x08 && network(h) == 0
	case tunnel.KindGRE: // a key alone, version 0
		return len(h) == 8 && binary.BigEndian.Uint16(h) == 0x2000 && binary.BigEndian.Uint16(h[2:]) == typeBridged && binary.BigEndian.Uint32(h[4:]) == 0
	}
	return false
}

// network is the VNI of Geneve and VXLAN.
func network(h []byte) uint32 { return binary.BigEndian.Uint32(h[4:]) >> 8 }

// check checks a checksum. The sum of all covered words, itself included, is all ones (RFC
// 1071).
func (c *captured) check(what string, sum uint64) {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	if sum != 0xffff && c.wrong == nil {
		c.wrong = fmt.Errorf("checksum of %s: the sum is %#x, want 0xffff", what, sum)
	}
}

// sum adds up 16-bit words. All parts but the last have an even length.
func sum(parts ...[]byte) (total uint64) {
	for _, b := range parts {
		for ; len(b) > 1; b = b[2:] {
			total += uint64(binary.BigEndian.Uint16(b))
		}
		if len(b) == 1 {
			total += uint64(b[0]) << 8
		}
	}
	return total
}
