package conntrack

import (
	"net/netip"

	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
)

// State is ct_state: what conntrack says about a packet.
type State uint32

// Bits of ct_state, as in ovs-fields(7).
const (
	New State = 1 << iota
	Established
	Related
	Reply
	Invalid
	Tracked
	SNATed
	DNATed
)

// Label is the 128-bit ct_label.
type Label struct{ Hi, Lo uint64 }

// Tuple is one direction of a connection. For ICMP the ports hold type and code.
type Tuple struct {
	Src     netip.Addr `json:"src,omitzero"`
	Dst     netip.Addr `json:"dst,omitzero"`
	Proto   uint8      `json:"proto"`
	SrcPort uint16     `json:"srcPort"`
	DstPort uint16     `json:"dstPort"`
}

// set sets the tuple from a key, in the form of ct_nw_src and the related fields.
func (t *Tuple) set(k *tuple.Key) {
	t.Src, t.Dst, t.Proto = k.Src.Addr(k.Family), k.Dst.Addr(k.Family), k.Proto
	t.SrcPort, t.DstPort = k.ShownPorts()
}

// Meta is a packet's conntrack state on its way through the pipeline. The zero value is an
// untracked packet. The unexported part remembers the connection for a second ct() in the same
// zone.
type Meta struct {
	State State  `json:"state,omitzero"`
	Zone  uint16 `json:"zone,omitzero"`
	Mark  uint32 `json:"mark,omitzero"`
	Label Label  `json:"label,omitzero"`

	orig  tuple.Key    // original direction, before NAT
	at    store.Handle // the connection in Zone, and the packet's direction in it
	dir   uint8
	sound bool // the packet's checksums were verified
	again bool // an earlier ct() had already found the connection
	// counted says that the packet has taken its token for a new connection. A packet that
	// commits in several zones takes one token.
	counted bool
	seen    tuple.Key // the tuple after the last ct()
	// unknown says that the last ct() looked seen up in Zone and found no connection. Then a
	// commit skips the lookup.
	unknown bool
}

// Original is the original direction of a packet's connection before NAT, as ct_nw_src,
// ct_nw_dst and ct_tp_src show it. It is zero for an untracked packet. For ICMP the ports hold
// type and code. Addresses are numbers. An IPv4 address is in the low 32 bits.
type Original struct {
	IPv6             bool
	Src, Dst         struct{ Hi, Lo uint64 }
	Proto            uint8
	SrcPort, DstPort uint16
}

// Original writes the original direction that the last ct() has found to o.
func (m *Meta) Original(o *Original) {
	k := &m.orig
	o.Src.Hi, o.Src.Lo, o.Dst.Hi, o.Dst.Lo = k.Src.Hi, k.Src.Lo, k.Dst.Hi, k.Dst.Lo
	o.IPv6, o.Proto = k.Family == tuple.IPv6, k.Proto
	o.SrcPort, o.DstPort = k.ShownPorts()
}

// Request is one ct() action.
type Request struct {
	Zone   uint16 `json:"zone"`
	Commit bool   `json:"commit,omitzero"`
	Force  bool   `json:"force,omitzero"`
	NAT    *NAT   `json:"nat,omitzero"` // nil without nat
	// Mark and Label are written under their masks.
	Mark      uint32 `json:"mark,omitzero"`
	MarkMask  uint32 `json:"markMask,omitzero"`
	Label     Label  `json:"label,omitzero"`
	LabelMask Label  `json:"labelMask,omitzero"`
	// InPort is the port the packet came from, for fair shares and counters.
	InPort uint32 `json:"inPort"`
	// Near may hold the places of the packet's lookup, computed in advance. It is compared with
	// the packet's key, so it may be wrong. It belongs to one table and does not cross to another
	// process.
	Near *Near `json:"-"`
}

// NAT is the nat() argument of ct(). It is made when a flow entry is installed, and never
// changes.
type NAT struct {
	// Neither Source nor Destination is nat without arguments.
	Source      bool       `json:"source,omitzero"`
	Destination bool       `json:"destination,omitzero"`
	AddrMin     netip.Addr `json:"addrMin,omitzero"`
	AddrMax     netip.Addr `json:"addrMax,omitzero"`
	PortMin     uint16     `json:"portMin,omitzero"`
	PortMax     uint16     `json:"portMax,omitzero"`
}

// Verdict is the result of Track.
type Verdict struct {
	// Rewritten says that NAT changed the frame's bytes.
	Rewritten bool
	// Drop is not DropNone if the packet must not go on.
	Drop DropReason
}

// DropReason is why conntrack refuses a packet.
type DropReason uint8

// Drop reasons of conntrack.
const (
	DropNone DropReason = iota
	// DropNATExhausted: other connections have all reply tuples that the connection could
	// have. Without NAT it could have only one (D7).
	DropNATExhausted
	// DropTableFull: as many connections as SetMax allows (D9).
	DropTableFull
	// DropZoneFull: as many connections in the zone as its limit allows (D9).
	DropZoneFull
	// DropServerFirst: the table was lost, and the packet of a Service's endpoint would begin
	// the connection in the wrong direction (D13).
	DropServerFirst
	// DropNewRate: the port begins connections faster than Config.NewRate
	// (CT-39).
	DropNewRate
	// DropChainFull: too many connections are in one chain of the index. Only an attacker that
	// knows the secret can cause that (CT-41).
	DropChainFull
	// DropPortShare: the table is over 95 % full, and the port holds more than
	// its fair share (CT-47).
	DropPortShare
	numDropReasons
)

// dropNames are the reasons' names, as counters show them.
var dropNames = [numDropReasons]string{
	"none", "ct_nat_exhausted", "ct_full", "ct_zone_full", "ct_server_first", "ct_new_rate", "ct_chain_full", "ct_port_share",
}

// String is the reason's name, as counters and metrics show it.
func (r DropReason) String() string { return dropNames[r] }
