package dataplane

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// packetInQueue bounds how many packet-ins wait for the subscriber.
const packetInQueue = 256

// packetIn runs the controller action; after are the actions behind it. The subscriber gets a
// copy. With pause the walk ends here.
func (k *walk) packetIn(a *flow.Controller, after []flow.Action) {
	if a.Pause {
		k.stopped = true
	}
	if k.dry() {
		k.sent++
		k.notePacketIn(a)
		return
	}
	if m := k.prog.Meters.Get(a.MeterID); m != nil && !m.Pass(&k.w.batchCounts.Buckets, k.frame.Len(), k.w.now) {
		k.drop(telemetry.DropMeter)
		return
	}
	if k.w.sw.controllerAway.Load() && !k.answeredHere(a) {
		k.drop(telemetry.DropControllerAway)
		return
	}
	if !k.queuePacketIn(a, after) {
		k.drop(telemetry.DropPacketInFull)
		return
	}
	k.sent++
	k.w.packetCounters.agent++
	k.notePacketIn(a)
}

// queuePacketIn gives the subscriber a copy; after are the actions that a pause leaves. If the
// subscriber does not keep up, it copies nothing and returns false.
func (k *walk) queuePacketIn(a *flow.Controller, after []flow.Action) bool {
	if len(k.w.sw.packetIns) == packetInQueue {
		return false
	}
	pi := &telemetry.PacketIn{
		InPort: k.inPort, Table: k.table, Reason: a.Reason, UserData: a.UserData, Key: k.key,
		Entry: cmp.Or(k.entry, k.resumed), CT: telemetry.CTOf(&k.ct), Length: k.frame.Len(),
		Frame: k.completeBytes(int(a.MaxLen)),
	}
	if a.Pause {
		pi.Rests = k.leftOver(after)
	}
	select {
	case k.w.sw.packetIns <- pi:
		return true
	default:
		return false
	}
}

// invalidTTL is the packet-in of a packet whose TTL expires at a dec_ttl.
var invalidTTL = flow.Controller{Reason: "invalid_ttl", MaxLen: 65535}

// tellTTL gives the subscriber a copy of a packet whose TTL expires here, if it wants these. The
// packet still counts as dropped.
func (k *walk) tellTTL() {
	if k.w.sw.tellsTTL.Load() && !k.dry() {
		k.queuePacketIn(&invalidTTL, nil)
	}
}

// TellTTL says whether packets whose TTL expires at a dec_ttl also become packet-ins.
func (s *Switch) TellTTL(tell bool) { s.tellsTTL.Store(tell) }

// answeredHere says whether the switch answers the packet itself, so that no controller needs it.
func (k *walk) answeredHere(a *flow.Controller) bool {
	f := k.w.sw.answers
	return f != nil && f(a.UserData, k.prog.Names.Table(k.table))
}

// SetControllerAway says whether the controller is missing. While it is, the switch drops packets
// that an entry sends to the controller, except those that it answers itself (Config.Answers). A
// switch begins with a controller.
func (s *Switch) SetControllerAway(away bool) { s.controllerAway.Store(away) }

// completeBytes is a copy of the packet's first bytes. If the checksum is left to the sender, the
// copy has it filled in.
func (k *walk) completeBytes(limit int) []byte {
	f := k.frame
	if f.Offload.ChecksumPartial {
		f = packet.NewFrame(make([]byte, packet.Headroom+k.frame.Len()), nil)
		f.CopyFrom(k.frame)
		packet.CompleteChecksum(f, &k.layers)
	}
	b := f.Bytes()
	return slices.Clone(b[:min(len(b), limit)])
}

// If an entry pauses a walk (controller(pause)), the walk ends and the switch keeps nothing of
// it. The packet-in has the remaining actions. The controller sends them back with the packet.
// Then the walk continues with its registers, marks and conntrack state. The next ct() looks the
// connection up again.

// leftOver is the actions that a pause leaves, the innermost list first.
func (k *walk) leftOver(after []flow.Action) (all []telemetry.Rest) {
	if len(after) > 0 {
		all = append(all, restOf(&rest{after, k.table, k.entry, k.resumed}))
	}
	for n := len(k.rests) - 1; n >= 0; n-- {
		all = append(all, restOf(&k.rests[n]))
	}
	return all
}

