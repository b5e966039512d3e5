package dataplane

import (
	"encoding/binary"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/packet"
)

// Replaying: what the cache remembers is done again for another packet, or
// nothing is: then the packet walks.

// replay sends or drops a packet as the cache says. When it reports false the
// packet is as it was, and must walk; that walk is recorded, unless a live trace
// watches it.
func (k *walk) replay(f *packet.Frame, inPort uint32) bool {
	c, prog := k.w.cache, k.w.sw.program.Load()
	if c == nil || prog == nil {
		return false
	}
	l := &k.layers
	c.keepUp(prog, k.w) // if the walk begins in a newer one, the next packet empties the cache
	if !c.sig.read(f, inPort, l) || !packet.AdmitOffload(f, l) {
		c.count[CacheUnfit]++
		return false
	}
	learns := k.w.sw.learnings.Load()
	e := c.find()
	if k.lives.set != nil && k.wanted(e, f, inPort) {
		return false
	}
	why := CacheMiss
	if e != nil {
		p := c.paths[e.path]
		if p.learned != 0 && p.learned != learns {
			why = CacheLearned
		} else if !k.passes(e, f) {
			why = CacheAsked
		} else {
			c.count[CacheHit]++
			e.used = c.round
			k.warmUp(e, p, f, inPort)
			k.follow(e, p, f, inPort)
			return true
		}
	}
	if why != CacheLearned && k.lives.set == nil && k.open(f, inPort) {
		return true
	}
	c.count[why]++
	k.w.rec.begin(f, l, learns)
	k.parsed = true
	return false
}

// passes asks conntrack, for each ct() of the walk, whether it still says the
// same. When one does not the packet walks; what was done for those before it
// is then done again, which changes nothing (conntrack.Pass).
func (k *walk) passes(e *cached, f *packet.Frame) bool {
	l := &k.layers
	if (k.w.cache.paths[e.path].out != nil || e.parts != 0) && ambiguous(f, l) {
		return false
	}
	if e.steps == 0 {
		return true
	}
	c := k.w.cache
	if !c.pass.Read(f, l) {
		return false
	}
	for i := range e.steps {
		if !k.w.sw.conntrack.Pass(&e.ct[i], &c.pass, k.w.now) {
			return false
		}
	}
	return true
}

// follow gives the packet the verdict of a path.
func (k *walk) follow(e *cached, p *path, f *packet.Frame, inPort uint32) {
	k.w.cache.credit(p, f.Len())
	k.inPort, k.last, k.met = inPort, p.last, p.met
	k.ct.State, k.ct.Zone, k.ct.Mark, k.ct.Label = 0, 0, 0, conntrack.Label{} // of a packet before
	if p.out == nil {
		k.w.sums.dropped++
		k.noteReplayed(e, &p.loss, f)
		k.w.release(f)
		return
	}
	if e.parts != 0 {
		e.apply(f, &k.layers)
	}
	f.Mark = p.mark
	if p.out.tunnel {
		f.Tunnel = p.tunnel
	}
	k.w.queue(p.out, f)
}

// ambiguous says whether a checksum has the one value, of the two that mean zero,
// at which a difference of differences may end at the other.
func ambiguous(f *packet.Frame, l *packet.Layers) bool {
	b := f.Bytes()
	if l.EtherType == packet.EtherTypeIPv4 && binary.BigEndian.Uint16(b[sigL3+10:]) == 0xffff {
		return true
	}
	v := binary.BigEndian.Uint16(b[l.L4+checksumAt(l.Proto):])
	if f.Offload.ChecksumPartial {
		return v == 0
	}
	return v == 0xffff
}

// checksumAt is where a transport header has its checksum.
func checksumAt(proto uint8) int {
	switch proto {
	case packet.ProtoTCP:
		return 16
	case packet.ProtoUDP:
		return 6
	}
	return 2 // ICMP
}

// apply changes the headers of a frame, and the checksums over them by the
// difference (RFC 1624), as walking would.
func (ch *change) apply(f *packet.Frame, l *packet.Layers) {
	b := f.Bytes()
	if ch.parts&changedEth != 0 {
		copy(b, ch.eth[:])
	}
	if l.EtherType == packet.EtherTypeIPv4 {
		ch.applyIPv4(b)
	} else {
		ch.applyIPv6(b)
	}
	switch {
	case ch.parts&changedSrc != 0:
		copy(b[l.L4:], ch.ports[:])
	case ch.parts&changedPorts != 0: // the source's is the frame's own, whichever that is
		copy(b[l.L4+2:], ch.ports[2:])
	}
	if ch.parts&(changedAddrs|changedPorts) != 0 {
		ch.fixL4(f, l)
	}
}

func (ch *change) applyIPv4(b []byte) {
	if ch.parts&(changedIP|changedAddrs) == 0 {
		return
	}
	if ch.parts&changedIP != 0 {
		b[sigL3+1], b[sigL3+8] = ch.ip[1], ch.ttl
	}
	if ch.parts&changedAddrs != 0 {
		copy(b[sigL3+12:], ch.addrs[:8])
	}
	adjust(b[sigL3+10:], 0xffff, ch.ipSum)
}

func (ch *change) applyIPv6(b []byte) {
	if ch.parts&changedIP != 0 {
		ip := ch.ip6(b)
		copy(b[sigL3:], ip[:])
		b[sigL3+7] = ch.ttl
	}
	if ch.parts&changedAddrs != 0 {
		copy(b[sigL3+8:], ch.addrs[:])
	}
}

// ip6 is what the first four bytes of a frame's IPv6 header become. The flow label stays
// the frame's own unless the walk changed it.
func (ch *change) ip6(b []byte) [4]byte {
	ip := ch.ip
	if ch.parts&changedLabel == 0 {
		ip[1] = ip[1]&0xf0 | b[sigL3+1]&0x0f
		ip[2], ip[3] = b[sigL3+2], b[sigL3+3]
	}
	return ip
}

// fixL4 changes the transport checksum. One of 0 over UDP is none; a partial one
// covers the addresses only, and the field holds the sum itself.
func (ch *change) fixL4(f *packet.Frame, l *packet.Layers) {
	field := f.Bytes()[l.L4+checksumAt(l.Proto):]
	switch {
	case f.Offload.ChecksumPartial:
		adjustSum(field, 0xffff, ch.pseudoSum)
	case l.Proto == packet.ProtoTCP:
		adjust(field, 0xffff, fold(uint32(ch.pseudoSum)+uint32(ch.portSum)))
	case l.Proto == packet.ProtoUDP && udpHasSum(field):
		adjust(field, 0xffff, fold(uint32(ch.pseudoSum)+uint32(ch.portSum)))
		putNonZero(field)
	case l.Proto == packet.ProtoICMPv6:
		adjust(field, 0xffff, ch.pseudoSum)
	}
}
