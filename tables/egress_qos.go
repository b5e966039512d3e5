package tables

import "github.com/antrail/antrail/flow"

// EgressQoS limits the rate at which packets leave the cluster under an address
// of this Node. All Pods behind one address share its meter, those of other Nodes
// too. It exists with EgressTrafficShaping.
//
// Reads:  EgressMarkField.
// Writes: nothing.
// Next:   switching. A meter drops packets above its rate.

// egressUnlimited passes packets of Egresses without a limit.
func (p *Pipeline) egressUnlimited() []*flow.Entry {
	if !hasEgressQoS(p) {
		return nil
	}
	return one(p.entry(forEgress, tableEgressQoS, priorityLow, match(), p.goStage(stageSwitching)))
}

// egressLimited sends packets with the mark of an address through its meter.
func (p *Pipeline) egressLimited(l EgressLimit) *flow.Entry {
	return p.entry(forEgress, tableEgressQoS, priorityNormal, match(EgressMarkField.Is(uint64(l.Mark))),
		flow.MeterAction{ID: uint32(l.Mark)}, p.goStage(stageSwitching))
}

// meter is the limit's meter. Its number is the mark; the meters of packet-ins
// have numbers above all marks.
func (l EgressLimit) meter() *flow.Meter {
	return &flow.Meter{ID: uint32(l.Mark), Burst: true, Bands: []flow.Band{{Rate: l.Rate, BurstSize: l.Burst}}}
}
