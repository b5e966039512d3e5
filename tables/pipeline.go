package tables

import (
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/flow"
)

// The pipeline: which tables there are, their order, and the table-miss of each.
//
// A table exists when a feature needs it. Existing tables are numbered in order, so the numbers
// depend on the features. Entries therefore never name a number. They go to a table by its name,
// to the next table, or to the first table of a stage. So a goto skips tables that do not exist.

// stage is a part of the pipeline with one purpose. Entries that leave a stage
// go to the first table of a later one.
type stage uint8

const (
	stageStart stage = iota
	stageARPValidation
	stageARPOutput
	stageClassifier
	stageValidation
	stageConntrackState
	stagePreRouting
	stageEgressSecurity
	stageRouting
	stagePostRouting
	stageSwitching
	stageIngressSecurity
	stageConntrack
	stageOutput
	stageMulticastEgress
	stageMulticastRouting
	stageMulticastIngress
	stageMulticastOutput
	stageNonIP
)

// stageNames are the stages as Antrea's documents call them.
var stageNames = [...]string{
	stageStart:           "Start",
	stageARPValidation:   "ARPValidation",
	stageARPOutput:       "ARPOutput",
	stageClassifier:      "Classifier",
	stageValidation:      "Validation",
	stageConntrackState:  "ConntrackState",
	stagePreRouting:      "PreRouting",
	stageEgressSecurity:  "EgressSecurity",
	stageRouting:         "Routing",
	stagePostRouting:     "PostRouting",
	stageSwitching:       "Switching",
	stageIngressSecurity: "IngressSecurity",
	stageConntrack:       "Conntrack",
	stageOutput:          "Output",
	// Antrea gives these the names of stages above.
	stageMulticastEgress:  "Multicast",
	stageMulticastRouting: "Multicast",
	stageMulticastIngress: "Multicast",
	stageMulticastOutput:  "Multicast",
	stageNonIP:            "NonIP",
}

// TableNames are all tables in the order in which packets pass them. No pipeline has all of them.
func TableNames() []string {
	names := make([]string, len(declared))
	for i := range declared {
		names[i] = declared[i].name
	}
	return names
}

// Stage names the stage that a table belongs to, or "" if this pipeline has no table of that
// name.
func Stage(table string) string {
	for i := range declared {
		if declared[i].name == table {
			return stageNames[declared[i].stage]
		}
	}
	return ""
}

// table is a table's place in the list of all tables. Its number in a pipeline is
// Pipeline.numbers.
type table uint8

const (
	tablePipelineRootClassifier table = iota
	tableARPSpoofGuard
	tableARPResponder
	tableClassifier
	tableSpoofGuard
	tableIPv6
	tablePipelineIPClassifier
	tableUnSNAT
	tableConntrackZone
	tableConntrackState
	tablePreRoutingClassifier
	tableNodePortMark
	tableSessionAffinity
	tableServiceLB
	tableDSRServiceMark
	tableEndpointDNAT
	tableDNAT
	tableEgressSecurityClassifier
	tableAntreaPolicyEgressRule
	tableEgressRule
	tableEgressDefaultRule
	tableEgressMetric
	tableL3Forwarding
	tableEgressMark
	tableEgressQoS
	tableL3DecTTL
	tableSNATMark
	tableSNAT
	tableL2ForwardingCalc
	tableTrafficControl
	tableIngressSecurityClassifier
	tableAntreaPolicyIngressRule
	tableIngressRule
	tableIngressDefaultRule
	tableIngressMetric
	tableConntrackCommit
	tableVLAN
	tableOutput
	tableMulticastEgressRule
	tableMulticastEgressMetric
	tableMulticastEgressPodMetric
	tableMulticastRouting
	tableMulticastIngressRule
	tableMulticastIngressMetric
	tableMulticastIngressPodMetric
	tableMulticastOutput
	tableNonIP
	numTables
)

