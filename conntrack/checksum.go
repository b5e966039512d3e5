package conntrack

// The checksum of an entry is CRC32C (Castagnoli; RFC 9260, appendix A), eight
// bytes a step by eight tables. It is here and not hash/crc32's because that
// one wants its bytes in the heap; where they can be read in the cell it is
// hash/crc32's (words_unsafe.go).

// crcTables[0] is the byte-wise table; crcTables[i] takes a byte i bytes
// further.
var crcTables = makeCRCTables()

// castagnoli is the polynomial, bits reversed.
const castagnoli = 0x82f63b78

func makeCRCTables() (t [8][256]uint32) {
	for i := range t[0] {
		crc := uint32(i)
		for range 8 {
			crc = crc>>1 ^ castagnoli*(crc&1)
		}
		t[0][i] = crc
	}
	for i := range t[0] {
		for step := 1; step < len(t); step++ {
			before := t[step-1][i]
			t[step][i] = before>>8 ^ t[0][byte(before)]
		}
	}
	return t
}

// checksum is the CRC32C over words in little-endian order.
func checksum(f *fixedWords) uint32 {
	crc := ^uint32(0)
	t := &crcTables
	for _, w := range f {
		w ^= uint64(crc)
		crc = t[7][byte(w)] ^ t[6][byte(w>>8)] ^ t[5][byte(w>>16)] ^ t[4][byte(w>>24)] ^
			t[3][byte(w>>32)] ^ t[2][byte(w>>40)] ^ t[1][byte(w>>48)] ^ t[0][byte(w>>56)]
	}
	return ^crc
}
