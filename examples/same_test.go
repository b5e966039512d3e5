package examples_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/antrail/antrail/internal/walktest"
	"github.com/antrail/antrail/packet"
)

// Both switches side by side: for every packet they take the same entries, and the
// same bytes leave by the same ports.

// outcome is what became of a frame.
type outcome struct {
	out   []sent   // by node and port
	taken []string // entries of both Nodes, sorted
}

// carryBoth carries a frame through both labs.
func carryBoth(t *testing.T, ovs, own *lab, from end, frame []byte) (theirs, ours outcome) {
	t.Helper()
	return ovs.outcome(t, from, frame), own.outcome(t, from, frame)
}

// outcome carries a frame; the lab's last hits must have been read.
func (l *lab) outcome(t *testing.T, from end, frame []byte) outcome {
	t.Helper()
	out := l.carry(t, from, frame)
	slices.SortFunc(out, func(a, b sent) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.port, b.port))
	})
	return outcome{out, l.taken(t)}
}

func sameArrival(a, b sent) bool {
	return a.node == b.node && a.port == b.port && slices.Equal(a.frame, b.frame)
}

func expectSame(t *testing.T, theirs, ours outcome) {
	t.Helper()
	if !slices.EqualFunc(theirs.out, ours.out, sameArrival) {
		t.Errorf("left: %v, from Open vSwitch: %v", ours.out, theirs.out)
	}
	if !slices.Equal(theirs.taken, ours.taken) {
		t.Errorf("entries taken:\n%q\nby Open vSwitch:\n%q", ours.taken, theirs.taken)
	}
}

// expectDifference fails when a difference that the tests name is none any more.
func expectDifference(t *testing.T, number string, theirs, ours outcome) {
	t.Helper()
	if slices.Equal(theirs.taken, ours.taken) {
		t.Errorf("%s does not show: both took %q", number, ours.taken)
	}
}

func TestWalksAreTheSameAsOpenVSwitch(t *testing.T) {
	ovs, own := newLab(t, newOVSNode), newLab(t, newOwnNode)
	for i, w := range walktest.Some(walks) {
		t.Run(w.name, func(t *testing.T) {
			carry := func(from end, frame []byte) []sent {
				theirs, ours := carryBoth(t, ovs, own, from, frame)
				expectSame(t, theirs, ours)
				return ours.out
			}
			first := own.request(w.from, w.to, uint16(44000+i))
			out := carry(ends[w.from], first.bytes())
			if w.at == "" || len(out) != 1 {
				return
			}
			carry(ends[w.at], readHeader(t, out[0].frame).back().bytes())
			if first.proto == packet.ProtoTCP {
				first.further = true
				carry(ends[w.from], first.bytes())
			}
		})
	}
}
