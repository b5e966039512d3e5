package proto

// The state of TCP as words, for memory that several processors share. Nearly every segment
// changes one word, the Sequence of its direction. Two more words, which seldom change, hold
// the rest of each side.

// Sequence is the sequence state of one direction, as one word. The lower half is Next of the
// sending side, the upper half is Limit of the receiving side. Segments of the other direction
// change neither.
type Sequence uint64

// SequenceOf is the sequence state of the segments that src sends to dst.
func SequenceOf(src, dst *Peer) Sequence { return Sequence(src.Next) | Sequence(dst.Limit)<<32 }

// Unpack is the inverse of SequenceOf.
func (q Sequence) Unpack(src, dst *Peer) { src.Next, dst.Limit = uint32(q), uint32(q>>32) }

// Pack is the part of a side that is in no Sequence, as one word. Its upper 8 bits are 0.
func (p *Peer) Pack() uint64 {
	return uint64(p.Window) | uint64(p.State)<<32 | uint64(p.scale)<<40 | uint64(p.scaled)<<48
}

// Unpack is the inverse of Pack.
func (p *Peer) Unpack(w uint64) {
	p.Window, p.State, p.scale, p.scaled = uint32(w), TCPState(w>>32), uint8(w>>40), scaling(w>>48)
}

// ValidPeer says whether Pack may have written a word.
func ValidPeer(w uint64) bool {
	var p Peer
	p.Unpack(w)
	return p.State <= TCPTimeWait && p.scale <= maxScale && p.scaled <= unknownScale && w>>56 == 0
}
