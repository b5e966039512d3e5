//go:build amd64 || arm64

package flow

import "unsafe"

// The words of a key are its bytes as the processor reads them. On these
// machines, which are little-endian and read words at any address, that is one
// load and one check of the index. key_words.go does the same on others. Lookups
// do little else.

// Word is the i-th 64-bit word of the key, little-endian, for lookups.
func (k *Key) Word(i int) uint64 { return k.words()[i] }

// SetWord writes the bits under mask into the i-th word. value must have no
// others.
func (k *Key) SetWord(i int, value, mask uint64) {
	w := &k.words()[i]
	*w = *w&^mask | value
}

func (k *Key) words() *[KeyWords]uint64 { return (*[KeyWords]uint64)(unsafe.Pointer(k)) }
