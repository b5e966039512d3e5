package conntrack

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// lay lays a header and cells over memory that others may have written: its
// length and alignment are checked, its contents are not. Every bit pattern is
// a valid header and a valid cell as far as Go is concerned, for they are words
// without pointers.
func lay(memory []byte) (*header, []cell, error) {
	n := (len(memory) - headerSize) / cellSize
	if n < 2 || headerSize+n*cellSize != len(memory) {
		return nil, nil, fmt.Errorf("an arena of %d bytes holds no whole number of connections", len(memory))
	}
	first := unsafe.Pointer(unsafe.SliceData(memory))
	if uintptr(first)%cellAlign != 0 {
		return nil, nil, fmt.Errorf("an arena must begin at a multiple of %d bytes", cellAlign)
	}
	return (*header)(first), unsafe.Slice((*cell)(unsafe.Add(first, headerSize)), n), nil
}

// The size of a cell, which tests keep, and how arenas are aligned: cells begin
// at cache lines.
const (
	cellSize  = int(unsafe.Sizeof(cell{}))
	cellAlign = 64
)

// unshared is an atomic word that no other goroutine uses before something
// orders the two: an atomic store waits until all stores before it have reached
// memory, a plain one does not.
func unshared(w *atomic.Uint32) *uint32 { return (*uint32)(unsafe.Pointer(w)) }
