package afxdp

import (
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A port can be taken over after its process was killed, if another process has copies of its
// descriptors. A kill can come between any two stores, so ledger and rings may disagree. These
// rules show the next process which frames the kernel has:
//
//  1. The process writes a slot, then the journal, then the frame's bit in the ledger, and then
//     shows the slot to the kernel. So a journal beyond the producer's word names slots that the
//     kernel has not seen. Their frames are free.
//  2. A frame leaves the ledger before its slot is returned to the kernel, and is used again only
//     after that. So frames between the words of the completion ring are free. Frames between the
//     words of the RX ring are the kernel's, because no worker had them.
//  3. The journal says at which slots of the RX ring a multi-buffer frame is cut, before the
//     slots are returned. The rest of that frame is skipped.
//
// Frames that workers had are dropped, and their memory is free. The port must have its own
// memory (give.go), because otherwise other ports would have frames of it.

// journal is words of the ledger that only this file reads.
type journal []uint64

// Indexes in a journal.
const (
	filled = iota // the producer's word of the fill ring, after the last written slot
	posted        // the same of the TX ring
	cut           // a cutPoint
	journalWords
)

// journalIn is the end of a ledger's first page, after the facts.
func journalIn(memory []byte) journal {
	end := os.Getpagesize()
	return journal(heldIn(memory[end-8*journalWords : end]))
}

// cutPoint is the consumer's word of the RX ring, in the upper half. Two bits say whether a frame
// is open at that word, and whether one was at the previous word.
type cutPoint uint64

const (
	openNow    = 1
	openBefore = 2
)

// next is the cutPoint of the next word.
func (c cutPoint) next(word uint32, open bool) cutPoint {
	n := cutPoint(word) << 32
	if open {
		n |= openNow
	}
	if c&openNow != 0 {
		n |= openBefore
	}
	return n
}

// open says whether a frame is open at a word.
func (c cutPoint) open(word uint32) bool {
	if uint32(c>>32) == word {
		return c&openNow != 0
	}
	return c&openBefore != 0
}

// noteCut records whether a frame is open at the current word of the RX ring.
func (p *Port) noteCut() {
	j := p.ledger.journal
	j[cut] = uint64(cutPoint(j[cut]).next(p.socket.rx.local, p.rx.multiBuffer.open))
}

// beginJournal makes the journal agree with the rings.
func (p *Port) beginJournal() {
	j, s := p.ledger.journal, p.socket
	j[filled], j[posted] = uint64(s.fill.local), uint64(s.tx.local)
	p.noteCut()
	p.noteCut() // so that the previous word is this one, too
}

// reconcile corrects the ledger to what the kernel has, after a kill. The kernel may add to the
// rings meanwhile, but only frames that are in the ledger.
func (p *Port) reconcile() {
	s, j := p.socket, p.ledger.journal
	unseen(&s.fill, j[filled], func(address uint64) { p.rx.held.drop(address / FrameSize) })
	unseen(&s.tx, j[posted], func(d unix.XDPDesc) { p.tx.held.drop(d.Addr / FrameSize) })
	s.done.resume(false)
	for range s.done.readable(len(s.done.slots)) {
		p.tx.held.drop(s.done.read() / FrameSize)
	}
	s.done.release()
	s.rx.resume(false)
	p.rx.multiBuffer = multiBuffer{open: cutPoint(j[cut]).open(s.rx.local)}
	for range s.rx.readable(len(s.rx.slots)) {
		if frame := s.rx.read().Addr / FrameSize; frame < uint64(p.umem.Frames()) {
			p.rx.held.add(uint32(frame))
		}
	}
	// The slots stay unread: BeginTraffic resumes at the kernel's own position.
}

// unseen calls a function for the slots that were written and not shown to the kernel.
func unseen[T any](r *ring[T], next uint64, slot func(T)) {
	shown := atomic.LoadUint32(r.producer)
	n := uint32(next) - shown
	if n > uint32(len(r.slots)) {
		return // a journal of a process that kept none
	}
	for i := range n {
		slot(r.slots[(shown+i)&r.mask])
	}
}

// drop removes a frame that may be outside the memory, or not in the set.
func (h held) drop(frame uint64) {
	if frame/64 < uint64(len(h)) {
		h.remove(uint32(frame))
	}
}
