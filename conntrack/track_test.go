package conntrack

import (
	"slices"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

func TestValidity(t *testing.T) { // CT-6, CT-7, CT-19
	syn := func() []byte { return tcpFrame(client, server, 1234, 80, tcpText{flags: "S"}) }
	spoil := func(b []byte, at int) []byte { b[at] ^= 0x55; return b }
	const l3, l4 = packet.EthernetLen, packet.EthernetLen + packet.IPv4Len
	tests := []struct {
		name  string
		frame []byte
		want  string
	}{
		{"TCP", syn(), "new|trk"},
		{"TCP checksum", spoil(syn(), l4+16), "inv|trk"},
		{"IPv4 checksum", spoil(syn(), l3+10), "inv|trk"},
		{"TCP cut short", syn()[:l4+12], "inv|trk"},
		{"TCP data offset", spoil(syn(), l4+12), "inv|trk"},
		{"TCP source port 0", tcpFrame(client, server, 0, 80, tcpText{flags: "S"}), "inv|trk"},
		{"TCP destination port 0", tcpFrame(client, server, 80, 0, tcpText{flags: "S"}), "inv|trk"},
		{"UDP", udpFrame(client, server, 1234, 53), "new|trk"},
		{"UDP checksum", spoil(udpFrame(client, server, 1234, 53), l4+6), "inv|trk"},
		{"UDP length", spoil(udpFrame(client, server, 1234, 53), l4+4), "inv|trk"},
		{"UDP port 0", udpFrame(client, server, 1234, 0), "inv|trk"},
		{"UDP over IPv6", udpFrame("fd00::1", "fd00::2", 1234, 53), "new|trk"},
		{"echo", echoFrame(client, server, packet.ICMPEcho, 7), "new|trk"},
		{"echo with a code", spoil(echoFrame(client, server, packet.ICMPEcho, 7), l4+1), "inv|trk"},
		{"echo reply without an echo", echoFrame(client, server, packet.ICMPEchoReply, 7), "inv|trk"},
		{"timestamp", echoFrame(client, server, packet.ICMPTimestamp, 7), "new|trk"},
		{"information", echoFrame(client, server, packet.ICMPInfoRequest, 7), "new|trk"},
		{"address mask", echoFrame(client, server, 17, 7), "inv|trk"},
		{"ICMPv6 echo", echoFrame("fd00::1", "fd00::2", packet.ICMPv6Echo, 7), "new|trk"},
		{"neighbour solicitation", echoFrame("fd00::1", "fd00::2", packet.ICMPv6NeighborSolicit, 7), "inv|trk"},
		{"ICMP over IPv6", frame("fd00::1", "fd00::2", packet.ProtoICMP, make([]byte, 8)), "inv|trk"},
		{"land", udpFrame(server, server, 53, 53), "new|trk"},
		{"GRE", frame(client, server, 47, make([]byte, 8)), "new|trk"},
		{"nothing behind IP", frame(client, server, 47, nil), "new|trk"},
		{"ARP", []byte("\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x01\x08\x06"), "inv|trk"},
		{"empty", nil, "inv|trk"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, Config{})
			b.want(test.frame, commit, test.want)
			entries := 0
			if test.want == "new|trk" {
				entries = 1
			}
			if n := b.Stats().Entries; n != entries {
				t.Errorf("%d entries, want %d", n, entries)
			}
		})
	}
}

func TestFragmentIsInvalid(t *testing.T) {
	b := newBench(t, Config{})
	f := udpFrame(client, server, 1234, 53)
	ip := packet.IPv4(f[packet.EthernetLen:])
	ip.SetFlagsOffset(packet.IPv4MoreFragments)
	ip.UpdateChecksum()
	b.want(f, commit, "inv|trk")
}

func TestUDPWithoutChecksum(t *testing.T) { // CT-6, CT-29
	b := newBench(t, Config{})
	f := udpFrame(client, service, 1234, 53)
	packet.UDP(f[packet.EthernetLen+packet.IPv4Len:]).SetChecksum(0)
	b.want(f, commitNAT("dst=10.0.0.2:5353"), "new|trk|dnat")
	b.wantTuple("src=10.0.0.1,dst=10.0.0.2,sport=1234,dport=5353")
	if c := packet.UDP(b.frame.Bytes()[b.layers.L4:]).Checksum(); c != 0 {
		t.Errorf("checksum %#x, want 0: it stays unused", c)
	}
}

