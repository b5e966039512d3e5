// Package trace has walks of packets for people and programs. A walk is a switch's record with names
// of ports and tables and the objects behind entries. The package also prints walks.
//
//	walk.go     a packet's way through one Node's tables
//	readrecording.go walks from a file of any source
//	join.go     ways through several Nodes, and of fragments, as one
//	summary.go  a packet in a few words
//	paths.go    packets that went the same way, as one line
//	by.go       the policy, or other object, because of which a packet is lost
//	forms.go    the list of forms:
//	tree.go     the form for reading
//	vpp.go      the form of VPP's packet trace; headers.go its lines of headers
//	mermaid.go  the form that documents draw
//	pcapng.go   the form that Wireshark reads
//	ngwriter.go its blocks
//
// It needs no packets and no switch: package agent makes walks, and sends them as JSON.
package trace

import (
	"encoding/hex"
	"iter"
	"strings"
	"time"
)

// Walk is a packet's way through one Node's tables.
type Walk struct {
	// ID is 16 hexadecimal digits. The walks of the same packet on other Nodes have the same ID,
	// and so has the rest of a fragment's way. A made-up packet has no ID and no time.
	ID   string    `json:"id"`
	Node string    `json:"node,omitempty"`
	Time time.Time `json:"time"` // when it entered
	// Followed is set if the packet came with its id from another Node. Resumed is set for a
	// fragment that waited and continues here.
	Followed bool    `json:"followed,omitempty"`
	Resumed  bool    `json:"resumed,omitempty"`
	InPort   Port    `json:"inPort"`
	Packet   string  `json:"packet"` // in flow syntax
	Frame    Bytes   `json:"frame"`  // its first bytes, as it entered
	Length   int     `json:"length"` // of all of it
	Undone   *Undone `json:"undone,omitempty"`
	Tunnel   *Tunnel `json:"tunnel,omitempty"` // the tunnel that it came in
	Mark     uint32  `json:"mark,omitempty"`
	Steps    []Step  `json:"steps"`
	Verdict  Verdict `json:"verdict"`
	// Text is the walk in the form of ofproto/trace, if it was requested.
	Text string `json:"text,omitempty"`
}

// Port is a port of the switch, and the Pod behind it.
type Port struct {
	No   uint32 `json:"ofPort"`
	Name string `json:"name,omitempty"`
	Pod  string `json:"pod,omitempty"` // namespace/name
	// Driver is the port's (ports.Info). It is known only for the input port of a live packet.
	Driver string `json:"driver,omitempty"`
}

// Undone is the work that the packet's sender left undone (packet.Offload).
type Undone struct {
	ChecksumStart  uint16 `json:"checksumStart,omitempty"`
	ChecksumOffset uint16 `json:"checksumOffset,omitempty"`
	SegmentSize    uint16 `json:"segmentSize,omitempty"`
}

// Tunnel is an outer header.
type Tunnel struct {
	Src string `json:"src,omitempty"`
	Dst string `json:"dst,omitempty"`
	VNI uint64 `json:"vni"`
}

// Step is one step of a walk. Kind is one of those of dataplane.Step.
type Step struct {
	Kind    string `json:"kind"`
	Table   string `json:"table"`
	TableID uint8  `json:"tableID"`
	Depth   int    `json:"depth"` // nested tables, 1 for the first
	// AfterNS is the time since the packet entered, in nanoseconds.
	AfterNS int64 `json:"afterNS"`
	// Entry is the entry that a table gave (kind entry; nil for none), or that the packet made
	// (learn).
	Entry   *Entry   `json:"entry,omitempty"`
	Action  string   `json:"action,omitempty"`
	Changes []Change `json:"changes,omitempty"`
	CT      *CT      `json:"ct,omitempty"`
	Bucket  *Bucket  `json:"bucket,omitempty"`
	// Port, Frame and Tunnel belong to an output, Frame to a packet-in too. Dropped is set if no
	// memory was left for it. Frame and Packet, in flow syntax, also belong to the entrance of a
	// table that was asked for.
	Port     *Port    `json:"port,omitempty"`
	Frame    Bytes    `json:"frame,omitempty"`
	Packet   string   `json:"packet,omitempty"`
	Tunnel   *Tunnel  `json:"tunnel,omitempty"`
	Mark     uint32   `json:"mark,omitempty"`
	Marks    []string `json:"marks,omitempty"` // Mark in words
	Dropped  bool     `json:"dropped,omitempty"`
	Note     string   `json:"note,omitempty"`   // the receiver of a packet-in
	Reason   string   `json:"reason,omitempty"` // of a drop
	Sentence string   `json:"sentence,omitempty"`
}

