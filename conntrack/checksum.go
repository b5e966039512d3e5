package conntrack

// The checksum of an entry tells a cell whose writing was cut off, half one
// connection and half the one before, from a whole one. It guards against no sender,
// so its keys are no secret: words are multiplied in pairs, each pair by itself, so
// that the processor has all of them under way at once.

// sumKeys keep words of zeros from making zeros of the ones beside them.
var sumKeys = func() (keys [len(fixedWords{}) + 1]uint64) {
	for i := range keys {
		keys[i] = uint64(i+1) * 0x9e3779b97f4a7c15 // 2^64 by the golden ratio
	}
	return keys
}()

// checksum is the checksum over what of a connection never changes.
func checksum(f *fixedWords) uint32 {
	k := &sumKeys
	sum := foldedProduct(f[0]^k[0], f[1]^k[1]) + foldedProduct(f[2]^k[2], f[3]^k[3]) +
		foldedProduct(f[4]^k[4], f[5]^k[5]) + foldedProduct(f[6]^k[6], f[7]^k[7]) +
		foldedProduct(f[8]^k[8], f[9]^k[9])
	sum = foldedProduct(f[10]^k[10], sum^k[11])
	return uint32(sum ^ sum>>32)
}

// checksum is that of a cell as it is.
func (c *cell) checksum() uint32 {
	f := c.fixedWords()
	return checksum(&f)
}
