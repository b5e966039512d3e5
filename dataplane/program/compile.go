package program

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/flow"
)

// Actions are compiled if that saves work per packet. A value for a register or a mark becomes
// words of the key when the entry is installed. Other actions run as they are written. The
// actions of clauses never run; lookup compiles their conjunctions.

// Write is a set_field or load of a metadata field. It replaces the action that it was compiled
// from. Traces show that action.
type Write struct {
	flow.Action
	Index       int // word of the key
	Value, Mask uint64
}

// piece is a subfield of the key that lies in one of its words.
type piece struct {
	index int
	shift uint8
	mask  uint64
}

// pieceOf is a subfield as a piece. ok is false for a subfield in two words.
func pieceOf(s flow.Subfield) (p piece, ok bool) {
	f := flow.FieldByID(s.Field)
	last := f.Off + f.Size - 1
	if f.Off/8 != last/8 {
		return piece{}, false
	}
	return piece{f.Off / 8, uint8(8*(7-last%8) + f.Lsb + int(s.Ofs)), 1<<s.N - 1}, true
}

// Get reads the piece, right aligned. The fields of a key have the highest byte first, its words
// the lowest.
func (p *piece) Get(k *flow.Key) uint64 {
	return bits.ReverseBytes64(k.Word(p.index)) >> p.shift & p.mask
}

// readsPorts reports whether a piece is in a word of the key that has ports. These include the
// ports of the original direction.
func (p *piece) readsPorts() bool {
	return slices.ContainsFunc(portFields, func(id flow.FieldID) bool { return flow.FieldByID(id).Off/8 == p.index })
}

var portFields = []flow.FieldID{flow.TCPSrc, flow.TCPDst, flow.CTTpSrc, flow.CTTpDst}

// mayReadPorts says whether a subfield is in a word of the key that has ports, or in two words.
func mayReadPorts(s flow.Subfield) bool {
	p, ok := pieceOf(s)
	return !ok || p.readsPorts()
}

// OutputReg is an output to the port whose number a piece of the key holds.
type OutputReg struct {
	flow.Action
	From piece
}

// MoveToMark is a move of exec() into the mark of a connection.
type MoveToMark struct {
	flow.Action
	from piece
	to   uint8
	mask uint32 // in its place
}

// Write writes the piece of the key to the mark of a request.
func (m *MoveToMark) Write(r *conntrack.Request, k *flow.Key) {
	r.Mark = r.Mark&^m.mask | uint32(m.from.Get(k)<<m.to)
	r.MarkMask |= m.mask
}

// compiledMove is a move of exec(), as a MoveToMark if possible.
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
	_, _, mask := InPlace(m.Dst, flow.Value{})
	return &MoveToMark{a, from, uint8(m.Dst.Ofs), uint32(mask.Lo)}
}

// CompileActions is a compiled copy of a list of actions.
func CompileActions(actions []flow.Action) []flow.Action {
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
		id, value, mask := InPlace(a.Dst, a.Value)
		return compiledWrite(a, id, value, mask)
	case *flow.CT:
		return newTrack(a)
	case flow.OutputReg:
		if from, ok := pieceOf(a.Src); ok && !from.readsPorts() {
			return &OutputReg{a, from}
		}
	case flow.Clone:
		return flow.Clone{Actions: CompileActions(a.Actions)}
	}
	return a
}

// AsWritten is the action that a was compiled from, which traces show.
func AsWritten(a flow.Action) flow.Action {
	switch a := a.(type) {
	case *Write:
		return a.Action
	case *WriteMAC:
		return a.Action
	case *OutputReg:
		return a.Action
	case *Track:
		return a.CT
	case flow.Clone:
		inner := make([]flow.Action, len(a.Actions))
		for i, x := range a.Actions {
			inner[i] = AsWritten(x)
		}
		return flow.Clone{Actions: inner}
	}
	return a
}

// Track is a ct() whose request has everything that is the same for each packet.
type Track struct {
	*flow.CT
	Request conntrack.Request
	nat     conntrack.NAT
	Moves   []flow.Action // of exec(), beginning with the first one that reads the packet

	ReadsPorts bool // zone or moves may read ports
}

func newTrack(a *flow.CT) *Track {
	t := &Track{CT: a, Request: conntrack.Request{Zone: a.Zone, Commit: a.Commit, Force: a.Force}}
	if a.NAT != nil {
		t.nat = natRequest(a.NAT)
		t.Request.NAT = &t.nat
	}
	fixed := 0
	for ; fixed < len(a.Exec); fixed++ {
		if _, reads := a.Exec[fixed].(flow.Move); reads {
			break
		}
		AddExec(&t.Request, a.Exec[fixed], nil)
	}
	for _, x := range a.Exec[fixed:] {
		t.Moves = append(t.Moves, compiledMove(x))
	}
	t.ReadsPorts = a.ZoneSrc != nil && mayReadPorts(*a.ZoneSrc) || slices.ContainsFunc(a.Exec[fixed:], func(x flow.Action) bool {
		m, reads := x.(flow.Move)
		return reads && mayReadPorts(m.Src)
	})
	return t
}