// Entry is a flow entry and the objects behind it.
type Entry struct {
	Match    string `json:"match"`
	Priority uint16 `json:"priority"`
	Cookie   string `json:"cookie,omitempty"`
	Actions  string `json:"actions"`
	// Marks are the match's registers and marks, in words.
	Marks   []string `json:"marks,omitempty"`
	Objects []Object `json:"objects,omitempty"`
}

// Object is an object of the cluster, and the place in it that needs the entry.
type Object struct {
	Object string `json:"object"` // Kind/namespace/name
	Field  string `json:"field,omitempty"`
	Rule   string `json:"rule,omitempty"`
}

// Change is a field with a new value.
type Change struct {
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
	// Marks are the changes of a register or mark, in words.
	Marks []string `json:"marks,omitempty"`
}

// CT is conntrack's result.
type CT struct {
	State  string   `json:"state"` // as ct_state: new|trk
	Zone   uint16   `json:"zone"`
	Mark   uint32   `json:"mark"`
	Label  string   `json:"label"`
	Marks  []string `json:"marks,omitempty"` // mark and label in words
	Commit bool     `json:"commit,omitempty"`
	NAT    []NAT    `json:"nat,omitempty"`
}

// NAT is a new address and port of one end of the packet.
type NAT struct {
	End    string `json:"end"` // source or destination
	Before string `json:"before"`
	After  string `json:"after"`
}

// Bucket is a group's choice.
type Bucket struct {
	Group  uint32  `json:"group"`
	Bucket uint32  `json:"bucket"`
	Of     int     `json:"of"`
	Object *Object `json:"object,omitempty"`
}

// Verdict is the end of the walk.
type Verdict struct {
	Text     string `json:"text"`
	Outputs  []Port `json:"outputs,omitempty"`
	PacketIn bool   `json:"packetIn,omitempty"`
	Waits    bool   `json:"waits,omitempty"`  // a fragment waits for the rest of its datagram
	Reason   string `json:"reason,omitempty"` // of a drop
	Table    string `json:"table,omitempty"`  // where it was dropped or waits
}

// Bytes are hexadecimal in JSON.
type Bytes []byte

// MarshalText implements encoding.TextMarshaler.
func (b Bytes) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, b), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Bytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.AppendDecode(nil, text)
	return err
}

// String is the object, and the place in it.
func (o Object) String() string {
	s := o.Object
	if o.Field != "" {
		s += " " + o.Field
	}
	if o.Rule != "" {
		s += " (" + o.Rule + ")"
	}
	return s
}

// bracket puts words behind a number in brackets; "" for none.
func bracket(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// At is the time when a step began.
func (w *Walk) At(s *Step) time.Time { return w.Time.Add(time.Duration(s.AfterNS)) }

// visits are the walk's steps by tables, with the index of the first: each list begins with the
// step that enters its table.
func (w *Walk) visits() iter.Seq2[int, []Step] {
	return func(yield func(int, []Step) bool) {
		for from := 0; from < len(w.Steps); {
			to := from + 1
			for to < len(w.Steps) && w.Steps[to].Kind != StepEntry {
				to++
			}
			if !yield(from, w.Steps[from:to]) {
				return
			}
			from = to
		}
	}
}

// Carried reports whether the packet left through a tunnel, so that another Node may have a walk
// of it.
func (w *Walk) Carried() bool {
	for i := range w.Steps {
		if s := &w.Steps[i]; s.Kind == StepOutput && s.Tunnel != nil && !s.Dropped {
			return true
		}
	}
	return false
}

// Kinds of steps, as package dataplane has them.
const (
	StepEntry    = "entry"
	StepAction   = "action"
	StepCT       = "ct"
	StepBucket   = "bucket"
	StepLearn    = "learn"
	StepOutput   = "output"
	StepPacketIn = "packet-in"
	StepWait     = "wait"
	StepDrop     = "drop"
)
