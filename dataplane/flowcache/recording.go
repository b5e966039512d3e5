package flowcache

import (
	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// Recording a megaflow: if no megaflow matches a packet, its walk records the bits that it
// examines and writes.
//
//  1. A lookup examines bits of the key. Bits that the megaflow wrote itself do not count,
//     because they are the same for all packets (lookup.Examined).
//  2. An action that depends on more than the key ends the megaflow before it.
//  3. A resubmit() that other actions follow is a call. If something within a call ends the
//     megaflow, the megaflow ends before the call. The actions after the call do not belong to
//     it.
//  4. A megaflow is stored if one with the same bits came before.

// recording is the megaflow being recorded. Its slices are reused.
type recording struct {
	scratch *lookup.Scratch // of the worker

	on       bool
	key      flow.Key // when it began
	from     uint8
	port     uint32
	examined lookup.Examined
	megaflow Megaflow
	calls    []call // open calls
}

// call is a resubmit() that other actions follow.
type call struct {
	megaflow Megaflow // before the call
	end      End
}

// maxVisits ends a megaflow that loops.
const maxVisits = 64

// The words of the key with the TTL and conj_id.
var (
	ttlWord, ttlMask   = wordOf(flow.IPTTL)
	conjWord, conjMask = wordOf(flow.ConjID)
)

// wordOf returns the word in which a field lies, and its bits there.
func wordOf(id flow.FieldID) (index int, mask uint64) {
	var m flow.Key
	f := flow.FieldByID(id)
	f.Put(&m, flow.Ones(f.Bits), flow.Ones(f.Bits))
	return f.Off / 8, m.Word(f.Off / 8)
}

// Recording says whether a megaflow is being recorded.
func (s *Megaflows) Recording() bool { return s != nil && s.rec.on }

// Record starts a megaflow of a packet from a port, in a table for which Find has just returned
// nil.
func (s *Megaflows) Record(table uint8, k *flow.Key, port uint32) {
	s.Count[telemetry.MegaflowMiss]++
	d := &s.rec
	d.on, d.from, d.port, d.key = true, table, port, *k
	d.examined = lookup.Examined{}
	d.examined.Known[conjWord] = conjMask // every packet enters without a conj_id
	d.megaflow = Megaflow{Visits: d.megaflow.Visits[:0], Writes: d.megaflow.Writes[:0], Sets: d.megaflow.Sets[:0]}
	d.calls = d.calls[:0]
	d.scratch.Examined = &d.examined
}

// BeforeLookup ends the current megaflow before a table whose lookup cannot be part of it.
func (s *Megaflows) BeforeLookup(id uint8, t *lookup.Table) {
	if s.Recording() && (!t.Live.Learned.None() || len(s.rec.megaflow.Visits) == maxVisits) {
		s.End(End{Next: int(id)})
	}
}

// Lookup records a lookup and the entry that it found.
func (s *Megaflows) Lookup(id uint8, t *lookup.Table, e *lookup.Entry) {
	if !s.Recording() {
		return
	}
	m := &s.rec.megaflow
	v := Visit{State: t.Live, Table: id}
	m.Met = nil
	if e != nil {
		v.Entry, m.Met = e.Counters, e.Entry
	}
	m.Visits = append(m.Visits, v)
	m.tables[id/64] |= 1 << (id % 64)
	m.MayLearn = m.MayLearn || t.Live.MayLearn.Load()
}

// Write records constant bits written to a word of the key's metadata.
func (s *Megaflows) Write(w KeyWrite) {
	d := &s.rec
	d.megaflow.Writes = append(d.megaflow.Writes, w)
	d.examined.Known[w.Index] |= w.Mask
}

// SetHeader records an action that sets bits of a header field. tuple says that conntrack reads
// the field.
func (s *Megaflows) SetHeader(a flow.Action, id flow.FieldID, mask flow.Value, tuple bool) {
	d := &s.rec
	written := lookup.BitsOf(id, mask)
	d.examined.Known.Add(&written)
	d.megaflow.Tuple = d.megaflow.Tuple || tuple
	d.megaflow.Sets = append(d.megaflow.Sets, a)
}

// DecTTL records a dec_ttl.
func (s *Megaflows) DecTTL(a flow.Action) {
	m := &s.rec.megaflow
	m.Sets = append(m.Sets, a)
	m.TTLs++
}

// Resubmit records a resubmit(). follow says that actions follow it. Then a megaflow that ends
// within the tables of the resubmit ends at back.
func (s *Megaflows) Resubmit(back End, follow bool) {
	d := &s.rec
	if follow {
		d.calls = append(d.calls, call{d.megaflow, back})
	}
	d.megaflow.Depth++
	d.megaflow.Deepest = max(d.megaflow.Deepest, d.megaflow.Depth)
}

// Return records the end of a resubmit() that other actions follow.
func (s *Megaflows) Return() {
	if !s.Recording() {
		return
	}
	d := &s.rec
	last := len(d.calls) - 1
	d.megaflow.Depth = d.calls[last].megaflow.Depth
	d.calls = d.calls[:last]
}

// Drop records why the packet is dropped, unless it is sent somewhere.
func (s *Megaflows) Drop(n Noted) {
	if s.Recording() {
		s.rec.megaflow.Drop = n
	}
}

// ListDone ends the current megaflow at the end of a list of actions, unless actions follow a
// resubmit().
func (s *Megaflows) ListDone(table uint8, entry *flow.Entry) {
	if s.Recording() && len(s.rec.calls) == 0 {
		s.End(End{Next: -1, Table: table, Entry: entry})
	}
}

// Abandon ends the current megaflow without storing it.
func (s *Megaflows) Abandon() {
	if s != nil {
		s.rec.on, s.rec.scratch.Examined = false, nil
	}
}

// End ends the current megaflow, and stores it if one with the same bits came before.
func (s *Megaflows) End(e End) {
	s.Abandon()
	d := &s.rec
	if len(d.megaflow.Visits) == 0 {
		return
	}
	if len(d.calls) > 0 {
		d.megaflow, e = d.calls[0].megaflow, d.calls[0].end
	}
	if d.megaflow.TTLs > 0 && d.examined.Bits[ttlWord]&ttlMask != 0 {
		d.examined.Bits[ttlWord] |= ttlMask // the result of dec_ttl depends on all bits of the TTL
	}
	if !s.once.seen(d.hash()) {
		s.Count[telemetry.MegaflowOnce]++
		return
	}
	o := s.shapeFor(d.from, &d.examined.Bits)
	if o == nil {
		s.Count[telemetry.MegaflowRefused]++
		return
	}
	d.megaflow.End, d.megaflow.shape = e, o
	s.readWords(o, &d.key)
	s.put(&d.megaflow, d.port)
}

// hash is over all bits that the megaflow examined.
func (d *recording) hash() uint64 {
	h := lookup.Seed ^ uint64(d.from)
	for i, m := range d.examined.Bits {
		if m != 0 {
			h = lookup.Mix(h, m)
			h = lookup.Mix(h, d.key.Word(i)&m)
		}
	}
	return h
}
