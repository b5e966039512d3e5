package conntrack

import "net/netip"

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

// Meta is what a packet carries of connection tracking through the pipeline;
// the zero value is an untracked packet. The unexported part remembers the
// connection for a second ct() in the same zone.
type Meta struct {
	State State  `json:"state,omitzero"`
	Zone  uint16 `json:"zone,omitzero"`
	Mark  uint32 `json:"mark,omitzero"`
	Label Label  `json:"label,omitzero"`

	orig  key    // original direction, before NAT
	at    handle // the connection in Zone, and the packet's direction in it
	dir   uint8
	sound bool // the packet's checksums were verified
	again bool // the last ct() knew the connection from one before it
	// counted says that the packet has taken its token for a new connection: a
	// packet that commits in several zones begins one connection.
	counted bool
	seen    key // the tuple as the last ct() left it
	// unknown says that the last ct() looked seen up in Zone and found no
	// connection, so that a commit need not look again.
	unknown bool
}

// Original is the original direction of a packet's connection before NAT, as
// ct_nw_src and its kin show it: zero for an untracked packet, for ICMP with type
// and code in the ports. Addresses are numbers, in the low 32 bits those of IPv4.
type Original struct {
	IPv6             bool
	Src, Dst         struct{ Hi, Lo uint64 }
	Proto            uint8
	SrcPort, DstPort uint16
}

// Original writes what the last ct() said of the packet's original direction.
func (m *Meta) Original(o *Original) {
	k := &m.orig
	o.Src.Hi, o.Src.Lo, o.Dst.Hi, o.Dst.Lo = k.src.hi, k.src.lo, k.dst.hi, k.dst.lo
	o.IPv6, o.Proto = k.family == ipv6, k.proto
	o.SrcPort, o.DstPort = k.shownPorts()
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
	// Near may say where the packet is looked up; nil when that is not known. It need
	// not be right: it is compared with what the packet shows. It belongs to one table
	// and does not cross to another process.
	Near *Near `json:"-"`
}

// NAT is the nat() argument of ct(). It is made when an entry is installed and
// never changes.
type NAT struct {
	// Neither Source nor Destination is nat without arguments.
	Source      bool       `json:"source,omitzero"`
	Destination bool       `json:"destination,omitzero"`
	AddrMin     netip.Addr `json:"addrMin,omitzero"`
	AddrMax     netip.Addr `json:"addrMax,omitzero"`
	PortMin     uint16     `json:"portMin,omitzero"`
	PortMax     uint16     `json:"portMax,omitzero"`
}

// Verdict is what Track decided.
type Verdict struct {
	// Rewritten says that NAT changed the frame's bytes.
	Rewritten bool
	// Drop is not DropNone when the packet must not go on.
	Drop DropReason
}

// DropReason is why conntrack refuses a packet.
type DropReason uint8

// Drop reasons of conntrack.
const (
	DropNone DropReason = iota
	// DropNATExhausted: each reply tuple that the connection could have is
	// another connection's; without NAT there is only one (D7).
	DropNATExhausted
	// DropTableFull: as many connections as SetMax allows (D9).
	DropTableFull
	// DropZoneFull: as many connections in the zone as its limit allows (D9).
	DropZoneFull
	// DropServerFirst: the table was lost, and a Service's endpoint would pick
	// the connection up the wrong way round (D13).
	DropServerFirst
	// DropNewRate: the port begins connections faster than Config.NewRate
	// (CT-39).
	DropNewRate
	// DropChainFull: too many connections in one place of the index, which
	// only somebody who knows the secret could bring about (CT-41).
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