// miss is what happens to a packet that matches no entry of a table.
type miss uint8

const (
	missNext miss = iota // on to the next table
	missDrop
	missOwn // the table's file makes the entry
)

// declaration is a row of the list of tables.
type declaration struct {
	name  string
	stage stage
	miss  miss
	needs func(*Pipeline) bool
}

// declared are all tables in the order in which packets pass them.
var declared = [numTables]declaration{
	tablePipelineRootClassifier:    {"PipelineRootClassifier", stageStart, missDrop, always},
	tableARPSpoofGuard:             {"ARPSpoofGuard", stageARPValidation, missDrop, hasARP},
	tableARPResponder:              {"ARPResponder", stageARPOutput, missDrop, hasARP},
	tableClassifier:                {"Classifier", stageClassifier, missDrop, hasPods},
	tableSpoofGuard:                {"SpoofGuard", stageValidation, missDrop, hasPods},
	tableIPv6:                      {"IPv6", stageValidation, missNext, hasIPv6},
	tablePipelineIPClassifier:      {"PipelineIPClassifier", stageValidation, missNext, hasMulticast},
	tableUnSNAT:                    {"UnSNAT", stageConntrackState, missNext, hasProxy},
	tableConntrackZone:             {"ConntrackZone", stageConntrackState, missNext, always},
	tableConntrackState:            {"ConntrackState", stageConntrackState, missOwn, always},
	tablePreRoutingClassifier:      {"PreRoutingClassifier", stagePreRouting, missNext, hasProxy},
	tableNodePortMark:              {"NodePortMark", stagePreRouting, missNext, hasProxyAll},
	tableSessionAffinity:           {"SessionAffinity", stagePreRouting, missOwn, hasProxy},
	tableServiceLB:                 {"ServiceLB", stagePreRouting, missNext, hasProxy},
	tableDSRServiceMark:            {"DSRServiceMark", stagePreRouting, missNext, hasDSR},
	tableEndpointDNAT:              {"EndpointDNAT", stagePreRouting, missNext, hasProxy},
	tableDNAT:                      {"DNAT", stagePreRouting, missNext, hasNoProxy},
	tableEgressSecurityClassifier:  {"EgressSecurityClassifier", stageEgressSecurity, missNext, isExternal},
	tableAntreaPolicyEgressRule:    {"AntreaPolicyEgressRule", stageEgressSecurity, missNext, hasAntreaPolicy},
	tableEgressRule:                {"EgressRule", stageEgressSecurity, missNext, always},
	tableEgressDefaultRule:         {"EgressDefaultRule", stageEgressSecurity, missNext, always},
	tableEgressMetric:              {"EgressMetric", stageEgressSecurity, missNext, always},
	tableL3Forwarding:              {"L3Forwarding", stageRouting, missOwn, hasPods},
	tableEgressMark:                {"EgressMark", stageRouting, missOwn, hasEgress},
	tableEgressQoS:                 {"EgressQoS", stageRouting, missNext, hasEgressQoS},
	tableL3DecTTL:                  {"L3DecTTL", stageRouting, missNext, hasPods},
	tableSNATMark:                  {"SNATMark", stagePostRouting, missNext, hasProxy},
	tableSNAT:                      {"SNAT", stagePostRouting, missNext, hasProxy},
	tableL2ForwardingCalc:          {"L2ForwardingCalc", stageSwitching, missNext, always},
	tableTrafficControl:            {"TrafficControl", stageSwitching, missNext, hasTrafficControl},
	tableIngressSecurityClassifier: {"IngressSecurityClassifier", stageIngressSecurity, missNext, always},
	tableAntreaPolicyIngressRule:   {"AntreaPolicyIngressRule", stageIngressSecurity, missNext, hasAntreaPolicy},
	tableIngressRule:               {"IngressRule", stageIngressSecurity, missNext, always},
	tableIngressDefaultRule:        {"IngressDefaultRule", stageIngressSecurity, missNext, always},
	tableIngressMetric:             {"IngressMetric", stageIngressSecurity, missNext, always},
	tableConntrackCommit:           {"ConntrackCommit", stageConntrack, missNext, always},
	tableVLAN:                      {"VLAN", stageOutput, missNext, hasFlexibleIPAM},
	tableOutput:                    {"Output", stageOutput, missDrop, always},
	tableMulticastEgressRule:       {"MulticastEgressRule", stageMulticastEgress, missNext, hasMulticastPolicy},
	tableMulticastEgressMetric:     {"MulticastEgressMetric", stageMulticastEgress, missNext, hasMulticastPolicy},
	tableMulticastEgressPodMetric:  {"MulticastEgressPodMetric", stageMulticastEgress, missNext, hasMulticast},
	tableMulticastRouting:          {"MulticastRouting", stageMulticastRouting, missNext, hasMulticast},
	tableMulticastIngressRule:      {"MulticastIngressRule", stageMulticastIngress, missNext, hasMulticastPolicy},
	tableMulticastIngressMetric:    {"MulticastIngressMetric", stageMulticastIngress, missNext, hasMulticastPolicy},
	tableMulticastIngressPodMetric: {"MulticastIngressPodMetric", stageMulticastIngress, missNext, hasMulticast},
	tableMulticastOutput:           {"MulticastOutput", stageMulticastOutput, missDrop, hasMulticast},
	tableNonIP:                     {"NonIP", stageNonIP, missDrop, isExternal},
}

