package conntrack

import (
	"runtime"
	"sync/atomic"

	"github.com/antrail/antrail/packet"
)

// A cell holds one connection in memory that all workers share. Every word of
// it is read and written atomically, so a lookup takes no lock and may run into
// a cell at any moment of its life; the generation tells it what it saw.
//
//	generation odd      the connection is live
//	generation even     the cell is free, or about to be filled
//	locked              one worker changes the mutable part
//	turns               how often that has been done, in the bits above
//
// A generation changes when the connection ends. Whoever reads keys reads the
// generation before and after: if it is odd and the same, they belong together
// (a seqlock whose writer is the cell's next life). Whoever wants the mutable
// part takes the lock by one compare-and-swap that also proves that the
// connection is still the one that was found. Whoever only asks what it says reads
// the head before and after, too: unlocked and the same, it was one moment's.
//
// The expiry, and how far the segments of each direction have come (course), move
// without the lock, by compare-and-swap from what was read: a packet that changes
// nothing else (pass.go, look.go) needs no more. So who holds the lock leaves an expiry
// that it has not moved as it lies there by then; and who has moved a course reads the
// head once more, for where another has taken the lock before, what was moved may be
// written over, and has to be moved again. And who ends a connection first makes its
// expiry 0, from which nobody moves it on: whichever of the two comes first, the other
// sees it.

// entry is one connection, unpacked for the one who holds its cell's lock.
type entry struct {
	keys [2]key // original and reply direction; the second is after NAT
	port uint32 // where its first packet came in

	expires int64 // on the table's clock, nanoseconds
	loaded  int64 // expires, as it was found
	label   Label
	mark    uint32

	tcp   [2]peer // per direction: the side that sends in it
	isn   uint32  // of a SYN on an established connection, under annotated
	away  uint32  // its place in the shared memory, under the flag
	tag   [2]uint32
	flags entryFlags
	state sctpState
}

// entryFlags is what a connection is besides its protocol's state.
type entryFlags uint8

const (
	replied        entryFlags = 1 << iota // a packet of the reply direction was seen
	sourceNAT                             // made with nat(src=…)
	destinationNAT                        // made with nat(dst=…)
	annotated                             // entry.isn is set, by the original side
	annotatedReply                        // … by the reply side
	pickedUp                              // began with a TCP segment that was no SYN
	expendable                            // stands in its port's list of those that may be evicted
	away                                  // the kernel passes packets of it too (away.go)
)

// natFlags is the flags that are decided once, when the connection is made.
const natFlags = sourceNAT | destinationNAT

// handle names an entry across calls. The zero handle names none.
type handle struct{ slot, gen uint32 }

// keyWords is a key as it lies in a cell.
type keyWords [5]uint64

// mutable is the words of an entry that change in its life, in the order
// expiry; mark, flags and SCTP state; label; the two courses of TCP, or the SCTP
// tags; the rest of the two TCP peers; the ISN and, in the upper half, the place in
// the memory shared while away. A protocol without peers or tags leaves what was there before.
type mutable [9]atomic.Uint64

// cell is three cache lines: expiry and generation, which a sweep reads, share
// the first one.
type cell struct {
	head  atomic.Uint64 // generation in the low half, locked, turns
	mut   mutable
	keys  [2][len(keyWords{})]atomic.Uint64
	fixed atomic.Uint64 // port of entry, and natFlags from bit 32 on
	sum   atomic.Uint32 // checksum over keys and fixed, written last
	since atomic.Uint32 // when the connection became expendable, in ticks
	// chain is the next reference in the index's chains, by direction.
	chain [2]atomic.Uint32
	// older and newer are the neighbours in the port's list of expendable
	// entries; newer also links free cells.
	older, newer atomic.Uint32
}

// locked is the lock in cell.head, turn the lowest bit of turns above it.
const (
	locked = 1 << 32
	turn   = 1 << 33
)

// spins is how often a taken lock is tried before the thread is given away.
const spins = 32

// live says whether a head is of a connection.
func live(head uint64) bool { return head&1 != 0 }

// lock takes the cell's lock if it still holds the connection of generation
// gen. It is held for some dozens of instructions.
func (c *cell) lock(gen uint32) bool {
	for spin := 1; ; spin++ {
		h := c.head.Load()
		switch {
		case uint32(h) != gen:
			return false
		case h&locked == 0 && c.head.CompareAndSwap(h, h|locked):
			return true
		case spin%spins == 0:
			runtime.Gosched()
		}
	}
}

// unlock gives the lock back; gen is the generation from now on.
func (c *cell) unlock(gen uint32) { setWord(&c.head, c.head.Load()&^(turn-1)+turn|uint64(gen)) }

// clean makes the cell one that is free, if its head still is as it was read.
func (c *cell) clean(head uint64) bool {
	if !live(head) && head&locked == 0 {
		return true
	}
	return c.head.CompareAndSwap(head, head&^(turn-1)+turn|uint64((uint32(head)+1)&^1))
}

// holds says whether the cell is a live connection with this key in direction
// dir, and of which generation.
func (c *cell) holds(dir uint32, w *keyWords) (gen uint32, ok bool) {
	gen = uint32(c.head.Load())
	if !live(uint64(gen)) {
		return gen, false
	}
	for i := len(w) - 1; i >= 0; i-- {
		if c.keys[dir][i].Load() != w[i] {
			return gen, false
		}
	}
	return gen, uint32(c.head.Load()) == gen
}

// expires is when the connection ends without another packet.
func (c *cell) expires() int64 { return int64(c.mut[0].Load()) }

