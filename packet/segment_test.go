package packet_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
)

// cut are the segments of a frame.
func cut(t *testing.T, f *packet.Frame) (segments [][]byte) {
	t.Helper()
	l := packet.ParseLayers(f.Bytes())
	if !packet.AdmitOffload(f, &l) {
		t.Fatalf("not admitted: %+v of %+v", f.Offload, l)
	}
	s, ok := packet.NewSegments(f, &l)
	if !ok {
		t.Fatal("cannot be cut")
	}
	for s.More() {
		g := packet.NewFrame(make([]byte, packet.Headroom+s.NextLen()), nil)
		if !s.Next(g) || !g.Offload.None() {
			t.Fatalf("segment %d: %+v", len(segments), g.Offload)
		}
		segments = append(segments, g.Bytes())
	}
	return segments
}

const everyFlag = packet.TCPAck | packet.TCPFin | packet.TCPPsh | packet.TCPCwr | packet.TCPEce

// TestSegmentsAreThePacketsOfASenderWithoutOffload builds every segment by
// itself and compares byte by byte.
func TestSegmentsAreThePacketsOfASenderWithoutOffload(t *testing.T) {
	payload := make([]byte, 10_000)
	for i := range payload {
		payload[i] = byte(rand.Uint32())
	}
	for name, build := range map[string]func(pt.Options) []byte{"tcp4": pt.TCP4, "tcp6": pt.TCP6, "udp4": pt.UDP4, "udp6": pt.UDP6} {
		for _, size := range []int{80, 100, 1448, 5000, 9999, 10_000, 20_000} {
			o := pt.Options{
				VLAN: uint16(size % 2 * 7), ID: 65530, Seq: 1<<32 - 3000, Ack: 77, TCPFlags: everyFlag,
				TCPOptions: []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}, Payload: payload,
			}
			for i, got := range cut(t, pt.Undone(build(o), size)) {
				from, to := i*size, min(i*size+size, len(payload))
				want := o
				want.ID, want.Seq, want.Payload = o.ID+uint16(i), o.Seq+uint32(from), payload[from:to]
				if i > 0 {
					want.TCPFlags &^= packet.TCPCwr
				}
				if to < len(payload) {
					want.TCPFlags &^= packet.TCPFin | packet.TCPPsh
				}
				if b := build(want); !bytes.Equal(got, b) {
					t.Fatalf("%s by %d: segment %d is\n%x, want\n%x", name, size, i, got[:min(90, len(got))], b[:min(90, len(b))])
				}
			}
		}
	}
}

// TestSegmentsTogetherAreTheFrame holds for any lengths, also for the largest frame.
func TestSegmentsTogetherAreTheFrame(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 200 {
		payload := make([]byte, 1+r.IntN(65535-40-1))
		if i == 0 {
			payload = make([]byte, 65535-20-20)
		}
		size := 48 + r.IntN(9000)
		f := pt.Undone(pt.TCP4(pt.Options{Payload: payload}), size)
		var all []byte
		for _, b := range cut(t, f) {
			l := packet.ParseLayers(b)
			if !l.L4Valid(b) || !packet.IPv4(b[l.L3:]).ChecksumValid() || len(b) > packet.SegmentLen(f) {
				t.Fatalf("seed %d: bad segment of %d bytes", seed, len(b))
			}
			all = append(all, packet.TCP(b[l.L4:l.End]).Payload()...)
		}
		if !bytes.Equal(all, payload) {
			t.Fatalf("seed %d: %d bytes by %d: the payload differs", seed, len(payload), size)
		}
	}
}

func TestAdmitOffload(t *testing.T) {
	large := make([]byte, 4000)
	for name, c := range map[string]struct {
		frame  []byte
		change func(*packet.Offload)
		want   bool
	}{
		"TCP":                       {pt.TCP4(pt.Options{Payload: large}), nil, true},
		"checksum only":             {pt.UDP6(pt.Options{Payload: large}), func(o *packet.Offload) { o.SegmentSize = 0 }, true},
		"nothing undone":            {pt.TCP4(pt.Options{}), func(o *packet.Offload) { *o = packet.Offload{} }, true},
		"no payload":                {pt.TCP4(pt.Options{}), nil, false},
		"tiny segments":             {pt.TCP4(pt.Options{Payload: large}), func(o *packet.Offload) { o.SegmentSize = 7 }, false},
		"few tiny segments":         {pt.TCP6(pt.Options{Payload: large[:128]}), func(o *packet.Offload) { o.SegmentSize = 1 }, true},
		"complete, to be cut":       {pt.TCP4(pt.Options{Payload: large}), func(o *packet.Offload) { o.ChecksumPartial = false }, false},
		"another header's checksum": {pt.TCP4(pt.Options{Payload: large}), func(o *packet.Offload) { o.ChecksumStart += 2 }, false},
		"outside": {pt.TCP4(pt.Options{}), func(o *packet.Offload) {
			*o = packet.Offload{ChecksumPartial: true, ChecksumStart: 53, ChecksumOffset: 1}
		}, false},
		"a fragment": {pt.TCP4(pt.Options{Payload: large, FlagsOffset: 0x2000}), nil, false},
	} {
		f := pt.Undone(c.frame, 1000)
		if c.change != nil {
			c.change(&f.Offload)
		}
		l := packet.ParseLayers(f.Bytes())
		if got := packet.AdmitOffload(f, &l); got != c.want {
			t.Errorf("%s: admitted %v, want %v", name, got, c.want)
		}
	}
}

