package packet_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
)

// coalescedOf are the coalesced segments of frames, from the first on.
func coalescedOf(frames [][]byte) *packet.Coalesced {
	t := &packet.Coalesced{Datagrams: true}
	t.Start(frames[0])
	for _, b := range frames[1:] {
		if !t.Add(b) {
			break
		}
	}
	return t
}

// TestJoinIsTheInverseOfCutting cuts frames of any lengths and joins the segments. The result is
// the frame, to the byte.
func TestJoinIsTheInverseOfCutting(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 200 {
		build := []func(pt.Options) []byte{pt.TCP4, pt.TCP6, pt.UDP4, pt.UDP6}[i%4]
		size := 8 + r.IntN(3000)
		payload := make([]byte, size+1+r.IntN(min(100*size, 65535-60-size-1))) // up to 102 segments
		for j := range payload {
			payload[j] = byte(r.Uint32())
		}
		want := pt.Undone(build(pt.Options{
			VLAN: uint16(i % 3), ID: uint16(r.Uint32()), Seq: r.Uint32(), Ack: r.Uint32(), Payload: payload,
			TCPFlags:   packet.TCPAck | uint16(i&4/4)*(packet.TCPCwr|packet.TCPEce) | uint16(i&8/8)*packet.TCPPsh | uint16(i&16/16)*packet.TCPFin,
			TCPOptions: []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, byte(i)},
		}), size)
		frames := cut(t, want)
		coalesced := coalescedOf(frames)
		got := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
		if coalesced.Len() != len(frames) || !coalesced.Join(got) {
			t.Fatalf("seed %d, frame %d: %d of %d segments joined", seed, i, coalesced.Len(), len(frames))
		}
		if got.Offload != want.Offload || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Fatalf("seed %d, frame %d: %+v\n%x, want %+v\n%x", seed, i, got.Offload, got.Bytes()[:90], want.Offload, want.Bytes()[:90])
		}
		rest, undone := coalesced.JoinInPlace(), coalesced.Undone()
		if undone != want.Offload || !bytes.Equal(slices.Concat(frames[0], slices.Concat(rest...)), want.Bytes()) {
			t.Fatalf("seed %d, frame %d: in place %+v\n%x, want %+v\n%x", seed, i, undone, frames[0][:90], want.Offload, want.Bytes()[:90])
		}
	}
}

