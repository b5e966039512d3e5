package store

import "github.com/antrail/antrail/conntrack/tuple"

// The checksum shows whether a cell is whole. If writing a cell was cut off, the cell is half one
// connection and half the previous one. The checksum does not protect against an attacker, so its
// keys are not secret. Words are multiplied in independent pairs, which the processor computes at
// the same time.

// sumKeys keep a word of zeros from making its product 0.
var sumKeys = func() (keys [len(FixedWords{}) + 1]uint64) {
	for i := range keys {
		keys[i] = uint64(i+1) * 0x9e3779b97f4a7c15 // 2^64 by the golden ratio
	}
	return keys
}()

// Checksum is the checksum of a connection's fixed words. It is not 0 for zeros.
func Checksum(f *FixedWords) uint32 {
	k := &sumKeys
	sum := tuple.FoldedProduct(f[0]^k[0], f[1]^k[1]) + tuple.FoldedProduct(f[2]^k[2], f[3]^k[3]) +
		tuple.FoldedProduct(f[4]^k[4], f[5]^k[5]) + tuple.FoldedProduct(f[6]^k[6], f[7]^k[7]) +
		tuple.FoldedProduct(f[8]^k[8], f[9]^k[9])
	sum = tuple.FoldedProduct(f[10]^k[10], sum^k[11])
	return uint32(sum ^ sum>>32)
}

// checksum is the checksum of the cell's words.
func (c *Cell) checksum() uint32 {
	f := c.FixedWords()
	return Checksum(&f)
}
