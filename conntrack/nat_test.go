package conntrack

import (
	"fmt"
	"testing"

	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

func TestDestinationNAT(t *testing.T) { // CT-3, CT-24, CT-25, CT-29
	b := newBench(t, Config{})
	b.want(tcpFrame(client, service, 1234, 80, tcpText{flags: "S", seq: 1000}), commitNAT("dst=10.0.0.2:8080"), "new|trk|dnat")
	b.wantTuple("src=10.0.0.1,dst=10.0.0.2,sport=1234,dport=8080")
	reply := tcpFrame(server, client, 8080, 1234, tcpText{flags: "SA", seq: 5000, ack: 1001})
	b.want(reply, lookup, "est|rpl|trk")
	b.wantTuple("src=10.0.0.2,dst=10.0.0.1,sport=8080,dport=1234")
	b.want(reply, unNAT, "est|rpl|trk|snat")
	b.wantTuple("src=10.96.0.10,dst=10.0.0.1,sport=80,dport=1234")
	b.wantDump("tcp,orig=(src=10.0.0.1,dst=10.96.0.10,sport=1234,dport=80)," +
		"reply=(src=10.0.0.2,dst=10.0.0.1,sport=8080,dport=1234),zone=100,timeout=60,protoinfo=(state=ESTABLISHED)")
}

func TestNATChosenOnce(t *testing.T) { // CT-21
	b := newBench(t, Config{})
	b.want(udpFrame(client, service, 1234, 53), commitNAT("dst=10.0.0.2:5353"), "new|trk|dnat")
	b.want(udpFrame(client, service, 1234, 53), commitNAT("dst=10.0.0.9:9999"), "new|trk|dnat")
	b.wantTuple("src=10.0.0.1,dst=10.0.0.2,sport=1234,dport=5353")
}

func TestDestinationClash(t *testing.T) { // CT-25: two Services, one endpoint, one client port
	b := newBench(t, Config{})
	b.want(udpFrame(client, service, 1234, 53), commitNAT("dst=10.0.0.2:5353"), "new|trk|dnat")
	b.want(udpFrame(client, "10.96.0.11", 1234, 53), commitNAT("dst=10.0.0.2:5353"), "new|trk|dnat")
	b.wantTuple("src=10.0.0.1,dst=10.0.0.2,sport=1235,dport=5353")
	b.want(udpFrame(server, client, 5353, 1235), unNAT, "est|rpl|trk|snat")
	b.wantTuple("src=10.96.0.11,dst=10.0.0.1,sport=53,dport=1234")
}

func TestSourcePorts(t *testing.T) { // CT-26: kept, or moved within its class
	tests := []struct {
		nat   string
		sport uint16
		want  []uint16 // for clients 10.0.1.1, 10.0.1.2, …
	}{
		{"src=10.9.9.9", 1234, []uint16{1234, 1235, 1236}},
		{"src=10.9.9.9", 65535, []uint16{65535, 1024}},
		{"src=10.9.9.9", 500, []uint16{500, 501}},
		{"src=10.9.9.9", 511, []uint16{511, 1}},
		{"src=10.9.9.9", 700, []uint16{700, 701}},
		{"src=10.9.9.9", 1023, []uint16{1023, 600}},
		{"src=10.9.9.9:5000", 1234, []uint16{5000}},
		{"src=0.0.0.0", 1234, []uint16{1234, 1234}},
	}
	for _, test := range tests {
		b := newBench(t, Config{})
		for i, want := range test.want {
			from := fmt.Sprintf("10.0.1.%d", i+1)
			b.want(udpFrame(from, server, test.sport, 53), commitNAT(test.nat), "new|trk|snat")
			if got := b.sport(); got != want {
				t.Errorf("%s from port %d, client %d: port %d, want %d", test.nat, test.sport, i, got, want)
			}
		}
	}
}

// sport is the packet's source port as it now is.
func (b *bench) sport() uint16 { return packet.UDP(b.frame.Bytes()[b.layers.L4:]).SrcPort() }

func TestPortRangeExhausted(t *testing.T) { // CT-26, CT-27, D7
	b := newBench(t, Config{})
	seen := map[uint16]bool{}
	for i := range 200 {
		b.want(udpFrame(client, server, uint16(2000+i), 53), commitNAT("src=10.9.9.9:40000-40299"), "new|trk|snat")
		seen[b.sport()] = true
	}
	if len(seen) != 200 {
		t.Errorf("%d ports chosen for 200 connections", len(seen))
	}
	small := newBench(t, Config{})
	for i := range 2 {
		small.want(udpFrame(client, server, uint16(1+i), 53), commitNAT("src=10.9.9.9:5000-5001"), "new|trk|snat")
	}
	small.want(udpFrame(client, server, 3, 53), commitNAT("src=10.9.9.9:5000-5001"), "new|trk")
	if small.verdict.Drop != DropNATExhausted || small.Stats().Entries != 2 || small.Stats().Drops[DropNATExhausted] != 1 {
		t.Errorf("verdict %+v, stats %+v", small.verdict, small.Stats())
	}
}

func TestAddressRange(t *testing.T) {
	b := newBench(t, Config{})
	nat := commitNAT("src=10.9.9.8")
	nat.NAT.AddrMax = nat.NAT.AddrMin.Next()
	seen := map[string]int{}
	for i := range 64 {
		b.want(udpFrame(client, server, uint16(2000+i), 53), nat, "new|trk|snat")
		seen[packet.IPv4(b.frame.Bytes()[b.layers.L3:]).Src().String()]++
	}
	if len(seen) != 2 || seen["10.9.9.8"] == 0 || seen["10.9.9.9"] == 0 {
		t.Errorf("addresses chosen: %v", seen)
	}
}

func TestReservedPorts(t *testing.T) { // CT-26
	b := newBench(t, Config{Reserved: []PortRange{{30000, 32767}}})
	b.want(udpFrame(client, server, 30080, 53), commitNAT("src=10.9.9.9"), "new|trk|snat")
	if p := b.sport(); p >= 30000 && p <= 32767 || p < 1024 {
		t.Errorf("source NAT chose port %d", p)
	}
}

func TestIdentifierClash(t *testing.T) { // CT-28, D8
	b := newBench(t, Config{})
	b.want(echoFrame(client, server, packet.ICMPEcho, 7), commitNAT("src=10.9.9.9"), "new|trk|snat")
	b.want(echoFrame("10.0.0.3", server, packet.ICMPEcho, 7), commitNAT("src=10.9.9.9"), "new|trk|snat")
	b.wantTuple("src=10.9.9.9,dst=10.0.0.2,id=8,type=8,code=0")
	b.want(echoFrame(server, "10.9.9.9", packet.ICMPEchoReply, 8), unNAT, "est|rpl|trk|dnat")
	b.wantTuple("src=10.0.0.2,dst=10.0.0.3,id=7,type=0,code=0")
}

func TestNoPortToMove(t *testing.T) { // CT-27 for a protocol without ports
	b := newBench(t, Config{})
	gre := func(src string) []byte { return frame(src, server, 47, make([]byte, 8)) }
	b.want(gre(client), commitNAT("src=10.9.9.9"), "new|trk|snat")
	b.want(gre("10.0.0.3"), commitNAT("src=10.9.9.9"), "new|trk")
	if b.verdict.Drop != DropNATExhausted {
		t.Errorf("verdict %+v", b.verdict)
	}
}

func TestReplyKeyTakenWithoutNAT(t *testing.T) { // CT-30: the reply key must be free for every connection
	b := newBench(t, Config{})
	b.want(udpFrame(client, server, 1234, 53), commitNAT("src=10.9.9.9"), "new|trk|snat")
	b.want(udpFrame("10.9.9.9", server, 1234, 53), commit, "new|trk")
	if b.verdict.Drop != DropNATExhausted {
		t.Errorf("verdict %+v", b.verdict)
	}
}

func TestOtherFamily(t *testing.T) {
	b := newBench(t, Config{})
	b.want(udpFrame("fd00::1", "fd00::2", 1234, 53), commitNAT("src=10.9.9.9"), "new|trk")
	b.wantTuple("src=fd00::1,dst=fd00::2,sport=1234,dport=53")
}

func TestServiceChain(t *testing.T) { // section 11: the hairpin path through two zones
	b := newBench(t, Config{})
	const dnatZone, snatZone = 65520, 65521
	ct := func(zone uint16, nat string) Request {
		if nat == "" {
			return Request{Zone: zone, NAT: &NAT{}}
		}
		return Request{Zone: zone, Commit: true, NAT: parseNAT(nat)}
	}
	type step struct {
		r    Request
		want string
	}
	walk := func(frame []byte, steps ...step) {
		t.Helper()
		b.enter(frame)
		for i, s := range steps {
			if got := b.ct(s.r); got != s.want {
				t.Errorf("step %d: %s, want %s", i, got, s.want)
			}
		}
	}
	walk(tcpFrame(server, service, 1234, 80, tcpText{flags: "S", seq: 1000}),
		step{ct(dnatZone, ""), "new|trk"},
		step{ct(dnatZone, "dst=10.0.0.2:8080"), "new|trk|dnat"},
		step{ct(snatZone, "src=169.254.0.253"), "new|trk|snat"})
	b.wantTuple("src=169.254.0.253,dst=10.0.0.2,sport=1234,dport=8080")
	walk(tcpFrame(server, "169.254.0.253", 8080, 1234, tcpText{flags: "SA", seq: 5000, ack: 1001}),
		step{ct(snatZone, ""), "est|rpl|trk|dnat"},
		step{ct(dnatZone, ""), "est|rpl|trk|snat"})
	b.wantTuple("src=10.96.0.10,dst=10.0.0.2,sport=80,dport=1234")
	walk(tcpFrame(server, service, 1234, 80, tcpText{flags: "A", seq: 1001, ack: 5001}),
		step{ct(dnatZone, ""), "est|trk|dnat"},
		step{ct(snatZone, ""), "est|trk|snat"})
	b.wantTuple("src=169.254.0.253,dst=10.0.0.2,sport=1234,dport=8080")
}

func TestICMPErrors(t *testing.T) { // CT-20, CT-32
	b := newBench(t, Config{})
	request := udpFrame(client, server, 1234, 53)
	r := commit
	r.Mark, r.MarkMask = 0x10, ^uint32(0)
	b.want(request, r, "new|trk")
	dump := b.lines()
	tests := []struct {
		name  string
		frame []byte
		want  string
	}{
		{"by the server", errorFrame(server, client, 3, 3, request, 0), "rel|rpl|trk"},
		{"by a router", errorFrame("10.0.0.99", client, 11, 0, request, 0), "rel|rpl|trk"},
		{"redirect", errorFrame("10.0.0.99", client, 5, 1, request, 0), "rel|rpl|trk"},
		{"about the reply", errorFrame(client, server, 3, 3, udpFrame(server, client, 53, 1234), 0), "rel|trk"},
		{"unknown connection", errorFrame(server, client, 3, 3, udpFrame(client, server, 1235, 53), 0), "inv|trk"},
		{"for another than the sender", errorFrame(server, "10.0.0.77", 3, 3, request, 0), "inv|trk"},
		{"8 bytes of UDP", errorFrame(server, client, 3, 3, request, 28), "rel|rpl|trk"},
		{"7 bytes of UDP", errorFrame(server, client, 3, 3, request, 27), "inv|trk"},
		{"no whole header", errorFrame(server, client, 3, 3, request, 19), "inv|trk"},
		{"about an error", errorFrame(server, client, 3, 3, errorFrame(client, server, 3, 3, udpFrame(server, client, 53, 1234), 0), 0), "inv|trk"},
	}
	b.warp(1)
	for _, test := range tests {
		b.want(test.frame, commit, test.want)
		mark := uint32(0x10)
		if test.want == "inv|trk" {
			mark = 0
		}
		if b.meta.Mark != mark {
			t.Errorf("%s: mark %#x, want %#x", test.name, b.meta.Mark, mark)
		}
	}
	b.now--
	b.wantDump(dump...) // no state, no timeout has changed (CT-15)
}

func TestReportedMTU(t *testing.T) { // CT-34
	for _, test := range []struct {
		mtu  uint32
		v6   bool
		want string
	}{
		{576, false, "rel|rpl|trk"}, {575, false, "inv|trk"}, {0, false, "inv|trk"},
		{1280, true, "rel|rpl|trk"}, {1279, true, "inv|trk"},
	} {
		b := newBench(t, Config{})
		from, to, typ, code := client, server, uint8(3), uint8(4)
		if test.v6 {
			from, to, typ, code = "fd00::1", "fd00::2", packet.ICMPv6PacketTooBig, 0
		}
		request := udpFrame(from, to, 1234, 53)
		b.want(request, commit, "new|trk")
		b.enter(errorFrame(to, from, typ, code, request, 0))
		packet.ICMP(b.frame.Bytes()[b.layers.L4:]).SetRest(test.mtu)
		b.layers.SetL4Checksum(b.frame.Bytes())
		if got := b.ct(lookup); got != test.want {
			t.Errorf("MTU %d: %s, want %s", test.mtu, got, test.want)
		}
	}
}

// quoted is the tuple that an ICMP error quotes, with its checksum verified
// when all of it is there.
func (b *bench) quoted() string {
	b.Helper()
	var s tuple.Packet
	if !s.Read(b.frame.Bytes(), &b.layers, 0) || !s.Related {
		b.Fatal("no readable ICMP error")
	}
	inner := append(make([]byte, packet.EthernetLen), b.frame.Bytes()[s.L3:s.End]...)
	packet.Ethernet(inner).SetType(b.layers.EtherType)
	if l := packet.ParseLayers(inner); l.L4 != 0 && !l.L4Valid(inner) {
		b.Error("the quoted packet's checksum is wrong")
	}
	k := s.Key.Reversed()
	return directionOf(&k).String()
}

func TestICMPErrorThroughNAT(t *testing.T) { // CT-33, D11
	type family struct{ client, server, service, router, nat string }
	for _, a := range []family{
		{client, server, service, "10.0.0.99", "dst=10.0.0.2:8080"},
		{"fd00::1", "fd00::2", "fd00:96::10", "fd00::99", "dst=[fd00::2]:8080"},
	} {
		typ := uint8(packet.ICMPUnreachable)
		if a.client == "fd00::1" {
			typ = packet.ICMPv6Unreachable
		}
		b := newBench(t, Config{})
		b.want(tcpFrame(a.client, a.service, 1234, 80, tcpText{flags: "S", seq: 1000}), commitNAT(a.nat), "new|trk|dnat")
		sent := tcpFrame(a.client, a.server, 1234, 8080, tcpText{flags: "S", seq: 1000})
		for _, n := range []int{0, len(sent) - packet.EthernetLen - 12} {
			b.want(errorFrame(a.router, a.client, typ, 3, sent, n), unNAT, "rel|rpl|trk|snat")
			if got, want := b.quoted(), "src="+a.client+",dst="+a.service+",sport=1234,dport=80"; got != want {
				t.Errorf("quotes %s, want %s", got, want)
			}
			b.wantOuter(a.service, a.client)
		}
		answer := tcpFrame(a.service, a.client, 80, 1234, tcpText{flags: "SA", seq: 1, ack: 1})
		b.want(errorFrame(a.client, a.service, typ, 3, answer, 0), unNAT, "rel|trk|dnat")
		if got, want := b.quoted(), "src="+a.server+",dst="+a.client+",sport=8080,dport=1234"; got != want {
			t.Errorf("quotes %s, want %s", got, want)
		}
		b.wantOuter(a.client, a.server)
	}
}

func TestICMPErrorThroughSourceNAT(t *testing.T) { // CT-33: a router stays itself
	b := newBench(t, Config{})
	b.want(echoFrame(client, server, packet.ICMPEcho, 9), commitNAT("src=10.9.9.9"), "new|trk|snat")
	b.want(echoFrame("10.0.0.3", server, packet.ICMPEcho, 9), commitNAT("src=10.9.9.9"), "new|trk|snat")
	sent := echoFrame("10.9.9.9", server, packet.ICMPEcho, 10)
	b.want(errorFrame("10.0.0.99", "10.9.9.9", packet.ICMPTimeExceeded, 0, sent, 0), unNAT, "rel|rpl|trk|dnat")
	if got, want := b.quoted(), "src=10.0.0.3,dst=10.0.0.2,id=9,type=8,code=0"; got != want {
		t.Errorf("quotes %s, want %s", got, want)
	}
	b.wantOuter("10.0.0.99", "10.0.0.3")
}

// wantOuter checks the packet's own addresses and checksums.
func (b *bench) wantOuter(src, dst string) {
	b.Helper()
	k := tuple.Key{Family: tuple.IPv4}
	if b.layers.EtherType == packet.EtherTypeIPv6 {
		k.Family = tuple.IPv6
	}
	k.ReadAddresses(b.frame.Bytes()[b.layers.L3:])
	if got := directionOf(&k).Tuple; got.Src.String() != src || got.Dst.String() != dst {
		b.Errorf("from %v to %v, want %s to %s", got.Src, got.Dst, src, dst)
	}
	if !tuple.ChecksumsValid(b.frame, &b.layers) {
		b.Error("bad checksum")
	}
}
