package packet

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// The Internet checksum (RFC 1071): the 16-bit one's complement sum of the bytes, complemented. A
// *sum* here is the folded sum before complementing. A *checksum* is the field of a header. Sums
// are computed eight bytes at a time in the machine's cheapest order, which RFC 1071 section 2
// allows.
//
// If a header's bytes change, its checksum is updated by the difference (RFC 1624, equation 3)
// and not recomputed. So a checksum that was wrong on arrival stays wrong, and the receiver still
// sees it.
//
// UDP over IPv4 has its own rule: 0 means "no checksum", so it stays 0. A checksum that computes
// to 0 is sent as 0xffff (RFC 768); NonZero does that.

// Sum is the one's complement sum of b, taken as big-endian 16-bit words and padded with a zero
// byte, added to initial.
func Sum(b []byte, initial uint16) uint16 {
	return fold(uint64(bits.ReverseBytes16(fold(addWords(b, 0)))) + uint64(initial))
}

// foldsToOnes says whether b and the words that s is the sum of, the checksum among them, sum up to
// all ones. Those are the same bits in any order of bytes. So only one fold is needed.
func foldsToOnes(b []byte, s uint64) bool { return fold(addWords(b, s)) == 0xffff }

// addWords adds b to s, as little-endian words with the carries added at the low end. s is less
// than 1<<62. fold makes the 16-bit sum of the result, with its two bytes swapped. The carries of
// each 64 bytes are counted aside: a carry kept across the loop's end costs several times the
// additions.
func addWords(b []byte, s uint64) uint64 {
	var c, carries uint64
	for len(b) >= 64 {
		p := (*[64]byte)(b)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(p[:]), 0)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(p[8:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(p[16:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(p[24:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(p[32:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(p[40:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(p[48:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(p[56:]), c)
		carries += c
		b = b[64:]
	}
	for len(b) >= 8 {
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b), 0)
		carries += c
		b = b[8:]
	}
	s, c = bits.Add64(s, tail(b), 0)
	s, c = bits.Add64(s, carries+c, 0)
	return s + c
}

// tail is the last, fewer than eight, bytes as a little-endian number.
func tail(b []byte) (v uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

// fold adds the carries of s until 16 bits are left.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s)
}

// Checksum is the complement of Sum, as headers hold it.
func Checksum(b []byte, initial uint16) uint16 { return ^Sum(b, initial) }

// NonZero is a checksum as UDP sends it: 0xffff for 0.
func NonZero(checksum uint16) uint16 {
	if checksum == 0 {
		return 0xffff
	}
	return checksum
}

// Update16 is the checksum after a 16-bit word that it covers changed from old
// to new. For a field that holds a sum and not a checksum
// (Offload.ChecksumPartial), complement it before and after.
func Update16(checksum, old, new uint16) uint16 {
	return ^fold(uint64(^checksum) + uint64(^old) + uint64(new))
}

// AdjustChecksum updates the checksum in the first two bytes of field after a 16-bit
// word that it covers changed (RFC 1624).
func AdjustChecksum(field []byte, old, new uint16) {
	binary.BigEndian.PutUint16(field, Update16(binary.BigEndian.Uint16(field), old, new))
}

// AdjustSum is AdjustChecksum for a field that holds a sum, not its complement
// (Offload.ChecksumPartial).
func AdjustSum(field []byte, old, new uint16) {
	binary.BigEndian.PutUint16(field, ^Update16(^binary.BigEndian.Uint16(field), old, new))
}

// AdjustUDP is AdjustChecksum for UDP. A field of 0 means no checksum and stays 0
// (RFC 768); a result of 0 is written as 0xffff.
func AdjustUDP(field []byte, old, new uint16) {
	if sum := binary.BigEndian.Uint16(field); sum != 0 {
		binary.BigEndian.PutUint16(field, NonZero(Update16(sum, old, new)))
	}
}

// Update32 is Update16 for a 32-bit word.
func Update32(checksum uint16, old, new uint32) uint16 {
	return ^fold(uint64(^checksum) + uint64(^old) + uint64(new))
}

// Update128 is Update16 for an IPv6 address.
func Update128(checksum uint16, old, new [16]byte) uint16 {
	s := uint64(^checksum) + uint64(^Sum(old[:], 0)) + uint64(Sum(new[:], 0))
	return ^fold(s)
}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	zeros      [4]byte // a variable here, since crc32's assembly makes a local one escape
)

// crc32c is SCTP's checksum over a packet with its checksum field taken as 0,
// in the byte order of the wire (RFC 9260, appendix A).
func crc32c(b []byte) uint32 {
	c := crc32.Update(0, castagnoli, b[:sctpChecksum])
	c = crc32.Update(c, castagnoli, zeros[:])
	c = crc32.Update(c, castagnoli, b[sctpChecksum+4:])
	return bits.ReverseBytes32(c)
}

// Checksums of the transport header, by protocol. They are for whole packets, because a fragment
// lacks bytes that its checksum covers.

// L4Valid reports whether the transport checksum of the packet in frame b holds. It is false
// without a transport header (L4 is 0) and for a UDP Length that does not fit. It is also false
// for UDP over IPv6 without a checksum (RFC 8200, section 8.1). It is true for UDP over IPv4
// without a checksum, and for protocols whose checksum the switch does not know.
func (l *Layers) L4Valid(b []byte) bool {
	if l.L4 == 0 {
		return false
	}
	p := b[l.L4:l.End]
	switch l.Proto {
	case ProtoUDP:
		return l.udpValid(b, UDP(p))
	case ProtoTCP, ProtoICMPv6:
		return foldsToOnes(p, l.pseudoWords(b, len(p)))
	case ProtoICMP, ProtoIGMP:
		return foldsToOnes(p, 0)
	case ProtoSCTP:
		return SCTP(p).Checksum() == SCTP(p).ComputeChecksum()
	}
	return true
}

func (l *Layers) udpValid(b []byte, h UDP) bool {
	if !h.Valid() {
		return false
	}
	if h.Checksum() == 0 {
		return l.EtherType == EtherTypeIPv4
	}
	n := int(h.Length())
	return foldsToOnes(h[:n], l.pseudoWords(b, n))
}

// SetL4Checksum computes and writes the transport checksum of the packet in frame b. It leaves b
// as it is without a transport header, or with a UDP Length that does not fit. The same goes for a
// protocol whose checksum the switch does not know.
func (l *Layers) SetL4Checksum(b []byte) {
	if l.L4 == 0 {
		return
	}
	p := b[l.L4:l.End]
	switch l.Proto {
	case ProtoUDP:
		l.setUDPChecksum(b, UDP(p))
	case ProtoTCP:
		h := TCP(p)
		h.SetChecksum(0)
		h.SetChecksum(^Sum(h, l.PseudoSum(b, len(h))))
	case ProtoICMP, ProtoIGMP:
		h := ICMP(p)
		h.SetChecksum(0)
		h.SetChecksum(^Sum(h, 0))
	case ProtoICMPv6:
		h := ICMP(p)
		h.SetChecksum(0)
		h.SetChecksum(^Sum(h, l.PseudoSum(b, len(h))))
	case ProtoSCTP:
		SCTP(p).SetChecksum(SCTP(p).ComputeChecksum())
	}
}

func (l *Layers) setUDPChecksum(b []byte, h UDP) {
	if !h.Valid() {
		return
	}
	h = h[:h.Length()]
	h.SetChecksum(0)
	h.SetChecksum(NonZero(^Sum(h, l.PseudoSum(b, len(h)))))
}

// PseudoSum is the pseudo-header sum of the packet in frame b for n bytes of
// transport header and payload. The network header must be sound.
func (l *Layers) PseudoSum(b []byte, n int) uint16 {
	if l.EtherType == EtherTypeIPv4 {
		return IPv4(b[l.L3:]).PseudoSum(l.Proto, n)
	}
	return IPv6(b[l.L3:]).PseudoSum(l.Proto, n)
}

// pseudoWords is PseudoSum as addWords adds, for sumsToOnes.
func (l *Layers) pseudoWords(b []byte, n int) uint64 {
	s := uint64(l.Proto)<<24 + uint64(bits.ReverseBytes32(uint32(n))) // as two words of 32 bits
	if l.EtherType == EtherTypeIPv4 {
		a := binary.LittleEndian.Uint64((*[8]byte)(b[l.L3+ipv4Src:])[:])
		return s + a>>32 + a&0xffffffff
	}
	return addWords(b[l.L3+ipv6Src:l.L3+ipv6Dst+16], s)
}

// CompleteChecksum fills in a checksum that the sender left to hardware and clears the offload
// state. The field holds the pseudo-header sum, so the sum runs from ChecksumStart to the end of
// the IP packet. For SCTP the field gets its CRC32c. If the offload state points outside the
// frame, CompleteChecksum changes nothing and returns false.
func CompleteChecksum(f *Frame, l *Layers) bool {
	if !f.Offload.ChecksumPartial {
		return true
	}
	b := f.Bytes()
	if l.End != 0 {
		b = b[:l.End]
	}
	start := int(f.Offload.ChecksumStart)
	at := start + int(f.Offload.ChecksumOffset)
	switch {
	case l.Proto == ProtoSCTP && l.L4 != 0 && l.L4 == start:
		l.SetL4Checksum(f.Bytes())
	case start > len(b) || at+2 > len(b):
		return false
	default:
		c := NonZero(^Sum(b[start:], 0))
		b[at], b[at+1] = byte(c>>8), byte(c)
	}
	f.Offload = Offload{}
	return true
}