func TestChecksumLeftToHardware(t *testing.T) { // CT-8
	b := newBench(t, Config{})
	b.enter(tcpFrame(client, service, 1234, 80, tcpText{flags: "S", length: 5}))
	h := packet.TCP(b.frame.Bytes()[b.layers.L4:b.layers.End])
	h.SetChecksum(b.layers.PseudoSum(b.frame.Bytes(), len(h)))
	b.frame.Offload = packet.Offload{ChecksumPartial: true, ChecksumStart: uint16(b.layers.L4), ChecksumOffset: 16}
	if got := b.ct(commitNAT("dst=10.0.0.2:8080")); got != "new|trk|dnat" {
		t.Fatalf("ct_state %s", got)
	}
	if !packet.CompleteChecksum(b.frame, &b.layers) {
		t.Fatal("the offload state points nowhere")
	}
	b.wantTuple("src=10.0.0.1,dst=10.0.0.2,sport=1234,dport=8080")
}

func TestAnswered(t *testing.T) { // CT-16, CT-17, CT-19
	gre := func(src, dst string) []byte { return frame(src, dst, 47, make([]byte, 8)) }
	tests := []struct {
		name        string
		ask, answer []byte
		one, both   time.Duration
	}{
		{"UDP", udpFrame(client, server, 1234, 53), udpFrame(server, client, 53, 1234), 30 * time.Second, 120 * time.Second},
		{"ICMP", echoFrame(client, server, 8, 7), echoFrame(server, client, 0, 7), 60 * time.Second, 30 * time.Second},
		{"ICMPv6", echoFrame("fd00::1", "fd00::2", 128, 7), echoFrame("fd00::2", "fd00::1", 129, 7), 60 * time.Second, 30 * time.Second},
		{"GRE", gre(client, server), gre(server, client), 60 * time.Second, 120 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, Config{})
			for range 3 {
				b.want(test.ask, commit, "new|trk")
				b.warp(test.one - 1)
			}
			b.want(test.answer, commit, "est|rpl|trk")
			b.want(test.ask, commit, "est|trk")
			b.warp(test.both - 1)
			b.want(test.ask, lookup, "est|trk")
			b.warp(test.both)
			b.want(test.ask, lookup, "new|trk")
		})
	}
}

func TestICMPWrongIdentifier(t *testing.T) { // CT-17
	b := newBench(t, Config{})
	b.want(echoFrame(client, server, packet.ICMPEcho, 7), commit, "new|trk")
	b.want(echoFrame(server, client, packet.ICMPEchoReply, 8), commit, "inv|trk")
	b.want(echoFrame(server, client, packet.ICMPTimestampReply, 7), commit, "inv|trk")
}

func TestOriginalTuple(t *testing.T) { // CT-4
	b := newBench(t, Config{})
	b.want(echoFrame(client, server, packet.ICMPEcho, 7), lookup, "new|trk")
	if o := b.meta.tuple(); o.SrcPort != packet.ICMPEcho || o.DstPort != 0 || o.Src.String() != client {
		t.Errorf("original tuple of an echo is %+v", o)
	}
	b.want(udpFrame(client, service, 1234, 53), commitNAT("dst=10.0.0.2:5353"), "new|trk|dnat")
	b.want(udpFrame(server, client, 5353, 1234), unNAT, "est|rpl|trk|snat")
	if o := b.meta.tuple(); o.Dst.String() != service || o.SrcPort != 1234 || o.DstPort != 53 || o.Proto != packet.ProtoUDP {
		t.Errorf("original tuple of a reply is %+v", o)
	}
}

func TestZones(t *testing.T) { // CT-5, and entering a zone resets ct_state
	b := newBench(t, Config{})
	b.enter(udpFrame(client, server, 1234, 53))
	steps := []struct {
		r     Request
		state string
		mark  uint32
	}{
		{Request{Zone: 1, Commit: true, Mark: 0xa, MarkMask: ^uint32(0)}, "new|trk", 0xa},
		{Request{Zone: 2}, "new|trk", 0},
		{Request{Zone: 2, Commit: true, Mark: 0xb, MarkMask: ^uint32(0)}, "new|trk", 0xb},
		{Request{Zone: 1}, "new|trk", 0xa},
	}
	for i, s := range steps {
		if got := b.ct(s.r); got != s.state || b.meta.Mark != s.mark || b.meta.Zone != s.r.Zone {
			t.Errorf("step %d: %s mark %#x zone %d", i, got, b.meta.Mark, b.meta.Zone)
		}
	}
	b.want(udpFrame(server, client, 53, 1234), Request{Zone: 2}, "est|rpl|trk")
	if n := b.Stats().Entries; n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
}