// TestWhatIsNotJoined changes the second of two segments.
func TestWhatIsNotJoined(t *testing.T) {
	first := pt.Options{ID: 7, Seq: 1000, Ack: 5, TCPFlags: packet.TCPAck, Payload: make([]byte, 100), TCPOptions: []byte{1, 1, 1, 1}}
	second := first
	second.ID, second.Seq = 8, 1100
	for name, change := range map[string]func(o *pt.Options){
		"nothing":           func(*pt.Options) {},
		"a gap":             func(o *pt.Options) { o.Seq++ },
		"an old one":        func(o *pt.Options) { o.Seq = 1000 },
		"identification":    func(o *pt.Options) { o.ID = 7 },
		"acknowledgement":   func(o *pt.Options) { o.Ack++ },
		"window":            func(o *pt.Options) { o.Window = 1 },
		"options":           func(o *pt.Options) { o.TCPOptions = []byte{1, 1, 1, 0} },
		"fewer options":     func(o *pt.Options) { o.TCPOptions = nil },
		"port":              func(o *pt.Options) { o.DstPort = 81 },
		"address":           func(o *pt.Options) { o.Src = pt.Addr("10.0.0.9") },
		"TTL":               func(o *pt.Options) { o.TTL = 9 },
		"TOS":               func(o *pt.Options) { o.TOS = 4 },
		"Ethernet address":  func(o *pt.Options) { o.EthDst = [6]byte{2, 9} },
		"tag":               func(o *pt.Options) { o.VLAN = 5 },
		"do not fragment":   func(o *pt.Options) { o.FlagsOffset = 0x4000 },
		"a fragment":        func(o *pt.Options) { o.FlagsOffset = 0x2000 },
		"longer":            func(o *pt.Options) { o.Payload = make([]byte, 101) },
		"no payload":        func(o *pt.Options) { o.Payload = nil },
		"SYN":               func(o *pt.Options) { o.TCPFlags |= packet.TCPSyn },
		"RST":               func(o *pt.Options) { o.TCPFlags |= packet.TCPRst },
		"URG":               func(o *pt.Options) { o.TCPFlags |= packet.TCPUrg },
		"CWR on the second": func(o *pt.Options) { o.TCPFlags |= packet.TCPCwr },
	} {
		o := second
		change(&o)
		coalesced := coalescedOf([][]byte{pt.TCP4(first), pt.TCP4(o)})
		if joined := coalesced.Len() == 2; joined != (name == "nothing") {
			t.Errorf("%s: joined %v", name, joined)
		}
	}
	for name, change := range map[string]func(b []byte) []byte{
		"a flipped bit":      func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"a header's bit":     func(b []byte) []byte { b[24] ^= 1; return b }, // the IPv4 checksum
		"padding":            func(b []byte) []byte { return append(b, 0) },
		"cut short":          func(b []byte) []byte { return b[:len(b)-1] },
		"less than a header": func(b []byte) []byte { return b[:20] },
		"nothing":            func([]byte) []byte { return nil },
	} {
		if coalesced := coalescedOf([][]byte{pt.TCP4(first), change(pt.TCP4(second))}); coalesced.Len() != 1 {
			t.Errorf("%s: joined", name)
		}
	}
}

// TestDatagramsNotJoined changes the second of two datagrams.
func TestDatagramsNotJoined(t *testing.T) {
	first := pt.Options{ID: 7, Payload: make([]byte, 100)}
	for name, change := range map[string]func(o *pt.Options){
		"nothing":        func(*pt.Options) {},
		"shorter":        func(o *pt.Options) { o.Payload = o.Payload[:1] },
		"longer":         func(o *pt.Options) { o.Payload = make([]byte, 101) },
		"no payload":     func(o *pt.Options) { o.Payload = nil },
		"identification": func(o *pt.Options) { o.ID = 7 },
		"source port":    func(o *pt.Options) { o.SrcPort = 81 },
		"port":           func(o *pt.Options) { o.DstPort = 81 },
		"address":        func(o *pt.Options) { o.Dst = pt.Addr("10.0.0.9") },
		"TTL":            func(o *pt.Options) { o.TTL = 9 },
		"a fragment":     func(o *pt.Options) { o.FlagsOffset = 0x2000 },
	} {
		o := first
		o.ID = 8
		change(&o)
		frames := [][]byte{pt.UDP4(first), pt.UDP4(o)}
		if joined := coalescedOf(frames).Len() == 2; joined != (name == "nothing" || name == "shorter") {
			t.Errorf("%s: joined %v", name, joined)
		}
	}
	second := first
	second.ID = 8
	for name, change := range map[string]func(h packet.UDP){
		"a flipped bit":  func(h packet.UDP) { h[packet.UDPLen] ^= 1 },
		"no checksum":    func(h packet.UDP) { h.SetChecksum(0) },
		"another length": func(h packet.UDP) { h.SetLength(107) },
	} {
		for i := range 2 {
			frames := [][]byte{pt.UDP4(first), pt.UDP4(second)}
			l := packet.ParseLayers(frames[i])
			change(frames[i][l.L4:])
			if coalescedOf(frames).Len() != 1 {
				t.Errorf("%s of datagram %d: joined", name, i)
			}
		}
	}
	var segments packet.Coalesced
	if segments.Start(pt.UDP4(first)); segments.Add(pt.UDP4(second)) {
		t.Error("datagrams were joined, and only TCP was to be")
	}
}

