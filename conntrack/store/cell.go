package store

import (
	"runtime"
	"sync/atomic"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// A cell holds one connection in memory that all workers share. Every word of a cell is read
// and written atomically. So a lookup takes no lock, and may read a cell at any moment of its
// life. The head of the cell says in which state the cell is:
//
//	generation odd      the connection is live
//	generation even     the cell is free, or about to be filled
//	locked              one worker changes the mutable part
//	turns               how often a worker has unlocked the cell, in the bits above
//
// The invariants:
//
//  1. A generation ends with its connection. A worker that reads keys reads the generation
//     before and after. If it is odd and the same, the keys belong together, because they
//     change only while it is even.
//  2. A worker that reads more without the lock reads the whole head before and after. If the
//     head is unlocked and the same, the words are of one moment, because each unlock adds a
//     turn. Only the words of rule 4 may be of later moments.
//  3. A worker that changes the mutable part takes the lock, by a compare-and-swap of the
//     head. That compares the generation too, so the connection is still the one that the
//     worker has found.
//  4. The expiry, and the sequence state of each direction of TCP, also change without the
//     lock, by compare-and-swap from the value that was read (Commit). If it succeeds, the
//     new value follows from the current one.
//  5. A worker that holds the lock does not write an expiry that it has not changed, because
//     another worker may have changed it meanwhile. It may overwrite a sequence state. So a
//     worker that has changed a sequence state without the lock reads the head again. If the
//     head has changed, the worker repeats the whole packet.
//  6. A worker that ends a connection first sets its expiry to 0, by compare-and-swap from an
//     expiry for which the condition holds. No worker changes an expiry of 0. So if a packet
//     changes the expiry first, the connection stays. Otherwise the packet's compare-and-swap
//     fails.
//  7. If the connection ends between the two writes of Commit, the sequence state of an ended
//     connection has changed. No worker reads it.

// mutable is the words of a connection that may change:
//
//	0     expiry
//	1     mark; from bit 32 on flags, from bit 40 on the SCTP state
//	2, 3  label
//	4, 5  by direction: the sequence state of TCP; or in word 4 the two SCTP tags
//	6, 7  by direction: the rest of the sending side of TCP (proto.Peer.Pack)
//	8     ISN; from bit 32 on Entry.OffloadSlot
//
// Protocols without sides or tags do not write words 4 to 7.
type mutable [9]atomic.Uint64

// Cell is three cache lines. The first holds expiry and generation, which the sweep reads.
type Cell struct {
	state atomic.Uint64 // the head: generation in the low half, locked, turns
	mut   mutable
	keys  [2][len(tuple.Words{})]atomic.Uint64
	fixed atomic.Uint64 // port of entry, and natFlags from bit 32 on
	sum   atomic.Uint32 // checksum over keys and fixed, written last
	since atomic.Uint32 // when the connection was listed, in ticks
	// chain is the next reference in the index's chains, by direction.
	chain [2]atomic.Uint32
	// older and newer are the neighbours in a List. newer also links free cells.
	older, newer atomic.Uint32
}

// Locked is the lock in a cell's head, turn the lowest bit of the turns above it.
const (
	Locked = 1 << 32
	turn   = 1 << 33
)

// spins is how often LockIf tries before it yields the thread.
const spins = 32

// Head is the cell's generation in the lower half, its lock and its turns.
func (c *Cell) Head() uint64 { return c.state.Load() }

// Live says whether a head belongs to a live connection.
func Live(head uint64) bool { return head&1 != 0 }

// LockIf locks the cell if it still holds the connection of generation gen. The caller must
// unlock it after some dozens of instructions.
func (c *Cell) LockIf(gen uint32) bool {
	for spin := 1; ; spin++ {
		h := c.state.Load()
		switch {
		case uint32(h) != gen:
			return false
		case h&Locked == 0 && c.state.CompareAndSwap(h, h|Locked):
			return true
		case spin%spins == 0:
			runtime.Gosched()
		}
	}
}

// Unlock unlocks the cell. gen is the generation from now on.
func (c *Cell) Unlock(gen uint32) { setWord(&c.state, c.state.Load()&^(turn-1)+turn|uint64(gen)) }

// clean makes the cell a free one. It reports false if the head has changed meanwhile.
func (c *Cell) clean(head uint64) bool {
	if !Live(head) && head&Locked == 0 {
		return true
	}
	return c.state.CompareAndSwap(head, head&^(turn-1)+turn|uint64((uint32(head)+1)&^1))
}

// holds says whether the cell holds a live connection with this key in direction dir, and its
// generation.
func (c *Cell) holds(dir uint32, w *tuple.Words) (gen uint32, ok bool) {
	gen = uint32(c.state.Load())
	if !Live(uint64(gen)) {
		return gen, false
	}
	for i := len(w) - 1; i >= 0; i-- {
		if c.keys[dir][i].Load() != w[i] {
			return gen, false
		}
	}
	return gen, uint32(c.state.Load()) == gen
}

// Expires is when the connection ends without another packet.
func (c *Cell) Expires() int64 { return int64(c.mut[0].Load()) }

// Postpone changes the expiry. It reports false if the expiry is no longer from.
func (c *Cell) Postpone(from, to int64) bool {
	return c.mut[0].CompareAndSwap(uint64(from), uint64(to))
}

// Port is the port where the connection's first packet entered.
func (c *Cell) Port() uint32 { return uint32(c.fixed.Load()) }

// KeyWords is the key of direction dir.
func (c *Cell) KeyWords(dir int) (w tuple.Words) {
	for i := range w {
		w[i] = c.keys[dir][i].Load()
	}
	return w
}

// Load copies the connection to e. The caller holds the lock, or checks the head before and after
// (rule 2), or accepts a torn copy.
func (c *Cell) Load(e *Entry) {
	for dir := range e.Keys {
		e.Keys[dir].Load(&c.keys[dir])
	}
	e.Port = c.Port()
	m := &c.mut
	e.Mark = uint32(m[1].Load())
	e.Label.Hi, e.Label.Lo = m[2].Load(), m[3].Load()
	e.OffloadSlot = c.OffloadSlot()
	c.LoadState(&e.State, e.Keys[tuple.Original].Proto)
	e.loaded = e.Expires
}

// LoadState copies the state of a connection of a protocol, under the conditions of Load.
func (c *Cell) LoadState(s *proto.State, protocol uint8) {
	m := &c.mut
	s.Expires = int64(m[0].Load())
	word := m[1].Load()
	s.Flags, s.SCTP = proto.Flags(word>>32), proto.SCTPState(word>>40)
	switch protocol {
	case packet.ProtoTCP:
		s.ISN = uint32(m[8].Load())
		one, other := &s.TCP[tuple.Original], &s.TCP[tuple.Reply]
		one.Unpack(m[6].Load())
		other.Unpack(m[7].Load())
		c.Sequence(tuple.Original).Unpack(one, other)
		c.Sequence(tuple.Reply).Unpack(other, one)
	case packet.ProtoSCTP:
		tags := m[4].Load()
		s.Tag = [2]uint32{uint32(tags), uint32(tags >> 32)}
	}
}

// Commit writes the progress of a direction without the lock. from was read while the head was
// head. Commit reports false if another worker has changed the connection since then. The
// caller must repeat the packet then (rules 4 to 7).
func (c *Cell) Commit(head uint64, dir int, from, to proto.Progress) bool {
	if from.Sequence != to.Sequence &&
		!(c.mut[4+dir].CompareAndSwap(uint64(from.Sequence), uint64(to.Sequence)) && c.Head() == head) {
		return false
	}
	return from.Expires == to.Expires || c.Postpone(from.Expires, to.Expires)
}

// Store writes the mutable words that differ from the cell's. The caller holds the lock.
func (c *Cell) Store(e *Entry) {
	m := &c.mut
	if e.Expires != e.loaded { // rule 5
		setWord(&m[0], uint64(e.Expires))
	}
	put(&m[1], e.pack())
	put(&m[2], e.Label.Hi)
	put(&m[3], e.Label.Lo)
	put(&m[8], uint64(e.ISN)|uint64(e.OffloadSlot)<<32)
	switch e.Keys[tuple.Original].Proto {
	case packet.ProtoTCP:
		for dir := range e.TCP { // before the states, so that a process that restores the cell finds valid words
			put(&m[4+dir], uint64(proto.SequenceOf(&e.TCP[dir], &e.TCP[1-dir])))
		}
		for dir := range e.TCP {
			put(&m[6+dir], e.TCP[dir].Pack())
		}
	case packet.ProtoSCTP:
		put(&m[4], e.tags())
	}
}

// put stores a word if its value changes. Otherwise the cache line stays with the processors
// that read it.
func put(at *atomic.Uint64, w uint64) {
	if at.Load() != w {
		setWord(at, w)
	}
}

// Fill writes a connection into a free cell, and the checksum of f last. f is the fixed words.
func (c *Cell) Fill(e *Entry, f *FixedWords) {
	m := &c.mut
	setWord(&m[0], uint64(e.Expires))
	setWord(&m[1], e.pack())
	setWord(&m[2], e.Label.Hi)
	setWord(&m[3], e.Label.Lo)
	setWord(&m[8], uint64(e.ISN)|uint64(e.OffloadSlot)<<32)
	switch e.Keys[tuple.Original].Proto {
	case packet.ProtoTCP:
		for dir := range e.TCP {
			setWord(&m[6+dir], e.TCP[dir].Pack())
			setWord(&m[4+dir], uint64(proto.SequenceOf(&e.TCP[dir], &e.TCP[1-dir])))
		}
	case packet.ProtoSCTP:
		setWord(&m[4], e.tags())
	}
	c.setFixed(f)
	setHalf(&c.sum, Checksum(f))
}

// FixedWords is the words of the connection that never change.
func (c *Cell) FixedWords() (f FixedWords) {
	for dir := range c.keys {
		of := f.Key(dir)
		for i := range of {
			of[i] = c.keys[dir][i].Load()
		}
	}
	f[len(f)-1] = c.fixed.Load()
	return f
}

// Flags is the connection's flags.
func (c *Cell) Flags() proto.Flags { return proto.Flags(c.mut[1].Load() >> 32) }

// Says is the connection's mark, with its flags from bit 32 on, and the two halves of its label.
func (c *Cell) Says() (markAndFlags, hi, lo uint64) {
	return c.mut[1].Load(), c.mut[2].Load(), c.mut[3].Load()
}

// OffloadSlot is Entry.OffloadSlot.
func (c *Cell) OffloadSlot() uint32 { return uint32(c.mut[8].Load() >> 32) }

// Sequence is the sequence state of a direction of TCP.
func (c *Cell) Sequence(dir int) proto.Sequence { return proto.Sequence(c.mut[4+dir].Load()) }

// Warm reads the words that a packet of a known connection will need. The number has no meaning.
func (c *Cell) Warm() uint64 { return c.state.Load() + c.mut[7].Load() }