// TestTooManySegments admits Linux's smallest maximum segment size and the largest run of
// coalesced datagrams. One byte less, or one datagram more, is refused with its own error.
func TestTooManySegments(t *testing.T) {
	timestamps := []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}
	large := make([]byte, 60_000)
	for _, c := range []struct {
		name string
		of   pt.Options
		udp  bool
		size int
		want bool
	}{
		{"48 bytes", pt.Options{Payload: large}, false, 48, true},
		{"47 bytes", pt.Options{Payload: large}, false, 47, false},
		{"8 bytes", pt.Options{Payload: large}, false, 8, false},
		{"36 bytes behind timestamps", pt.Options{Payload: large, TCPOptions: timestamps}, false, 36, true},
		{"35 bytes behind timestamps", pt.Options{Payload: large, TCPOptions: timestamps}, false, 35, false},
		{"8 bytes behind all options", pt.Options{Payload: large, TCPOptions: make([]byte, 40)}, false, 8, true},
		{"128 segments", pt.Options{Payload: large[:1280]}, false, 10, true},
		{"129 segments", pt.Options{Payload: large[:1281]}, false, 10, false},
		{"128 datagrams", pt.Options{Payload: large[:12800]}, true, 100, true},
		{"129 datagrams", pt.Options{Payload: large[:12801]}, true, 100, false},
		{"datagrams of a path's MTU", pt.Options{Payload: large}, true, 1410, true},
	} {
		builds := []func(pt.Options) []byte{pt.TCP4, pt.TCP6}
		if c.udp {
			builds = []func(pt.Options) []byte{pt.UDP4, pt.UDP6}
		}
		for _, build := range builds {
			f := pt.Undone(build(c.of), c.size)
			l := packet.ParseLayers(f.Bytes())
			if got := packet.AdmitOffload(f, &l); got != c.want {
				t.Errorf("%s: admitted %v, want %v", c.name, got, c.want)
			}
			if got := packet.TooManySegments(f, &l); got == c.want {
				t.Errorf("%s: too many segments %v", c.name, got)
			}
		}
	}
	f := pt.Undone(pt.TCP4(pt.Options{Payload: large}), 8)
	f.Offload.ChecksumStart++
	if l := packet.ParseLayers(f.Bytes()); packet.TooManySegments(f, &l) {
		t.Error("another header's checksum is reported as too many segments")
	}
}

// TestParts divides a frame. The segments of its parts equal those of the frame itself, byte by
// byte.
func TestParts(t *testing.T) {
	payload := make([]byte, 30_000)
	for i := range payload {
		payload[i] = byte(rand.Uint32())
	}
	for name, build := range map[string]func(pt.Options) []byte{"tcp4": pt.TCP4, "tcp6": pt.TCP6} {
		for _, n := range []int{29_999, 30_000, 128*100 + 1} {
			o := pt.Options{ID: 65530, Seq: 1<<32 - 3000, Ack: 77, TCPFlags: everyFlag, Payload: payload[:n]}
			f := pt.Undone(build(o), 100)
			f.Mark = 5
			want := cut(t, f)
			l := packet.ParseLayers(f.Bytes())
			s, ok := packet.NewParts(f, &l, 128)
			if !ok || s.Begun() {
				t.Fatalf("%s: cannot be divided", name)
			}
			var got [][]byte
			for s.More() {
				part := packet.NewFrame(make([]byte, packet.Headroom+s.NextLen()), nil)
				if !s.Next(part) || !s.Begun() || part.Mark != 5 || packet.SegmentCount(part) > 128 {
					t.Fatalf("%s: bad part of %d segments, %+v", name, packet.SegmentCount(part), part.Offload)
				}
				if part.Offload.SegmentSize != 0 {
					got = append(got, cut(t, part)...)
					continue
				}
				l := packet.ParseLayers(part.Bytes())
				if !packet.CompleteChecksum(part, &l) {
					t.Fatalf("%s: the last part's checksum cannot be completed", name)
				}
				got = append(got, part.Bytes())
			}
			if !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("%s: %d bytes: the segments of the parts are not those of the frame (%d and %d)", name, n, len(got), len(want))
			}
		}
	}
}

