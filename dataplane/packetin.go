package dataplane

import (
	"fmt"
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// PacketIn is a packet that a flow entry sent to the controller.
type PacketIn struct {
	InPort   uint32      `json:"inPort"`
	Table    uint8       `json:"table"`
	Reason   string      `json:"reason"` // no_match, action, invalid_ttl
	UserData []byte      `json:"userData,omitzero"`
	Key      flow.Key    `json:"key"`
	Entry    *flow.Entry `json:"entry,omitzero"` // that sent it
	CT       LostCT      `json:"ct,omitzero"`    // what conntrack had said of it
	Length   int         `json:"length"`         // of all of it
	Frame    []byte      `json:"frame,omitzero"` // the packet as it was at the action
}

// packetInQueue bounds how many packet-ins wait for the subscriber.
const packetInQueue = 256

// packetIn runs the controller action: the subscriber gets a copy. With pause
// the walk ends here.
func (k *walk) packetIn(a *flow.Controller) {
	k.w.rec.forbid()
	if a.Pause {
		k.stopped = true
	}
	if k.dry() {
		k.sent++
		k.trace.packetIn(k, a)
		return
	}
	if m := k.prog.meters.get(a.MeterID); m != nil && !m.pass(&k.w.tally.buckets, k.frame.Len(), k.w.now) {
		k.drop(DropMeter)
		return
	}
	if k.w.sw.controllerAway.Load() && !k.answeredHere(a) {
		k.drop(DropControllerAway)
		return
	}
	if len(k.w.sw.packetIns) == packetInQueue { // the agent does not keep up: nothing is copied
		k.drop(DropPacketInFull)
		return
	}
	pi := &PacketIn{
		InPort: k.inPort, Table: k.table, Reason: a.Reason, UserData: a.UserData, Key: k.key,
		Entry: k.entry, CT: lostCT(&k.ct), Length: k.frame.Len(),
		Frame: k.completeBytes(int(a.MaxLen)),
	}
	select {
	case k.w.sw.packetIns <- pi:
		k.sent++
		k.w.sums.agent++
		if k.trace != nil {
			k.trace.packetIn(k, a)
		}
	default:
		k.drop(DropPacketInFull)
	}
}

// answeredHere says whether the switch answers the packet by itself, and nobody has to get it.
func (k *walk) answeredHere(a *flow.Controller) bool {
	f := k.w.sw.answers
	return f != nil && f(a.UserData, k.prog.names.Table(k.table))
}

// SetControllerAway says whether a controller is missing. While it is, packets that an
// entry sends to the controller are dropped, but for those that the switch answers by
// itself (Config.Answers). A switch begins with a controller.
func (s *Switch) SetControllerAway(away bool) { s.controllerAway.Store(away) }

// completeBytes is a copy of the packet's first bytes. A checksum that is to be
// filled in by whoever sends the packet is right in the copy.
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

// PacketOut runs actions on a frame of the agent's, as if it had come in at
// inPort. It may be called from any goroutine. The error is for a frame that
// cannot be one, and for actions that name what is not there.
func (s *Switch) PacketOut(inPort uint32, actions []flow.Action, frame []byte) error {
	f := packet.NewFrame(make([]byte, packet.Headroom+len(frame)+64), nil)
	if len(frame) < 14 || !f.SetBytes(frame) {
		return errShortFrame
	}
	w := s.outside
	w.busy.Lock()
	defer w.busy.Unlock()
	w.now = s.clock()
	k := &w.walk
	k.begin(f, inPort)
	if k.prog == nil {
		return errNoPipeline
	}
	if err := k.prog.checkActions(actions); err != nil {
		return fmt.Errorf("packet-out: %w", err)
	}
	k.layers = flow.Extract(f, inPort, &k.key)
	w.account = &s.own
	w.account.made.Add(1)
	k.runNested(compiled(actions))
	k.finish()
	k.walkDatagrams()
	w.settleSums()
	w.flush()
	return nil
}
