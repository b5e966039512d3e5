package store

import (
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/tuple"
)

// Entry is one connection, unpacked from its cell (Cell.Load).
type Entry struct {
	Keys [2]tuple.Key // original and reply direction; the second is after NAT
	Port uint32       // where its first packet entered

	proto.State
	loaded      int64 // Expires, as Cell.Load found it
	Label       struct{ Hi, Lo uint64 }
	Mark        uint32
	OffloadSlot uint32 // its index in memory shared with the kernel, under the flag Offloaded
}

// The flags of a connection that do not belong to its protocol.
const (
	SourceNAT      = proto.FirstFree << iota // made with nat(src=…)
	DestinationNAT                           // made with nat(dst=…)
	Expendable                               // neither end would miss the connection
	Offloaded                                // the kernel forwards packets of it, too
)

// natFlags is the flags that are set only when the connection is made.
const natFlags = SourceNAT | DestinationNAT

// Handle names a connection across calls. The zero handle names none.
type Handle struct{ Slot, Gen uint32 }

// FixedWords is the words of a connection that never change: both keys, port and NAT.
type FixedWords [2*len(tuple.Words{}) + 1]uint64

// Key is the key of a direction.
func (f *FixedWords) Key(dir int) *tuple.Words {
	if dir == tuple.Original {
		return (*tuple.Words)(f[:])
	}
	return (*tuple.Words)(f[len(tuple.Words{}):])
}

// FixedWords writes the fixed words to f (see tuple.Key.Load).
func (e *Entry) FixedWords(f *FixedWords) {
	e.Keys[tuple.Original].Store(f.Key(tuple.Original))
	e.Keys[tuple.Reply].Store(f.Key(tuple.Reply))
	f[len(f)-1] = uint64(e.Port) | uint64(e.Flags&natFlags)<<32
}

// pack is mark, flags and SCTP state as a word of the cell.
func (e *Entry) pack() uint64 {
	return uint64(e.Mark) | uint64(e.Flags)<<32 | uint64(e.SCTP)<<40
}

// tags is the SCTP tags as a word of the cell.
func (e *Entry) tags() uint64 { return uint64(e.Tag[tuple.Original]) | uint64(e.Tag[tuple.Reply])<<32 }
