package packet_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
)

// slowSum is the sum as RFC 1071 section 4.1 describes it, one word at a time.
func slowSum(b []byte, initial uint16) uint16 {
	s := uint32(initial)
	for i := 0; i < len(b); i += 2 {
		w := uint32(b[i]) << 8
		if i+1 < len(b) {
			w |= uint32(b[i+1])
		}
		s += w
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

func TestSumAgainstWordByWord(t *testing.T) {
	const seed = 1071
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range 300 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		initial := uint16(r.Uint32())
		if got, want := packet.Sum(b, initial), slowSum(b, initial); got%0xffff != want%0xffff {
			t.Fatalf("seed %d: Sum of %d bytes = %#x, want %#x", seed, n, got, want)
		}
	}
	ones := bytes.Repeat([]byte{0xff}, 77)
	if got, want := packet.Sum(ones, 0xffff), slowSum(ones, 0xffff); got != want {
		t.Errorf("Sum of all ones = %#x, want %#x", got, want)
	}
	if got := packet.Sum(make([]byte, 40), 0); got != 0 {
		t.Errorf("Sum of zeros = %#x, want 0", got)
	}
}

// TestUpdate changes words under a checksum and compares with a recomputed one.
// The two zeros of one's complement may differ only when all bytes are zero,
// which the fixed first word prevents.
func TestUpdate(t *testing.T) {
	const seed = 1624
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 2000 {
		b := make([]byte, 40)
		for j := range b {
			b[j] = byte(r.Uint32()) & byte(r.Uint32()>>8)
		}
		b[0] = 0x45
		sum := packet.Checksum(b, 0)
		o16, n16 := binary.BigEndian.Uint16(b[4:]), uint16(r.Uint32())
		binary.BigEndian.PutUint16(b[4:], n16)
		sum = packet.Update16(sum, o16, n16)
		o32, n32 := binary.BigEndian.Uint32(b[8:]), r.Uint32()
		binary.BigEndian.PutUint32(b[8:], n32)
		sum = packet.Update32(sum, o32, n32)
		var n128 [16]byte
		binary.BigEndian.PutUint64(n128[i%9:], r.Uint64())
		o128 := [16]byte(b[16:])
		copy(b[16:], n128[:])
		sum = packet.Update128(sum, o128, n128)
		if want := packet.Checksum(b, 0); sum != want {
			t.Fatalf("seed %d, round %d: updated %#04x, computed anew %#04x", seed, i, sum, want)
		}
	}
}

// TestUpdateRFC1624 is the example of RFC 1624 section 4, where equation 2
// errs.
func TestUpdateRFC1624(t *testing.T) {
	if got := packet.Update16(0xdd2f, 0x5555, 0x3285); got != 0 {
		t.Errorf("Update16 = %#x, want 0", got)
	}
}

func TestUDPZeroRules(t *testing.T) {
	b := pt.UDP4(pt.Options{})
	l := packet.ParseLayers(b)
	udp := packet.UDP(b[l.L4:])
	udp.SetChecksum(0)
	if !l.L4Valid(b) {
		t.Error("UDP over IPv4 without a checksum counts as broken")
	}
	// A source port that makes the sum all ones, so that the checksum is 0.
	udp.SetSrcPort(0)
	udp.SetSrcPort(^packet.Sum(udp, l.PseudoSum(b, len(udp))))
	l.SetL4Checksum(b)
	if got := udp.Checksum(); got != 0xffff {
		t.Errorf("a checksum of 0 is written as %#x, want 0xffff", got)
	}
	if !l.L4Valid(b) {
		t.Error("0xffff does not verify")
	}
	b6 := pt.UDP6(pt.Options{})
	l6 := packet.ParseLayers(b6)
	packet.UDP(b6[l6.L4:]).SetChecksum(0)
	if l6.L4Valid(b6) {
		t.Error("UDP over IPv6 without a checksum counts as good")
	}
}

func TestL4ValidFindsAnyChangedByte(t *testing.T) {
	payload := []byte("some payload of odd length.")
	for name, b := range map[string][]byte{
		"tcp4":  pt.TCP4(pt.Options{Payload: payload}),
		"tcp6":  pt.TCP6(pt.Options{Payload: payload}),
		"udp4":  pt.UDP4(pt.Options{Payload: payload}),
		"udp6":  pt.UDP6(pt.Options{Payload: payload}),
		"icmp4": pt.ICMPEcho4(pt.Options{Payload: payload}),
		"icmp6": pt.ICMPEcho6(pt.Options{Payload: payload}),
		"sctp4": pt.SCTP4(pt.Options{}),
		"sctp6": pt.SCTP6(pt.Options{}),
	} {
		l := packet.ParseLayers(b)
		if !l.L4Valid(b) {
			t.Errorf("%s: the built packet does not verify", name)
		}
		for i := l.L4; i < l.End; i++ {
			bad := poke(b, i, b[i]^0x40)
			if bl := packet.ParseLayers(bad); bl.L4Valid(bad) {
				t.Errorf("%s: a flipped bit at byte %d is not noticed", name, i)
			}
		}
	}
}

func TestCompleteChecksum(t *testing.T) {
	for name, b := range map[string][]byte{
		"tcp4": pt.TCP4(pt.Options{Payload: []byte("abc")}),
		"tcp6": pt.TCP6(pt.Options{Payload: []byte("abc")}),
		"udp4": pt.UDP4(pt.Options{Payload: []byte("abc")}),
	} {
		want := bytes.Clone(b)
		f := packet.NewFrame(make([]byte, 256), nil)
		f.SetBytes(b)
		l := packet.ParseLayers(f.Bytes())
		at := 16
		if l.Proto == packet.ProtoUDP {
			at = 6
		}
		binary.BigEndian.PutUint16(f.Bytes()[l.L4+at:], l.PseudoSum(f.Bytes(), l.End-l.L4))
		f.Offload = packet.Offload{ChecksumPartial: true, ChecksumStart: uint16(l.L4), ChecksumOffset: uint16(at)}
		if !packet.CompleteChecksum(f, &l) || f.Offload.ChecksumPartial {
			t.Errorf("%s: CompleteChecksum left the checksum partial", name)
		}
		if !bytes.Equal(f.Bytes(), want) {
			t.Errorf("%s:\n got %x\nwant %x", name, f.Bytes(), want)
		}
	}
}

func TestCompleteChecksumSCTP(t *testing.T) {
	want := pt.SCTP4(pt.Options{})
	f := packet.NewFrame(make([]byte, 256), nil)
	f.SetBytes(want)
	l := packet.ParseLayers(f.Bytes())
	packet.SCTP(f.Bytes()[l.L4:]).SetChecksum(0)
	f.Offload = packet.Offload{ChecksumPartial: true, ChecksumStart: uint16(l.L4), ChecksumOffset: 8}
	if !packet.CompleteChecksum(f, &l) || !bytes.Equal(f.Bytes(), want) {
		t.Errorf("got %x\nwant %x", f.Bytes(), want)
	}
}

func TestCompleteChecksumOutsideFrame(t *testing.T) {
	for _, o := range []packet.Offload{
		{ChecksumPartial: true, ChecksumStart: 34, ChecksumOffset: 19},
		{ChecksumPartial: true, ChecksumStart: 55},
		{ChecksumPartial: true, ChecksumStart: 65535, ChecksumOffset: 65535},
	} {
		f := packet.NewFrame(make([]byte, 256), nil)
		f.SetBytes(pt.TCP4(pt.Options{}))
		f.Offload = o
		l := packet.ParseLayers(f.Bytes())
		if packet.CompleteChecksum(f, &l) {
			t.Errorf("%+v: accepted", o)
		}
		if !bytes.Equal(f.Bytes(), pt.TCP4(pt.Options{})) {
			t.Errorf("%+v: the frame changed", o)
		}
	}
}

func BenchmarkSum1500(b *testing.B) {
	p := make([]byte, 1500)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		packet.Sum(p, 0)
	}
}
