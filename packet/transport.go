package packet

// Checksums of the transport header, chosen by protocol. They are for whole
// packets: a fragment's checksum covers bytes that are not there.

// L4Valid says whether the transport checksum of the packet in frame b holds.
// It is false when there is no transport header (L4 is 0), for a UDP Length
// that does not fit, and for UDP over IPv6 without a checksum (RFC 8200,
// section 8.1); true for UDP over IPv4 without one and for protocols without a
// checksum that the switch knows.
func (l *Layers) L4Valid(b []byte) bool {
	if l.L4 == 0 {
		return false
	}
	p := b[l.L4:l.End]
	switch l.Proto {
	case ProtoUDP:
		return l.udpValid(b, UDP(p))
	case ProtoTCP, ProtoICMPv6:
		return Sum(p, l.PseudoSum(b, len(p))) == 0xffff
	case ProtoICMP, ProtoIGMP:
		return Sum(p, 0) == 0xffff
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
	return Sum(h[:n], l.PseudoSum(b, n)) == 0xffff
}

// SetL4Checksum computes the transport checksum of the packet in frame b and
// writes it. It does nothing without a transport header, for a UDP Length that
// does not fit, and for a protocol whose checksum the switch does not know.
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

// CompleteChecksum fills in a checksum that the sender left to hardware and
// clears the offload state. The field holds the pseudo-header sum already, so
// the sum runs from ChecksumStart to the end of the IP packet; for SCTP the
// field is that of its CRC32c, which needs no preparation. It reports false,
// changing nothing, when the offload state points outside the frame.
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
