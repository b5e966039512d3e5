package conntrack

// Choosing a translation. NAT is chosen once, when a connection is made, and
// is nothing but the reply key: what the answer to the translated packet will
// look like. It must be nobody else's key in the zone, in either direction
// (CT-25). All randomness is the table's secret hash of the tuple, so a
// Scratch chooses what its table would. A search is given up after natTries
// lookups, however large the range: the cost of a packet that cannot be
// translated is bounded, too.

const (
	maxAddresses = 16 // addresses of a range that are tried
	firstTries   = 128
	lastTries    = 16
	natTries     = 256 // lookups of one search, over all addresses
)

// chooseReply finds the reply key for a connection with forward key k and writes
// it to back. It reports false when every tuple that n allows is taken (D7).
// Whether the first one is taken is left to the insertion to find out, unless it
// has already.
func (t *Table) chooseReply(k, back *key, n *NAT, again bool, now int64) (flags entryFlags, ok bool) {
	k.reverse(back)
	trust := !again && t.parent == nil
	if n == nil || !n.Source && !n.Destination || !n.fits(k) {
		return 0, trust || !t.taken(back, now)
	}
	s := search{t: t, k: *k, back: *back, now: now, left: natTries, trust: trust}
	if n.Source {
		flags, ok = sourceNAT, s.source(n)
	} else {
		flags, ok = destinationNAT, s.destination(n)
	}
	if !trust {
		t.counts.searched(natTries - s.left)
	}
	*back = s.back
	return flags, ok
}

// fits says whether the addresses of nat() are of the packet's family. None,
// or the unspecified one, means that the address stays.
func (n *NAT) fits(k *key) bool {
	return n.keepsAddress() || n.AddrMin.Is4() == (k.family == ipv4)
}

// single says whether nat() is a destination's, with one address and one port for a
// key: then the packet's destination becomes that, and nothing else of it changes, unless
// the tuple that its answer shows is another connection's.
func (n *NAT) single(k *key) bool {
	return n.Destination && !n.Source && !n.keepsAddress() && n.fits(k) && !n.AddrMin.Less(n.AddrMax) &&
		n.PortMin != 0 && n.PortMin >= n.PortMax && k.hasPorts() && !k.icmp()
}

func (n *NAT) keepsAddress() bool { return !n.AddrMin.IsValid() || n.AddrMin.IsUnspecified() }

// addressRange is the addresses of nat(), in the order in which they are
// tried: from a place that the tuple's hash picks, round and round.
type addressRange struct {
	low         address
	start, span uint64
}

// addresses is the range that nat() gives for a key whose own address is kept.
func (t *Table) addresses(k *key, n *NAT, kept address) addressRange {
	if n.keepsAddress() {
		return addressRange{low: kept, span: 1}
	}
	r := addressRange{low: addressOf(n.AddrMin), span: 1}
	if n.AddrMin.Less(n.AddrMax) {
		r.span = max(addressOf(n.AddrMax).lo-r.low.lo+1, 1)
	}
	if r.span > 1 {
		r.start = t.secret.hash(k, 1) % r.span
	}
	return r
}

func (r *addressRange) at(i int) address { return r.low.add((r.start + uint64(i)) % r.span) }

// tries is how many of the addresses are tried.
func (r *addressRange) tries() int { return int(min(r.span, maxAddresses)) }

// source is nat(src=…): the answer goes to one of its addresses. Without a port
// range the source port stays if it can, and moves within its class.
func (s *search) source(n *NAT) bool {
	s.avoid = s.t.reserved
	addrs := s.t.addresses(&s.k, n, s.k.src)
	for i := range addrs.tries() {
		s.back.dst = addrs.at(i)
		if s.sourcePort(n) {
			return true
		}
	}
	return false
}

func (s *search) sourcePort(n *NAT) bool {
	if !s.k.hasPorts() {
		return s.free()
	}
	s.movesSrc = s.k.icmp()
	if n.PortMin != 0 && !s.k.icmp() {
		return s.runFrom(n, 2)
	}
	return s.clientPort()
}

// destination is nat(dst=…): the answer comes from one of its addresses and
// ports. When all are taken for this client, its source port moves (CT-25).
func (s *search) destination(n *NAT) bool {
	addrs := s.t.addresses(&s.k, n, s.k.dst)
	for i := range addrs.tries() {
		s.back.src = addrs.at(i)
		if s.destinationPort(n) {
			return true
		}
	}
	return false
}

func (s *search) destinationPort(n *NAT) bool {
	if !s.k.hasPorts() {
		return s.free()
	}
	if n.PortMin != 0 && !s.k.icmp() {
		s.movesSrc = true
		if s.runFrom(n, 3) {
			return true
		}
	}
	s.movesSrc = s.k.icmp()
	return s.clientPort()
}

// clientPort keeps the client's port if it is free, and else finds one of its
// class.
func (s *search) clientPort() bool {
	port := s.k.srcPort
	if s.try(port) {
		return true
	}
	low, high := portClass(&s.k, port)
	return s.run(low, high, uint64(port-low)+1)
}

// portClass is the ports that may stand for one without a range: servers tell
// privileged ports from others, so the class is kept (CT-26).
func portClass(k *key, port uint16) (low, high uint16) {
	switch {
	case k.icmp():
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
	k     key // of the connection
	back  key
	now   int64
	trust bool // the first key is taken to be free
	avoid []PortRange
	left  int // lookups
	// movesSrc: it is the source port of back that moves, an endpoint's port or
	// the identifier of an ICMP request, which is translated like a port (D8);
	// else the destination port, a client's.
	movesSrc bool
}

// runFrom is run over the ports of nat(), from where the tuple's hash with a salt
// picks.
func (s *search) runFrom(n *NAT, salt uint64) bool {
	if n.PortMin >= n.PortMax {
		return s.try(n.PortMin)
	}
	return s.run(n.PortMin, n.PortMax, s.t.secret.hash(&s.k, salt))
}

// run tries low to high: first ports in a row from start on, then ever shorter
// rows from places that the hash picks.
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
		start = s.t.secret.hash(&s.k, 3+tries)
	}
	return false
}

// try tries one port.
func (s *search) try(port uint16) bool {
	for _, r := range s.avoid {
		if port >= r.Min && port <= r.Max && !s.k.icmp() {
			return false
		}
	}
	if s.movesSrc {
		s.back.srcPort = port
	} else {
		s.back.dstPort = port
	}
	return s.free()
}

// free says whether the key is free as it stands. When the search has taken too
// long, none is.
func (s *search) free() bool {
	if s.left == 0 {
		return false
	}
	s.left--
	return s.trust || !s.t.taken(&s.back, s.now)
}
