package dataplane

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/reassembly"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// A trace is a walk that records its steps, by the same code over the same tables. The trace of a
// made-up packet is dry: it sees connections through conntrack's Scratch, and it credits, learns
// and sends nothing. The trace of a real packet (live.go) is that packet's walk.

// tracer records a walk.
type tracer struct {
	out  *telemetry.Trace
	set  *liveSet // live traces (live.go); live selects those that want it, as bits; nil for a dry trace
	live uint8

	// Only for a dry trace:
	req       *telemetry.TraceRequest
	conntrack *conntrack.Table
	answers   int
}

// dry says that the walk is a made-up packet's, and changes nothing in the switch.
func (k *walk) dry() bool { return k.trace != nil && k.trace.out.Live == nil }

// Trace walks one packet and returns its steps. The error is for a frame that is too short, or a
// switch without a pipeline.
func (s *Switch) Trace(req *telemetry.TraceRequest) (*telemetry.Trace, error) {
	prog := s.program.Load()
	if prog == nil {
		return nil, errNoPipeline
	}
	if len(req.Frame) < packet.EthernetLen {
		return nil, errShortFrame
	}
	f := packet.FrameOf(req.Frame)
	w := s.outside
	w.busy.Lock()
	defer w.busy.Unlock()
	w.now = s.clock()
	k := &w.walk
	k.beginPacket(f, req.InPort)
	k.trace = &tracer{req: req, out: &telemetry.Trace{Names: prog.Names}, conntrack: s.tracked(req)}
	defer func() { k.trace = nil }()
	f.Offload = req.Offload
	k.layers = flow.Extract(f, req.InPort, &k.key)
	preset(&k.key, &req.Metadata)
	k.ct.Mark, k.ct.Label = ctOf(&k.key)
	k.trace.out.Start = k.key
	if why := k.violation(); why == telemetry.NotDropped {
		k.walkTable(prog.First)
	} else {
		k.drop(why)
	}
	k.trace.settle(k)
	k.frame = nil
	w.flush()
	return k.trace.finish(k), nil
}

