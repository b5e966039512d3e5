package pods

import (
	"context"
	"os"
	"slices"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/lab"
)

// Profiles are the profiles stream, rr and connect between two pods of one Node. The first one that runs
// opens their contenders, which stay open for the others until Close.
type Profiles struct {
	pairs  []*pair
	absent []string // why this machine lacks further contenders
}

// podsNotes say what the contenders are.
var podsNotes = []string{
	"Two pods on one Node, MTU 1450, each in a network namespace.",
	"antrail: a real agent with the entries of examples/two-nodes.",
	"Open vSwitch: userspace datapath with userspace-tso-enable, AF_PACKET ports, and the same entries, groups and meters.",
	"Open vSwitch with AF_XDP ports: the same, with the pods' transmit checksum offload off. It rests while the rig measures others.",
}

// open opens the contenders that take part, unless they are open.
func (p *Profiles) open(ctx context.Context, r *rig.Rig) error {
	if p.pairs != nil {
		return nil
	}
	dir, err := writeExamples()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // the agents have read them when their labs are up
	openers := []opener{{bridgeName, openBridge}, {directName, openDirect}, {bareName, openBare}}
	for _, kind := range []string{ovs.System, ovs.AFXDP} {
		openers = append(openers, opener{ovsName(kind), func() (*pair, error) { return openOVS(ctx, kind) }})
	}
	openers = append(openers, labOpeners(ctx, r, dir, labCarriers...)...)
	sleepy := lab.Options{Driver: config.DriverAFXDP, Offload: config.OffloadOff, KeepAwake: config.KeepAwakeOff}
	p.pairs, p.absent, err = openPairs(r, append(openers, labOpeners(ctx, r, dir, sleepy)...))
	return err
}

// Close closes the contenders. A later profile would open them again.
func (p *Profiles) Close() error {
	err := closePairs(p.pairs)
	p.pairs = nil
	return err
}

// runPairs measures every pair in turn. All threads have an ordinary priority meanwhile.
func (p *Profiles) runPairs(ctx context.Context, r *rig.Rig, c *report.Comparison, measure measurePair) error {
	return sched.RunAsOrdinary(func() error {
		if err := p.open(ctx, r); err != nil {
			return err
		}
		c.Notes = slices.Concat(c.Notes, podsNotes, p.absent)
		return r.RunRounds(ctx, c, pairSides(r, c.Profile, p.pairs, measure))
	})
}