// TestNothingFollows: nothing is coalesced behind a shorter segment, PSH, FIN and 64 kB.
func TestNothingFollows(t *testing.T) {
	o := pt.Options{Seq: 1000, TCPFlags: packet.TCPAck, Payload: make([]byte, 9000)}
	for name, c := range map[string]struct {
		change func(o *pt.Options, i int)
		want   int
	}{
		"64 kB":   {func(*pt.Options, int) {}, 7},
		"shorter": {func(o *pt.Options, i int) { o.Payload = o.Payload[:9000-i/2] }, 3},
		"PSH":     {func(o *pt.Options, i int) { o.TCPFlags |= uint16(i/2&1) * packet.TCPPsh }, 3},
		"FIN":     {func(o *pt.Options, i int) { o.TCPFlags |= uint16(i/1&1) * packet.TCPFin }, 2},
	} {
		var frames [][]byte
		at := o
		for i := range 20 {
			one := at
			c.change(&one, i)
			frames = append(frames, pt.TCP4(one))
			at.ID, at.Seq = at.ID+1, at.Seq+uint32(len(one.Payload))
		}
		if coalesced := coalescedOf(frames); coalesced.Len() != c.want {
			t.Errorf("%s: %d segments joined, want %d", name, coalesced.Len(), c.want)
		}
	}
}

// FuzzCoalesced joins arbitrary frames with segments of the same connection. Cutting the result
// gives the same frames.
func FuzzCoalesced(f *testing.F) {
	o := pt.Options{ID: 7, Seq: 1000, TCPFlags: packet.TCPAck, Payload: make([]byte, 100)}
	first := pt.TCP4(o)
	o.ID, o.Seq = 8, 1100
	f.Add(first, pt.TCP4(o))
	f.Add(pt.UDP4(pt.Options{ID: 7, Payload: o.Payload}), pt.UDP4(o))
	o.Payload = o.Payload[:9]
	f.Add(first, pt.TCP4(o))
	for _, b := range canonical() {
		f.Add(b, b)
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		// Both get right checksums, which a fuzzer does not find.
		for _, x := range [][]byte{a, b} {
			if l := packet.ParseLayers(x); l.L4 != 0 && l.Frag == 0 && (l.Proto == packet.ProtoTCP || l.Proto == packet.ProtoUDP) {
				if l.EtherType == packet.EtherTypeIPv4 {
					packet.IPv4(x[l.L3:]).UpdateChecksum()
				}
				l.SetL4Checksum(x)
			}
		}
		frames := [][]byte{a, b}
		coalesced := coalescedOf(frames)
		got := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
		if coalesced.Len() != 2 {
			return
		}
		if !coalesced.Join(got) {
			t.Fatal("coalesced segments that cannot be joined")
		}
		for i, s := range cut(t, got) {
			if !bytes.Equal(s, frames[i]) {
				t.Errorf("segment %d is\n%x, was\n%x", i, s, frames[i])
			}
		}
	})
}

// BenchmarkTrain64k joins 44 segments.
func BenchmarkTrain64k(b *testing.B) {
	f := pt.Undone(pt.TCP4(pt.Options{Payload: make([]byte, 44*1448), TCPFlags: packet.TCPAck}), 1448)
	l := packet.ParseLayers(f.Bytes())
	s, _ := packet.NewSegments(f, &l)
	var frames [][]byte
	for s.More() {
		g := packet.NewFrame(make([]byte, 2048), nil)
		s.Next(g)
		frames = append(frames, g.Bytes())
	}
	into := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
	var coalesced packet.Coalesced
	b.SetBytes(int64(f.Len()))
	b.ReportAllocs()
	for b.Loop() {
		coalesced.Start(frames[0])
		for _, one := range frames[1:] {
			coalesced.Add(one)
		}
		if !coalesced.Join(into) {
			b.Fatalf("%d joined", coalesced.Len())
		}
	}
}
