package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// The words in which the table files write entries. A match is a list of terms.
// An entry is a place, a match and actions:
//
//	p.entry(forPods, tableARPSpoofGuard, priorityNormal,
//		match(arp, inPort(no), arpSPA(ip), arpSHA(mac)), p.goTo(tableARPResponder))

// Priorities. Each rule of an Antrea-native policy gets one of its own from
// control.
const (
	priorityMiss            = 0
	priorityLow             = 190
	priorityNormal          = 200
	priorityHigh            = 210
	priorityHigher          = 220
	priorityTopAntreaPolicy = 64990
	priorityDNSIntercept    = 64991
)

// category says in an entry's cookie which part of the pipeline the entry belongs
// to. A cookie is round (16 bits), category (8), reserved (8), object (32).
type category uint8

// The categories, numbered as in Antrea.
const (
	forDefault category = iota
	forPods
	forPolicies
	forServices
	forEgress
	forMulticast
	_ // Multicluster
	forTraceflow
	forExternal
)

func (p *Pipeline) cookie(c category, object uint32) uint64 {
	if p.c.CookieRound == 0 {
		return 0
	}
	return uint64(p.c.CookieRound)<<48 | uint64(c)<<40 | uint64(object)
}

// entry makes a flow entry. Without actions it drops.
func (p *Pipeline) entry(c category, t table, priority uint16, m flow.Match, actions ...flow.Action) *flow.Entry {
	return &flow.Entry{Table: p.id(t), Priority: priority, Match: m.Mini(), Cookie: p.cookie(c, 0), Actions: actions}
}

// term is one condition of a match.
type term = layout.Term

func match(terms ...term) flow.Match { return layout.Match(terms...) }

// EtherTypes and IP protocols of the tables.
const (
	etherTypeIPv4 = 0x800
	etherTypeARP  = 0x806
	etherTypeIPv6 = 0x86dd

	protoICMP   = 1
	protoIGMP   = 2
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
	protoSCTP   = 132
)

// ND message types (RFC 4861, section 4).
const (
	ndRouterAdvertisement   = 134
	ndNeighborSolicitation  = 135
	ndNeighborAdvertisement = 136
)

func arp(m *flow.Match) { layout.ARP(m) }

func inPort(no uint32) term { return layout.Exact(flow.InPort, uint64(no)) }

// tagged matches the data plane tag of a Traceflow.
func tagged(f Family, tag uint8) term {
	return func(m *flow.Match) { f.ip()(m); layout.Exact(flow.IPDSCP, uint64(tag))(m) }
}

// move copies a whole field into another.
func move(src, dst flow.FieldID) flow.Action {
	return flow.Move{Src: flow.FieldByID(src).Full(), Dst: flow.FieldByID(dst).Full()}
}

// keepSource writes the packet's source (Pod, gateway, tunnel …) into its
// connection.
func keepSource() flow.Action {
	return flow.Move{Src: PktSourceField.Subfield, Dst: ConnSourceCTMarkField.Subfield}
}

// ctSNAT is a bit of ct_state (ovs-fields(7)).
const ctSNAT = 1 << 6

// tracked matches bits of a tracked packet's ct_state.
func tracked(set, clear uint64) term { return layout.CtState(set|layout.CtTrk, clear) }

// snatTo and dnatTo are nat(src=…) and nat(dst=…) of a commit.
func snatTo(a netip.Addr) *flow.NAT {
	return &flow.NAT{Type: flow.NATSource, AddrMin: a, AddrMax: a}
}

func dnatTo(a netip.AddrPort) *flow.NAT {
	return &flow.NAT{
		Type: flow.NATDestination, AddrMin: a.Addr(), AddrMax: a.Addr(), PortMin: a.Port(), PortMax: a.Port(),
	}
}

// packetIn is controller(reason=no_match,id=…,userdata=…).
func (p *Pipeline) packetIn(userdata ...byte) flow.Controller {
	return flow.Controller{MaxLen: 65535, Reason: "no_match", ID: p.c.ControllerID, UserData: userdata}
}
