package tables

import "github.com/antrail/antrail/flow"

// Meters limit the packets that the pipeline sends to the agent, and those that
// leave by an Egress (egress_qos.go). Groups copy the packets that policies log.

// Meter ids. Those below belong to Egresses.
const (
	meterPolicy    = 256
	meterTraceflow = 257
	meterDNS       = 258
	meterIGMP      = 259 // not in Antrea: a Pod may send reports as fast as it likes
)

// Group ids. Those of Services come after.
const (
	groupEgressRule    = 1
	groupEgressMetric  = 2
	groupIngressRule   = 3
	groupIngressMetric = 4
)

// FirstServiceGroup is the first id that a Service's group may have.
const FirstServiceGroup = groupIngressMetric + 1

func (p *Pipeline) packetInMeter(id uint32) *flow.Meter {
	rate := p.c.PacketInRate
	if rate == 0 {
		rate = p.c.Release.PacketInRate()
	}
	return &flow.Meter{ID: id, PktPS: true, Burst: true, Bands: []flow.Band{{Rate: rate, BurstSize: 2 * rate}}}
}

// loggingGroup goes on to a table and sends a copy to the agent.
func (p *Pipeline) loggingGroup(id uint32, next table) *flow.Group {
	return &flow.Group{ID: id, Type: flow.GroupAll, Buckets: []flow.Bucket{
		{ID: 0, Actions: []flow.Action{p.resubmit(next)}},
		{ID: 1, Actions: []flow.Action{OutputToControllerRegMark.Set(), p.resubmit(tableOutput)}},
	}}
}
