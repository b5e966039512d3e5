package windows2020

import (
	"errors"
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// Program is the document's pipeline.
var Program = &layout.Program{
	Name:     "windows2020",
	Sentence: "Antrea's design for Windows Nodes of 2020: the card is a port, and the pipeline translates sources",
	Tables: []layout.Table{
		{Name: "Classifier", Stage: "Classifier", Number: tableClassifier},
		{Name: "SpoofGuard", Stage: "Validation", Number: tableSpoofGuard},
		{Name: "ARPResponder", Stage: "Validation", Number: tableARPResponder},
		{Name: "Conntrack", Stage: "Conntrack", Number: tableConntrack},
		{Name: "ConntrackState", Stage: "Conntrack", Number: tableConntrackState},
		{Name: "DNAT", Stage: "Services", Number: tableDNAT},
		{Name: "L3Forwarding", Stage: "Routing", Number: tableL3Forwarding},
		{Name: "L2ForwardingCalculation", Stage: "Switching", Number: tableL2ForwardingCalculation},
		{Name: "IngressRule", Stage: "Security", Number: tableIngressRule},
		{Name: "ConntrackCommit", Stage: "Commit", Number: tableConntrackCommit},
		{Name: "L2ForwardingOut", Stage: "Output", Number: tableL2ForwardingOut},
	},
	Marks:  marks,
	Build:  build,
	Sample: sample,
}

// Numbers of the tables. The document gives names to all but 90; 10 and 20 are Linux's.
const (
	tableClassifier              = 0
	tableSpoofGuard              = 10
	tableARPResponder            = 20
	tableConntrack               = 30
	tableConntrackState          = 31
	tableDNAT                    = 40
	tableL3Forwarding            = 70
	tableL2ForwardingCalculation = 80
	tableIngressRule             = 90
	tableConntrackCommit         = 105
	tableL2ForwardingOut         = 110
)

// Priorities of the document.
const (
	priorityMiss   = 0
	priorityLow    = 190
	priorityNormal = 200
	priorityHigh   = 210
)

// build makes all entries for a Node.
func build(n *layout.Node) ([]layout.Entry, error) {
	if err := check(n); err != nil {
		return nil, err
	}
	return slices.Concat(
		classifier(n), spoofGuard(n), arpResponder(n), conntrack(), conntrackState(n), dnat(n),
		l3Forwarding(n), l2ForwardingCalculation(n), ingressRule(), conntrackCommit(n), l2ForwardingOut(n),
	), nil
}

// check returns an error for everything that the entries need and the Node lacks.
func check(n *layout.Node) error {
	errs := []error{n.Check()}
	for _, p := range []struct {
		what string
		port layout.Port
	}{{"uplink", n.Uplink}, {"bridge", n.Bridge}, {"gateway", n.Gateway}} {
		if p.port.No == 0 {
			errs = append(errs, errors.New("there is no "+p.what+" port"))
		}
	}
	for _, a := range []struct {
		what string
		is4  bool
	}{{"Node IP", n.NodeIP.Is4()}, {"pod range", n.PodCIDR.Addr().Is4()}, {"gateway IP", n.GatewayIP.Is4()}} {
		if !a.is4 {
			errs = append(errs, errors.New("there is no IPv4 "+a.what))
		}
	}
	if len(n.Peers) > 0 && n.Tunnel.No == 0 {
		errs = append(errs, errors.New("there are other Nodes and no tunnel port"))
	}
	return errors.Join(errs...)
}

// literal is an entry that the document has.
func literal(row, why string, e *flow.Entry) layout.Entry {
	return layout.Entry{Entry: e, Origin: layout.Origin{Row: row, Why: why, Literal: true}}
}

// written is an entry that the document says in words.
func written(row, why string, e *flow.Entry) layout.Entry {
	return layout.Entry{Entry: e, Origin: layout.Origin{Row: row, Why: why}}
}

// linux is an entry that the document leaves to the pipeline of Linux.
func linux(why string, e *flow.Entry) layout.Entry { return written("W-22", why, e) }

func goTo(table uint8) flow.Action { return flow.GotoTable{Table: table} }

func output(p layout.Port) flow.Action { return flow.Output{Port: p.No} }

// miss is the table-miss entry that goes to another table.
func miss(table, next uint8) layout.Entry {
	return linux("whatever no entry matches goes on", layout.NewEntry(table, priorityMiss, flow.Match{}, goTo(next)))
}

// sample is the Node of dumps, traces and lessons. The range of its pods is the document's.
func sample() *layout.Node { return layout.CardSample([3]byte{0x00, 0x15, 0x5d}) }
