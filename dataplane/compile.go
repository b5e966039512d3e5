package dataplane

import (
	"iter"
	"math/bits"
	"slices"
	"weak"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
)

// Actions are compiled where that saves work per packet: a value that an entry
// puts into a register or a mark is found as words of the key when the entry is
// installed, not field by field for each packet. Everything else runs as it is
// written. The actions of clauses are never run: of them, the conjunctions are
// compiled (conjunction.go).

// write is a set_field or load of a metadata field. It stands in for the action
// that it was compiled from, which traces show.
type write struct {
	flow.Action
	index       int // word of the key
	value, mask uint64
}

// piece is a subfield of the key that lies in one of its words.
type piece struct {
	index int
	shift uint8
	mask  uint64
}

// pieceOf is a subfield as a piece. It is not ok for one that lies in two words.
func pieceOf(s flow.Subfield) (p piece, ok bool) {
	f := flow.FieldByID(s.Field)
	last := f.Off + f.Size - 1
	if f.Off/8 != last/8 {
		return piece{}, false
	}
	return piece{f.Off / 8, uint8(8*(7-last%8) + f.Lsb + int(s.Ofs)), 1<<s.N - 1}, true
}

// get reads the piece, right aligned. The key has its fields as packets have, the
// highest byte first, its words the lowest.
func (p *piece) get(k *flow.Key) uint64 {
	return bits.ReverseBytes64(k.Word(p.index)) >> p.shift & p.mask
}

// mayReadPorts says whether a subfield is of a word of the key that has ports, or of
// more than one word.
func mayReadPorts(s flow.Subfield) bool {
	p, ok := pieceOf(s)
	return !ok || p.readsPorts()
}

// outputReg is an output to the port whose number a piece of the key holds.
type outputReg struct {
	flow.Action
	from piece
}

// moveToMark is a move of exec() into the mark of a connection.
type moveToMark struct {
	flow.Action
	from piece
	to   uint8
	mask uint32 // in its place
}

// write writes what the key holds to the mark of a request.
func (m *moveToMark) write(r *conntrack.Request, k *flow.Key) {
	r.Mark = r.Mark&^m.mask | uint32(m.from.get(k)<<m.to)
	r.MarkMask |= m.mask
}

// compiledMove is a move of exec(), as a moveToMark if it can be.
func compiledMove(a flow.Action) flow.Action {
	m, ok := a.(flow.Move)
	if !ok || m.Dst.Field != flow.CTMark {
		return a
	}
	from, ok := pieceOf(m.Src)
	if !ok {
		return a
	}
	from.mask &= 1<<m.Dst.N - 1
	_, _, mask := inPlace(m.Dst, flow.Value{})
	return &moveToMark{a, from, uint8(m.Dst.Ofs), uint32(mask.Lo)}
}

// compiled is a list of actions as packets run it. The list given stays as it
// is.
func compiled(actions []flow.Action) []flow.Action {
	all := make([]flow.Action, len(actions))
	for i, a := range actions {
		all[i] = compiledAction(a)
	}
	return all
}

func compiledAction(a flow.Action) flow.Action {
	switch a := a.(type) {
	case flow.SetField:
		return compiledWrite(a, a.Field, a.Value.And(a.Mask), a.Mask)
	case flow.Load:
		id, value, mask := inPlace(a.Dst, a.Value)
		return compiledWrite(a, id, value, mask)
	case *flow.CT:
		return newTrack(a)
	case flow.OutputReg:
		if from, ok := pieceOf(a.Src); ok && !from.readsPorts() {
			return &outputReg{a, from}
		}
	case flow.Clone:
		return flow.Clone{Actions: compiled(a.Actions)}
	}
	return a
}

// asWritten is the action that one was compiled from, which traces show.
func asWritten(a flow.Action) flow.Action {
	switch a := a.(type) {
	case *write:
		return a.Action
	case *writeMAC:
		return a.Action
	case *outputReg:
		return a.Action
	case *track:
		return a.CT
	case flow.Clone:
		inner := make([]flow.Action, len(a.Actions))
		for i, x := range a.Actions {
			inner[i] = asWritten(x)
		}
		return flow.Clone{Actions: inner}
	}
	return a
}

// track is a ct() with a request in which is all that is the same for each
// packet.
type track struct {
	*flow.CT
	request conntrack.Request
	nat     conntrack.NAT
	moves   []flow.Action // of exec(), from the first on that reads the packet

	readsPorts bool // zone or moves may be of ports
}

func newTrack(a *flow.CT) *track {
	t := &track{CT: a, request: conntrack.Request{Zone: a.Zone, Commit: a.Commit, Force: a.Force}}
	if a.NAT != nil {
		t.nat = natRequest(a.NAT)
		t.request.NAT = &t.nat
	}
	fixed := 0
	for ; fixed < len(a.Exec); fixed++ {
		if _, reads := a.Exec[fixed].(flow.Move); reads {
			break
		}
		writes(&t.request, a.Exec[fixed], nil)
	}
	for _, x := range a.Exec[fixed:] {
		t.moves = append(t.moves, compiledMove(x))
	}
	t.readsPorts = a.ZoneSrc != nil && mayReadPorts(*a.ZoneSrc) || slices.ContainsFunc(a.Exec[fixed:], func(x flow.Action) bool {
		m, reads := x.(flow.Move)
		return reads && mayReadPorts(m.Src)
	})
	return t
}

