package reassembly

import (
	"bytes"
	"slices"

	"github.com/antrail/antrail/packet"
)

// fragment reads a fragment, and returns why a fragment of its shape cannot wait. The length of a
// fragment that is not the last must be a multiple of 8 bytes (RFC 791, section 3.2). It must be
// at least MinFragment. So a datagram has few fragments, and the first one holds the transport
// header (RFC 1858).
func (a *Arrival) fragment() (packet.Fragment, Drop) {
	g, ok := packet.ReadFragment(a.Frame.Bytes(), a.Layers)
	if !ok || g.Len() == 0 || g.More && (g.Len()%8 != 0 || g.End-a.Layers.L3 < MinFragment) {
		return g, DropShape
	}
	return g, DropNone
}

// Check returns why a fragment of this shape could not wait, even in an empty store. It is
// DropNone if it could.
func (a *Arrival) Check() Drop {
	_, drop := a.fragment()
	return drop
}

// Readable says whether the frame's network header is valid. A fragment with a wrong IPv4 header
// checksum is +inv, like any other packet (CT-6).
func (a *Arrival) Readable() bool {
	return a.Layers.EtherType != packet.EtherTypeIPv4 || packet.IPv4(a.Frame.Bytes()[a.Layers.L3:]).ChecksumValid()
}

// place is the index of a fragment, or the reason to drop it. Overlaps are never resolved (RFC
// 5722, RFC 8200), nor are two different ends.
func (d *Datagram[T]) place(a *Arrival, g *packet.Fragment) (int, Drop) {
	end := g.Offset + g.Len()
	i, _ := slices.BinarySearchFunc(d.pieces, g.Offset, func(p *Piece[T], off int) int { return p.at.Offset - off })
	if i < len(d.pieces) && d.pieces[i].same(a, g) {
		return 0, DropDuplicate
	}
	switch {
	case i > 0 && d.pieces[i-1].end() > g.Offset,
		i < len(d.pieces) && d.pieces[i].at.Offset < end,
		d.total != 0 && (end > d.total || !g.More),
		!g.More && i < len(d.pieces):
		return 0, DropOverlap
	case d.tooLong(a, g):
		return 0, DropTooLong
	case len(d.pieces) == MaxFragments:
		return 0, DropTooMany
	}
	return i, DropNone
}

// tooLong says whether the datagram, with g, is longer than MaxDatagram. It adds the datagram's
// header, if that has come, and the end of the last fragment.
func (d *Datagram[T]) tooLong(a *Arrival, g *packet.Fragment) bool {
	header, end := 0, g.Offset+g.Len()
	if n := len(d.pieces); n > 0 {
		end = max(end, d.pieces[n-1].end())
		if d.pieces[0].at.Offset == 0 {
			header = d.pieces[0].header
		}
	}
	if g.Offset == 0 {
		header = headerLen(g, a.Layers)
	}
	return header+end > MaxDatagram
}

// headerLen is how many bytes the header of a whole datagram adds to its length field. The rest
// is the fragmented part.
func headerLen(g *packet.Fragment, l *packet.Layers) int {
	if l.EtherType == packet.EtherTypeIPv6 {
		return g.Repeated - l.L3 - packet.IPv6Len
	}
	return g.Repeated - l.L3
}

// insert inserts a fragment at its index.
func (d *Datagram[T]) insert(i int, p *Piece[T]) {
	d.pieces = slices.Insert(d.pieces, i, p)
	d.held += p.at.Len()
	if !p.at.More {
		d.total = p.end()
	}
}

// whole says whether the datagram is complete. Fragments do not overlap, so counting bytes is
// enough.
func (d *Datagram[T]) whole() bool { return d.total != 0 && d.held == d.total }

// same says whether an arrived fragment equals this one, byte by byte.
func (p *Piece[T]) same(a *Arrival, g *packet.Fragment) bool {
	return p.at.Offset == g.Offset && p.at.More == g.More && bytes.Equal(p.part(), a.Frame.Bytes()[g.Start:g.End])
}

// end is where the fragment ends in its datagram.
func (p *Piece[T]) end() int { return p.at.Offset + p.at.Len() }

// part is the fragment's part of the datagram.
func (p *Piece[T]) part() []byte { return p.Frame.Bytes()[p.at.Start:p.at.End] }
