//go:build amd64 && !race

package store

import (
	"sync/atomic"
	"unsafe"
)

// setWord stores a word of a cell that the caller has locked, or whose generation is even.
// Other workers may read the word at the same time. A plain store is enough, because:
//
//  1. A reader checks the head before and after, and drops the words that it has read if the
//     head has changed. For that, stores must become visible in their order.
//  2. A reader of the expiry gets the old one or the new one. For that, a store must write a
//     whole word.
//  3. A compare-and-swap comes before the store, or fails.
//
// Every store of amd64 keeps that order and writes whole words. An atomic store (words.go)
// would also wait until it has reached memory, for each word of a new connection.
func setWord(at *atomic.Uint64, w uint64) { *(*uint64)(unsafe.Pointer(at)) = w }

// setFixed is setWord for the fixed words.
func (c *Cell) setFixed(f *FixedWords) { *(*FixedWords)(unsafe.Pointer(&c.keys)) = *f }

// The fixed words of a cell are contiguous.
var _ = [1]struct{}{}[unsafe.Offsetof(Cell{}.fixed)-unsafe.Offsetof(Cell{}.keys)-unsafe.Sizeof(Cell{}.keys)]

// setHalf is setWord for half a word.
func setHalf(at *atomic.Uint32, w uint32) { *(*uint32)(unsafe.Pointer(at)) = w }
