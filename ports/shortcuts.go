package ports

import "sync/atomic"

// A shortcut is what the kernel does with the packets of one direction of an
// established connection instead of handing them to a port: it changes their
// headers and sends them out of another interface (ports/shortcut). Which
// packets those are, a ShortcutKey says exactly.
//
// The types below lie in memory that the kernel's programs read and write at the
// same time. Whoever uses them (dataplane) decides; Shortcuts only holds.

// ShortcutKeyLen is the bytes of a ShortcutKey.
const ShortcutKeyLen = 72

// ShortcutKey is all that packets of one shortcut have in common:
//
//	 0  interface, as Info.Shortcut names it, in the machine's byte order; 4 zero bytes
//	 8  the first 16 bytes of the frame: both Ethernet addresses, type, first two bytes of the IP header
//	24  both ports, TCP flags (little-endian 16 bits), TTL or hop limit, protocol
//	32  both addresses: 8 or 32 bytes
//	64  IPv6: the second half of the flow label; then zeros
type ShortcutKey [ShortcutKeyLen]byte

// ShortcutParts is which parts of a packet a shortcut changes.
type ShortcutParts uint32

// The parts.
const (
	ShortcutEth   ShortcutParts = 1 << iota // both Ethernet addresses
	ShortcutIP                              // TOS and TTL; IPv6: the first four bytes and the hop limit
	ShortcutAddrs                           // both IP addresses
	ShortcutPorts                           // both ports
)

// Shortcut is one shortcut. What is not atomic is written before its key is put
// and stays until the key was deleted and Settle has returned.
type Shortcut struct {
	// Generation must be that of Shortcuts, or the shortcut is not taken.
	Generation atomic.Uint32
	// Conn is the place of its connection's SharedConn, and Dir the packets'
	// direction in it: 0 or 1.
	Conn, Dir uint32
	// Out is the interface that packets leave by, as Info.Shortcut names it.
	Out uint32
	// Packets and Bytes count what has taken it.
	Packets, Bytes atomic.Uint64
	// MaxLen is the longest frame, or segment of one with its headers, in bytes.
	MaxLen uint32
	Parts  ShortcutParts
	// IPSum, PseudoSum and PortSum are what is added to the sums (not to their
	// complements) of the IPv4 header, of the addresses and of the ports: 16-bit
	// one's complement sums of big-endian words.
	IPSum, PseudoSum, PortSum uint32
	TTL                       uint8
	// L4 is where in the frame the transport header begins: at 34 for IPv4, 54
	// for IPv6. Checksum is where in that its checksum is.
	L4, Checksum uint8
	_            [1]byte
	Eth          [12]byte
	IP           [4]byte // as in a header: IPv4 uses the second byte
	Ports        [4]byte
	Addrs        [32]byte // IPv4: 8
	_            [20]byte // to two cache lines
}

// SharedConn is the connection of several shortcuts: word 0 is 0 when none of
// them may be taken; from word 2 on, for the sender of each direction, the
// sequence number after its last, the first beyond what it may send, the largest
// window that it offered, and its window scale. Words 10 to 15 are free.
type SharedConn = [16]atomic.Uint32

// Shortcuts is a kernel's room for shortcuts. Put, Delete and Settle may be
// called from any goroutine, one at a time.
type Shortcuts interface {
	// Room is how many shortcuts and how many connections there may be.
	Room() int
	// Shortcut is the shortcut at a place, 0 to Room()-1.
	Shortcut(place uint32) *Shortcut
	// Conns is the connections, by place.
	Conns() []SharedConn
	// Generation is that of the shortcuts that may be taken; 0, which it begins
	// with, is none's.
	Generation() *atomic.Uint32
	// Put lets packets that show a key take the shortcut at a place, in place of
	// the one that they took before.
	Put(key *ShortcutKey, place uint32) error
	// Delete ends that.
	Delete(key *ShortcutKey) error
	// Settle returns once no packet is under way by a shortcut that, before the
	// call, was deleted, or was of another generation, or of a connection whose
	// word 0 is 0.
	Settle()
	// Lost counts packets that took a shortcut and could not be changed or sent.
	Lost() uint64
}
