package dataplane

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

// group is an installed group with its counters.
type group struct {
	*flow.Group
	*bucketCounters // of the whole group
	buckets         []*bucketCounters
	actions         [][]flow.Action // of each bucket, compiled
	even            bool            // the buckets' weights are all the same
}

// bucketCounters are of a group, a bucket, or what a meter met or dropped. They are
// shared with the group or meter that modifies it, so that a packet in between is
// counted.
type bucketCounters struct {
	packets, bytes atomic.Uint64
	slot           uint32 // in the workers' tallies
}

func newBucketCounters() *bucketCounters { return &bucketCounters{slot: lastSlot.Add(1)} }

// newGroup makes a group; counters of the group it modifies are kept, those of
// buckets by bucket id.
func newGroup(g *flow.Group, old *group) *group {
	n := &group{Group: g, bucketCounters: newBucketCounters(), even: evenWeights(g.Buckets)}
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
			c = newBucketCounters()
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
	if g.even {
		return g.chooseEven(hash)
	}
	best, lowest := -1, 0.0
	for i := range g.Buckets {
		uniform := (float64(g.draw(hash, i)) + 0.5) / (1 << drawBits) // between 0 and 1, never either
		drawn := -math.Log(uniform) / float64(g.Buckets[i].Weight)
		if g.Buckets[i].Weight > 0 && (best < 0 || drawn < lowest) {
			best, lowest = i, drawn
		}
	}
	return best
}

// chooseEven is choose where all weights are the same: the logarithm changes no
// order.
func (g *group) chooseEven(hash uint64) int {
	best, highest := -1, uint64(0)
	for i := range g.Buckets {
		if drawn := g.draw(hash, i); best < 0 || drawn > highest {
			best, highest = i, drawn
		}
	}
	return best
}

// drawBits is how many bits a bucket draws: as many as a float64 holds.
const drawBits = 53

// draw is the number that a bucket draws for a packet's hash.
func (g *group) draw(hash uint64, i int) uint64 {
	return mix(mix(hash, uint64(g.Buckets[i].ID)+1), hashSeed) >> (64 - drawBits)
}

// evenWeights says whether a select group's buckets all have the same weight,
// and one at all.
func evenWeights(buckets []flow.Bucket) bool {
	return len(buckets) > 0 && buckets[0].Weight > 0 &&
		!slices.ContainsFunc(buckets, func(b flow.Bucket) bool { return b.Weight != buckets[0].Weight })
}

// packetHash is the select hash of a packet: addresses, protocol and ports, so
// that all packets of a connection direction get the same bucket.
func packetHash(k *flow.Key, seed uint64) uint64 { return tupleHash(k.Tuple(), seed) }

// tupleHash is packetHash of what tells connections apart.
func tupleHash(tuple [6]uint64, seed uint64) uint64 {
	h := seed
	for _, w := range tuple {
		h = mix(h, w)
	}
	return h
}

// hashSeed begins hashes that must be the same in every process.
const hashSeed = 0x9e3779b97f4a7c15
