//go:build !amd64 && !arm64

package flow

import "encoding/binary"

// Word is the i-th 64-bit word of the key, little-endian, for lookups.
func (k *Key) Word(i int) uint64 { return binary.LittleEndian.Uint64(k[8*i:]) }

// SetWord writes the bits under mask into the i-th word. value must have no
// others.
func (k *Key) SetWord(i int, value, mask uint64) {
	w := k[8*i : 8*i+8]
	binary.LittleEndian.PutUint64(w, binary.LittleEndian.Uint64(w)&^mask|value)
}
