package dut_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/ctvectors"
)

// TestVectorsAlive plays each vector, as recorded and as IPv6, to Open vSwitch
// and to this switch. Where the vector names no difference the two must say the
// same. Where it names one they must not: a difference that is gone, because
// either side has changed, is to be taken out of the table in RULES.md.
func TestVectorsAlive(t *testing.T) {
	ovs := newReference(t)
	met := map[string]int{}
	for _, v := range ctvectors.Load(t, "../conntrack/testdata/vectors") {
		both := []*ctvectors.Vector{v}
		if v6, err := v.V6(); err != nil {
			t.Error(err)
		} else if v6 != nil && !testing.Short() { // with -short TestVectors alone plays those of IPv6
			both = append(both, v6)
		}
		for _, v := range both {
			t.Run(v.Name, func(t *testing.T) { playBoth(t, v, ovs, met) })
		}
	}
	for _, d := range ctvectors.Divergences {
		if met[d] == 0 {
			t.Errorf("no vector shows %s", d)
		}
	}
	t.Logf("differences met: %v", met)
}

// live is a vector being played to both.
type live struct {
	*testing.T
	v                  *ctvectors.Vector
	ovs                *reference
	ours               *peer
	theirLast, ourLast []byte // the last frame on a tap
}

func playBoth(t *testing.T, v *ctvectors.Vector, ovs *reference, met map[string]int) {
	l := &live{T: t, v: v, ovs: ovs, ours: newPeer(t)}
	ovs.load(v.Flows)
	l.ours.must(map[string]any{"op": "reset", "flows": v.Flows})
	for i := range v.Steps {
		s := &v.Steps[i]
		theirs, ours := l.play(s)
		if name := fmt.Sprintf("step %d (%s %s)", i, s.Op, s.Note); (theirs == ours) == s.Differs() {
			t.Errorf("%s: the vector says differences %v\nOpen vSwitch %s\nours         %s", name, s.Reasons(), theirs, ours)
		}
		for _, d := range s.Reasons() {
			met[d]++
		}
	}
}

// play plays one step, and tells what both say.
func (l *live) play(s *ctvectors.Step) (theirs, ours string) {
	l.Helper()
	switch s.Op {
	case "rx", "reply":
		out := l.ovs.receive(int(s.Port), stepFrame(l.T, s, l.theirLast))
		if len(out) > 0 {
			l.theirLast = frameOf(l.T, out[len(out)-1])
		}
		return l.outputs(out), l.outputs(l.ours.receive(s, &l.ourLast))
	case "warp":
		l.ovs.Warp(int(s.MS))
		l.ours.must(map[string]any{"op": "warp", "ms": s.MS})
	case "ct":
		return l.dump(l.ovs.connections()), l.dump(l.ours.connections())
	case "ctl":
		ours = l.ours.must(map[string]any{"op": "ctl", "args": s.Args}).Ctl
		if !strings.HasPrefix(s.Args[0], "antrail/") {
			theirs = l.ovs.Call(s.Args[0], s.Args[1:]...)
		}
		if s.Text != "" {
			return theirs, ours
		}
	}
	return "", ""
}

// outputs is what left, as text; where NAT chose a port the bytes may differ.
func (l *live) outputs(out []ctvectors.Output) string {
	for i := range out {
		if l.v.Alloc != nil {
			out[i].Hex = ""
		}
	}
	return fmt.Sprintf("%+v", out)
}

// dump is connections as text, whichever ports NAT chose.
func (l *live) dump(lines []string) string {
	lines = l.v.Masked(lines)
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
