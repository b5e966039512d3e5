package store

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"sync/atomic"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/tuple"
)

// An arena may lie in memory that outlives the process: a mapped file on tmpfs. That memory holds
// a header of one page, then the cells. It does not hold the index. Each process builds the index
// with a new secret, so no secret is ever stored.

// headerSize is the bytes before the cells.
const headerSize = 4096

// header describes the memory behind it.
type header struct {
	magic, schema uint64
	boot          [16]byte
	cells         uint64
	top           atomic.Uint32 // Arena.top
}

// magic is "antrailc" in little-endian order.
const magic = 0x636c_6961_7274_6e61

// Size is how many bytes an arena for n connections takes.
func Size(n int) int { return headerSize + (n+1)*cellSize }

// OverMemory is an arena over memory that outlives the process. The memory has Size bytes and
// begins at a multiple of 64. OverMemory does not change it. The error is for memory that
// cannot hold an arena.
func OverMemory(memory []byte) (*Arena, error) {
	h, cells, err := lay(memory)
	if err != nil {
		return nil, err
	}
	return &Arena{cells: cells, top: &h.top, header: h}, nil
}

// layout is a hash over everything that defines the meaning of a cell's bits. If the meaning of a
// word changes and its place does not, change layoutVersion.
func layout() uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, layoutVersion)
	for _, t := range []reflect.Type{
		reflect.TypeFor[header](), reflect.TypeFor[Cell](), reflect.TypeFor[tuple.Key](), reflect.TypeFor[proto.Peer](),
	} {
		for i := range t.NumField() {
			f := t.Field(i)
			fmt.Fprintln(h, f.Name, f.Type, f.Offset)
		}
	}
	return h.Sum64()
}

// layoutVersion stands for Cell.Store, Entry.pack, FixedWords, Checksum, the flags, the states of
// protocols, proto.Peer.Pack, proto.Sequence and tuple.Key.Words.
const layoutVersion = 6

// Stamp makes an arena over memory an empty one of this boot. boot is different each time that
// the clock was reset.
func (a *Arena) Stamp(boot [16]byte) { a.header.stamp(boot, len(a.cells)) }

func (h *header) stamp(boot [16]byte, cells int) {
	h.magic = 0 // until all other fields are valid
	h.top.Store(1)
	h.schema, h.boot, h.cells = layout(), boot, uint64(cells)
	h.magic = magic
}

// Foreign says why the connections in an arena over memory cannot be restored. It is "" if they
// can.
func (a *Arena) Foreign(boot [16]byte) string { return a.header.foreign(boot, len(a.cells)) }

func (h *header) foreign(boot [16]byte, cells int) string {
	switch {
	case h.magic == 0:
		return "it is new"
	case h.magic != magic:
		return "it is not an arena"
	case h.schema != layout():
		return "it was written by another version"
	case h.boot != boot:
		return "the machine was restarted since"
	case h.cells != uint64(cells):
		return fmt.Sprintf("it was made for %d connections, not %d", h.cells-1, cells-1)
	case h.top.Load() == 0 || int(h.top.Load()) > cells:
		return "its mark of used cells is outside the arena"
	}
	return ""
}