func TestMarkAndLabel(t *testing.T) { // CT-21, CT-22
	b := newBench(t, Config{})
	set := func(mark, mask uint32, label, labelMask uint64) Request {
		return Request{
			Zone: 100, Commit: true, Mark: mark, MarkMask: mask,
			Label: Label{Lo: label}, LabelMask: Label{Lo: labelMask},
		}
	}
	check := func(mark uint32, label uint64) {
		t.Helper()
		if b.meta.Mark != mark || b.meta.Label != (Label{Lo: label}) {
			t.Errorf("mark %#x label %v, want %#x %#x", b.meta.Mark, b.meta.Label, mark, label)
		}
	}
	b.want(udpFrame(client, server, 1234, 53), set(0x11, ^uint32(0), 7, 0xff), "new|trk")
	check(0x11, 7)
	b.want(udpFrame(server, client, 53, 1234), lookup, "est|rpl|trk")
	check(0x11, 7)
	b.want(udpFrame(client, server, 1234, 53), set(0x200, 0x200, 0x500, 0xff00), "est|trk")
	check(0x211, 0x507)
	b.want(udpFrame(server, client, 53, 1234), set(0, 0x1, 0, 0), "est|rpl|trk")
	check(0x210, 0x507)
	// An uncommitted packet has no connection to write to.
	r := set(1, 1, 1, 1)
	r.Commit = false
	b.want(udpFrame(client, server, 99, 53), r, "new|trk")
	check(0, 0)
}

func TestInvalidChangesNothing(t *testing.T) { // CT-22, D15
	b := newBench(t, Config{})
	b.runLine("c S  1000 0 0 | new | SYN_SENT 30")
	r := commit
	r.Mark, r.MarkMask = 5, 5
	b.want(parseSegment(t, "c SF 1000 0 0"), r, "inv|trk")
	b.want(parseSegment(t, "c S 1000 0 0"), lookup, "new|trk")
	if b.meta.Mark != 0 {
		t.Errorf("an invalid packet set the mark to %#x", b.meta.Mark)
	}
}

func TestCommitDoesNotEstablish(t *testing.T) { // what later tables see; D6
	b := newBench(t, Config{})
	b.enter(tcpFrame(client, service, 1234, 80, tcpText{flags: "A", seq: 1000, ack: 1}))
	r := commitNAT("dst=10.0.0.2:8080")
	r.Mark, r.MarkMask = 0x10, ^uint32(0)
	steps := []struct {
		r     Request
		state string
	}{
		{unNAT, "new|trk"},
		{r, "new|trk|dnat"},
		{Request{Zone: 100, Commit: true, LabelMask: Label{Lo: 7}, Label: Label{Lo: 7}}, "new|trk|dnat"},
		{r, "new|trk|dnat"}, // not translated twice
	}
	for i, s := range steps {
		if got := b.ct(s.r); got != s.state {
			t.Errorf("step %d: %s, want %s", i, got, s.state)
		}
	}
	if b.meta.Mark != 0x10 || b.meta.Label.Lo != 7 {
		t.Errorf("mark %#x label %v", b.meta.Mark, b.meta.Label)
	}
	b.wantTuple("src=10.0.0.1,dst=10.0.0.2,sport=1234,dport=8080")
	if got := b.ct(Request{Zone: 7}); got != "new|trk" || b.meta.Mark != 0 {
		t.Errorf("in another zone: %s mark %#x", got, b.meta.Mark)
	}
}

func TestForce(t *testing.T) { // CT-23
	b := newBench(t, Config{})
	force := Request{Zone: 100, Commit: true, Force: true}
	request := udpFrame(client, server, 1234, 53)
	b.want(request, force, "new|trk")
	b.want(request, force, "new|trk")
	b.want(errorFrame(server, client, 3, 3, request, 0), force, "rel|rpl|trk")
	b.want(udpFrame(server, client, 53, 1234), force, "new|trk")
	b.wantDump("udp,orig=(src=10.0.0.2,dst=10.0.0.1,sport=53,dport=1234)," +
		"reply=(src=10.0.0.1,dst=10.0.0.2,sport=1234,dport=53),zone=100,timeout=30")
}

func TestStaleHandle(t *testing.T) {
	b := newBench(t, Config{})
	b.want(udpFrame(client, server, 1234, 53), commit, "new|trk")
	remembered := b.meta
	b.Flush()
	// Another connection takes the slot.
	b.want(udpFrame(client, server, 1111, 53), commit, "new|trk")
	b.enter(udpFrame(client, server, 1234, 53))
	b.meta = remembered
	r := commit
	r.Commit, r.Mark, r.MarkMask = false, 1, 1
	if got := b.ct(r); got != "new|trk" || b.meta.Mark != 0 {
		t.Errorf("a stale handle gave %s, mark %#x", got, b.meta.Mark)
	}
}