// writes has a request write what an action of exec() writes to the mark or the
// label, bit by bit; k is the packet's key for one that moves.
func writes(r *conntrack.Request, a flow.Action, k *flow.Key) {
	switch id, v, mask := execValue(a, k); id {
	case flow.CTMark:
		r.Mark = r.Mark&^uint32(mask.Lo) | uint32(v.Lo)
		r.MarkMask |= uint32(mask.Lo)
	case flow.CTLabel:
		l := flow.Value{Hi: r.Label.Hi, Lo: r.Label.Lo}.AndNot(mask).Or(v)
		r.Label = conntrack.Label{Hi: l.Hi, Lo: l.Lo}
		r.LabelMask = conntrack.Label{Hi: r.LabelMask.Hi | mask.Hi, Lo: r.LabelMask.Lo | mask.Lo}
	}
}

// execValue is what one action of exec() writes: field, value and mask, in
// place.
func execValue(a flow.Action, k *flow.Key) (flow.FieldID, flow.Value, flow.Value) {
	switch a := a.(type) {
	case flow.SetField:
		return a.Field, a.Value.And(a.Mask), a.Mask
	case flow.Load:
		return inPlace(a.Dst, a.Value)
	case flow.Move:
		return inPlace(a.Dst, a.Src.Get(k))
	}
	return flow.FieldNone, flow.Value{}, flow.Value{}
}

// writeMAC is a set_field or load of a whole Ethernet address.
type writeMAC struct {
	flow.Action
	field flow.FieldID
	at    int // in the frame
	addr  [6]byte
}

// compiledWrite is the action that writes bits of a field, as a write when they
// lie in one word and no header of the frame follows them.
func compiledWrite(a flow.Action, id flow.FieldID, value, mask flow.Value) flow.Action {
	f := flow.FieldByID(id)
	if at := places[id]; at.base == inEthernet && at.size == 6 && mask.And(flow.Ones(48)) == flow.Ones(48) {
		w := &writeMAC{Action: a, field: id, at: at.off}
		putBits(w.addr[:], value, mask)
		return w
	}
	index := f.Off / 8
	if f.Off >= flow.HeaderStart || index != (f.Off+f.Size-1)/8 {
		return a
	}
	var v, m flow.Key
	f.Put(&v, value, mask)
	f.Put(&m, mask, mask)
	return &write{a, index, v.Word(index), m.Word(index)}
}

// compiler makes the entries of one program after another. One goroutine at a
// time uses it; entries may start one that ends with it.
type compiler struct {
	seq    uint64 // of the last entry
	shared clauseLists
}

// entry compiles an entry of a bundle.
func (c *compiler) entry(e *flow.Entry, now int64) *entry {
	c.seq++
	return newEntryWith(c.shared.of(e.Actions), e, c.seq, now)
}

// compiledAhead is how many entries are compiled at a time.
const compiledAhead = 256

// entries compiles entries in order. If there are many, a goroutine compiles the next ones
// while the caller installs some. The caller must take all of them.
func (c *compiler) entries(all []*flow.Entry, now int64) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		if len(all) <= compiledAhead {
			for _, e := range all {
				yield(c.entry(e, now))
			}
			return
		}
		ahead := make(chan []*entry, 4)
		go c.runCompile(all, now, ahead)
		for some := range ahead {
			for _, e := range some {
				yield(e)
			}
		}
	}
}

// runCompile compiles entries into ahead, and closes it behind the last.
func (c *compiler) runCompile(all []*flow.Entry, now int64, ahead chan<- []*entry) {
	defer close(ahead)
	for some := range slices.Chunk(all, compiledAhead) {
		made := make([]*entry, len(some))
		for i, e := range some {
			made[i] = c.entry(e, now)
		}
		ahead <- made
	}
}

// clauseLists are the clauses of long lists of actions that entries have now.
// Ten thousand addresses that ten thousand rules name are ten thousand entries
// with one list of actions: it is compiled once, also for the address that comes
// a day later. A list is told by where it lies, and is not kept from being
// forgotten by being in here.
type clauseLists struct {
	known map[weak.Pointer[flow.Action]]weak.Pointer[clauses]
	limit int // how many may be known before those that are gone are swept out
}

// worthSharing is the length of a list from which on it is looked for.
const worthSharing = 8

// of is the clauses of an entry by its actions; nil for a hard one.
func (l *clauseLists) of(actions []flow.Action) *clauses {
	if len(actions) < worthSharing || !soft(actions) {
		return newClauses(actions)
	}
	at := weak.Make(&actions[0])
	if c := l.known[at].Value(); c != nil && len(c.actions) == len(actions) {
		return c
	}
	c := newClauses(actions)
	l.add(at, c)
	return c
}

func (l *clauseLists) add(at weak.Pointer[flow.Action], c *clauses) {
	if l.known == nil {
		l.known = map[weak.Pointer[flow.Action]]weak.Pointer[clauses]{}
	}
	if len(l.known) >= l.limit {
		for k, v := range l.known {
			if v.Value() == nil {
				delete(l.known, k)
			}
		}
		l.limit = max(minSweep, 2*len(l.known))
	}
	l.known[at] = weak.Make(c)
}

// minSweep keeps short tables of lists from being swept all the time.
const minSweep = 64

// inPlace is what a value is in the whole field that dst is a part of: the field,
// the value shifted to its place, and the mask of the part.
func inPlace(dst flow.Subfield, v flow.Value) (flow.FieldID, flow.Value, flow.Value) {
	mask := flow.Ones(int(dst.N)).Shl(int(dst.Ofs))
	return dst.Field, v.Shl(int(dst.Ofs)).And(mask), mask
}
