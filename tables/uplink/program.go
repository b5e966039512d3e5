package uplink

import (
	"errors"
	"fmt"
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// Program is the pipeline of a Node whose card is a port.
var Program = &layout.Program{
	Name:     "uplink",
	Sentence: "The card is a port, and the pipeline translates what pods send outside, as in Antrea's design for Windows with the marks of v1.15. Antrea has dropped this pipeline, and Open vSwitch Windows: this is its only maintained form",
	Tables: []layout.Table{
		{Name: "UplinkClassifier", Stage: "Classifier", Number: tableUplinkClassifier},
		{Name: "ARPSpoofGuard", Stage: "Validation", Number: tableARPSpoofGuard},
		{Name: "ARPResponder", Stage: "Validation", Number: tableARPResponder},
		{Name: "SpoofGuard", Stage: "Validation", Number: tableSpoofGuard},
		{Name: "ConntrackZone", Stage: "Conntrack", Number: tableConntrackZone},
		{Name: "ConntrackState", Stage: "Conntrack", Number: tableConntrackState},
		{Name: "EndpointDNAT", Stage: "Services", Number: tableEndpointDNAT},
		{Name: "EgressRule", Stage: "EgressSecurity", Number: tableEgressRule},
		{Name: "L3Forwarding", Stage: "Routing", Number: tableL3Forwarding},
		{Name: "EgressMark", Stage: "Routing", Number: tableEgressMark},
		{Name: "L3DecTTL", Stage: "Routing", Number: tableL3DecTTL},
		{Name: "L2ForwardingCalc", Stage: "Switching", Number: tableL2ForwardingCalc},
		{Name: "IngressRule", Stage: "IngressSecurity", Number: tableIngressRule},
		{Name: "ConntrackCommit", Stage: "Commit", Number: tableConntrackCommit},
		{Name: "Output", Stage: "Output", Number: tableOutput},
	},
	Marks:       marks,
	HasPolicies: true,
	Build:       build,
	Sample:      sample,
}

// Numbers of the tables.
const (
	tableUplinkClassifier = iota
	tableARPSpoofGuard
	tableARPResponder
	tableSpoofGuard
	tableConntrackZone
	tableConntrackState
	tableEndpointDNAT
	tableEgressRule
	tableL3Forwarding
	tableEgressMark
	tableL3DecTTL
	tableL2ForwardingCalc
	tableIngressRule
	tableConntrackCommit
	tableOutput
)

// IP protocols.
const (
	protoICMP = 1
	protoUDP  = 17
)

// Priorities. Those of the host's entries in ConntrackState lie between high and normal, for the
// reason in that file.
const (
	priorityMiss   = 0
	priorityLow    = 190
	priorityNormal = 200
	priorityHost   = 205
	priorityCopy   = 207
	priorityHigh   = 210
)

// build makes all entries for a Node.
func build(n *layout.Node) ([]layout.Entry, error) {
	if err := check(n); err != nil {
		return nil, err
	}
	return slices.Concat(
		uplinkClassifier(n), arpSpoofGuard(n), arpResponder(n), spoofGuard(n), conntrackZone(), conntrackState(n), endpointDNAT(n), egressRule(n),
		l3Forwarding(n), egressMark(n), l3DecTTL(), l2ForwardingCalc(n), ingressRule(n), conntrackCommit(n), output(n),
	), nil
}

// check returns an error for everything that the entries need and the Node lacks.
func check(n *layout.Node) error {
	errs := []error{n.Check()}
	for _, p := range []struct {
		what    string
		missing bool
	}{
		{"uplink port", n.Uplink.No == 0},
		{"gateway port", n.Gateway.No == 0},
		{"IPv4 Node IP", !n.NodeIP.Is4()},
		{"IPv4 pod range", !n.PodCIDR.Addr().Is4()},
		{"IPv4 gateway IP", !n.GatewayIP.Is4()},
		{"MAC address of the gateway", n.Gateway.MAC == [6]byte{}},
	} {
		if p.missing {
			errs = append(errs, errors.New("there is no "+p.what))
		}
	}
	if len(n.Peers) > 0 && n.Tunnel.No == 0 {
		errs = append(errs, errors.New("there are other Nodes and no tunnel port"))
	}
	for _, p := range n.Policies {
		if !slices.ContainsFunc(n.Pods, func(pod layout.Pod) bool { return pod.IP() == p.Pod }) {
			errs = append(errs, fmt.Errorf("the policy of %v is of no pod", p.Pod))
		}
	}
	if direct(n) && n.Uplink.MAC == [6]byte{} {
		errs = append(errs, errors.New("there is no MAC address of the uplink port, from which packets leave directly"))
	}
	return errors.Join(errs...)
}

// shared reports whether the card stays the kernel's. The host then has no port of its own, and
// the uplink port brings only replies to pods.
func shared(n *layout.Node) bool { return n.Bridge.No == 0 }

// toHost sends to the host by its own port, or by the gateway.
func toHost(n *layout.Node) []flow.Action {
	if shared(n) {
		return []flow.Action{layout.SetMAC(flow.EthDst, n.Gateway.MAC), to(n.Gateway)}
	}
	return []flow.Action{to(n.Bridge)}
}

// direct reports whether packets to the outside leave by the card at once.
func direct(n *layout.Node) bool { return n.Router != [6]byte{} }

// of is an entry for a statement of the document.
func of(row, why string, e *flow.Entry) layout.Entry {
	return layout.Entry{Entry: e, Origin: layout.Origin{Row: row, Why: why}}
}

func goTo(table uint8) flow.Action { return flow.GotoTable{Table: table} }

func to(p layout.Port) flow.Action { return flow.Output{Port: p.No} }

// miss is the table-miss entry that goes to another table.
func miss(table, next uint8) layout.Entry {
	return of("W-22", "whatever no entry matches goes on", layout.NewEntry(table, priorityMiss, flow.Match{}, goTo(next)))
}

// sample is the Node of dumps, traces and pages, in loop mode.
func sample() *layout.Node { return layout.CardSample([3]byte{0x02, 0x00, 0x5e}) }
