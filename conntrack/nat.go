package conntrack

// Choosing a translation. NAT is chosen once, when a connection is made, and
// is nothing but the reply key: what the answer to the translated packet will
// look like. It must be nobody else's key in the zone, in either direction
// (CT-25). All randomness is the table's secret hash of the tuple, so a
// Scratch chooses what its table would.

const (
	maxAddresses = 16 // addresses of a range that are tried
	firstTries   = 128
	lastTries    = 16
)

// chooseReply finds the reply key for a connection with forward key k. It
// reports false when every tuple that n allows is taken (D7).
func (t *Table) chooseReply(k *key, n *NAT, now int64) (back key, flags entryFlags, ok bool) {
	switch {
	case n == nil || !n.Source && !n.Destination || !n.fits(k):
		back = k.reversed()
		return back, 0, !t.taken(&back, now)
	case n.Source:
		back, ok = t.chooseSource(k, n, now)
		return back, sourceNAT, ok
	}
	back, ok = t.chooseDestination(k, n, now)
	return back, destinationNAT, ok
}

// fits says whether the addresses of nat() are of the packet's family. None,
// or the unspecified one, means that the address stays.
func (n *NAT) fits(k *key) bool {
	return n.keepsAddress() || n.AddrMin.Is4() == (k.family == ipv4)
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
	r.start = t.secret.hash(k, 1) % r.span
	return r
}

func (r *addressRange) at(i int) address { return r.low.add((r.start + uint64(i)) % r.span) }

// tries is how many of the addresses are tried.
func (r *addressRange) tries() int { return int(min(r.span, maxAddresses)) }

// chooseSource is nat(src=…): the answer goes to one of its addresses. Without
// a port range the source port stays if it can, and moves within its class.
func (t *Table) chooseSource(k *key, n *NAT, now int64) (key, bool) {
	addrs := t.addresses(k, n, k.src)
	for i := range addrs.tries() {
		back := k.reversed()
		back.dst = addrs.at(i)
		if t.chooseSourcePort(k, n, &back, now) {
			return back, true
		}
	}
	return key{}, false
}

func (t *Table) chooseSourcePort(k *key, n *NAT, back *key, now int64) bool {
	if !k.hasPorts() {
		return !t.taken(back, now)
	}
	port := back.clientPort()
	s := search{t: t, k: k, back: back, at: port, now: now, avoid: t.reserved}
	if n.PortMin != 0 && !k.icmp() {
		return s.run(n.PortMin, max(n.PortMin, n.PortMax), t.secret.hash(k, 2))
	}
	if s.free(*port) {
		return true
	}
	low, high := portClass(k, *port)
	return s.run(low, high, uint64(*port-low)+1)
}

// chooseDestination is nat(dst=…): the answer comes from one of its addresses
// and ports. When all are taken for this client, its source port moves
// (CT-25).
func (t *Table) chooseDestination(k *key, n *NAT, now int64) (key, bool) {
	addrs := t.addresses(k, n, k.dst)
	for i := range addrs.tries() {
		back := k.reversed()
		back.src = addrs.at(i)
		if t.chooseDestinationPort(k, n, &back, now) {
			return back, true
		}
	}
	return key{}, false
}

func (t *Table) chooseDestinationPort(k *key, n *NAT, back *key, now int64) bool {
	if !k.hasPorts() {
		return !t.taken(back, now)
	}
	if n.PortMin != 0 && !k.icmp() {
		s := search{t: t, k: k, back: back, at: &back.srcPort, now: now}
		if s.run(n.PortMin, max(n.PortMin, n.PortMax), t.secret.hash(k, 3)) {
			return true
		}
	} else if !t.taken(back, now) {
		return true
	}
	port := back.clientPort()
	s := search{t: t, k: k, back: back, at: port, now: now}
	low, high := portClass(k, *port)
	return s.run(low, high, uint64(*port-low)+1)
}

// clientPort is where a reply key holds the client's port, or the identifier
// of an ICMP request, which is translated like one (D8).
func (k *key) clientPort() *uint16 {
	if k.icmp() {
		return &k.srcPort
	}
	return &k.dstPort
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

// search tries ports in a reply key until the key is free.
type search struct {
	t     *Table
	k     *key // of the connection
	back  *key
	at    *uint16 // the port in back that moves
	now   int64
	avoid []PortRange
}

// run tries low to high: first ports in a row from start on, then ever shorter
// rows from places that the hash picks.
func (s *search) run(low, high uint16, start uint64) bool {
	size := uint64(high-low) + 1
	for tries := uint64(firstTries); tries >= lastTries; tries /= 2 {
		for i := range min(tries, size) {
			if s.free(low + uint16((start+i)%size)) {
				return true
			}
		}
		if tries >= size {
			return false
		}
		start = s.t.secret.hash(s.k, 3+tries)
	}
	return false
}

// free tries one port.
func (s *search) free(port uint16) bool {
	for _, r := range s.avoid {
		if port >= r.Min && port <= r.Max && !s.k.icmp() {
			return false
		}
	}
	*s.at = port
	return !s.t.taken(s.back, s.now)
}