// AddExec adds the mark or label bits of an action of exec() to a request. For a move, k is the
// packet's key.
func AddExec(r *conntrack.Request, a flow.Action, k *flow.Key) {
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

// execValue is the field, value and mask, in place, that an action of exec() writes.
func execValue(a flow.Action, k *flow.Key) (flow.FieldID, flow.Value, flow.Value) {
	switch a := a.(type) {
	case flow.SetField:
		return a.Field, a.Value.And(a.Mask), a.Mask
	case flow.Load:
		return InPlace(a.Dst, a.Value)
	case flow.Move:
		return InPlace(a.Dst, a.Src.Get(k))
	}
	return flow.FieldNone, flow.Value{}, flow.Value{}
}

// WriteMAC is a set_field or load of a whole Ethernet address.
type WriteMAC struct {
	flow.Action
	Field flow.FieldID
	At    int // in the frame
	Addr  [6]byte
}

// macOffset is the offset of an Ethernet address in a frame.
func macOffset(id flow.FieldID) (at int, is bool) {
	switch id {
	case flow.EthDst:
		return 0, true
	case flow.EthSrc:
		return 6, true
	}
	return 0, false
}

// compiledWrite is the action that writes bits of a field. It is a Write if the bits lie in one
// word and the frame has no header for them. A tun_metadata field has a second word.
func compiledWrite(a flow.Action, id flow.FieldID, value, mask flow.Value) flow.Action {
	f := flow.FieldByID(id)
	if at, is := macOffset(id); is && mask.And(flow.Ones(48)) == flow.Ones(48) {
		w := &WriteMAC{Action: a, Field: id, At: at}
		for i := range w.Addr {
			w.Addr[i] = byte(value.Lo >> (40 - 8*i))
		}
		return w
	}
	index := f.Off / 8
	if f.Off >= flow.HeaderStart || flow.IsTunMetadata(id) || index != (f.Off+f.Size-1)/8 {
		return a
	}
	var v, m flow.Key
	f.Put(&v, value, mask)
	f.Put(&m, mask, mask)
	return &Write{a, index, v.Word(index), m.Word(index)}
}

// Compiler makes the entries of successive programs. One goroutine at a time uses it.
// (Compiler.entries may start another goroutine, which ends with it.)
type Compiler struct {
	seq    uint64 // of the last entry
	shared lookup.ClauseLists
	room   lookup.Room
}

// entry compiles an entry of a bundle. Its actions are either clauses or run.
func (c *Compiler) entry(e *flow.Entry, now int64) *lookup.Entry {
	c.seq++
	cl, actions := c.shared.Of(e.Actions), []flow.Action(nil)
	if cl == nil {
		actions = CompileActions(e.Actions)
	}
	n := c.room.NewEntry(e, cl, actions, c.seq, now)
	n.Learner = learns(e)
	return n
}

// LearnedEntry makes an entry that a packet has learned.
func LearnedEntry(e *flow.Entry, now int64) *lookup.Entry {
	n := lookup.NewEntry(e, nil, CompileActions(e.Actions), 0, now)
	n.Learned, n.Learner = true, learns(e)
	return n
}

// compiledAhead is how many entries are compiled at a time.
const compiledAhead = 256

// entries compiles entries in order. If there are many, a goroutine compiles the next ones
// while the caller installs some. The caller must take all of them.
func (c *Compiler) entries(all []*flow.Entry, now int64) iter.Seq[*lookup.Entry] {
	return func(yield func(*lookup.Entry) bool) {
		if len(all) <= compiledAhead {
			for _, e := range all {
				yield(c.entry(e, now))
			}
			return
		}
		ahead := make(chan []*lookup.Entry, 4)
		go c.runCompile(all, now, ahead)
		for some := range ahead {
			for _, e := range some {
				yield(e)
			}
		}
	}
}

// runCompile sends compiled entries to ahead, and closes it after the last.
func (c *Compiler) runCompile(all []*flow.Entry, now int64, ahead chan<- []*lookup.Entry) {
	defer close(ahead)
	for some := range slices.Chunk(all, compiledAhead) {
		made := make([]*lookup.Entry, len(some))
		for i, e := range some {
			made[i] = c.entry(e, now)
		}
		ahead <- made
	}
}

// InPlace is a value in the whole field that dst is a part of. It returns the field, the
// value shifted to its place, and the mask of the part.
func InPlace(dst flow.Subfield, v flow.Value) (flow.FieldID, flow.Value, flow.Value) {
	mask := flow.Ones(int(dst.N)).Shl(int(dst.Ofs))
	return dst.Field, v.Shl(int(dst.Ofs)).And(mask), mask
}

// natRequest is the conntrack request of nat().
func natRequest(n *flow.NAT) conntrack.NAT {
	return conntrack.NAT{
		Source:      n.Type == flow.NATSource,
		Destination: n.Type == flow.NATDestination,
		AddrMin:     n.AddrMin, AddrMax: n.AddrMax,
		PortMin: n.PortMin, PortMax: n.PortMax,
	}
}

// WidenPort widens a reserved 16-bit port number of OpenFlow 1.0 to 32 bits, as 0xfffe (LOCAL).
func WidenPort(no uint32) uint32 {
	if no >= 0xff00 && no <= 0xffff {
		return no | 0xffff0000
	}
	return no
}

// PutMeta writes the conntrack fields of a key: state, zone, mark, label and the original tuple.
// It also fills o with the original tuple.
func PutMeta(key *flow.Key, m *conntrack.Meta, o *conntrack.Original) {
	m.Original(o)
	var c flow.Conntrack // filled in place, because a literal would be built elsewhere and copied
	c.State, c.Zone, c.Mark = uint32(m.State), m.Zone, m.Mark
	c.Label.Hi, c.Label.Lo = m.Label.Hi, m.Label.Lo
	c.IPv6, c.Proto, c.SrcPort, c.DstPort = o.IPv6, o.Proto, o.SrcPort, o.DstPort
	c.Src.Hi, c.Src.Lo, c.Dst.Hi, c.Dst.Lo = o.Src.Hi, o.Src.Lo, o.Dst.Hi, o.Dst.Lo
	key.SetConntrack(&c)
}
