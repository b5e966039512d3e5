package dataplane

import (
	"math"
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

// group is an installed group with its counters.
type group struct {
	*flow.Group
	*bucketCounters // of the whole group
	buckets         []*bucketCounters
	actions         [][]flow.Action // of each bucket, compiled
}

// bucketCounters are shared by a group and the one that modifies it, so that a
// packet in between is counted.
type bucketCounters struct{ packets, bytes atomic.Uint64 }

// newGroup makes a group; counters of the group it modifies are kept, those of
// buckets by bucket id.
func newGroup(g *flow.Group, old *group) *group {
	n := &group{Group: g, bucketCounters: &bucketCounters{}}
	kept := make(map[uint32]*bucketCounters)
	if old != nil {
		n.bucketCounters = old.bucketCounters
		for i, b := range old.Buckets {
			kept[b.ID] = old.buckets[i]
		}
	}
	for _, b := range g.Buckets {
		c := kept[b.ID]
		if c == nil {
			c = &bucketCounters{}
		}
		n.buckets, n.actions = append(n.buckets, c), append(n.actions, compiled(b.Actions))
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

// hashSeed begins hashes that must be the same in every process.
const hashSeed = 0x9e3779b97f4a7c15