func TestRewrittenTupleIsLookedUpAgain(t *testing.T) { // section 3, item 2
	b := newBench(t, Config{})
	b.want(udpFrame(client, server, 1234, 53), commit, "new|trk")
	b.want(udpFrame(server, client, 53, 1234), lookup, "est|rpl|trk")
	b.enter(udpFrame(client, server, 5555, 53))
	b.ct(commit)
	packet.UDP(b.frame.Bytes()[b.layers.L4:]).SetSrcPort(1234)
	if got := b.ct(lookup); got != "est|trk" {
		t.Errorf("ct_state %s, want est|trk: the packet now shows the other connection's tuple", got)
	}
}

func TestZeroAllocations(t *testing.T) { // STYLE: performance properties are tests
	b := newBench(t, Config{})
	syn := tcpFrame(client, service, 1234, 80, tcpText{flags: "S", seq: 1000})
	data := tcpFrame(client, service, 1234, 80, tcpText{flags: "A", seq: 1001, ack: 5001, length: 100})
	answer := tcpFrame(server, client, 8080, 1234, tcpText{flags: "SA", seq: 5000, ack: 1001})
	nat := commitNAT("dst=10.0.0.2:8080")
	b.want(syn, nat, "new|trk|dnat")
	b.want(answer, unNAT, "est|rpl|trk|snat")
	established := testing.AllocsPerRun(200, func() {
		b.enter(data)
		b.Track(b.frame, &b.layers, &b.meta, &unNAT, b.now)
	})
	if established != 0 {
		t.Errorf("%v allocations per established packet", established)
	}
	port := uint16(2000)
	fresh := testing.AllocsPerRun(500, func() {
		b.enter(syn)
		h := packet.TCP(b.frame.Bytes()[b.layers.L4:])
		h.SetSrcPort(port)
		b.layers.SetL4Checksum(b.frame.Bytes())
		port++
		b.Track(b.frame, &b.layers, &b.meta, &nat, b.now)
	})
	if fresh != 0 {
		t.Errorf("%v allocations per new connection", fresh)
	}
	if n := b.Stats().Entries; n < 500 {
		t.Errorf("only %d connections were made", n)
	}
}

func BenchmarkTrackEstablished(b *testing.B) {
	w := newBench(b, Config{})
	w.want(udpFrame(client, server, 1234, 53), commit, "new|trk")
	w.want(udpFrame(server, client, 53, 1234), lookup, "est|rpl|trk")
	w.enter(udpFrame(client, server, 1234, 53))
	b.ReportAllocs()
	for b.Loop() {
		w.meta = Meta{}
		w.Track(w.frame, &w.layers, &w.meta, &lookup, w.now)
	}
}

// BenchmarkTrackNAT is data on an established TCP connection to a Service, each
// segment translated, at times of their own.
func BenchmarkTrackNAT(b *testing.B) {
	w := newBench(b, Config{})
	w.want(tcpFrame(client, service, 1234, 80, tcpText{flags: "S", seq: 1000}), commitNAT("dst=10.0.0.2:8080"), "new|trk|dnat")
	w.want(tcpFrame(server, client, 8080, 1234, tcpText{flags: "SA", seq: 5000, ack: 1001}), unNAT, "est|rpl|trk|snat")
	w.enter(tcpFrame(client, service, 1234, 80, tcpText{flags: "A", seq: 1001, ack: 5001}))
	frame, as := w.frame.Bytes(), slices.Clone(w.frame.Bytes())
	b.ReportAllocs()
	for b.Loop() {
		copy(frame, as)
		w.meta = Meta{}
		w.now += 1000
		if v := w.Track(w.frame, &w.layers, &w.meta, &unNAT, w.now); !v.Rewritten {
			b.Fatalf("%+v %+v", v, w.meta)
		}
	}
}

// tuple is what the last ct() said of the original direction.
func (m *Meta) tuple() (t Tuple) {
	var o Original
	if m.Original(&o); o.Proto != 0 {
		f := tuple.IPv4
		if o.IPv6 {
			f = tuple.IPv6
		}
		t.Src, t.Dst = tuple.Address{Hi: o.Src.Hi, Lo: o.Src.Lo}.Addr(f), tuple.Address{Hi: o.Dst.Hi, Lo: o.Dst.Lo}.Addr(f)
		t.Proto, t.SrcPort, t.DstPort = o.Proto, o.SrcPort, o.DstPort
	}
	return t
}
