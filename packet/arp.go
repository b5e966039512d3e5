package packet

import (
	"encoding/binary"
	"net/netip"
)

// ARPLen is the length of an ARP packet for IPv4 over Ethernet.
const ARPLen = 28

// Values of ar$op (RFC 826).
const (
	ARPRequest = 1
	ARPReply   = 2
)

const (
	arpHrd = 0
	arpPro = 2
	arpHln = 4
	arpPln = 5
	arpOp  = 6
	arpSHA = 8
	arpSPA = 14
	arpTHA = 18
	arpTPA = 24

	arpHrdEthernet = 1
)

// ARP is an ARP packet for IPv4 over Ethernet (RFC 826). RARP has the same
// shape.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+-------------------------------+
//	|         ar$hrd (1)            |         ar$pro (0x0800)       |
//	+---------------+---------------+-------------------------------+
//	|  ar$hln (6)   |  ar$pln (4)   |            ar$op              |
//	+---------------+---------------+-------------------------------+
//	|                            ar$sha                             |
//	+                               +-------------------------------+
//	|                               |            ar$spa             |
//	+-------------------------------+-------------------------------+
//	|            ar$spa             |                               |
//	+-------------------------------+            ar$tha             +
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                            ar$tpa                             |
//	+---------------------------------------------------------------+
type ARP []byte

// Valid reports whether the bytes hold a whole ARP packet for IPv4 over Ethernet.
func (h ARP) Valid() bool {
	return len(h) >= ARPLen &&
		binary.BigEndian.Uint16(h[arpHrd:]) == arpHrdEthernet &&
		binary.BigEndian.Uint16(h[arpPro:]) == EtherTypeIPv4 &&
		h[arpHln] == 6 && h[arpPln] == 4
}

// Op is ar$op.
func (h ARP) Op() uint16 { return binary.BigEndian.Uint16(h[arpOp:]) }

// SHA is the sender's hardware address.
func (h ARP) SHA() [6]byte { return [6]byte(h[arpSHA:]) }

// SPA is the sender's protocol address.
func (h ARP) SPA() netip.Addr { return netip.AddrFrom4([4]byte(h[arpSPA:])) }

// THA is the target's hardware address.
func (h ARP) THA() [6]byte { return [6]byte(h[arpTHA:]) }

// TPA is the target's protocol address.
func (h ARP) TPA() netip.Addr { return netip.AddrFrom4([4]byte(h[arpTPA:])) }

// Init writes the fixed first fields: Ethernet, IPv4 and their lengths.
func (h ARP) Init() {
	binary.BigEndian.PutUint16(h[arpHrd:], arpHrdEthernet)
	binary.BigEndian.PutUint16(h[arpPro:], EtherTypeIPv4)
	h[arpHln], h[arpPln] = 6, 4
}

// SetOp writes ar$op.
func (h ARP) SetOp(op uint16) { binary.BigEndian.PutUint16(h[arpOp:], op) }

// SetSHA writes the sender's hardware address.
func (h ARP) SetSHA(mac [6]byte) { copy(h[arpSHA:], mac[:]) }

// SetSPA writes the sender's protocol address, four bytes.
func (h ARP) SetSPA(a [4]byte) { copy(h[arpSPA:], a[:]) }

// SetTHA writes the target's hardware address.
func (h ARP) SetTHA(mac [6]byte) { copy(h[arpTHA:], mac[:]) }

// SetTPA writes the target's protocol address, four bytes.
func (h ARP) SetTPA(a [4]byte) { copy(h[arpTPA:], a[:]) }
