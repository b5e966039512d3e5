package conntrack

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"sync/atomic"
)

// An arena may lie in memory that outlives the process, a file on tmpfs that is
// mapped: a header of one page, then the cells. The index is not in it. It is
// built again, by another secret: so no secret is ever stored.

// headerSize is the bytes before the cells.
const headerSize = 4096

// header says what the memory behind it is.
type header struct {
	magic, schema uint64
	boot          [16]byte
	cells         uint64
	top           atomic.Uint32 // arena.top
}

// magic is "antrailc" in little-endian order.
const magic = 0x636c_6961_7274_6e61

// ArenaSize is how many bytes an arena for n connections takes.
func ArenaSize(n int) int { return headerSize + (n+1)*cellSize }

// layout is a hash over everything that gives a cell's bits their meaning. When
// the meaning of a word changes and its place does not, layoutVersion has to
// change.
func layout() uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, layoutVersion)
	for _, t := range []reflect.Type{
		reflect.TypeFor[header](), reflect.TypeFor[cell](), reflect.TypeFor[key](), reflect.TypeFor[peer](),
	} {
		for i := range t.NumField() {
			f := t.Field(i)
			fmt.Fprintln(h, f.Name, f.Type, f.Offset)
		}
	}
	return h.Sum64()
}

// layoutVersion is for cell.store, entry.pack, fixedWords, checksum, entryFlags, tcpState, sctpState
// and key.words.
const layoutVersion = 5

// stamp makes the header one of an empty arena of this boot.
func (h *header) stamp(boot [16]byte, cells int) {
	h.magic = 0 // until all else is right
	h.top.Store(1)
	h.schema, h.boot, h.cells = layout(), boot, uint64(cells)
	h.magic = magic
}

// foreign says why the cells behind the header cannot be taken over; "" when
// they can.
func (h *header) foreign(boot [16]byte, cells int) string {
	switch {
	case h.magic == 0:
		return "it is new"
	case h.magic != magic:
		return "it is no arena"
	case h.schema != layout():
		return "it was written by another version"
	case h.boot != boot:
		return "the machine was started since"
	case h.cells != uint64(cells):
		return fmt.Sprintf("it was made for %d connections, not %d", h.cells-1, cells-1)
	case h.top.Load() == 0 || int(h.top.Load()) > cells:
		return "its mark of used cells lies outside of it"
	}
	return ""
}
