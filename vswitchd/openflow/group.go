package openflow

import (
	"encoding/binary"
	"time"

	"github.com/antrail/antrail/flow"
)

// GroupCommand is what a GroupMod does.
type GroupCommand uint16

// The commands.
const (
	GroupAdd          GroupCommand = 0
	GroupModify       GroupCommand = 1
	GroupDelete       GroupCommand = 2
	GroupInsertBucket GroupCommand = 3
	GroupRemoveBucket GroupCommand = 5
	GroupAddOrModify  GroupCommand = 0x8000
)

// Buckets that a command of OpenFlow 1.5 names by their place.
const (
	BucketFirst = 0xfffffffd
	BucketLast  = 0xfffffffe
	BucketAll   = 0xffffffff
	bucketMax   = 0xffffff00
)

// GroupMod is OFPT_GROUP_MOD, or Nicira's NXT_GROUP_MOD in OpenFlow 1.0.
type GroupMod struct {
	Command GroupCommand
	Group   flow.Group
	// Bucket is the bucket behind which others are inserted, or the bucket to remove; or BucketFirst,
	// BucketLast or BucketAll.
	Bucket uint32
}

// maxGroupID is the largest number of a group.
const maxGroupID = 0xffffff00

func decodeGroupMod(r *reader, v Version) (Body, error) {
	g := &GroupMod{Command: GroupCommand(r.u16()), Bucket: BucketAll}
	kind := flow.GroupType(r.u8())
	r.skip(1)
	g.Group.ID, g.Group.Type = r.u32(), kind
	if r.short {
		return nil, r.done()
	}
	var err error
	if v == V10 || v == V15 {
		n := int(r.u16())
		r.skip(2)
		g.Bucket = r.u32()
		if n > len(r.b) {
			return nil, fail(BadBucket, "buckets of %d bytes, of which %d are there", n, len(r.b))
		}
		g.Group.Buckets, err = readBuckets15(r.take(n), v)
		err = firstError(err, readGroupProperties(r))
	} else {
		g.Group.Buckets, err = readBuckets(r.rest(), v)
	}
	return g, firstError(err, g.check(kind, v))
}

// check returns an error for a command that the version does not have, and for a wrong group.
func (g *GroupMod) check(kind flow.GroupType, v Version) error {
	late := g.Command == GroupInsertBucket || g.Command == GroupRemoveBucket
	changes := g.Command == GroupAdd || g.Command == GroupModify || g.Command == GroupAddOrModify
	switch {
	case !changes && g.Command != GroupDelete && !(late && (v == V10 || v == V15)):
		return fail(GroupBadCommand, "command %d is unknown in %s", g.Command, v)
	case g.Group.ID > maxGroupID && !(g.Command == GroupDelete && g.Group.ID == AllGroups):
		return fail(InvalidGroup, "%#x is not the number of a group", g.Group.ID)
	case changes && kind > flow.GroupFastFailover:
		return fail(GroupBadType, "group type %d is unknown", kind)
	case !changes:
		return nil
	}
	for i := range g.Group.Buckets {
		b := &g.Group.Buckets[i]
		if kind != flow.GroupSelect {
			b.Weight = 0
		}
		if kind != flow.GroupFastFailover {
			b.WatchPort = 0
		}
		if err := flow.CheckActions(b.Actions); err != nil {
			return checkActions(err)
		}
	}
	if err := g.Group.Check(); err != nil {
		return fail(BadBucket, "group %d: %v", g.Group.ID, err)
	}
	return nil
}

// readBuckets reads the buckets of OpenFlow 1.3 and 1.4. They have no numbers, so they are numbered
// from 0.
func readBuckets(b []byte, v Version) (all []flow.Bucket, err error) {
	for len(b) > 0 {
		r, n, err := oneBucket(b, 16)
		if err != nil {
			return nil, err
		}
		u := flow.Bucket{ID: uint32(len(all)), Weight: r.u16(), WatchPort: watched(r.u32())}
		if group := r.u32(); group != AnyGroup && group != 0 {
			return nil, fail(WatchUnsupported, "watch_group is not supported")
		}
		r.skip(4)
		if u.Actions, err = readActions(r.rest(), v, nil); err != nil {
			return nil, err
		}
		if r.short {
			return nil, fail(BadBucket, "a bucket ends within its fields")
		}
		all, b = append(all, u), b[n:]
	}
	return all, nil
}

// oneBucket returns a reader of the first bucket, behind its length, and n, the length. A bucket has
// no fewer bytes than least.
func oneBucket(b []byte, least int) (r *reader, n int, err error) {
	if len(b) < least {
		return nil, 0, fail(BadBucket, "%d bytes follow the buckets", len(b))
	}
	if n = int(binary.BigEndian.Uint16(b)); n < least || n%8 != 0 || n > len(b) {
		return nil, 0, fail(BadBucket, "a bucket of %d bytes, of which %d are there", n, len(b))
	}
	return &reader{b: b[2:n]}, n, nil
}

// watched is the port that a bucket watches; 0 for none.
func watched(port uint32) uint32 {
	if port == flow.PortNone {
		return 0
	}
	return port
}

// Properties of a bucket.
const (
	bucketWeight     = 0
	bucketWatchPort  = 1
	bucketWatchGroup = 2
)

