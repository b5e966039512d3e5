package dataplane

import (
	"errors"
	"fmt"
	"slices"

	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// A walk that an entry pauses (controller(pause)) ends, and nothing of it stays in the
// switch. The packet-in has what was left to do. The controller gives that back with the
// packet, and the walk goes on with its registers and marks, and with what conntrack had
// said. The next ct() looks the connection up again.

// leftOver is what a pause leaves undone, the innermost list of actions first.
func (k *walk) leftOver(after []flow.Action) (all []telemetry.Rest) {
	if len(after) > 0 {
		all = append(all, restOf(k.table, after))
	}
	for n := len(k.rests) - 1; n >= 0; n-- {
		all = append(all, restOf(k.rests[n].table, k.rests[n].actions))
	}
	return all
}

// restOf is a list of actions as its entry has it. A jump at its end is a call, which any
// list of actions may have.
func restOf(table uint8, actions []flow.Action) telemetry.Rest {
	r := telemetry.Rest{Table: table}
	for _, a := range actions {
		a = program.AsWritten(a)
		if jump, ok := a.(flow.GotoTable); ok {
			a = flow.Resubmit{InPort: flow.PortInPort, Table: jump.Table}
		}
		r.Actions = append(r.Actions, a)
	}
	return r
}

// Resume goes on with a packet that an entry has paused. It may be called from any
// goroutine. The error is for a frame that cannot be one, and for actions that name what is
// not there. Fields may not be those of headers.
func (s *Switch) Resume(p *telemetry.Paused) error {
	in := injected{frame: p.Frame, inPort: p.InPort, fields: p.Fields}
	for _, r := range p.Rests {
		in.rests = append(in.rests, rest{actions: r.Actions, table: r.Table})
	}
	if err := s.inject(&in); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	return nil
}

// PacketOut runs actions on a frame of the agent's, as if it had come in at
// inPort. It may be called from any goroutine. The error is for a frame that
// cannot be one, and for actions that name what is not there.
func (s *Switch) PacketOut(inPort uint32, actions []flow.Action, frame []byte) error {
	if err := s.inject(&injected{frame: frame, inPort: inPort, rests: []rest{{actions: actions}}}); err != nil {
		return fmt.Errorf("packet-out: %w", err)
	}
	return nil
}

// injected is a packet that comes from the controller, and what is to be done with it.
type injected struct {
	frame  []byte
	inPort uint32
	fields flow.Match
	rests  []rest
}

// inject walks a packet of the controller's.
func (s *Switch) inject(in *injected) error {
	f := packet.NewFrame(make([]byte, packet.Headroom+len(in.frame)+64), nil)
	if len(in.frame) < 14 || !f.SetBytes(in.frame) {
		return errShortFrame
	}
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
		k.rests = append(k.rests, rest{program.CompileActions(r.actions), r.table, nil})
	}
	k.runRests()
	k.finish()
	k.walkDatagrams()
	w.settlePacketCounters()
	w.flush()
	return nil
}

// carried are the bits of a key that a packet has beside its bytes, but for the port that it
// entered by.
var carried = func() (k flow.Key) {
	for id := flow.Reg0; id < flow.EthSrc; id++ {
		if id != flow.FieldNone && id != flow.ConjID && id != flow.InPort {
			flow.FieldByID(id).Put(&k, flow.Ones(128), flow.Ones(128))
		}
	}
	return k
}()

// carry gives a key the fields that its packet carries.
func carry(k *flow.Key, fields *flow.Match) error {
	for i := range flow.KeyWords {
		mask := fields.Mask.Word(i)
		if mask&^carried.Word(i) != 0 {
			return errors.New("the frame, not a field beside it, says what its headers are")
		}
		k.SetWord(i, fields.Value.Word(i)&mask, mask)
	}
	return nil
}
