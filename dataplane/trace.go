package dataplane

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// A trace is a walk that is watched: the same code, the same tables. That of a
// packet that somebody describes is dry: it sees the same connections through
// conntrack's Scratch, but nothing is credited, learned or sent. That of a real
// packet (live.go) is its walk.

// TraceRequest describes the packet to trace.
type TraceRequest struct {
	InPort uint32 `json:"inPort"`
	Frame  []byte `json:"frame,omitzero"`
	// Offload is the work that the frame's sender left undone.
	Offload packet.Offload `json:"offload,omitzero"`
	// Metadata presets metadata fields (registers, tun_dst, pkt_mark …) under
	// its mask.
	Metadata flow.Match `json:"metadata,omitzero"`
	// CTNext, when not nil, answers ct() actions in conntrack's place, as
	// ofproto/trace --ct-next does: one state for each, and trk|new when they
	// run out; nat() with an address writes it, and the mark and label go on
	// from Metadata's.
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
// packet's ends as NAT left them, which are as they were where not valid.
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
	// Port, Frame, Tunnel and Mark are the output of StepOutput; Frame is of a
	// packet-in too, and of the entrance of a table that a live trace asks for.
	Port   uint32        `json:"ofPort,omitzero"`
	Frame  []byte        `json:"frame,omitzero"`
	Tunnel packet.Tunnel `json:"tunnel,omitzero"`
	Mark   uint32        `json:"mark,omitzero"`
	Reason DropReason    `json:"reason,omitzero"`
	// Lost says that no frame was left for the output after all.
	Lost bool `json:"lost,omitzero"`
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

// tracer records a walk.
type tracer struct {
	out  *Trace
	set  *liveSet // live traces (live.go), of which live wants it, as bits; nil when it is dry
	live uint8

	// Of a dry one:
	req       *TraceRequest
	conntrack *conntrack.Table
	asked     int
}

// The notes of packet-ins.
const (
	noteToAgent  = "packet-in to the agent"
	noteAnswered = "answered by the switch"
)

// dry says that the walk is a made-up packet's, and leaves no mark.
func (k *walk) dry() bool { return k.trace != nil && k.trace.out.Live == nil }

// Trace walks one packet and tells each step. The error is for a frame that is
// too short, or a switch without a pipeline.
func (s *Switch) Trace(req *TraceRequest) (*Trace, error) {
	prog := s.program.Load()
	if prog == nil {
		return nil, errNoPipeline
	}
	f := packet.NewFrame(make([]byte, packet.Headroom+len(req.Frame)+64), nil)
	if len(req.Frame) < 14 || !f.SetBytes(req.Frame) {
		return nil, errShortFrame
	}
	w := s.outside
	w.busy.Lock()
	defer w.busy.Unlock()
	w.now = s.clock()
	k := &w.walk
	k.begin(f, req.InPort)
	k.trace = &tracer{req: req, out: &Trace{Names: prog.names}, conntrack: s.tracked(req)}
	defer func() { k.trace = nil }()
	f.Offload = req.Offload
	k.layers = flow.Extract(f, req.InPort, &k.key)
	preset(&k.key, &req.Metadata)
	k.ct.Mark, k.ct.Label = ctOf(&k.key)
	k.trace.out.Start = k.key
	if why := k.violation(); why == NotDropped {
		k.walkTable(prog.first)
	} else {
		k.drop(why)
	}
	k.trace.settle(k)
	k.frame = nil
	w.flush()
	return k.trace.finish(k), nil
}

// tracked is the connections that a traced packet meets.
func (s *Switch) tracked(req *TraceRequest) *conntrack.Table {
	if req.Stranger {
		return s.conntrack.Blank()
	}
	return s.conntrack.Scratch()
}

// preset writes the metadata part of a match into a key.
func preset(k *flow.Key, m *flow.Match) {
	for i := range flow.HeaderStart {
		k[i] = k[i]&^m.Mask[i] | m.Value[i]
	}
}

// ctOf is the ct_mark and ct_label that a key holds.
func ctOf(k *flow.Key) (uint32, conntrack.Label) {
	l := flow.FieldByID(flow.CTLabel).Get(k)
	return uint32(flow.FieldByID(flow.CTMark).Get(k).Lo), conntrack.Label{Hi: l.Hi, Lo: l.Lo}
}

// finish is the trace with its verdict.
func (t *tracer) finish(k *walk) *Trace {
	v := &t.out.Verdict
	for i := range t.out.Steps {
		switch st := &t.out.Steps[i]; st.Kind {
		case StepOutput:
			if !st.Lost {
				v.Outputs = append(v.Outputs, st.Port)
			}
		case StepPacketIn:
			v.PacketIn, v.Answered = true, v.Answered || st.Note == noteAnswered
		case StepWait:
			v.Waits, v.Table = true, st.Table
		}
	}
	if k.sent == 0 && !v.Waits {
		v.Reason, v.Table = k.reason, k.at
		if v.Reason == NotDropped {
			v.Reason, v.Table = DropNoOutput, k.last
		}
	}
	return t.out
}

// add records that a step begins.
func (t *tracer) add(k *walk, st Step) {
	t.settle(k)
	st.Depth, st.Table, st.After = k.depth, k.table, k.key
	if t.out.Live != nil {
		st.At = k.w.sw.clock()
	}
	t.out.Steps = append(t.out.Steps, st)
}

// settle notes what the last step changed, now that it is done.
func (t *tracer) settle(k *walk) {
	if n := len(t.out.Steps); n > 0 {
		st := &t.out.Steps[n-1]
		st.Changed = append(st.Changed, flow.Diff(&st.After, &k.key)...)
		st.After = k.key
	}
}

// restore follows the walk back to the packet as it was before a branch.
func (t *tracer) restore(k *walk) {
	if n := len(t.out.Steps); n > 0 {
		t.out.Steps[n-1].After = k.key
	}
}

func (t *tracer) entry(k *walk, e *entry) { t.enters(k, e.Entry) }

func (t *tracer) miss(k *walk) { t.enters(k, nil) }

// enters records what a table gave.
func (t *tracer) enters(k *walk, e *flow.Entry) {
	st := Step{Kind: StepEntry, Entry: e}
	if t.keepsAt(k.table) {
		st.Frame = t.frame(k)
	}
	t.add(k, st)
}

func (t *tracer) action(k *walk, a flow.Action) {
	t.add(k, Step{Kind: StepAction, Action: asWritten(a)})
}

func (t *tracer) drop(k *walk, r DropReason) { t.add(k, Step{Kind: StepDrop, Reason: r}) }

// collect says what became of a fragment at a ct(): alone as it is, it waits,
// unless its shape forbids.
func (t *tracer) collect(k *walk, a *conntrack.Arrival) {
	if drop := a.Check(); drop != conntrack.FragWaits {
		k.drop(fragmentDrops[drop])
		return
	}
	t.wait(k)
}

func (t *tracer) wait(k *walk) { t.add(k, Step{Kind: StepWait}) }

func (t *tracer) learn(k *walk, e *flow.Entry) { t.add(k, Step{Kind: StepLearn, Entry: e}) }

func (t *tracer) packetIn(k *walk, a *flow.Controller) {
	note := noteToAgent
	if k.answeredHere(a) {
		note = noteAnswered
	}
	t.add(k, Step{Kind: StepPacketIn, Action: *a, Frame: t.frame(k), Note: note})
}

func (t *tracer) output(k *walk, p *switchPort) {
	st := Step{Kind: StepOutput, Port: p.no, Frame: t.frame(k)}
	if p.tunnel {
		st.Tunnel = k.frame.Tunnel
	}
	st.Mark = k.key.PktMark()
	t.add(k, st)
}

// frame is the packet's bytes, of a real one no more than SnapLen.
func (t *tracer) frame(k *walk) []byte {
	b := k.frame.Bytes()
	if t.out.Live != nil {
		b = b[:min(len(b), SnapLen)]
	}
	return slices.Clone(b)
}

// lose notes that the last output to a port had no frame left.
func (t *tracer) lose(p *switchPort) {
	for i := len(t.out.Steps) - 1; i >= 0; i-- {
		if st := &t.out.Steps[i]; st.Kind == StepOutput && st.Port == p.no {
			st.Lost = true
			return
		}
	}
}

// bucket lets the request choose, and records the choice.
func (t *tracer) bucket(k *walk, g *group, chosen int) int {
	if t.req != nil && t.req.PickBucket != nil {
		chosen = t.req.PickBucket(g.Group, chosen)
	}
	if t.req != nil {
		if i, told := t.req.Buckets[g.ID]; told && i >= 0 && i < len(g.Buckets) {
			chosen = i
		}
	}
	if chosen >= 0 {
		t.add(k, Step{Kind: StepBucket, Group: g.Group, Bucket: chosen, Note: fmt.Sprintf("group %d chose bucket_id:%d of %d", g.ID, g.Buckets[chosen].ID, len(g.Buckets))})
	}
	return chosen
}

// ask answers a ct() action from the connections as they are, or with the
// states of CTNext.
func (t *tracer) ask(k *walk, req *conntrack.Request) conntrack.Verdict {
	var v conntrack.Verdict
	if t.asked < len(t.req.CTAnswers) {
		t.repeat(k, req, &t.req.CTAnswers[t.asked])
	} else if t.req.CTNext == nil {
		v = t.conntrack.Track(k.frame, &k.layers, &k.ct, req, k.w.now)
	} else {
		k.ct = t.assumed(&k.ct, req)
		t.assumeNAT(k, req.NAT)
	}
	t.answered(k, req)
	return v
}

// answered records conntrack's answer.
func (t *tracer) answered(k *walk, req *conntrack.Request) {
	asked := *req // the walk uses its request and its NAT again
	if req.NAT != nil {
		nat := *req.NAT
		asked.NAT = &nat
	}
	t.add(k, Step{Kind: StepCT, CT: &asked, Meta: k.ct})
}

// repeat gives the packet what a ct() action once answered.
func (t *tracer) repeat(k *walk, req *conntrack.Request, a *CTAnswer) {
	t.asked++
	k.ct = conntrack.Meta{State: a.State, Zone: req.Zone, Mark: a.Mark, Label: a.Label}
	for _, end := range []struct {
		is           netip.AddrPort
		v4, v6, port flow.FieldID
	}{{a.Src, flow.IPSrc, flow.IPv6Src, flow.TCPSrc}, {a.Dst, flow.IPDst, flow.IPv6Dst, flow.TCPDst}} {
		if !end.is.IsValid() {
			continue
		}
		id, bits := end.v4, 32
		if end.is.Addr().Is6() {
			id, bits = end.v6, 128
		}
		k.setField(id, flow.ValueOfAddr(end.is.Addr()), flow.Ones(bits))
		if end.is.Port() != 0 {
			k.setField(end.port, flow.Value{Lo: uint64(end.is.Port())}, flow.Ones(16))
		}
	}
}

// assumeNAT writes the first address and port of a nat() into the packet, as
// ofproto/trace does.
func (t *tracer) assumeNAT(k *walk, n *conntrack.NAT) {
	if n == nil || !n.AddrMin.Is4() {
		return
	}
	addr, port := flow.IPDst, flow.TCPDst
	if n.Source {
		addr, port = flow.IPSrc, flow.TCPSrc
	}
	k.setField(addr, flow.ValueOfAddr(n.AddrMin), flow.Ones(32))
	if n.PortMin != 0 {
		k.setField(port, flow.Value{Lo: uint64(n.PortMin)}, flow.Ones(16))
	}
}

// assumed is what the packet carries when CTNext says its state.
func (t *tracer) assumed(m *conntrack.Meta, req *conntrack.Request) conntrack.Meta {
	state := conntrack.Tracked | conntrack.New
	if t.asked < len(t.req.CTNext) {
		state = t.req.CTNext[t.asked]
	}
	t.asked++
	n := conntrack.Meta{State: state, Zone: req.Zone, Mark: m.Mark, Label: m.Label}
	n.Mark = n.Mark&^req.MarkMask | req.Mark
	n.Label.Hi = n.Label.Hi&^req.LabelMask.Hi | req.Label.Hi
	n.Label.Lo = n.Label.Lo&^req.LabelMask.Lo | req.Label.Lo
	return n
}
