package program

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/flow"
)

// Group is an installed group with its counters.
type Group struct {
	*flow.Group
	*BucketCounters // of the whole group
	PerBucket       []*BucketCounters
	Actions         [][]flow.Action // of each bucket, compiled
	even            bool            // all buckets have the same weight
}

// BucketCounters count the packets of a group or bucket, or those that a meter met or dropped. A
// modified group or meter keeps its counters, so packets count during the change.
type BucketCounters struct {
	Packets, Bytes atomic.Uint64
	slot           uint32 // in the workers' counts
}

func newBucketCounters() *BucketCounters { return &BucketCounters{slot: lastBucketSlot.Add(1)} }

// lastBucketSlot spreads counters over the slots of BucketCounts.
var lastBucketSlot atomic.Uint32

// newGroup makes a group. It keeps the counters of the group that it replaces, and of its buckets
// by bucket id.
func newGroup(g *flow.Group, old *Group) *Group {
	n := &Group{Group: g, BucketCounters: newBucketCounters(), even: evenWeights(g.Buckets)}
	kept := make(map[uint32]*BucketCounters)
	if old != nil {
		n.BucketCounters = old.BucketCounters
		for i, b := range old.Buckets {
			kept[b.ID] = old.PerBucket[i]
		}
	}
	for _, b := range g.Buckets {
		c := kept[b.ID]
		if c == nil {
			c = newBucketCounters()
		}
		n.PerBucket, n.Actions = append(n.PerBucket, c), append(n.Actions, CompileActions(b.Actions))
	}
	return n
}

// Choose returns the index of a select group's bucket for a packet's hash, by weighted rendezvous
// hashing. Each bucket draws a number from its hash with the packet, exponentially distributed
// with its weight as rate. The smallest number wins. So shares are exactly as the weights, and
// removing a bucket moves only its own packets. Choose returns -1 if no bucket has a weight.
func (g *Group) Choose(hash uint64) int {
	if g.even {
		return g.chooseEven(hash)
	}
	best, lowest := -1, 0.0
	for i := range g.Buckets {
		uniform := (float64(g.draw(hash, i)) + 0.5) / (1 << drawBits) // strictly between 0 and 1
		drawn := -math.Log(uniform) / float64(g.Buckets[i].Weight)
		if g.Buckets[i].Weight > 0 && (best < 0 || drawn < lowest) {
			best, lowest = i, drawn
		}
	}
	return best
}

// chooseEven is Choose for equal weights, where the logarithm would not change the order.
func (g *Group) chooseEven(hash uint64) int {
	best, highest := -1, uint64(0)
	for i := range g.Buckets {
		if drawn := g.draw(hash, i); best < 0 || drawn > highest {
			best, highest = i, drawn
		}
	}
	return best
}

// drawBits is the number of bits that a bucket draws: as many as a float64 holds.
const drawBits = 53

// draw returns the number that a bucket draws for a packet's hash.
func (g *Group) draw(hash uint64, i int) uint64 {
	return lookup.Mix(lookup.Mix(hash, uint64(g.Buckets[i].ID)+1), HashSeed) >> (64 - drawBits)
}

// evenWeights reports whether all buckets have the same weight above 0.
func evenWeights(buckets []flow.Bucket) bool {
	return len(buckets) > 0 && buckets[0].Weight > 0 &&
		!slices.ContainsFunc(buckets, func(b flow.Bucket) bool { return b.Weight != buckets[0].Weight })
}

// PacketHash is the select hash of a packet's addresses, protocol and ports. All packets of one
// direction of a connection get the same bucket.
func PacketHash(k *flow.Key, seed uint64) uint64 { return TupleHash(k.Tuple(), seed) }

// TupleHash is PacketHash of a tuple (flow.Key.Tuple).
func TupleHash(tuple [6]uint64, seed uint64) uint64 {
	h := seed
	for _, w := range tuple {
		h = lookup.Mix(h, w)
	}
	return h
}

// HashSeed is the start of hashes that must be equal in every process.
const HashSeed = 0x9e3779b97f4a7c15
