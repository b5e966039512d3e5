package flow

import "net/netip"

// Action is one action of a flow entry: a plain struct below. Actions are immutable once an entry
// is made. The datapath switches on their type. The printer writes them as ovs-ofctl does.
type Action interface{ isAction() }

// Subfield is N bits of a field from bit Ofs up: NXM_NX_REG0[0..3].
type Subfield struct {
	Field FieldID
	Ofs   uint8
	N     uint8
}

// Reserved port numbers (OpenFlow 1.3, section A.2.1).
const (
	PortInPort     = 0xfffffff8
	PortTable      = 0xfffffff9
	PortNormal     = 0xfffffffa
	PortFlood      = 0xfffffffb
	PortAll        = 0xfffffffc
	PortController = 0xfffffffd
	PortLocal      = 0xfffffffe
	PortNone       = 0xffffffff // OFPP_ANY
)

// The actions. There is none for drop: an entry without actions drops.
type (
	// Output sends to a port: output:3, output:"antrea-tun0", LOCAL. The
	// reserved ports have actions of their own below.
	Output struct{ Port uint32 }
	// OutputReg sends to the port whose number a field holds: output:NXM_NX_REG1[].
	OutputReg struct{ Src Subfield }
	// OutputInPort sends the packet back to its input port: IN_PORT.
	OutputInPort struct{}
	// Normal is the MAC learning switch: NORMAL.
	Normal struct{}
	// Flood sends to every port but the input port: FLOOD.
	Flood struct{}
	// All sends to every port but the input port: ALL.
	All struct{}
	// Controller is a packet-in: controller(reason=no_match,id=62373,userdata=01.02,pause).
	Controller struct {
		MaxLen   uint16 // bytes to send, 65535 for all (the default, not printed)
		Reason   string // no_match, action (the default, not printed), invalid_ttl …
		ID       uint16
		UserData []byte
		Pause    bool
		MeterID  uint32 // 0 for none
	}
	// GotoTable continues in a later table: goto_table:SpoofGuard.
	GotoTable struct{ Table uint8 }
	// Resubmit looks up a table and comes back: resubmit(,ServiceLB). InPort is PortInPort if the
	// packet keeps its own (printed empty).
	Resubmit struct {
		InPort uint32
		Table  uint8 // CurrentTable: the one the entry is in
		CT     bool  // resubmit(,T,ct): swap to the connection's original tuple
	}
	// SetField writes Value's bits under Mask: set_field:0x2/0xf->reg0.
	SetField struct {
		Field       FieldID
		Value, Mask Value // Mask is the field's full mask when none is written
	}
	// Load writes a subfield: load:0x2->NXM_NX_REG4[16..18]. The printer writes
	// it as set_field (as OpenFlow 1.5 dumps do) except inside learn.
	Load struct {
		Dst   Subfield
		Value Value
	}
	// Move copies bits: move:NXM_NX_REG0[0..3]->NXM_NX_CT_MARK[0..3].
	Move struct{ Src, Dst Subfield }
	// DecTTL is dec_ttl. It drops a packet with TTL 1.
	DecTTL struct{}
	// PushVLAN adds a tag with VLAN 0: push_vlan:0x8100.
	PushVLAN struct{ EtherType uint16 }
	// PopVLAN removes the outermost tag: pop_vlan, strip_vlan.
	PopVLAN struct{}
	// CT is ct(commit,table=…,zone=…,nat(…),exec(…)).
	CT struct {
		Commit, Force bool
		Zone          uint16
		ZoneSrc       *Subfield // zone=NXM_NX_REG8[0..15]; nil when Zone holds it
		Table         uint8     // NoTable when the packet does not continue
		NAT           *NAT      // nil without nat
		Exec          []Action  // SetField, Load, Move to ct_mark and ct_label only
		ALG           string    // parsed and printed; the datapath refuses it
	}
	// CTClear clears the packet's conntrack state: ct_clear.
	CTClear struct{}
	// GroupAction is group:10.
	GroupAction struct{ ID uint32 }
	// Conjunction is clause Clause of N of conjunctive match ID: conjunction(7,2/3).
	// Clause counts from 1, as printed.
	Conjunction struct {
		ID        uint32
		Clause, N uint8
	}
	// MeterAction is meter:256.
	MeterAction struct{ ID uint32 }
	// Clone runs actions on a copy: clone(…).
	Clone struct{ Actions []Action }
	// Note carries bytes and does nothing: note:01.02.
	Note struct{ Bytes []byte }
)

// NoTable: ct() has no table=. CurrentTable: resubmit names no table.
const (
	NoTable      = 255
	CurrentTable = 255
)

// NAT is nat, nat(src=A-B:p-q,…) or nat(dst=…) of ct.
type NAT struct {
	Type                     NATType
	AddrMin, AddrMax         netip.Addr // AddrMax equals AddrMin when no range is written
	PortMin, PortMax         uint16     // 0 when no port is written
	Persistent, Hash, Random bool
}

// NATType is the side that ct(nat) translates.
type NATType uint8

// Kinds of NAT: NATRestore is nat without arguments.
const (
	NATRestore NATType = iota
	NATSource
	NATDestination
)

// Learn makes an entry from the packet: learn(table=…,…).
type Learn struct {
	Table                    uint8
	Priority                 uint16
	IdleTimeout, HardTimeout uint16
	FinIdleTimeout           uint16
	FinHardTimeout           uint16
	Cookie                   uint64
	SendFlowRem              bool
	DeleteLearned            bool
	Limit                    uint32
	Specs                    []LearnSpec
}

// LearnSpec is one part of a learn action. Src is a field of the packet if FromField is set;
// otherwise the value is Immediate. It becomes a match on Dst, a load into Dst or an output to
// the port that it holds.
type LearnSpec struct {
	Kind      LearnKind
	FromField bool
	Src       Subfield
	Immediate Value
	Dst       Subfield
}

// LearnKind is the form of a LearnSpec in the learned entry.
type LearnKind uint8

// Kinds of LearnSpec: NXM_OF_IP_DST[] or eth_type=0x800 is a LearnMatch,
// load:… a LearnLoad, output:NXM_OF_IN_PORT[] a LearnOutput.
const (
	LearnMatch LearnKind = iota
	LearnLoad
	LearnOutput
)

func (Output) isAction()       {}
func (OutputReg) isAction()    {}
func (OutputInPort) isAction() {}
func (Normal) isAction()       {}
func (Flood) isAction()        {}
func (All) isAction()          {}
func (Controller) isAction()   {}
func (GotoTable) isAction()    {}
func (Resubmit) isAction()     {}
func (SetField) isAction()     {}
func (Load) isAction()         {}
func (Move) isAction()         {}
func (DecTTL) isAction()       {}
func (PushVLAN) isAction()     {}
func (PopVLAN) isAction()      {}
func (*CT) isAction()          {}
func (CTClear) isAction()      {}
func (GroupAction) isAction()  {}
func (Conjunction) isAction()  {}
func (MeterAction) isAction()  {}
func (Clone) isAction()        {}
func (Note) isAction()         {}
func (*Learn) isAction()       {}
