package telemetry

import (
	"net/netip"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// SnapLen is how many bytes of a packet a trace keeps.
const SnapLen = 9216

// LiveCounts counts the packets that matched a live trace.
type LiveCounts struct {
	Matched uint64 `json:"matched"` // packets
	Told    uint64 `json:"told"`    // walks put into the ring
	Missed  uint64 `json:"missed"`  // packets not watched, because the ring was full
}

// Arrival is a real packet as it entered.
type Arrival struct {
	ID      uint64         `json:"id"` // of the walk; both its halves have it
	Time    time.Time      `json:"time"`
	Port    uint32         `json:"ofPort"`
	Frame   []byte         `json:"frame,omitzero"` // the first SnapLen bytes
	Len     int            `json:"length"`         // of the whole frame
	Offload packet.Offload `json:"offload,omitzero"`
	Tunnel  packet.Tunnel  `json:"tunnel,omitzero"` // through which it came
	Mark    uint32         `json:"mark,omitzero"`
	// Followed says that the id came with the packet from another switch.
	Followed bool `json:"followed,omitzero"`
	// Resumed says that this is the rest of a fragment's walk. Its first part has the same id,
	// and waited for the rest of the datagram.
	Resumed bool `json:"resumed,omitzero"`
}

// TraceRequest describes the packet to trace.
type TraceRequest struct {
	InPort uint32 `json:"inPort"`
	Frame  []byte `json:"frame,omitzero"`
	// Offload is what the frame's sender left undone.
	Offload packet.Offload `json:"offload,omitzero"`
	// Metadata presets metadata fields (registers, tun_dst, pkt_mark …) under
	// its mask.
	Metadata flow.Match `json:"metadata,omitzero"`
	// CTNext, if not nil, answers ct() actions in conntrack's place, as ofproto/trace --ct-next
	// does. Each ct() gets one state, and trk|new after the last one. nat() writes its address,
	// and the mark and label start from Metadata's.
	CTNext []conntrack.State `json:"ctNext,omitzero"`
	// CTAnswers answer the first ct() actions, before CTNext. They are conntrack's answers for a
	// recorded packet.
	CTAnswers []CTAnswer `json:"ctAnswers,omitzero"`
	// Stranger makes the packet the first of its connections: ct() actions find none.
	Stranger bool `json:"stranger,omitzero"`
	// Buckets are the indexes of the buckets that groups choose, by group number. Other groups
	// choose as for traffic.
	Buckets map[uint32]int `json:"buckets,omitzero"`
	// PickBucket, if not nil, chooses the bucket of select groups. It does not cross to another
	// process.
	PickBucket func(g *flow.Group, chosen int) int `json:"-"`
}

// CTAnswer is a recorded answer of a ct() action: the state, mark and label, and the packet's
// ends after NAT. An invalid end means no change.
type CTAnswer struct {
	State conntrack.State `json:"state"`
	Mark  uint32          `json:"mark,omitzero"`
	Label conntrack.Label `json:"label,omitzero"`
	Src   netip.AddrPort  `json:"src,omitzero"`
	Dst   netip.AddrPort  `json:"dst,omitzero"`
}

// StepKind is the kind of a step.
type StepKind string

// Kinds of steps.
const (
	StepEntry    StepKind = "entry"     // a table was looked up: Entry, or nil for a miss
	StepAction   StepKind = "action"    // an action begins
	StepCT       StepKind = "ct"        // conntrack's answer
	StepBucket   StepKind = "bucket"    // the group's choice
	StepLearn    StepKind = "learn"     // the entry that traffic would learn
	StepOutput   StepKind = "output"    // the frame as it leaves
	StepPacketIn StepKind = "packet-in" // the frame as the agent gets it
	StepWait     StepKind = "wait"      // a fragment waits for the rest of its datagram
	StepDrop     StepKind = "drop"      // a dead end
)

// Step is one event on a walk.
type Step struct {
	Kind   StepKind    `json:"kind"`
	Depth  int         `json:"depth"` // nested tables, 1 for the first
	Table  uint8       `json:"table"` // the current table
	Entry  *flow.Entry `json:"-"`
	Action flow.Action `json:"-"`
	Note   string      `json:"note,omitzero"` // of a bucket; of a packet-in, its receiver
	// CT is the ct() request of StepCT; Meta is the packet's state after it.
	CT   *conntrack.Request `json:"ct,omitzero"`
	Meta conntrack.Meta     `json:"meta,omitzero"`
	// Group chose Buckets[Bucket] at StepBucket.
	Group  *flow.Group `json:"-"`
	Bucket int         `json:"bucket,omitzero"`
	// Port, Frame, Tunnel and Mark are the output of StepOutput. A packet-in also has Frame, and
	// so has the entrance of a table that a live trace watches.
	Port   uint32        `json:"ofPort,omitzero"`
	Frame  []byte        `json:"frame,omitzero"`
	Tunnel packet.Tunnel `json:"tunnel,omitzero"`
	Mark   uint32        `json:"mark,omitzero"`
	Reason DropReason    `json:"reason,omitzero"`
	// Dropped says that no frame was left for the output.
	Dropped bool `json:"dropped,omitzero"`
	// At is when the step began, in nanoseconds of the switch's clock; 0 for a made-up packet.
	At int64 `json:"atNS,omitzero"`
	// After is the packet's key after the step, and Changed the fields that the step changed.
	After   flow.Key       `json:"after"`
	Changed []flow.FieldID `json:"changed,omitzero"`
}

// Trace is a recorded walk.
type Trace struct {
	Start   flow.Key    `json:"start"`
	Steps   []Step      `json:"-"`
	Verdict Verdict     `json:"verdict"`
	Names   *flow.Names `json:"names"`
	// Live is the real packet; nil for a made-up one.
	Live *Arrival `json:"live,omitzero"`
}

// Verdict is how a packet's walk ended.
type Verdict struct {
	Outputs  []uint32   `json:"outputs,omitzero"` // port numbers in order
	PacketIn bool       `json:"packetIn,omitzero"`
	Answered bool       `json:"answered,omitzero"` // the switch itself answers the packet-in
	Waits    bool       `json:"waits,omitzero"`    // a fragment waits for the rest of its datagram, at a ct() in Table
	Reason   DropReason `json:"reason,omitzero"`   // if nothing was sent, and nothing waits
	Table    uint8      `json:"table"`             // where it was dropped or waits
}

// The notes of packet-ins.
const (
	PacketInToAgent  = "packet-in to the agent"
	PacketInAnswered = "answered by the switch"
)
