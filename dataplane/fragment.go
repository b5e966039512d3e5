package dataplane

import (
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/reassembly"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// Fragments at a ct(). A fragment cannot be tracked alone.
//
//  1. Its walk pauses at the ct(), until the datagram is whole.
//  2. Conntrack answers once for all fragments.
//  3. The walks then continue one after the other, each where it paused, with its own key and the
//     answer.
//  4. If fragments reached different ct() actions in one zone, the action of the first fragment
//     runs, because only it has the ports. Each fragment continues in the table that its own
//     action names.
//  5. A walk continues only after the walk that completed the datagram has ended. So no walk runs
//     inside another one.
//  6. At a second ct() all of them pause again, and nothing nests.
//  7. A paused walk keeps the pipeline that it began with, as any packet under way does. After 15
//     seconds the fragment is dropped.

// paused is the state that a walk needs to continue after its ct().
type paused struct {
	prog    *program.Program
	ct      *program.Track
	rests   []rest // the actions that follow it, in its list and in enclosing ones
	key     flow.Key
	meta    conntrack.Meta
	layers  packet.Layers
	inPort  uint32
	table   uint8
	entry   *flow.Entry
	lookups int
	sent    int    // outputs before the ct(): a packet that was sent is not dropped later
	live    liveID // of the trace that watches it, if one does
	account *account
}

type datagram = reassembly.Datagram[paused]

// collects says whether a ct() waits for the rest of the packet's datagram. It does not wait for
// a fragment with a broken header, which is +inv, or if a trace already has the answer.
func (k *walk) collects() bool {
	if k.layers.Frag == 0 || k.dry() && (k.trace.req.CTNext != nil || len(k.trace.req.CTAnswers) > 0) {
		return false
	}
	a := reassembly.Arrival{Frame: k.frame, Layers: &k.layers}
	return a.Readable()
}

// collect ends the walk of a fragment here, until its datagram is whole.
func (k *walk) collect(ct *program.Track, after []flow.Action) {
	k.ready(ct)
	a := reassembly.Arrival{Frame: k.frame, Layers: &k.layers, Zone: k.request.Zone, Port: k.inPort}
	k.stopped = true
	k.noteOnce()
	if k.dry() {
		k.trace.collect(k, &a)
		return
	}
	s := k.w.sw.fragments
	own := s.Owns(k.frame)
	d, drop := s.Add(&a, k.w.now, func(p *paused) { k.pause(p, ct, after) })
	if drop != reassembly.DropNone {
		k.drop(telemetry.FragmentDrops[drop])
		return
	}
	k.waits++
	k.noteWait()
	if own {
		k.frame = nil
	}
	if d != nil {
		k.w.whole = append(k.w.whole, d)
	}
}

// pause saves the state of the walk.
func (k *walk) pause(p *paused, ct *program.Track, after []flow.Action) {
	*p = paused{
		prog: k.prog, ct: ct, key: k.key, meta: k.ct, layers: k.layers,
		inPort: k.inPort, table: k.table, entry: k.entry, lookups: k.lookups, sent: k.sent, live: k.trace.liveID(),
		account: k.w.account,
	}
	p.rests = append(p.rests, k.rests...)
	if len(after) > 0 {
		p.rests = append(p.rests, rest{after, k.table, k.entry, k.resumed})
	}
}

// walkDatagrams continues with the datagrams that a packet has completed, and with those that
// they complete at further ct() actions. It drops those after the first maxDepth, because entries
// then form a loop.
func (k *walk) walkDatagrams() {
	for i := 0; i < len(k.w.whole); i++ {
		d := k.w.whole[i]
		if i < maxDepth {
			k.walkDatagram(d)
		} else {
			k.dropDatagram(d)
		}
		k.w.sw.fragments.Release(d)
	}
	clear(k.w.whole)
	k.w.whole = k.w.whole[:0]
}

// walkDatagram asks conntrack about a datagram and continues the walks of its fragments. From
// here on the entries see the datagram's ports on every fragment, though only the first one
// carries them.
func (k *walk) walkDatagram(d *datagram) {
	first := d.Pieces()[0]
	k.restore(first.Frame, &first.Then)
	k.ready(first.Then.ct)
	whole, layers := d.Join(&k.w.joiner)
	v := k.w.sw.conntrack.Track(whole, layers, &k.ct, &k.request, k.w.now)
	if v.Rewritten {
		d.Scatter(whole.Bytes())
	}
	meta, key := k.ct, k.key
	flow.Readdress(first.Frame, &first.Then.layers, &key)
	for _, p := range d.Pieces() {
		batch := k.w.resume(p.Then.account)
		k.restore(p.Frame, &p.Then)
		k.ct = meta
		k.key.CopyTransport(&key)
		k.rewatch(&p.Then)
		if k.trace != nil {
			k.trace.answered(k, &k.request)
		}
		k.proceed(p.Then.ct, v)
		k.finish()
		k.w.resumed(batch)
	}
}

// dropDatagram drops a datagram's fragments.
func (k *walk) dropDatagram(d *datagram) {
	for _, p := range d.Pieces() {
		batch := k.w.resume(p.Then.account)
		k.restore(p.Frame, &p.Then)
		k.rewatch(&p.Then)
		k.drop(telemetry.DropTooDeep)
		k.finish()
		k.w.resumed(batch)
	}
}

// restore restores a paused walk.
func (k *walk) restore(f *packet.Frame, p *paused) {
	k.beginPacket(f, p.inPort)
	k.prog, k.key, k.ct, k.layers = p.prog, p.key, p.meta, p.layers
	k.table, k.last, k.lookups, k.sent, k.before = p.table, p.table, p.lookups, p.sent, p.sent
	k.entry, k.met = p.entry, p.entry
	k.rests = append(k.rests, p.rests...)
}

// proceed continues after the ct(): in its table, then in the lists around it, the innermost list
// first.
func (k *walk) proceed(ct *program.Track, v conntrack.Verdict) {
	if next := k.answered(ct, v, false); next >= 0 {
		k.walkTable(uint8(next))
	}
	k.runRests()
}

// runRests runs the remaining actions of interrupted lists, the innermost list first.
func (k *walk) runRests() {
	for n := len(k.rests) - 1; n >= 0 && !k.stopped; n-- {
		r := k.rests[n]
		k.rests = k.rests[:n]
		k.table, k.entry, k.resumed = r.table, r.entry, r.resumed
		k.runNested(r.actions)
	}
	k.resumed = nil
}

// dropFragment counts a fragment whose datagram did not complete, under the table of its ct(). It
// counts no drop if the fragment was sent somewhere before. The caller holds a lock of the
// fragments.
func (s *Switch) dropFragment(p *reassembly.Piece[paused], why reassembly.Drop) {
	p.Then.account.dropHeld(p.Then.sent > 0)
	if p.Then.sent == 0 {
		l := telemetry.Drop{Reason: telemetry.FragmentDrops[why], Table: p.Then.table, Entry: p.Then.entry, CT: telemetry.CTOf(&p.Then.meta)}
		s.outside.drops[l.Table][l.Reason].Add(1)
		s.fragmentDrops.NotePacket(&l, p.Frame, p.Then.inPort, s.clock())
		s.fragmentDrops.Publish()
	}
}

// Fragments counts the fragments that wait at ct() actions.
func (s *Switch) Fragments() reassembly.Stats { return s.fragments.Stats() }
