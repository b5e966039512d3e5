//go:build amd64 && !race

package conntrack

import (
	"sync/atomic"
	"unsafe"
)

// setWord stores a word of a cell that the caller has locked, or whose
// generation is even. Others may read it at the same time: those who look for a
// key throw away what they have read when the generation says so, and those who
// ask for the expiry get the old one or the new one, and who moves it meanwhile by
// compare-and-swap does so before or not at all. So order and whole words are all
// that is needed, and amd64 gives both to any store. An atomic store would also
// wait until it has reached memory, for each word of a new connection (words.go is
// that one).
func setWord(at *atomic.Uint64, w uint64) { *(*uint64)(unsafe.Pointer(at)) = w }

// setFixed is setWord for all that never changes.
func (c *cell) setFixed(f *fixedWords) { *(*fixedWords)(unsafe.Pointer(&c.keys)) = *f }

// A cell has its fixed words one behind the other.
var _ = [1]struct{}{}[unsafe.Offsetof(cell{}.fixed)-unsafe.Offsetof(cell{}.keys)-unsafe.Sizeof(cell{}.keys)]

// setHalf is setWord for half a word.
func setHalf(at *atomic.Uint32, w uint32) { *(*uint32)(unsafe.Pointer(at)) = w }