// readBuckets15 reads the buckets of OpenFlow 1.5, which Nicira's groups have in 1.0 too.
func readBuckets15(b []byte, v Version) (all []flow.Bucket, err error) {
	for len(b) > 0 {
		r, n, err := oneBucket(b, 8)
		if err != nil {
			return nil, err
		}
		actions := int(r.u16())
		u := flow.Bucket{ID: r.u32(), Weight: 1}
		if u.ID > bucketMax {
			return nil, fail(BadBucket, "%#x is not the number of a bucket", u.ID)
		}
		if actions > len(r.b) {
			return nil, fail(BadBucket, "a bucket has actions of %d bytes, of which %d are there", actions, len(r.b))
		}
		u.Actions, err = readActions(r.take(actions), v, nil)
		if err = firstError(err, bucketProperties(&u, r)); err != nil {
			return nil, err
		}
		all, b = append(all, u), b[n:]
	}
	return all, nil
}

func bucketProperties(u *flow.Bucket, r *reader) error {
	return r.eachProperty("a bucket", func(kind uint16, p *reader) error {
		switch kind {
		case bucketWeight:
			u.Weight = p.u16()
		case bucketWatchPort:
			u.WatchPort = watched(p.u32())
		case bucketWatchGroup:
			if p.u32() != AnyGroup {
				return fail(WatchUnsupported, "watch_group is not supported")
			}
		default:
			return fail(BadPropertyType, "a bucket has no property %d", kind)
		}
		return nil
	})
}

// readGroupProperties refuses the properties of a group of OpenFlow 1.5: a method of selection.
func readGroupProperties(r *reader) error {
	if len(r.b) == 0 {
		return nil
	}
	kind, _, err := r.property()
	if err != nil {
		return err
	}
	return fail(BadPropertyType, "property %#x of a group is not supported", kind)
}

// GroupDesc is a group: a part of StatsGroupDesc.
type GroupDesc struct{ Group *flow.Group }

// part implements Part.
func (d *GroupDesc) part(w *writer, v Version, _ bool) error {
	start, g := w.len(), d.Group
	w.u16(0)
	w.u8(uint8(g.Type))
	w.u8(0)
	w.u32(g.ID)
	late := v == V10 || v == V15
	if late {
		w.zeros(8)
	}
	at := w.len()
	for i := range g.Buckets {
		err := w.bucket(g, &g.Buckets[i], v, late)
		if err != nil {
			return err
		}
	}
	if n := w.len() - start; n > replyRoom {
		return fail(BadLength, "group %d has %d bytes, more than a message", g.ID, n)
	}
	if late {
		w.set16(start+8, w.len()-at)
	}
	w.set16(start, w.len()-start)
	return nil
}

// bucket writes a bucket, with a number and properties if it is one of OpenFlow 1.5.
func (w *writer) bucket(g *flow.Group, b *flow.Bucket, v Version, late bool) error {
	start := w.len()
	w.u16(0)
	port := b.WatchPort
	if port == 0 {
		port = flow.PortNone
	}
	if !late {
		w.u16(b.Weight)
		w.u32(port)
		w.u32(AnyGroup)
		w.zeros(4)
		err := w.actions(b.Actions, v)
		w.set16(start, w.len()-start)
		return err
	}
	w.u16(0)
	w.u32(b.ID)
	if err := w.actions(b.Actions, v); err != nil {
		return err
	}
	w.set16(start+2, w.len()-start-8)
	if g.Type == flow.GroupSelect {
		w.u16(bucketWeight)
		w.u16(8)
		w.u16(b.Weight)
		w.u16(0)
	}
	if b.WatchPort != 0 {
		w.property(bucketWatchPort, func() { w.u32(port) })
	}
	w.set16(start, w.len()-start)
	return nil
}

// BucketCounters are a bucket's packets and bytes.
type BucketCounters struct{ Packets, Bytes uint64 }

// GroupStats are a group's counters: a part of StatsGroup.
type GroupStats struct {
	ID             uint32
	References     uint32
	Packets, Bytes uint64
	Duration       time.Duration
	Buckets        []BucketCounters
}

// part implements Part.
func (s *GroupStats) part(w *writer, _ Version, _ bool) error {
	n := 40 + 16*len(s.Buckets)
	if n > replyRoom {
		return fail(BadLength, "the counters of group %d have %d bytes, more than a message", s.ID, n)
	}
	w.u16(uint16(n))
	w.u16(0)
	w.u32(s.ID)
	w.u32(s.References)
	w.u32(0)
	w.u64(s.Packets)
	w.u64(s.Bytes)
	w.duration(s.Duration)
	for _, b := range s.Buckets {
		w.u64(b.Packets)
		w.u64(b.Bytes)
	}
	return nil
}

// GroupFeatures is the answer to StatsGroupFeatures.
type GroupFeatures struct{}

const (
	allGroupTypes     = 0xf // all, select, indirect, fast failover
	groupCapabilities = 0x7 // weights, watched ports, groups in groups
)

// part implements Part.
func (*GroupFeatures) part(w *writer, v Version, _ bool) error {
	w.u32(allGroupTypes)
	w.u32(groupCapabilities)
	for range 4 {
		w.u32(maxGroupID)
	}
	bits := uint32(actions10)
	if v != V10 {
		bits = 1<<actOutput | 1<<actPushVLAN | 1<<actPopVLAN | 1<<actGroup | 1<<actSetTTL | 1<<actDecTTL | 1<<actSetField
	}
	for range 4 {
		w.u32(bits)
	}
	return nil
}
