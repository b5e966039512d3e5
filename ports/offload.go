package ports

import (
	"sync/atomic"

	"github.com/antrail/antrail/packet"
)

// An offload entry makes the kernel forward the packets of one direction of an established
// connection, instead of handing them to a port. The kernel changes their headers and sends them
// out of another interface (ports/offload). An OffloadKey names exactly these packets.
//
// The types below lie in memory that the kernel's programs read and write at the same time.
// Package dataplane decides about entries; Offload only holds them.

// OffloadKeyLen is the length of an OffloadKey in bytes.
const OffloadKeyLen = 72

// OffloadKey is the common bytes of the packets of one offload entry:
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

// OffloadEntry is one offload entry. The fields that are not atomic are written before its key is
// put. They stay unchanged until the key was deleted and Settle has returned.
type OffloadEntry struct {
	// Generation must be Offload's, or with OffloadLearned its Learnings. Otherwise the kernel
	// ignores the entry.
	Generation atomic.Uint32
	// Conn is the index of its connection's SharedConn.
	Conn uint32
	// Out is the interface by which packets leave, as in Info.OffloadLink.
	Out uint32
	// MaxLen is the longest frame, or segment of one with its headers, in bytes.
	MaxLen uint32
	// Packets and Bytes count the entry's traffic.
	Packets, Bytes atomic.Uint64
	Parts          OffloadParts
	// IPSum, PseudoSum and PortSum are added to the sums (not to their complements) of the IPv4
	// header, of the addresses and of the ports. They are one's complement sums of big-endian
	// words.
	IPSum, PseudoSum, PortSum uint16
	// Dir is the packets' direction in their connection: 0 or 1.
	Dir, TTL uint8
	// L4 is the offset of the transport header in the frame: 34 for IPv4, 54 for IPv6. Checksum
	// is the offset of its checksum in that header.
	L4, Checksum uint8
	_            [2]byte
	Eth          [12]byte
	IP           [4]byte // as in a header: IPv4 uses the second byte
	Ports        [4]byte
	Addrs        [32]byte // IPv4: 8
	// Hop is the next hop, for OffloadWrap.
	Hop OffloadHop
	// Outer is, for OffloadWrap, the headers in front of the inner IP packet. For OffloadUnwrap
	// it is the headers that packets must have.
	Outer OffloadOuter
}

// OffloadHop is struct bpf_redir_neigh of linux/bpf.h: the address family in the machine's byte
// order, and the next hop.
type OffloadHop [20]byte

// OffloadOuter is the headers between the outer Ethernet header and the inner IP packet of a
// tunnel. These are an IPv4 or IPv6 header, a UDP header except for GRE, the tunnel's header, and
// the inner Ethernet header. All lengths are zero, and so is the UDP checksum. The field of the
// IPv4 checksum has the sum of all other words, not its complement.
//
// For OffloadUnwrap the programs compare both addresses, the UDP destination port and the
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

// OffloadTunnel is a tunnel through which the kernel may carry packets of established
// connections, in place of the port. Its methods take no lock that is held while WhenChanged's
// function is called.
type OffloadTunnel interface {
	// OffloadWay is the way of frames that begin as inner, to t.Dst. It returns false if the port
	// has to send them itself.
	OffloadWay(inner []byte, t *packet.Tunnel) (OffloadWay, bool)
	// OffloadFrom is the outer headers that must precede frames that begin as inner and came with
	// t, as Parts and Outer. It returns false if the port has to receive them itself.
	OffloadFrom(inner []byte, t *packet.Tunnel) (OffloadWay, bool)
	// WhenChanged sets a function that is called after a Node, range, route or MTU has changed.
	// Earlier results of the methods above are invalid then.
	WhenChanged(changed func())
}

// OffloadStack is a port whose other end is the Node's own stack. There, packets of established
// connections can enter and leave the stack without the port.
type OffloadStack interface {
	// OffloadSource is the source address under which the stack sees a frame with a source
	// address and a mark.
	OffloadSource(src [6]byte, mark uint32) [6]byte
}

// SharedConn is the connection of several offload entries. If word 0 is 0, none of them may be
// used. From word 2 on there are four words for the sender of each direction:
//
//   - the sequence number after its last one
//   - the first number beyond those that it may send
//   - the largest window that it offered
//   - its window scale
//
// Words 10 to 15 are free.
type SharedConn = [16]atomic.Uint32

// Offload is a kernel's room for offload entries. Any goroutine may call Put, Delete and Settle,
// one at a time.
type Offload interface {
	// Room is the largest number of offload entries, and of connections.
	Room() int
	// OffloadEntry is the offload entry at an index, 0 to Room()-1.
	OffloadEntry(place uint32) *OffloadEntry
	// Conns is the connections, by index.
	Conns() []SharedConn
	// Generation is the generation of the valid offload entries. It begins as 0, which no valid
	// entry has.
	Generation() *atomic.Uint32
	// Learnings is the Generation of the valid offload entries with OffloadLearned. While
	// Generation is 0, these are invalid too.
	Learnings() *atomic.Uint32
	// Put makes packets with a key use the offload entry at an index, instead of their previous
	// one.
	Put(key *OffloadKey, place uint32) error
	// Delete removes a key.
	Delete(key *OffloadKey) error
	// Settle returns once no packet is under way by an offload entry that was invalid before the
	// call. An entry is invalid if it was deleted, has another generation, or has a connection
	// whose word 0 is 0.
	Settle()
	// Dropped counts packets that matched an offload entry and could not be changed or sent.
	Dropped() uint64
}