// A frame without offload state is recognised by its checksum field, and a whole checksum stays.
func TestFindPartial(t *testing.T) {
	for _, b := range [][]byte{
		pt.TCP4(pt.Options{Payload: []byte("partial")}), pt.TCP6(pt.Options{Payload: []byte("partial")}),
		pt.UDP4(pt.Options{Payload: []byte("partial")}), pt.UDP6(pt.Options{Payload: []byte("partial")}),
	} {
		whole := packet.NewFrame(bytes.Clone(b), nil)
		whole.SetBounds(0, len(b))
		if packet.FindPartial(whole); !whole.Offload.None() {
			t.Errorf("%x: whole, found %+v", b, whole.Offload)
		}
		undone := pt.Undone(b, 0)
		want := undone.Offload
		undone.Offload = packet.Offload{}
		if packet.FindPartial(undone); undone.Offload != want {
			t.Errorf("%x: found %+v, want %+v", b, undone.Offload, want)
		}
	}
	sctp := packet.NewFrame(nil, nil)
	sctp.Init(pt.SCTP4(pt.Options{}), nil)
	sctp.SetBounds(0, len(sctp.Buffer()))
	l := packet.ParseLayers(sctp.Bytes())
	whole := bytes.Clone(sctp.Bytes())
	packet.SCTP(sctp.Bytes()[l.L4:]).SetChecksum(0)
	if packet.FindPartial(sctp); sctp.Offload.None() || !packet.AdmitOffload(sctp, &l) || !bytes.Equal(sctp.Bytes(), whole) {
		t.Errorf("SCTP: %x, %+v; want %x, nothing undone", sctp.Bytes(), sctp.Offload, whole)
	}
	later := pt.Undone(pt.TCP4(pt.Options{Payload: []byte("partial"), FlagsOffset: 0x2000}), 0)
	later.Offload = packet.Offload{}
	if packet.FindPartial(later); !later.Offload.None() {
		t.Errorf("a fragment: found %+v", later.Offload)
	}
}

// A partial checksum of a header inside the packet is filled in at once.
func TestAdmitOffloadCompletesInnerChecksums(t *testing.T) {
	inner := pt.TCP4(pt.Options{Payload: []byte("inner")})
	f := packet.NewFrame(make([]byte, 512), nil)
	f.SetBytes(pt.UDP4(pt.Options{Payload: inner}))
	at := f.Len() - len(inner)
	l := packet.ParseLayers(inner)
	binary.BigEndian.PutUint16(f.Bytes()[at+l.L4+16:], l.PseudoSum(inner, l.End-l.L4))
	f.Offload = packet.Offload{ChecksumPartial: true, ChecksumStart: uint16(at + l.L4), ChecksumOffset: 16}
	outer := packet.ParseLayers(f.Bytes())
	if !packet.AdmitOffload(f, &outer) || !f.Offload.None() {
		t.Fatalf("left undone: %+v", f.Offload)
	}
	if !bytes.Equal(f.Bytes()[at:], inner) {
		t.Errorf("inner packet\n%x, want\n%x", f.Bytes()[at:], inner)
	}
}

// FuzzOffload takes frames with any offload state apart. It never reads outside the bytes of an
// admitted packet, and the segments hold its payload.
func FuzzOffload(f *testing.F) {
	for _, b := range canonical() {
		f.Add(b, uint16(34), uint16(16), uint16(1000))
		f.Add(b, uint16(34), uint16(6), uint16(8))
	}
	f.Fuzz(func(t *testing.T, b []byte, start, offset, size uint16) {
		fr := frame(b)
		fr.Offload = packet.Offload{ChecksumPartial: true, ChecksumStart: start, ChecksumOffset: offset, SegmentSize: size}
		l := packet.ParseLayers(fr.Bytes())
		if !packet.AdmitOffload(fr, &l) || fr.Offload.None() {
			return
		}
		if size == 0 {
			if !packet.CompleteChecksum(fr, &l) && fr.Offload.ChecksumPartial {
				t.Error("admitted, and cannot be completed")
			}
			return
		}
		var n int
		for _, s := range cut(t, fr) {
			sl := packet.ParseLayers(s)
			if !sl.L4Valid(s) {
				t.Errorf("bad segment %x", s)
			}
			n += len(s) - (l.L4 + headerLen(s, &sl))
		}
		if want := l.End - l.L4 - headerLen(fr.Bytes(), &l); n != want {
			t.Errorf("%d bytes of payload became %d", want, n)
		}
	})
}

func headerLen(b []byte, l *packet.Layers) int {
	if l.Proto == packet.ProtoTCP {
		return packet.TCP(b[l.L4:]).HeaderLen()
	}
	return packet.UDPLen
}

func BenchmarkSegments64k(b *testing.B) {
	f := pt.Undone(pt.TCP4(pt.Options{Payload: make([]byte, 64_000)}), 1448)
	l := packet.ParseLayers(f.Bytes())
	g := packet.NewFrame(make([]byte, 2048), nil)
	b.SetBytes(int64(f.Len()))
	b.ReportAllocs()
	for b.Loop() {
		for s, _ := packet.NewSegments(f, &l); s.More(); {
			s.Next(g)
		}
	}
}