func always(*Pipeline) bool            { return true }
func isExternal(p *Pipeline) bool      { return p.c.Features.ExternalNode }
func hasPods(p *Pipeline) bool         { return !isExternal(p) }
func hasARP(p *Pipeline) bool          { return hasPods(p) && hasIPv4(p) }
func hasIPv4(p *Pipeline) bool         { return p.hasFamily(IPv4) }
func hasIPv6(p *Pipeline) bool         { return p.hasFamily(IPv6) }
func hasProxy(p *Pipeline) bool        { return p.c.Features.Proxy }
func hasNoProxy(p *Pipeline) bool      { return hasPods(p) && !p.c.Features.Proxy }
func hasProxyAll(p *Pipeline) bool     { return p.c.Features.ProxyAll }
func hasDSR(p *Pipeline) bool          { return p.c.Features.DSR && hasTunnel(p) }
func hasAntreaPolicy(p *Pipeline) bool { return p.c.Features.AntreaPolicy }
func hasEgress(p *Pipeline) bool       { return p.c.Features.Egress }
func hasEgressQoS(p *Pipeline) bool    { return p.c.Features.EgressQoS }
func hasMulticast(p *Pipeline) bool    { return p.c.Features.Multicast && hasIPv4(p) }
func hasTunnel(p *Pipeline) bool       { return p.c.Encap.HasTunnel() }
func isPolicyOnly(p *Pipeline) bool    { return p.c.Encap == PolicyOnly }
func hasFlexibleIPAM(p *Pipeline) bool { return p.c.Features.FlexibleIPAM }
func hasMulticastPolicy(p *Pipeline) bool {
	return hasMulticast(p) && hasAntreaPolicy(p)
}
func isV2(p *Pipeline) bool { return p.c.Release == V2 }
func hasTrafficControl(p *Pipeline) bool {
	return p.c.Features.TrafficControl || p.c.Features.L7Policy
}

// Pipeline makes the entries of one Node's tables. It is immutable, so any goroutine may use it.
type Pipeline struct {
	c        Config
	families []Family
	numbers  [numTables]uint8 // absent for tables that do not exist
}

// absent is the number of a table that does not exist.
const absent = flow.NoTable

