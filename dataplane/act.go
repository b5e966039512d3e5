package dataplane

import (
	"encoding/binary"

	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// run runs actions in order and returns the table that goto_table or a last
// ct() names, or -1.
func (k *walk) run(actions []flow.Action) int {
	for i, a := range actions {
		k.noteAction(actions[i:])
		next, done := -1, false
		switch a := a.(type) {
		case *program.Write:
			k.key.SetWord(a.Index, a.Value, a.Mask)
			continue
		case flow.GotoTable:
			return int(a.Table)
		case *program.Track:
			next = k.track(a, actions[i+1:])
		case flow.Output:
			k.output(a.Port)
		case *program.OutputReg:
			k.output(program.WidenPort(uint32(a.From.Get(&k.key))))
		default:
			done = !k.act(a, actions[i+1:])
		}
		if next >= 0 || done || k.stopped {
			return next
		}
	}
	return -1
}

// act runs one action; after are the actions behind it in its list. It returns false if the list
// ends here.
func (k *walk) act(a flow.Action, after []flow.Action) bool {
	more := len(after) > 0
	switch a := a.(type) {
	case *program.WriteMAC:
		k.setMAC(a)
	case flow.SetField:
		k.setField(a.Field, a.Value, a.Mask)
	case flow.Load:
		k.setSubfield(a.Dst, a.Value)
	case flow.Move:
		k.setSubfield(a.Dst, a.Src.Get(&k.key))
	case flow.Resubmit:
		k.resubmit(a, after)
	case flow.CTClear:
		k.clearConntrack()
	case flow.GroupAction:
		k.runGroup(k.prog.Groups.Get(a.ID), more)
	case flow.MeterAction:
		k.meter(k.prog.Meters.Get(a.ID))
	case flow.Clone:
		k.branch(more, func() { k.runNested(a.Actions) })
	case *flow.Learn:
		k.learn(a)
	case flow.DecTTL:
		return k.decTTL()
	case flow.PushVLAN:
		k.changeVLAN(func() bool { return packet.PushVLAN(k.frame, a.EtherType, 0) })
	case flow.PopVLAN:
		k.changeVLAN(func() bool { return packet.PopVLAN(k.frame) })
	case flow.Controller:
		k.packetIn(&a, after)
	case flow.Conjunction, flow.Note:
	default:
		k.actOutput(a)
	}
	return true
}

// actOutput runs the actions that send.
func (k *walk) actOutput(a flow.Action) {
	switch a := a.(type) {
	case flow.OutputReg:
		k.output(program.WidenPort(uint32(a.Src.Get(&k.key).Lo)))
	case flow.OutputInPort:
		k.outputTo(k.key.InPort())
	case flow.Normal:
		k.normal()
	case flow.Flood:
		k.flood(floods)
	case flow.All:
		k.flood(everyPort)
	}
}

// runNested runs actions that may end in goto_table (those of a bucket).
func (k *walk) runNested(actions []flow.Action) {
	if next := k.run(actions); next >= 0 {
		k.walkTable(uint8(next))
	}
}

// resubmit looks another table up and comes back. If the action gives a port, the lookup sees
// that port as in_port. The actions of the entry that it finds see the packet's own in_port, as
// in Open vSwitch.
func (k *walk) resubmit(a flow.Resubmit, after []flow.Action) {
	if len(after) > 0 {
		k.rests = append(k.rests, rest{after, k.table, k.entry, k.resumed})
	}
	table := a.Table
	if table == flow.CurrentTable {
		table = k.table
	}
	k.walkTableAs(table, a.InPort)
	if len(after) > 0 {
		k.rests = k.rests[:len(k.rests)-1]
		k.noteReturn()
	}
}

// runGroup runs a group, unless nested groups exceed maxDepth or the walk exceeds maxLookups.
func (k *walk) runGroup(g *program.Group, more bool) {
	k.lookups++
	if k.groups++; k.groups > maxDepth || k.lookups > maxLookups {
		k.drop(telemetry.DropTooDeep)
	} else {
		k.group(g, more)
	}
	k.groups--
}

// group runs a group's buckets: the chosen one of a select group, every one of
// an all group, the first of the others.
func (k *walk) group(g *program.Group, more bool) {
	switch {
	case g.Type == flow.GroupAll:
		k.creditBucket(g.BucketCounters)
		for i := range g.Buckets {
			last := i+1 == len(g.Buckets)
			k.bucket(g, i, more || !last)
		}
		if len(g.Buckets) == 0 {
			k.drop(telemetry.DropNoBucket)
		}
		return
	case len(g.Buckets) == 0:
		k.drop(telemetry.DropNoBucket)
		return
	}
	i := 0
	if g.Type == flow.GroupSelect {
		i = g.Choose(program.PacketHash(&k.key, k.w.sw.hashSeed))
	}
	if i = k.noteBucket(g, i); i < 0 {
		k.drop(telemetry.DropNoBucket)
		return
	}
	k.creditBucket(g.BucketCounters)
	k.bucket(g, i, more)
}

// creditBucket counts the packet for a group or bucket.
func (k *walk) creditBucket(c *program.BucketCounters) {
	if !k.dry() {
		k.w.rec.group(c)
		k.w.batchCounts.Buckets.Count(c, k.frame.Len())
	}
}

// bucket runs one bucket of a group.
func (k *walk) bucket(g *program.Group, i int, more bool) {
	k.creditBucket(g.PerBucket[i])
	k.branch(more, func() { k.runNested(g.Actions[i]) })
}

// meter ends the walk when the meter's rate is exceeded.
func (k *walk) meter(m *program.Meter) {
	if k.dry() {
		return
	}
	if !m.Pass(&k.w.batchCounts.Buckets, k.frame.Len(), k.w.now) {
		k.drop(telemetry.DropMeter)
		k.stopped = true
	}
}

// decTTL takes one from the TTL or hop limit. At 1 the packet's list of actions ends (OpenFlow
// 1.3, section 5.12), because a router must not forward it (RFC 1812, section 5.3.1). The
// controller gets a copy if it has asked for these packets.
func (k *walk) decTTL() bool {
	ttl := &k.key[ttlAt]
	if *ttl <= 1 {
		k.drop(telemetry.DropTTL)
		k.tellTTL()
		return false
	}
	if k.layers.EtherType != packet.EtherTypeIPv4 || k.layers.L3 == 0 {
		k.setField(flow.IPTTL, flow.Value{Lo: uint64(*ttl - 1)}, flow.Ones(8))
		return true
	}
	k.releaseHeld()
	*ttl--
	h := k.frame.Bytes()[k.layers.L3:]
	before := binary.BigEndian.Uint16(h[8:])
	h[8] = *ttl
	packet.AdjustChecksum(h[10:], before, binary.BigEndian.Uint16(h[8:]))
	return true
}

// ttlAt is the offset of the TTL in the key.
var ttlAt = flow.FieldByID(flow.IPTTL).Off

// changeVLAN pushes or pops a tag and reads the headers again.
func (k *walk) changeVLAN(change func() bool) {
	k.releaseHeld()
	k.noteOnce() // NORMAL comes here too
	if !change() {
		k.drop(telemetry.DropNoFrame)
		k.stopped = true
		return
	}
	k.layers = flow.Refresh(k.frame, &k.key)
}