// restOf is a list of actions as its entry has it. A jump at its end becomes a resubmit, because
// that is valid in any list of actions.
func restOf(left *rest) telemetry.Rest {
	r := telemetry.Rest{Table: left.table}
	if e := cmp.Or(left.entry, left.resumed); e != nil {
		r.Cookie = e.Cookie
	}
	for _, a := range left.actions {
		a = program.AsWritten(a)
		if jump, ok := a.(flow.GotoTable); ok {
			a = flow.Resubmit{InPort: flow.PortInPort, Table: jump.Table}
		}
		r.Actions = append(r.Actions, a)
	}
	return r
}

// Resume continues with a packet that an entry has paused. A packet-in of its actions has the
// entry's cookie, though the entry may be gone by now. Any goroutine may call it. The error names
// a frame that is too short or too long, a missing table, group or meter, or a field of a header.
func (s *Switch) Resume(p *telemetry.Paused) error {
	in := injected{frame: p.Frame, inPort: p.InPort, fields: p.Fields}
	for _, r := range p.Rests {
		e := &flow.Entry{Table: r.Table, Cookie: r.Cookie, Actions: r.Actions}
		in.rests = append(in.rests, rest{actions: r.Actions, table: r.Table, resumed: e})
	}
	if err := s.inject(&in); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	return nil
}

// PacketOut runs actions on a frame from the controller, as if it had entered at inPort. Any
// goroutine may call it. The error names a frame that is too short or too long, or a missing
// table, group or meter.
func (s *Switch) PacketOut(inPort uint32, actions []flow.Action, frame []byte) error {
	if err := s.inject(&injected{frame: frame, inPort: inPort, rests: []rest{{actions: actions}}}); err != nil {
		return fmt.Errorf("packet-out: %w", err)
	}
	return nil
}

// injected is a packet that comes from the controller, with its actions.
type injected struct {
	frame  []byte
	inPort uint32
	fields flow.Match
	rests  []rest
}

// inject walks a packet from the controller.
func (s *Switch) inject(in *injected) error {
	if len(in.frame) < packet.EthernetLen {
		return errShortFrame
	}
	f := packet.FrameOf(in.frame)
	w := s.outside
	w.busy.Lock()
	defer w.busy.Unlock()
	w.now = s.clock()
	k := &w.walk
	k.beginPacket(f, in.inPort)
	if k.prog == nil {
		return errNoPipeline
	}
	for _, r := range in.rests {
		if err := k.prog.CheckActions(r.actions); err != nil {
			return err
		}
	}
	k.layers = flow.Extract(f, in.inPort, &k.key)
	if err := carry(&k.key, &in.fields); err != nil {
		return err
	}
	k.watchPacketOut()
	w.account = &s.own
	w.account.made.Add(1)
	for _, r := range slices.Backward(in.rests) {
		k.rests = append(k.rests, rest{program.CompileActions(r.actions), r.table, nil, r.resumed})
	}
	k.runRests()
	k.finish()
	k.walkDatagrams()
	w.settlePacketCounters()
	w.flush()
	return nil
}

// carried are the bits of a key that a packet has beside its bytes, except its port of entry.
var carried = func() (k flow.Key) {
	for id := flow.Reg0; id < flow.EthSrc; id++ {
		if id != flow.FieldNone && id != flow.ConjID && id != flow.InPort {
			flow.FieldByID(id).Put(&k, flow.Ones(128), flow.Ones(128))
		}
	}
	return k
}()

// carry sets the fields of a key that its packet has beside its bytes.
func carry(k *flow.Key, fields *flow.Match) error {
	for i := range flow.KeyWords {
		mask := fields.Mask.Word(i)
		if mask&^carried.Word(i) != 0 {
			return errors.New("a field of a header cannot be set beside the frame; change the frame's bytes")
		}
		k.SetWord(i, fields.Value.Word(i)&mask, mask)
	}
	return nil
}