// New makes the pipeline of a Node. A feature is off if the feature that it needs is off:
// ProxyAll and DSR need Proxy, L7Policy needs AntreaPolicy, and EgressQoS needs Egress. An
// external Node has only AntreaPolicy, for IPv4.
func New(c Config) *Pipeline {
	f := &c.Features
	if f.ExternalNode {
		*f = Features{ExternalNode: true, AntreaPolicy: f.AntreaPolicy}
		c.Encap, c.PodCIDRs = NoEncap, []netip.Prefix{ipv4Any}
	}
	f.ProxyAll = f.ProxyAll && f.Proxy
	f.DSR = f.DSR && f.Proxy
	f.L7Policy = f.L7Policy && f.AntreaPolicy
	f.EgressQoS = f.EgressQoS && f.Egress
	p := &Pipeline{c: c}
	for _, family := range []Family{IPv4, IPv6} {
		if anyOf(c.PodCIDRs, family) {
			p.families = append(p.families, family)
		}
	}
	p.number()
	return p
}

// ipv4Any gives an external Node, which has no Pods, the IPv4 family.
var ipv4Any = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

func anyOf(prefixes []netip.Prefix, f Family) bool {
	for _, p := range prefixes {
		if familyOf(p.Addr()) == f {
			return true
		}
	}
	return false
}

func (p *Pipeline) number() {
	next := uint8(0)
	for t := range declared {
		p.numbers[t] = absent
		if declared[t].needs(p) {
			p.numbers[t] = next
			next++
		}
	}
}

// Names are the names of the tables. They name no ports.
func (p *Pipeline) Names() *flow.Names {
	n := flow.NewNames()
	for t, d := range declared {
		if p.has(table(t)) {
			n.SetTable(p.numbers[t], d.name)
		}
	}
	return n
}

// First is the number of the table that packets enter at.
func (p *Pipeline) First() uint8 { return p.id(tablePipelineRootClassifier) }

func (p *Pipeline) has(t table) bool { return p.numbers[t] != absent }

func (p *Pipeline) hasFamily(f Family) bool {
	for _, have := range p.families {
		if have == f {
			return true
		}
	}
	return false
}

// id is the number of a table. It panics if the table does not exist, because the caller must
// check.
func (p *Pipeline) id(t table) uint8 {
	if !p.has(t) {
		panic(fmt.Sprintf("tables: %s does not exist with these features", declared[t].name))
	}
	return p.numbers[t]
}

// next is the number of the table that follows t.
func (p *Pipeline) next(t table) uint8 {
	for t++; !p.has(t); {
		t++
	}
	return p.id(t)
}

// first is the number of the first table of a stage.
func (p *Pipeline) first(s stage) uint8 {
	for t := range declared {
		if declared[t].stage == s && p.has(table(t)) {
			return p.id(table(t))
		}
	}
	panic(fmt.Sprintf("tables: stage %d has no table", s))
}

func (p *Pipeline) goTo(t table) flow.Action         { return flow.GotoTable{Table: p.id(t)} }
func (p *Pipeline) goNext(t table) flow.Action       { return flow.GotoTable{Table: p.next(t)} }
func (p *Pipeline) goStage(s stage) flow.Action      { return flow.GotoTable{Table: p.first(s)} }
func (p *Pipeline) resubmit(t table) flow.Action     { return resubmit(p.id(t)) }
func (p *Pipeline) resubmitNext(t table) flow.Action { return resubmit(p.next(t)) }

func resubmit(number uint8) flow.Action {
	return flow.Resubmit{InPort: flow.PortInPort, Table: number}
}

// tableMisses are the table-miss entries that go to the next table or drop. Tables with missOwn
// make their own.
func (p *Pipeline) tableMisses() (all []*flow.Entry) {
	for t, d := range declared {
		if !p.has(table(t)) || d.miss == missOwn {
			continue
		}
		var actions []flow.Action
		if d.miss == missNext {
			actions = []flow.Action{p.goNext(table(t))}
		}
		all = append(all, p.entry(forDefault, table(t), priorityMiss, match(), actions...))
	}
	return all
}
