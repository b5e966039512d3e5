package control

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// pipeline is what control asks of package tables: entries for values.
type pipeline interface {
	Names() *flow.Names
	First() uint8
	Static() []*flow.Entry
	Meters() []*flow.Meter
	StaticGroups() []*flow.Group
	Pod(tables.Pod) []*flow.Entry
	Peer(tables.Peer) []*flow.Entry
	Endpoint(tables.Endpoint) []*flow.Entry
	EndpointGroup(tables.EndpointGroup) *flow.Group
	ServiceAddress(tables.ServiceAddress) []*flow.Entry
	RuleActions(tables.Rule) []*flow.Entry
	RuleClauses(tables.Rule) []*flow.Entry
	ClauseEntry(tables.Rule, clause, tables.Address) []*flow.Entry
	DefaultDrop(tables.Direction, tables.Pod) []*flow.Entry
	PodEgress(tables.Port, tables.EgressIP) []*flow.Entry
	EgressAddress(tables.EgressIP) []*flow.Entry
	TrafficControl(tables.TrafficControl) []*flow.Entry
	ReturnPort(tables.Port) []*flow.Entry
}

type clause uint8

const (
	clauseFrom clause = 1
	clauseTo   clause = 2
)

var newPipeline func(tables.Config) pipeline
