package ports

import (
	"sync/atomic"

	"github.com/antrail/antrail/packet"
)

// An offload entry is what the kernel does with the packets of one direction of an
// established connection instead of handing them to a port. It changes their headers and
// sends them out of another interface (ports/offload). Which packets those are, a
// OffloadKey says exactly.
//
// The types below lie in memory that the kernel's programs read and write at the
// same time. Whoever uses them (dataplane) decides; Offload entries only holds.

// OffloadKeyLen is the bytes of a OffloadKey.
const OffloadKeyLen = 72

// OffloadKey is all that packets of one offload entry have in common:
//
//	 0  interface, as Info.OffloadLink names it, in the machine's byte order
//	 4  the last four bytes of the outer source of a packet from a tunnel; zeros
//	 8  the first 16 bytes of the frame: both Ethernet addresses, type, first two bytes of the IP header
//	24  both ports, TCP flags (little-endian 16 bits), TTL or hop limit, protocol
//	32  both addresses: 8 or 32 bytes
//	64  IPv6: the second half of the flow label; then zeros
type OffloadKey [OffloadKeyLen]byte

// OffloadParts is which parts of a packet an offload entry changes.
type OffloadParts uint32

// The parts.
const (
	OffloadEth     OffloadParts = 1 << iota // both Ethernet addresses
	OffloadIP                               // TOS and TTL; IPv6: the first four bytes and the hop limit
	OffloadAddrs                            // both IP addresses
	OffloadPorts                            // both ports
	OffloadWrap                             // outer headers are put in front
	OffloadUnwrap                           // outer headers are taken off
	OffloadGRE                              // … which are of GRE, not of UDP
	OffloadOver6                            // … and begin with an IPv6 header, not an IPv4 one
	OffloadInto                             // it enters the Node's stack by the interface, as if received there
	OffloadLearned                          // changes nothing: Generation must be Offload's Learnings
)

// OffloadLink is one offload entry. What is not atomic is written before its key is put
// and stays until the key was deleted and Settle has returned.
type OffloadEntry struct {
	// Generation must be Offload's, or with OffloadLearned its Learnings. Otherwise the
	// offload entry is not taken.
	Generation atomic.Uint32
	// Conn is the place of its connection's SharedConn.
	Conn uint32
	// Out is the interface that packets leave by, as Info.Offload entry names it.
	Out uint32
	// MaxLen is the longest frame, or segment of one with its headers, in bytes.
	MaxLen uint32
	// Packets and Bytes count the traffic of this way.
	Packets, Bytes atomic.Uint64
	Parts          OffloadParts
	// IPSum, PseudoSum and PortSum are added to the sums (not to their complements) of
	// the IPv4 header, of the addresses and of the ports. They are one's complement sums of
	// big-endian words.
	IPSum, PseudoSum, PortSum uint16
	// Dir is the packets' direction in their connection: 0 or 1.
	Dir, TTL uint8
	// L4 is where in the frame the transport header begins: at 34 for IPv4, 54
	// for IPv6. Checksum is where in that its checksum is.
	L4, Checksum uint8
	_            [2]byte
	Eth          [12]byte
	IP           [4]byte // as in a header: IPv4 uses the second byte
	Ports        [4]byte
	Addrs        [32]byte // IPv4: 8
	// Hop is of OffloadWrap the next hop.
	Hop OffloadHop
	// Outer is of OffloadWrap the headers in front of the inner IP packet, and of
	// OffloadUnwrap what these must show.
	Outer OffloadOuter
}

// OffloadHop is struct bpf_redir_neigh of linux/bpf.h: the address family as the machine
// has it, and the next hop.
type OffloadHop [20]byte

// OffloadOuter is the headers between the outer Ethernet header and the inner IP packet, in
// a tunnel. These are an IPv4 or IPv6 header, a UDP header unless it is GRE, the tunnel's
// header, and the inner Ethernet header. All lengths are zero, and so is the UDP checksum.
// In place of the IPv4 checksum is the sum of all other words, not its complement.
//
// Of OffloadUnwrap the programs compare both addresses, the UDP destination port and the
// tunnel's header.
type OffloadOuter [72]byte

// OffloadWay is how packets leave by a tunnel, or come from one.
type OffloadWay struct {
	Link     uint32       // index of the interface
	MaxFrame int          // bytes of the longest inner frame, or segment of one with its headers
	Parts    OffloadParts // OffloadWrap or OffloadUnwrap, with OffloadGRE and OffloadOver6
	Hop      OffloadHop
	Outer    OffloadOuter
}

// OffloadTunnel is a tunnel that the kernel may carry packets of established connections
// through, in place of the port. Its methods take no lock that a caller of WhenChanged's
// function holds.
type OffloadTunnel interface {
	// OffloadWay is the way of frames that begin as inner, to t.Dst. It is false if the
	// port has to send them itself.
	OffloadWay(inner []byte, t *packet.Tunnel) (OffloadWay, bool)
	// OffloadFrom says which outer headers must be in front of frames that begin as inner
	// and have come with t, by Parts and Outer. It is false if the port has to receive them
	// itself.
	OffloadFrom(inner []byte, t *packet.Tunnel) (OffloadWay, bool)
	// WhenChanged sets a function that is called after another Node, range, route or MTU
	// than before is known. What the methods above said before does not hold then.
	WhenChanged(changed func())
}

// OffloadStack is a port whose other end is the Node's own stack. Packets of established
// connections enter and leave the stack there without the port.
type OffloadStack interface {
	// OffloadSource is the source address by which the stack sees a frame of a source
	// address and a mark.
	OffloadSource(src [6]byte, mark uint32) [6]byte
}

// SharedConn is the connection of several offload entries. Word 0 is 0 when none of them
// may be taken. From word 2 on there are four words for the sender of each direction.
// They are the sequence number after its last, the first beyond what it may send, the
// largest window that it offered, and its window scale. Words 10 to 15 are free.
type SharedConn = [16]atomic.Uint32

// Offload is a kernel's room for offload entries. Put, Delete and Settle may be
// called from any goroutine, one at a time.
type Offload interface {
	// Room is how many offload entries and how many connections there may be.
	Room() int
	// OffloadLink is the offload entry at a place, 0 to Room()-1.
	OffloadEntry(place uint32) *OffloadEntry
	// Conns is the connections, by place.
	Conns() []SharedConn
	// Generation is that of the offload entries that may be taken; 0, which it begins
	// with, is none's.
	Generation() *atomic.Uint32
	// Learnings is what Generation is, of the offload entries with OffloadLearned. While
	// Generation is 0, none of these may be taken either.
	Learnings() *atomic.Uint32
	// Put lets packets that show a key take the offload entry at a place, in place of
	// the one that they took before.
	Put(key *OffloadKey, place uint32) error
	// Delete ends that.
	Delete(key *OffloadKey) error
	// Settle returns once no packet is under way by an offload entry that was invalid
	// before the call. Such an entry was deleted, of another generation, or of a
	// connection whose word 0 is 0.
	Settle()
	// Dropped counts packets that took an offload entry and could not be changed or sent.
	Dropped() uint64
}
