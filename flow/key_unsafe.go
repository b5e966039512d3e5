//go:build amd64 || arm64

package flow

import "unsafe"

// The words of a key are its bytes as the processor reads them: on these
// machines, which put the lowest byte first and bear words at any address, that
// is one load with one comparison of the index (key_words.go is the same for
// others). Lookups do little else.

// Word is the i-th 64-bit word of the key, its first byte the lowest, for
// lookups.
func (k *Key) Word(i int) uint64 { return k.words()[i] }

// SetWord writes the bits under mask into the i-th word; value has no others.
func (k *Key) SetWord(i int, value, mask uint64) {
	w := &k.words()[i]
	*w = *w&^mask | value
}

func (k *Key) words() *[KeyWords]uint64 { return (*[KeyWords]uint64)(unsafe.Pointer(k)) }