// postpone moves the expiry, unless it is not at from any more.
func (c *cell) postpone(from, to int64) bool {
	return c.mut[0].CompareAndSwap(uint64(from), uint64(to))
}

// port is where the connection's first packet came in.
func (c *cell) port() uint32 { return uint32(c.fixed.Load()) }

// keyWords is the key of direction dir.
func (c *cell) keyWords(dir int) (w keyWords) {
	for i := range w {
		w[i] = c.keys[dir][i].Load()
	}
	return w
}

// load copies the connection as it is now. The caller holds the lock, or bears
// it that the words are of several moments.
func (c *cell) load(e *entry) {
	for dir := range e.keys {
		e.keys[dir].load(&c.keys[dir])
	}
	e.port = c.port()
	m := &c.mut
	e.expires = int64(m[0].Load())
	e.loaded = e.expires
	e.unpack(m[1].Load())
	e.label = Label{m[2].Load(), m[3].Load()}
	last := m[8].Load()
	e.isn, e.away = uint32(last), uint32(last>>32)
	switch e.keys[original].proto {
	case packet.ProtoTCP:
		for dir := range e.tcp {
			e.tcp[dir].unpack(m[6+dir].Load())
			course(m[4+dir].Load()).tell(&e.tcp[dir], &e.tcp[1-dir])
		}
	case packet.ProtoSCTP:
		tags := m[4].Load()
		e.tag = [2]uint32{uint32(tags), uint32(tags >> 32)}
	}
}

// store writes what of the connection's mutable part differs from the cell's.
func (c *cell) store(e *entry) {
	m := &c.mut
	if e.expires != e.loaded { // else it may have moved meanwhile
		setWord(&m[0], uint64(e.expires))
	}
	put(&m[1], e.pack())
	put(&m[2], e.label.Hi)
	put(&m[3], e.label.Lo)
	put(&m[8], uint64(e.isn)|uint64(e.away)<<32)
	switch e.keys[original].proto {
	case packet.ProtoTCP:
		for dir := range e.tcp { // before the states that go with them, for who restores
			put(&m[4+dir], uint64(courseOf(&e.tcp[dir], &e.tcp[1-dir])))
		}
		for dir := range e.tcp {
			put(&m[6+dir], e.tcp[dir].pack())
		}
	case packet.ProtoSCTP:
		put(&m[4], e.tags())
	}
}

// put stores a word that has changed: where nothing has, the cell's lines stay
// with all who read them.
func put(at *atomic.Uint64, w uint64) {
	if at.Load() != w {
		setWord(at, w)
	}
}

// fill writes a connection into a free cell, its checksum last. What the cell
// held is not waited for.
func (c *cell) fill(e *entry, f *fixedWords) {
	m := &c.mut
	setWord(&m[0], uint64(e.expires))
	setWord(&m[1], e.pack())
	setWord(&m[2], e.label.Hi)
	setWord(&m[3], e.label.Lo)
	setWord(&m[8], uint64(e.isn)|uint64(e.away)<<32)
	switch e.keys[original].proto {
	case packet.ProtoTCP:
		for dir := range e.tcp {
			setWord(&m[6+dir], e.tcp[dir].pack())
			setWord(&m[4+dir], uint64(courseOf(&e.tcp[dir], &e.tcp[1-dir])))
		}
	case packet.ProtoSCTP:
		setWord(&m[4], e.tags())
	}
	c.setFixed(f)
	setHalf(&c.sum, checksum(f))
}

// fixedWords is what of a connection never changes: both keys, port and NAT.
type fixedWords [2*len(keyWords{}) + 1]uint64

// key is the key of a direction.
func (f *fixedWords) key(dir int) *keyWords {
	if dir == original {
		return (*keyWords)(f[:])
	}
	return (*keyWords)(f[len(keyWords{}):])
}

// fixedWords writes them in their place (see key.load).
func (e *entry) fixedWords(f *fixedWords) {
	e.keys[original].store(f.key(original))
	e.keys[reply].store(f.key(reply))
	f[len(f)-1] = uint64(e.port) | uint64(e.flags&natFlags)<<32
}

// fixedWords is the same of a cell.
func (c *cell) fixedWords() (f fixedWords) {
	for dir := range c.keys {
		of := f.key(dir)
		for i := range of {
			of[i] = c.keys[dir][i].Load()
		}
	}
	f[len(f)-1] = c.fixed.Load()
	return f
}

// pack is mark, flags and SCTP state as they lie in a cell.
func (e *entry) pack() uint64 {
	return uint64(e.mark) | uint64(e.flags)<<32 | uint64(e.state)<<40
}

// unpack is the inverse of pack.
func (e *entry) unpack(w uint64) {
	e.mark, e.flags, e.state = uint32(w), entryFlags(w>>32), sctpState(w>>40)
}

// tags is the SCTP tags as they lie in a cell.
func (e *entry) tags() uint64 { return uint64(e.tag[original]) | uint64(e.tag[reply])<<32 }

// pack is what of a side is in no course, as it lies in a cell.
func (p *peer) pack() uint64 {
	return uint64(p.window) | uint64(p.state)<<32 | uint64(p.scale)<<40 | uint64(p.scaled)<<48
}

// unpack is the inverse of pack.
func (p *peer) unpack(w uint64) {
	p.window, p.state, p.scale, p.scaled = uint32(w), tcpState(w>>32), uint8(w>>40), scaling(w>>48)
}

// flags is the connection's flags as they are.
func (c *cell) flags() entryFlags { return entryFlags(c.mut[1].Load() >> 32) }