// tracked is the connection table for a traced packet.
func (s *Switch) tracked(req *telemetry.TraceRequest) *conntrack.Table {
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
func (t *tracer) finish(k *walk) *telemetry.Trace {
	v := &t.out.Verdict
	for i := range t.out.Steps {
		switch st := &t.out.Steps[i]; st.Kind {
		case telemetry.StepOutput:
			if !st.Dropped {
				v.Outputs = append(v.Outputs, st.Port)
			}
		case telemetry.StepPacketIn:
			v.PacketIn, v.Answered = true, v.Answered || st.Note == telemetry.PacketInAnswered
		case telemetry.StepWait:
			v.Waits, v.Table = true, st.Table
		}
	}
	if k.sent == 0 && !v.Waits {
		v.Reason, v.Table = k.reason, k.at
		if v.Reason == telemetry.NotDropped {
			v.Reason, v.Table = telemetry.DropNoOutput, k.last
		}
	}
	return t.out
}

// addStep records the beginning of a step.
func (t *tracer) addStep(k *walk, st telemetry.Step) {
	t.settle(k)
	st.Depth, st.Table, st.After = k.depth, k.table, k.key
	if t.out.Live != nil {
		st.At = k.w.sw.clock()
	}
	t.out.Steps = append(t.out.Steps, st)
}

// settle records what the last step changed, after it is done.
func (t *tracer) settle(k *walk) {
	if n := len(t.out.Steps); n > 0 {
		st := &t.out.Steps[n-1]
		st.Changed = append(st.Changed, flow.Diff(&st.After, &k.key)...)
		st.After = k.key
	}
}

// restore sets the key to compare with back to the packet before a branch.
func (t *tracer) restore(k *walk) {
	if n := len(t.out.Steps); n > 0 {
		t.out.Steps[n-1].After = k.key
	}
}

// enters records the entry that a table's lookup found.
func (t *tracer) enters(k *walk, e *flow.Entry) {
	st := telemetry.Step{Kind: telemetry.StepEntry, Entry: e}
	if t.keepsAt(k.table) {
		st.Frame = t.frame(k)
	}
	t.addStep(k, st)
}

func (t *tracer) action(k *walk, a flow.Action) {
	t.addStep(k, telemetry.Step{Kind: telemetry.StepAction, Action: program.AsWritten(a)})
}

func (t *tracer) drop(k *walk, r telemetry.DropReason) {
	t.addStep(k, telemetry.Step{Kind: telemetry.StepDrop, Reason: r})
}

// collect records what happens to a fragment at a ct(). A single fragment waits, unless its shape
// is refused.
func (t *tracer) collect(k *walk, a *reassembly.Arrival) {
	if drop := a.Check(); drop != reassembly.DropNone {
		k.drop(telemetry.FragmentDrops[drop])
		return
	}
	t.wait(k)
}

func (t *tracer) wait(k *walk) { t.addStep(k, telemetry.Step{Kind: telemetry.StepWait}) }

func (t *tracer) learn(k *walk, e *flow.Entry) {
	t.addStep(k, telemetry.Step{Kind: telemetry.StepLearn, Entry: e})
}

func (t *tracer) packetIn(k *walk, a *flow.Controller) {
	note := telemetry.PacketInToAgent
	if k.answeredHere(a) {
		note = telemetry.PacketInAnswered
	}
	t.addStep(k, telemetry.Step{Kind: telemetry.StepPacketIn, Action: *a, Frame: t.frame(k), Note: note})
}

func (t *tracer) output(k *walk, p *switchPort) {
	st := telemetry.Step{Kind: telemetry.StepOutput, Port: p.no, Frame: t.frame(k)}
	if p.tunnel {
		st.Tunnel = k.frame.Tunnel
	}
	st.Mark = k.key.PktMark()
	t.addStep(k, st)
}

// frame is the packet's bytes; at most SnapLen of them for a real packet.
func (t *tracer) frame(k *walk) []byte {
	b := k.frame.Bytes()
	if t.out.Live != nil {
		b = b[:min(len(b), telemetry.SnapLen)]
	}
	return slices.Clone(b)
}

// markOutputDropped marks the last output to a port as dropped, because no free frame was left.
func (t *tracer) markOutputDropped(p *switchPort) {
	for i := len(t.out.Steps) - 1; i >= 0; i-- {
		if st := &t.out.Steps[i]; st.Kind == telemetry.StepOutput && st.Port == p.no {
			st.Dropped = true
			return
		}
	}
}

// bucket lets the request choose, and records the choice.
func (t *tracer) bucket(k *walk, g *program.Group, chosen int) int {
	if t.req != nil && t.req.PickBucket != nil {
		chosen = t.req.PickBucket(g.Group, chosen)
	}
	if t.req != nil {
		if i, told := t.req.Buckets[g.ID]; told && i >= 0 && i < len(g.Buckets) {
			chosen = i
		}
	}
	if chosen >= 0 {
		t.addStep(k, telemetry.Step{Kind: telemetry.StepBucket, Group: g.Group, Bucket: chosen, Note: fmt.Sprintf("group %d chose bucket_id:%d of %d", g.ID, g.Buckets[chosen].ID, len(g.Buckets))})
	}
	return chosen
}

// answerCT answers a ct() action. In order of preference it uses the request's CTAnswers, the
// states of CTNext, and the connections as they are.
func (t *tracer) answerCT(k *walk, req *conntrack.Request) conntrack.Verdict {
	var v conntrack.Verdict
	if t.answers < len(t.req.CTAnswers) {
		t.repeat(k, req, &t.req.CTAnswers[t.answers])
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
	request := *req // the walk uses its request and its NAT again
	if req.NAT != nil {
		nat := *req.NAT
		request.NAT = &nat
	}
	t.addStep(k, telemetry.Step{Kind: telemetry.StepCT, CT: &request, Meta: k.ct})
}

// repeat gives the packet a recorded answer of a ct() action.
func (t *tracer) repeat(k *walk, req *conntrack.Request, a *telemetry.CTAnswer) {
	t.answers++
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

// assumed is the packet's conntrack metadata if CTNext gives its state.
func (t *tracer) assumed(m *conntrack.Meta, req *conntrack.Request) conntrack.Meta {
	state := conntrack.Tracked | conntrack.New
	if t.answers < len(t.req.CTNext) {
		state = t.req.CTNext[t.answers]
	}
	t.answers++
	n := conntrack.Meta{State: state, Zone: req.Zone, Mark: m.Mark, Label: m.Label}
	n.Mark = n.Mark&^req.MarkMask | req.Mark
	n.Label.Hi = n.Label.Hi&^req.LabelMask.Hi | req.Label.Hi
	n.Label.Lo = n.Label.Lo&^req.LabelMask.Lo | req.Label.Lo
	return n
}
