package control

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
)

// podRanges has the podCIDRs of the Nodes. If the ranges of two Nodes overlap, only the first to come
// is served. The entries of both would match an address in both ranges, without a precedence.
type podRanges struct {
	of      map[cluster.Key][]netip.Prefix // of served Nodes
	refused map[cluster.Key]bool
}

func newPodRanges() podRanges {
	return podRanges{of: map[cluster.Key][]netip.Prefix{}, refused: map[cluster.Key]bool{}}
}

// freeChanged frees the ranges of Nodes whose ranges changed. If any became free, it adds the refused Nodes
// to keys, because they may fit now.
func (r podRanges) freeChanged(v *view, keys []cluster.Key) []cluster.Key {
	freed := false
	for _, k := range keys {
		if n := v.Nodes[k]; n == nil || !slices.Equal(n.PodCIDRs, r.of[k]) {
			freed = freed || r.of[k] != nil
			delete(r.of, k)
			delete(r.refused, k)
		}
	}
	if !freed {
		return keys
	}
	return v.sortByPlace(slices.AppendSeq(keys, maps.Keys(r.refused)))
}

// claim gives a Node its ranges, or returns the overlap with another Node.
func (r podRanges) claim(v *view, n *cluster.Node) error {
	delete(r.refused, n.Key)
	if own := v.Node(v.node); own != nil {
		if err := overlap(n.PodCIDRs, own); err != nil {
			r.refused[n.Key] = true
			return err
		}
	}
	for k, theirs := range r.of {
		if k == n.Key {
			continue
		}
		if err := overlap(n.PodCIDRs, &cluster.Node{Meta: cluster.Meta{Key: k}, PodCIDRs: theirs}); err != nil {
			r.refused[n.Key] = true
			return err
		}
	}
	r.of[n.Key] = n.PodCIDRs
	return nil
}

// overlap is the error that names the first range that overlaps with one of another Node.
func overlap(ranges []netip.Prefix, other *cluster.Node) error {
	for i, mine := range ranges {
		for _, theirs := range other.PodCIDRs {
			if mine.Overlaps(theirs) {
				return fmt.Errorf("spec.podCIDRs[%d] %s overlaps with %s of %s", i, mine, theirs, other.Key)
			}
		}
	}
	return nil
}
