package conntrack

import (
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
)

// Choosing a translation:
//
//  1. NAT is chosen once, when a connection is made. It consists only of the reply key: the key
//     of a reply to the translated packet.
//  2. No other connection of the zone may have that key, in either direction (CT-25).
//  3. All randomness is the table's secret hash of the tuple. So a Scratch makes its table's
//     choices.
//  4. A search ends after natTries lookups. So the cost of a packet that cannot be translated is
//     bounded, however large the range is.

const (
	maxAddresses = 16 // addresses of a range that are tried
	firstTries   = 128
	lastTries    = 16
	natTries     = 256 // lookups of one search, over all addresses
)

// chooseReply finds the reply key for a connection with forward key k and writes it to back.
// It reports false if other connections have all keys that n allows (D7). Unless again is
// set, it does not check the first key. The insertion does.
func (t *Table) chooseReply(k, back *tuple.Key, n *NAT, again bool, now int64) (flags proto.Flags, ok bool) {
	k.Reverse(back)
	trust := !again && t.parent == nil
	if n == nil || !n.Source && !n.Destination || !n.fits(k) {
		return 0, trust || !t.taken(back, now)
	}
	s := search{t: t, k: *k, back: *back, now: now, left: natTries, trust: trust}
	if n.Source {
		flags, ok = store.SourceNAT, s.source(n)
	} else {
		flags, ok = store.DestinationNAT, s.destination(n)
	}
	if !trust {
		t.counts.searched(natTries - s.left)
	}
	*back = s.back
	return flags, ok
}

// fits says whether the addresses of nat() are of the packet's family. No address, or the
// unspecified one, means that the packet keeps its address.
func (n *NAT) fits(k *tuple.Key) bool {
	return n.keepsAddress() || n.AddrMin.Is4() == (k.Family == tuple.IPv4)
}

// single says whether nat() is DNAT to one address and one port, given a packet's key k. Then
// only the packet's destination changes, unless another connection has the reply key.
func (n *NAT) single(k *tuple.Key) bool {
	return n.Destination && !n.Source && !n.keepsAddress() && n.fits(k) && !n.AddrMin.Less(n.AddrMax) &&
		n.PortMin != 0 && n.PortMin >= n.PortMax && k.HasPorts() && !k.ICMP()
}

func (n *NAT) keepsAddress() bool { return !n.AddrMin.IsValid() || n.AddrMin.IsUnspecified() }

// addressRange is the addresses of nat(), in the order in which they are tried. The tuple's
// hash picks the first. After the last comes the lowest.
type addressRange struct {
	low         tuple.Address
	start, span uint64
}

// addresses is the range of nat() for a key. If nat() names no address, the range is only kept,
// the key's own address.
func (t *Table) addresses(k *tuple.Key, n *NAT, kept tuple.Address) addressRange {
	if n.keepsAddress() {
		return addressRange{low: kept, span: 1}
	}
	r := addressRange{low: tuple.AddressOf(n.AddrMin), span: 1}
	if n.AddrMin.Less(n.AddrMax) {
		r.span = max(tuple.AddressOf(n.AddrMax).Lo-r.low.Lo+1, 1)
	}
	if r.span > 1 {
		r.start = t.secret.Hash(k, 1) % r.span
	}
	return r
}

func (r *addressRange) at(i int) tuple.Address { return r.low.Add((r.start + uint64(i)) % r.span) }

// tries is how many of the addresses are tried.
func (r *addressRange) tries() int { return int(min(r.span, maxAddresses)) }

// source is nat(src=…): replies go to one of its addresses. Without a port range the packet keeps
// its source port if possible, or gets another port of the same class.
func (s *search) source(n *NAT) bool {
	s.avoid = s.t.reserved
	addrs := s.t.addresses(&s.k, n, s.k.Src)
	for i := range addrs.tries() {
		s.back.Dst = addrs.at(i)
		if s.sourcePort(n) {
			return true
		}
	}
	return false
}

func (s *search) sourcePort(n *NAT) bool {
	if !s.k.HasPorts() {
		return s.free()
	}
	s.movesSrc = s.k.ICMP()
	if n.PortMin != 0 && !s.k.ICMP() {
		return s.runFrom(n, 2)
	}
	return s.clientPort()
}

// destination is nat(dst=…): replies come from one of its addresses and ports. If none is free
// for this client, the client's source port changes (CT-25).
func (s *search) destination(n *NAT) bool {
	addrs := s.t.addresses(&s.k, n, s.k.Dst)
	for i := range addrs.tries() {
		s.back.Src = addrs.at(i)
		if s.destinationPort(n) {
			return true
		}
	}
	return false
}

func (s *search) destinationPort(n *NAT) bool {
	if !s.k.HasPorts() {
		return s.free()
	}
	if n.PortMin != 0 && !s.k.ICMP() {
		s.movesSrc = true
		if s.runFrom(n, 3) {
			return true
		}
	}
	s.movesSrc = s.k.ICMP()
	return s.clientPort()
}

// clientPort keeps the client's port if it is free, or finds another one of its class.
func (s *search) clientPort() bool {
	port := s.k.SrcPort
	if s.try(port) {
		return true
	}
	low, high := portClass(&s.k, port)
	return s.run(low, high, uint64(port-low)+1)
}

// portClass is the ports that may replace a port if nat() has no range. Servers distinguish
// privileged ports from others, so the class stays the same (CT-26).
func portClass(k *tuple.Key, port uint16) (low, high uint16) {
	switch {
	case k.ICMP():
		return 0, 65535
	case port < 512:
		return 1, 511
	case port < 1024:
		return 600, 1023
	}
	return 1024, 65535
}

// search tries addresses and ports in a reply key until the key is free.
type search struct {
	t     *Table
	k     tuple.Key // of the connection
	back  tuple.Key
	now   int64
	trust bool // the first key is not looked up
	avoid []PortRange
	left  int // remaining lookups
	// movesSrc says that the search changes the source port of back: an endpoint's port, or
	// the identifier of an ICMP request (D8). Otherwise it changes the destination port, a
	// client's.
	movesSrc bool
}

// runFrom is run over the ports of nat(). The tuple's hash with a salt picks the first.
func (s *search) runFrom(n *NAT, salt uint64) bool {
	if n.PortMin >= n.PortMax {
		return s.try(n.PortMin)
	}
	return s.run(n.PortMin, n.PortMax, s.t.secret.Hash(&s.k, salt))
}

// run tries ports from low to high. It tries a row of ports from start on, then ever shorter rows
// from starts that the hash picks.
func (s *search) run(low, high uint16, start uint64) bool {
	size := uint64(high-low) + 1
	for tries := uint64(firstTries); tries >= lastTries; tries /= 2 {
		for i := range min(tries, size) {
			if s.try(low + uint16((start+i)%size)) {
				return true
			}
		}
		if tries >= size {
			return false
		}
		start = s.t.secret.Hash(&s.k, 3+tries)
	}
	return false
}

// try tries one port.
func (s *search) try(port uint16) bool {
	for _, r := range s.avoid {
		if port >= r.Min && port <= r.Max && !s.k.ICMP() {
			return false
		}
	}
	if s.movesSrc {
		s.back.SrcPort = port
	} else {
		s.back.DstPort = port
	}
	return s.free()
}

// free says whether no connection has the key. It reports false after natTries lookups.
func (s *search) free() bool {
	if s.left == 0 {
		return false
	}
	s.left--
	return s.trust || !s.t.taken(&s.back, s.now)
}
