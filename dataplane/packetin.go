package dataplane

import (
	"slices"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// packetInQueue bounds how many packet-ins wait for the subscriber.
const packetInQueue = 256

// packetIn runs the controller action, behind which come those of after: the subscriber
// gets a copy. With pause the walk ends here (pausedpacket.go).
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

// queuePacketIn gives the subscriber a copy; after are the actions that a pause leaves. It
// returns false, and copies nothing, if the subscriber does not keep up.
func (k *walk) queuePacketIn(a *flow.Controller, after []flow.Action) bool {
	if len(k.w.sw.packetIns) == packetInQueue {
		return false
	}
	pi := &telemetry.PacketIn{
		InPort: k.inPort, Table: k.table, Reason: a.Reason, UserData: a.UserData, Key: k.key,
		Entry: k.entry, CT: telemetry.CTOf(&k.ct), Length: k.frame.Len(),
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

// invalidTTL is the packet-in of a packet whose TTL ends at a dec_ttl.
var invalidTTL = flow.Controller{Reason: "invalid_ttl", MaxLen: 65535}

// tellTTL gives the subscriber a copy of a packet whose TTL ends here, if it wants these. The
// packet is dropped all the same, and counts as that.
func (k *walk) tellTTL() {
	if k.w.sw.tellsTTL.Load() && !k.dry() {
		k.queuePacketIn(&invalidTTL, nil)
	}
}

// TellTTL says whether packets whose TTL ends at a dec_ttl become packet-ins, too.
func (s *Switch) TellTTL(tell bool) { s.tellsTTL.Store(tell) }

// answeredHere says whether the switch answers the packet by itself, and nobody has to get it.
func (k *walk) answeredHere(a *flow.Controller) bool {
	f := k.w.sw.answers
	return f != nil && f(a.UserData, k.prog.Names.Table(k.table))
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
