package flowcache

import (
	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/flow"
)

// A wildcard signature stands for all packets that differ only in port bits that no lookup
// examined. The exact-match level has entries under wildcard signatures for first packets of
// connections: their ports are new, but their walk came before.
//
// A wildcard signature has one word more than the exact one, so the two are never equal. The word
// names the remaining port bits, so port 0 under one mask differs from any port under another.

// PortMask is a set of port bits, at their positions in a signature. The source port is in the
// lower half, the destination port above, each in network order.
type PortMask uint64

// DstPort is the whole destination port.
const DstPort PortMask = 0xffff << 16

// portMasks are the masks that wildcard signatures may have: no port, the destination's
// first byte, the whole destination port.
var portMasks = [...]PortMask{0, 0xff << 16, DstPort}

// MaxBuckets is the largest number of buckets in a group that a wildcard signature can name.
const MaxBuckets = 1 << 16

// bucketMark marks the last word of a wildcard signature that names a bucket.
const bucketMark = 1 << 63

// WildPorts makes the wildcard signature of an exact one that keeps some port bits.
func (s *Signature) WildPorts(of *Signature, keep PortMask) { s.widen(of, keep, uint64(keep)) }

// WildBucket makes the wildcard signature of an exact one for which a group chooses a
// bucket. It keeps the destination port.
func (s *Signature) WildBucket(of *Signature, bucket int) {
	s.widen(of, DstPort, uint64(bucket)|bucketMark)
}

func (s *Signature) widen(of *Signature, keep PortMask, last uint64) {
	s.n = of.n + 1
	*(*[nearWords]uint64)(s.words[:]) = *(*[nearWords]uint64)(of.words[:]) // no call, unlike copy
	for i := nearWords; i < of.n; i++ {
		s.words[i] = of.words[i]
	}
	s.words[3] &^= 0xffffffff &^ uint64(keep)
	s.words[of.n] = last
	s.sum()
}

// portWords are the positions of the ports in a key, those of the original direction included,
// and in a PortMask.
var portWords = func() (all [4]struct{ index, shift, to int }) {
	for i, id := range []flow.FieldID{flow.TCPSrc, flow.TCPDst, flow.CTTpSrc, flow.CTTpDst} {
		off := flow.FieldByID(id).Off
		all[i].index, all[i].shift, all[i].to = off/8, off%8*8, i%2*16
	}
	return all
}()

// PortsOf returns the port bits in a set of key bits.
func PortsOf(b *lookup.KeyBits) (ports PortMask) {
	for _, p := range &portWords {
		ports |= PortMask(b[p.index] >> p.shift & 0xffff << p.to)
	}
	return ports
}

// WildMask returns the narrowest mask of a wildcard signature that has the examined port bits. It
// returns false if there is none, as for bits of the source port.
func WildMask(examined PortMask) (PortMask, bool) {
	for _, mask := range portMasks {
		if examined&^mask == 0 {
			return mask, true
		}
	}
	return 0, false
}

// wildMasks are the masks of the wildcard signatures with entries. A mask that matches moves
// forward.
type wildMasks struct {
	list [len(portMasks)]PortMask
	n    int
}

// add records that a mask has an entry.
func (m *wildMasks) add(mask PortMask) {
	for _, have := range m.list[:m.n] {
		if have == mask {
			return
		}
	}
	m.list[m.n] = mask
	m.n++
}

// matched moves the mask at an index one place forward.
func (m *wildMasks) matched(i int) {
	if i > 0 {
		m.list[i], m.list[i-1] = m.list[i-1], m.list[i]
	}
}
