package control

import (
	"fmt"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
)

// attempt is one try to install the waiting parts.
type attempt struct {
	*Reconciler
	failures [phases]cluster.Key // the first failed unit of each phase
	split    error               // the error for which the change was halved, or nil
}

// run installs units together or, if that fails, in halves. If the tables changed, half of the change
// would mix two pipelines. Then it installs all or nothing.
func (a *attempt) run(units []unit) {
	units = a.allowed(units)
	if len(units) == 0 && !a.renamed {
		return
	}
	err := a.apply(units)
	switch {
	case err == nil:
	case len(units) == 1 || a.moved:
		for _, u := range units {
			a.fail(u, note{ledger.Pending, err.Error()})
		}
	default:
		a.split = err
		a.run(units[:len(units)/2])
		a.run(units[len(units)/2:])
	}
}

func (a *attempt) fail(u unit, n note) {
	a.failed[u.key] = n
	if n.state == ledger.Pending && a.failures[u.phase] == (cluster.Key{}) {
		a.failures[u.phase] = u.key
	}
}

// allowed leaves out the units that wait for a failed phase.
func (a *attempt) allowed(units []unit) []unit {
	some := make([]unit, 0, len(units))
	for _, u := range units {
		if in := a.inTheWay(u.phase); in != (cluster.Key{}) {
			if _, known := a.failed[u.key]; !known {
				a.failed[u.key] = note{ledger.Pending, fmt.Sprintf("waits for %s", in)}
			}
			continue
		}
		some = append(some, u)
	}
	return some
}

func (a *attempt) inTheWay(p phase) cluster.Key {
	for _, needed := range p.needs() {
		if k := a.failures[needed]; k != (cluster.Key{}) {
			return k
		}
	}
	return cluster.Key{}
}

// apply installs units as one bundle. Objects that clash with others stay as they were.
func (a *attempt) apply(units []unit) error {
	step := a.ledger.BeginStep()
	taken := a.stage(step, units)
	b := step.Bundle()
	if a.renamed {
		b.Names, b.First = a.view.names, a.view.pipeline.First()
	}
	before, after := step.Purges(a.owned)
	if len(before) > 0 {
		a.to.Purge(before)
	}
	if !b.Empty() {
		if err := a.to.Apply(b); err != nil {
			step.Undo()
			return err
		}
	}
	step.Keep()
	if len(after) > 0 {
		a.to.Purge(after)
	}
	a.renamed, a.moved = false, false
	a.settle(taken)
	return nil
}

// stage claims what units want and returns the parts that succeeded. Objects may swap claims. So a unit
// that clashes is tried again after others have moved. At last all clashing units release their claims
// and are tried once more.
func (a *attempt) stage(step *ledger.Step, units []unit) (taken []ledger.Part) {
	left := units
	for n := len(units) + 1; len(left) < n; {
		n = len(left)
		left, taken = a.stageSome(step, left, taken)
	}
	if len(left) > 1 {
		before := a.vacate(step, left)
		left, taken = a.stageSome(step, left, taken)
		a.restore(step, left, before)
	}
	for _, u := range left {
		a.clashed(u, a.stageUnit(step, u))
	}
	return taken
}

// clashed records that a unit wants what another object has. In a half, the other half might resolve the
// clash, so the unit is pending and tried again.
func (a *attempt) clashed(u unit, err error) {
	if a.split != nil {
		a.fail(u, note{ledger.Pending, fmt.Sprintf("%s; the change as a whole failed: %s", err, a.split)})
		return
	}
	a.fail(u, note{ledger.Refused, err.Error()})
}

// stageSome claims what units want and returns the units that clash.
func (a *attempt) stageSome(step *ledger.Step, units []unit, taken []ledger.Part) (left []unit, _ []ledger.Part) {
	for _, u := range units {
		if a.stageUnit(step, u) != nil {
			left = append(left, u)
		} else {
			taken = append(taken, u.parts...)
		}
	}
	return left, taken
}

// stageUnit claims what one unit wants, all or nothing.
func (a *attempt) stageUnit(step *ledger.Step, u unit) error {
	was := make([]*ledger.Desired, len(u.parts))
	for i, p := range u.parts {
		was[i] = a.ledger.Desired(p)
		if err := step.Claim(p, a.waiting[p]); err != nil {
			for j := range i {
				if again := step.Claim(u.parts[j], was[j]); again != nil {
					panic("control: claims that were there clash: " + again.Error())
				}
			}
			return err
		}
	}
	return nil
}

// vacate releases all claims of some units.
func (a *attempt) vacate(step *ledger.Step, units []unit) map[ledger.Part]*ledger.Desired {
	before := map[ledger.Part]*ledger.Desired{}
	for _, u := range units {
		for _, p := range u.parts {
			before[p] = a.ledger.Desired(p)
			step.Release(p)
		}
	}
	return before
}

// restore claims again what units had, except what other objects have by now.
func (a *attempt) restore(step *ledger.Step, units []unit, before map[ledger.Part]*ledger.Desired) {
	for _, u := range units {
		for _, p := range u.parts {
			_ = step.Claim(p, before[p])
		}
	}
}

// settle records that the switch has what parts want.
func (a *attempt) settle(parts []ledger.Part) {
	for _, p := range parts {
		d := a.waiting[p]
		delete(a.waiting, p)
		a.delays.done(p, a.clock)
		a.settled(p, d)
	}
}
