package conntrack

import (
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// beginConnection handles a packet without a connection. The packet is invalid if it may not
// begin one, otherwise new. If the action commits, beginConnection makes the connection. It
// returns a reason only if the packet must be dropped. again says that another worker has made
// the connection meanwhile. Then the packet belongs to that one (CT-30).
func (v *visit) beginConnection() (drop DropReason, again bool) {
	if v.serverFirst() {
		return DropServerFirst, false
	}
	v.m.State = New
	if v.Related || !proto.Opens(&v.Key, &v.packet) {
		v.m.State = Invalid
		return DropNone, false
	}
	if !v.r.Commit {
		return DropNone, false
	}
	return v.commit()
}

// BeginConnection is two actions on the packet in f, with headers at l. The first is a ct() that
// finds no connection. The second is the ct(commit) r, in the same zone. r is without force. It
// is without nat, or its nat has a single outcome (NAT.single). BeginConnection does not rewrite
// the packet.
//
// It reports false, and makes no connection, if the packet has one, may not begin one, or is not
// readable. The same holds if another connection has that outcome. Then the caller calls Track,
// which returns the reason. BeginConnection overwrites m.
func (t *Table) BeginConnection(f *packet.Frame, l *packet.Layers, m *Meta, r *Request, now int64) bool {
	*m = Meta{}
	var v visit
	v.t, v.f, v.l, v.m, v.r, v.now, v.once = t, f, l, m, r, now, true
	if !v.Read(f.Bytes(), l, r.Zone) || !tuple.ChecksumsValid(f, l) {
		return false
	}
	if _, _, known := t.find(&v.Key, r.Near, now); known || !v.fits() {
		return false
	}
	v.readPacket()
	if v.beginConnection(); !v.known() {
		if m.counted {
			t.shares.limit.returnToken(t.shares.ofPort(t, r.InPort))
		}
		return false
	}
	return true
}

// fits says whether there is room for the packet's connection. If admit would evict another
// connection, the reply key must be free too. Otherwise the eviction could be in vain.
func (v *visit) fits() bool {
	t := v.t
	z, total, most := t.zone(v.Key.Zone), t.limits.total.Load()+1, t.limits.max.Load()
	if total > most || z.full(z.count.Load()+1, t.limits.byDefault.Load()) {
		return false
	}
	if !crowded(total, most) {
		return true
	}
	var back tuple.Key
	t.chooseReply(&v.Key, &back, v.r.NAT, false, v.now)
	w := back.Words()
	_, _, found := t.index.Find(t.arena, t.chain(&w, nil), &w) // an expired one counts too: admit removes it only later
	return !found
}

// commit makes the packet's connection. It checks rate and limits, chooses the translation,
// and inserts both keys at the same moment.
func (v *visit) commit() (drop DropReason, again bool) {
	t := v.t
	from := t.shares.ofPort(t, v.r.InPort)
	if !v.m.counted && !t.shares.limit.takeToken(from, v.now) {
		return DropNewRate, false
	}
	v.m.counted = true
	if drop := t.admit(v.Key.Zone, v.r.InPort, from, v.now); drop != DropNone {
		return drop, false
	}
	made, drop := v.make(from)
	if made == inserted {
		t.counts.created.Add(1)
		return DropNone, false
	}
	t.uncount(v.Key.Zone, from)
	v.e = store.Entry{}
	if made == forwardTaken {
		t.counts.raced.Add(1)
		return DropNone, true
	}
	return drop, false
}

// make chooses the reply key and inserts the connection. NAT allocates a port by inserting the
// reply key. If another worker has inserted that key first, make chooses the next one (CT-30).
func (v *visit) make(from *portShare) (insertion, DropReason) {
	t := v.t
	for again := false; ; again = true { // v.e is blank, or as the previous try left it
		if again && v.once {
			if t.taken(&v.e.Keys[tuple.Reply], v.now) {
				return replyTaken, DropNATExhausted
			}
			again = false // the connection that had it has expired
		}
		flags, ok := t.chooseReply(&v.Key, &v.e.Keys[tuple.Reply], v.r.NAT, again, v.now)
		if !ok {
			return replyTaken, DropNATExhausted
		}
		v.e.Keys[tuple.Original] = v.Key
		v.e.Port, v.e.Flags = v.r.InPort, flags
		t.machine.Open(&v.e.State, &v.packet, v.now)
		v.mark()
		h, made := t.insert(&v.e, from, v.r.Near, v.now)
		switch made {
		case inserted:
			v.at, v.dir = h, tuple.Original
			if flags != 0 && !again {
				t.counts.searched(1)
			}
			return inserted, DropNone
		case forwardTaken:
			return forwardTaken, DropNone
		case chainFull:
			return chainFull, DropChainFull
		case noCell:
			return noCell, DropTableFull
		}
	}
}
