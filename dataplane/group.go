package dataplane

import (
	"math"
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

// group is an installed group with its counters.
type group struct {
	*flow.Group
	packets, bytes atomic.Uint64
	buckets        []bucketCounters
}

type bucketCounters struct{ packets, bytes atomic.Uint64 }

// newGroup makes a group; counters of the group it modifies are kept, those of
// buckets by bucket id.
func newGroup(g *flow.Group, old *group) *group {
	n := &group{Group: g, buckets: make([]bucketCounters, len(g.Buckets))}
	if old == nil {
		return n
	}
	n.packets.Store(old.packets.Load())
	n.bytes.Store(old.bytes.Load())
	for i, b := range g.Buckets {
		for j, ob := range old.Buckets {
			if b.ID == ob.ID {
				n.buckets[i].packets.Store(old.buckets[j].packets.Load())
				n.buckets[i].bytes.Store(old.buckets[j].bytes.Load())
			}
		}
	}
	return n
}

// choose picks the bucket of a select group for a packet's hash: each bucket
// draws a number from its own hash with the packet, as if exponentially
// distributed with its weight as rate, and the smallest wins (weighted
// rendezvous hashing). So weights are exact shares, and taking a bucket away
// moves only the packets it had. It returns -1 when no bucket has a weight.
func (g *group) choose(hash uint64) int {
	best, lowest := -1, 0.0
	for i := range g.Buckets {
		h := mix(mix(hash, uint64(g.Buckets[i].ID)+1), hashSeed)
		uniform := (float64(h>>11) + 0.5) / (1 << 53) // between 0 and 1, never either
		drawn := -math.Log(uniform) / float64(g.Buckets[i].Weight)
		if g.Buckets[i].Weight > 0 && (best < 0 || drawn < lowest) {
			best, lowest = i, drawn
		}
	}
	return best
}

// packetHash is the select hash of a packet: addresses, protocol and ports, so
// that all packets of a connection direction get the same bucket.
func packetHash(k *flow.Key, seed uint64) uint64 {
	h := seed
	for _, id := range hashFields {
		v := flow.FieldByID(id).Get(k)
		h = mix(mix(h, v.Lo), v.Hi)
	}
	return h
}

var hashFields = []flow.FieldID{flow.IPSrc, flow.IPDst, flow.IPv6Src, flow.IPv6Dst, flow.IPProto, flow.TCPSrc, flow.TCPDst}
