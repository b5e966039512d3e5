package telemetry

import (
	"net/netip"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// SnapLen is how many bytes of a packet are kept.
const SnapLen = 9216

// LiveCounts is what became of the packets that a live trace wanted.
type LiveCounts struct {
	Matched uint64 `json:"matched"` // packets
	Told    uint64 `json:"told"`    // walks that were put into the ring
	Missed  uint64 `json:"missed"`  // packets that were not watched, because the ring was full
}

// Arrival is what a real packet came with.
type Arrival struct {
	ID      uint64         `json:"id"` // of the walk; both its halves have the same
	Time    time.Time      `json:"time"`
	Port    uint32         `json:"ofPort"`
	Frame   []byte         `json:"frame,omitzero"` // its first SnapLen bytes
	Len     int            `json:"length"`         // all of them
	Offload packet.Offload `json:"offload,omitzero"`
	Tunnel  packet.Tunnel  `json:"tunnel,omitzero"` // that it came in
	Mark    uint32         `json:"mark,omitzero"`
	// Followed says that the id came with the packet, from another switch.
	Followed bool `json:"followed,omitzero"`
	// Resumed says that the walk of a fragment goes on here, which began with the
	// same id and waited for the rest of its datagram.
	Resumed bool `json:"resumed,omitzero"`
}

// TraceRequest describes the packet to trace.
type TraceRequest struct {
	InPort uint32 `json:"inPort"`
	Frame  []byte `json:"frame,omitzero"`
	// Offload is the work that the frame's sender left undone.
	Offload packet.Offload `json:"offload,omitzero"`
	// Metadata presets metadata fields (registers, tun_dst, pkt_mark …) under
	// its mask.
	Metadata flow.Match `json:"metadata,omitzero"`
	// CTNext, when not nil, answers ct() actions in conntrack's place, as ofproto/trace
	// --ct-next does. Each gets one state, and trk|new when they run out. nat() with an
	// address writes it, and the mark and label start from Metadata's.
	CTNext []conntrack.State `json:"ctNext,omitzero"`
	// CTAnswers answer the first ct() actions, before CTNext: as conntrack did for a
	// packet that was recorded.
	CTAnswers []CTAnswer `json:"ctAnswers,omitzero"`
	// Stranger makes the packet the first of its connections: ct() actions know
	// none.
	Stranger bool `json:"stranger,omitzero"`
	// Buckets are the buckets that groups choose, by group number: their places in the
	// group. Groups that are not in it choose as they do.
	Buckets map[uint32]int `json:"buckets,omitzero"`
	// PickBucket, when not nil, chooses the bucket of select groups. A function cannot
	// cross to another process.
	PickBucket func(g *flow.Group, chosen int) int `json:"-"`
}

// CTAnswer is what a ct() action answered once: the state, mark and label, and the
// packet's ends as NAT left them. Ends that are not valid are as they were.
type CTAnswer struct {
	State conntrack.State `json:"state"`
	Mark  uint32          `json:"mark,omitzero"`
	Label conntrack.Label `json:"label,omitzero"`
	Src   netip.AddrPort  `json:"src,omitzero"`
	Dst   netip.AddrPort  `json:"dst,omitzero"`
}

// StepKind says what a step of a trace is.
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

// Step is one thing that happened on a walk.
type Step struct {
	Kind   StepKind    `json:"kind"`
	Depth  int         `json:"depth"` // nested tables, 1 for the first
	Table  uint8       `json:"table"` // where the walk stands
	Entry  *flow.Entry `json:"-"`
	Action flow.Action `json:"-"`
	Note   string      `json:"note,omitzero"` // of a bucket; of a packet-in, who gets it
	// CT is the ct() request behind StepCT; Meta what the packet carries after
	// it.
	CT   *conntrack.Request `json:"ct,omitzero"`
	Meta conntrack.Meta     `json:"meta,omitzero"`
	// Group chose Buckets[Bucket] at StepBucket.
	Group  *flow.Group `json:"-"`
	Bucket int         `json:"bucket,omitzero"`
	// Port, Frame, Tunnel and Mark are the output of StepOutput. Frame is also that of a
	// packet-in, and of the entrance of a table that a live trace watches.
	Port   uint32        `json:"ofPort,omitzero"`
	Frame  []byte        `json:"frame,omitzero"`
	Tunnel packet.Tunnel `json:"tunnel,omitzero"`
	Mark   uint32        `json:"mark,omitzero"`
	Reason DropReason    `json:"reason,omitzero"`
	// Dropped says that no frame was left for the output after all.
	Dropped bool `json:"dropped,omitzero"`
	// At is when the step began, in nanoseconds of the switch's clock; 0 when the
	// packet is made up.
	At int64 `json:"atNS,omitzero"`
	// After is the packet's key when the step was done, and Changed the fields
	// that the step changed.
	After   flow.Key       `json:"after"`
	Changed []flow.FieldID `json:"changed,omitzero"`
}

// Trace is a watched walk.
type Trace struct {
	Start   flow.Key    `json:"start"`
	Steps   []Step      `json:"-"`
	Verdict Verdict     `json:"verdict"`
	Names   *flow.Names `json:"names"`
	// Live is what a real packet came with; nil when it is made up.
	Live *Arrival `json:"live,omitzero"`
}

// Verdict is how a packet's walk ended.
type Verdict struct {
	Outputs  []uint32   `json:"outputs,omitzero"` // port numbers in order
	PacketIn bool       `json:"packetIn,omitzero"`
	Answered bool       `json:"answered,omitzero"` // the packet-in is one that the switch answers by itself
	Waits    bool       `json:"waits,omitzero"`    // a fragment: for the rest of its datagram, at a ct() in Table
	Reason   DropReason `json:"reason,omitzero"`   // when nothing was sent, and nothing waits
	Table    uint8      `json:"table"`             // where it was dropped or waits
}

// The notes of packet-ins.
const (
	PacketInToAgent  = "packet-in to the agent"
	PacketInAnswered = "answered by the switch"
)
