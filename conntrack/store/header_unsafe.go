package store

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// lay maps a header and cells over memory that another process may have written. It checks length
// and alignment, not the contents. Every bit pattern is a valid header and a valid cell for Go,
// because both consist of words without pointers.
func lay(memory []byte) (*header, []Cell, error) {
	n := (len(memory) - headerSize) / cellSize
	if n < 2 || headerSize+n*cellSize != len(memory) {
		return nil, nil, fmt.Errorf("an arena of %d bytes does not hold a whole number of connections", len(memory))
	}
	first := unsafe.Pointer(unsafe.SliceData(memory))
	if uintptr(first)%cellAlign != 0 {
		return nil, nil, fmt.Errorf("an arena must begin at a multiple of %d bytes", cellAlign)
	}
	return (*header)(first), unsafe.Slice((*Cell)(unsafe.Add(first, headerSize)), n), nil
}

// The size of a cell, checked by a test, and the alignment of arenas: cells begin at cache lines.
const (
	cellSize  = int(unsafe.Sizeof(Cell{}))
	cellAlign = 64
)

// unshared is an atomic word that no other goroutine uses yet. A plain store to it does not wait
// until all stores before it have reached memory, as an atomic store does.
func unshared(w *atomic.Uint32) *uint32 { return (*uint32)(unsafe.Pointer(w)) }
