package flow_test

import (
	"net/netip"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
)

func frame(b []byte) *packet.Frame {
	f := packet.FrameOf(b)
	return f
}

func extract(b []byte) *flow.Key {
	k := new(flow.Key)
	flow.Extract(frame(b), 0, k)
	return k
}

func get(k *flow.Key, id flow.FieldID) flow.Value { return flow.FieldByID(id).Get(k) }

// num is the value of a field of at most 64 bits.
func num(k *flow.Key, id flow.FieldID) uint64 { return get(k, id).Lo }

// fields is the values that a packet's key must have; every other header field
// must be zero.
type fields map[flow.FieldID]uint64

func TestExtract(t *testing.T) {
	const src, dst = 0x020000000001, 0x020000000002
	eth := fields{flow.EthSrc: src, flow.EthDst: dst}
	ip4 := fields{flow.EthSrc: src, flow.EthDst: dst, flow.EthType: 0x800, flow.IPSrc: 0x0a000001, flow.IPDst: 0x0a000002, flow.IPTTL: 64}
	tcp4 := pt.TCP4(pt.Options{TCPFlags: 0x112, TOS: 0xb9})
	arp := pt.ARPRequest(pt.Options{})
	ethARP := fields{flow.EthSrc: src, flow.EthDst: dst, flow.EthType: 0x806}
	okARP := fields{flow.ArpSPA: 0x0a000001, flow.ArpTPA: 0x0a000002, flow.ArpSHA: src}
	tests := []struct {
		name string
		b    []byte
		base fields
		more fields
	}{
		{"runt", tcp4[:13], nil, nil},
		{"tcp", tcp4, ip4, fields{flow.IPProto: 6, flow.IPTOS: 0xb9, flow.TCPSrc: 1000, flow.TCPDst: 80, flow.TCPFlags: 0x112}},
		{"vlan", pt.UDP4(pt.Options{VLAN: 0x6005}), ip4, fields{flow.VlanTCI: 0x7005, flow.IPProto: 17, flow.UDPSrc: 1000, flow.UDPDst: 80}},
		{"sctp", pt.SCTP4(pt.Options{}), ip4, fields{flow.IPProto: 132, flow.SCTPSrc: 1000, flow.SCTPDst: 80}},
		{"icmp", pt.ICMP4(pt.Options{}, 3, 1, 0), ip4, fields{flow.IPProto: 1, flow.ICMPType: 3, flow.ICMPCode: 1}},
		{"igmp", poke(pt.ICMP4(pt.Options{}, 0x16, 0, 0), 23, 2), ip4, fields{flow.IPProto: 2, flow.ICMPType: 0x16}},
		{"first fragment", pt.UDP4(pt.Options{FlagsOffset: 0x2000}), ip4, fields{flow.IPProto: 17, flow.UDPSrc: 1000, flow.UDPDst: 80, flow.IPFrag: 1}},
		{"later fragment", pt.UDP4(pt.Options{FlagsOffset: 0x2003}), ip4, fields{flow.IPProto: 17, flow.IPFrag: 3}},
		{"total length beyond frame", poke(tcp4, 17, 200), eth, fields{flow.EthType: 0x800}},
		{"udp cut short", poke(pt.UDP4(pt.Options{}), 17, 27), ip4, fields{flow.IPProto: 17}},
		{"tcp data offset beyond packet", poke(tcp4, 46, 0xf1), ip4, fields{flow.IPProto: 6, flow.IPTOS: 0xb9}},
		{"arp", arp, ethARP, okARP.with(fields{flow.ArpOp: 1})},
		{"arp operation 257", poke(arp, 20, 1), ethARP, okARP},
		{"rarp", poke(poke(arp, 12, 0x80), 13, 0x35), ethARP.with(fields{flow.EthType: 0x8035}), okARP.with(fields{flow.ArpOp: 1})},
		{"arp for IEEE 802 hardware", poke(arp, 15, 6), ethARP, nil},
		{"802.3", poke(poke(tcp4, 12, 0), 13, 40), eth, fields{flow.EthType: 0x5ff}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkHeader(t, extract(tt.b), tt.base.with(tt.more))
		})
	}
}

func (f fields) with(more fields) fields {
	all := fields{}
	for _, m := range []fields{f, more} {
		for id, v := range m {
			all[id] = v
		}
	}
	return all
}

// checkHeader checks that the header fields of k are want and nothing else.
func checkHeader(t *testing.T, k *flow.Key, want fields) {
	t.Helper()
	rest := *k
	for id, v := range want {
		if got := num(k, id); got != v {
			t.Errorf("%s = %#x, want %#x", flow.FieldByID(id).Name, got, v)
		}
		flow.FieldByID(id).Put(&rest, flow.Value{}, flow.Ones(128))
	}
	if rest != (flow.Key{}) {
		t.Errorf("fields beyond the expected ones are set: %x", rest[:])
	}
}

func TestExtractIPv6(t *testing.T) {
	ns := pt.NeighborSolicit6(pt.Options{TOS: 0x12})
	copy(ns[15:], []byte{0x2a, 0xbc, 0xde}) // traffic class 0x12, label 0xabcde
	k := extract(ns)
	want := fields{
		flow.EthType: 0x86dd, flow.IPProto: 58, flow.IPTTL: 255, flow.IPTOS: 0x12, flow.IPv6Label: 0xabcde,
		flow.ICMPv6Type: 135, flow.ICMPv6Code: 0, flow.NDSLL: 0x020000000001, flow.NDTLL: 0,
	}
	for id, want := range want {
		if got := num(k, id); got != want {
			t.Errorf("%s = %#x, want %#x", flow.FieldByID(id).Name, got, want)
		}
	}
	addr := flow.Value{Hi: 0xfd00 << 48, Lo: 2}
	if get(k, flow.IPv6Dst) != addr || get(k, flow.NDTarget) != addr || get(k, flow.IPv6Src) != (flow.Value{Hi: 0xfd00 << 48, Lo: 1}) {
		t.Errorf("addresses %x %x %x", get(k, flow.IPv6Src), get(k, flow.IPv6Dst), get(k, flow.NDTarget))
	}
}

func TestExtractNDOptions(t *testing.T) {
	target := append([]byte{0xfd, 15: 9}, 0)[:16]
	sll, tll := []byte{1, 1, 2, 0, 0, 0, 0, 1}, []byte{2, 1, 2, 0, 0, 0, 0, 2}
	long := append([]byte{1, 2}, make([]byte, 14)...)
	const a, b = 0x020000000001, 0x020000000002
	for _, tt := range []struct {
		name     string
		code     uint8
		options  [][]byte
		sll, tll uint64
		target   bool
	}{
		{"none", 0, nil, 0, 0, true},
		{"both", 0, [][]byte{tll, sll}, a, b, true},
		{"behind another", 0, [][]byte{{14, 1, 7, 7, 7, 7, 7, 7}, sll}, a, 0, true},
		{"of 16 bytes", 0, [][]byte{long, tll}, 0, b, true},
		{"behind length 0", 0, [][]byte{sll, {2, 0, 2, 0, 0, 0, 0, 2}}, a, 0, true},
		{"beyond the packet", 0, [][]byte{sll, {2, 2, 2, 0, 0, 0, 0, 2}}, a, 0, true},
		{"twice", 0, [][]byte{sll, tll, sll}, 0, 0, false},
		{"code 1", 1, [][]byte{sll}, 0, 0, false},
	} {
		payload := append([]byte{}, target...)
		for _, o := range tt.options {
			payload = append(payload, o...)
		}
		k := extract(pt.ICMP6(pt.Options{Payload: payload}, packet.ICMPv6NeighborAdvert, tt.code, 0))
		if num(k, flow.NDSLL) != tt.sll || num(k, flow.NDTLL) != tt.tll || (num(k, flow.NDTarget) == 9) != tt.target {
			t.Errorf("%s: sll %#x tll %#x target %#x", tt.name, num(k, flow.NDSLL), num(k, flow.NDTLL), get(k, flow.NDTarget))
		}
		if num(k, flow.ICMPv6Type) != 136 {
			t.Errorf("%s: icmpv6_type %d", tt.name, num(k, flow.ICMPv6Type))
		}
	}
}

func TestExtractMetadata(t *testing.T) {
	f := frame(pt.TCP4(pt.Options{}))
	f.Tunnel = packet.Tunnel{Src: pt.Addr("192.168.77.101"), Dst: pt.Addr("192.168.77.102"), ID: 0x123456, TOS: 4, TTL: 63}
	k := new(flow.Key)
	for i := range k {
		k[i] = 0xaa // Extract must overwrite old contents
	}
	l := flow.Extract(f, 7, k)
	if l != packet.ParseLayers(f.Bytes()) {
		t.Errorf("layers %+v", l)
	}
	want := fields{
		flow.InPort: 7, flow.TunSrc: 0xc0a84d65, flow.TunDst: 0xc0a84d66, flow.TunID: 0x123456, flow.TunTOS: 4, flow.TunTTL: 63,
		flow.Reg0: 0, flow.Reg0 + 15: 0, flow.CTState: 0, flow.CTMark: 0, flow.PktMark: 0, flow.IPFrag: 0, flow.Metadata: 0,
	}
	for id, want := range want {
		if got := num(k, id); got != want {
			t.Errorf("%s = %#x, want %#x", flow.FieldByID(id).Name, got, want)
		}
	}
	f.Tunnel = packet.Tunnel{Src: pt.Addr("fd77::1"), Dst: pt.Addr("fd77::2")}
	flow.Extract(f, 7, k)
	if num(k, flow.TunIPv6Src) != 1 || num(k, flow.TunIPv6Dst) != 2 || num(k, flow.TunSrc) != 0 {
		t.Error("an IPv6 tunnel's addresses are not in tun_ipv6_src and tun_ipv6_dst")
	}
	f.Tunnel = packet.Tunnel{Dst: netip.Addr{}, ID: 5}
	flow.Extract(f, 7, k)
	if num(k, flow.TunDst) != 0 || num(k, flow.TunID) != 5 {
		t.Error("a tunnel without addresses")
	}
}

// TestTunnelOptions: options become fields by the table of the switch. Fields become options in
// the order of their numbers.
func TestTunnelOptions(t *testing.T) {
	table := []flow.TunnelOption{{Index: 0, Class: 0x102, Type: 0x80, Size: 4}, {Index: 3, Class: 0xffff, Type: 0, Size: 8}}
	const first, third = "\x01\x02\x80\x01\x00\x01\x00\x02", "\xff\xff\x00\x02\x01\x02\x03\x04\x05\x06\x07\x08"
	const unknown, critical = "\x05\x05\x7f\x00", "\x05\x05\x80\x00"
	for _, tt := range []struct {
		name string
		all  packet.TunnelOptions
		ok   bool
		want packet.TunnelOptions // when the packet leaves again
	}{
		{"none", "", true, ""},
		{"one", first, true, first},
		{"both, the later first", third + first, true, first + third},
		{"one that nobody has to know", unknown + third, true, third},
		{"a critical one", first + critical, false, ""},
		{"of another length", "\x01\x02\x80\x02\x00\x01\x00\x02\x00\x00\x00\x00", false, ""},
		{"cut short", packet.TunnelOptions(first[:6]), false, ""},
		{"twice", first + "\x01\x02\x80\x01\x00\x00\x00\x00", true, "\x01\x02\x80\x01\x00\x00\x00\x00"},
	} {
		var k flow.Key
		if ok := k.SetTunnelOptions(tt.all, table); ok != tt.ok {
			t.Errorf("%s: %v, want %v", tt.name, ok, tt.ok)
		} else if got := k.TunnelOptions(table); ok && got != tt.want {
			t.Errorf("%s: leaves with %x, want %x", tt.name, got, tt.want)
		}
	}
	var k flow.Key
	if k.SetTunnelOptions(first+third, table); num(&k, flow.TunMetadata0) != 0x10002 || num(&k, flow.TunMetadata0+3) != 0x102030405060708 || num(&k, flow.TunPresent) != 9 {
		t.Errorf("%s", flow.KeyText(&k, nil))
	}
	if n := testing.AllocsPerRun(100, func() { _ = k.SetTunnelOptions(first+third, table) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestOptionBits: an entry uses fields in its match and in all of its actions.
func TestOptionBits(t *testing.T) {
	var m flow.Match
	m.AddExact(flow.TunMetadata0, flow.Value{Lo: 0x1ff})
	m.Add(flow.TunMetadata0+1, flow.Value{}, flow.Value{})
	m.Add(flow.TunMetadata0+2, flow.Value{}, flow.Value{Lo: 0xf0})
	part := func(i flow.FieldID, ofs, n uint8) flow.Subfield {
		return flow.Subfield{Field: flow.TunMetadata0 + i, Ofs: ofs, N: n}
	}
	zone := part(6, 0, 16)
	var used flow.OptionBits
	used.AddMatch(m.Mini())
	used.AddActions([]flow.Action{
		flow.SetField{Field: flow.TunMetadata0 + 3, Mask: flow.Ones(64)},
		flow.Clone{Actions: []flow.Action{flow.Move{Src: part(4, 8, 8), Dst: flow.Subfield{Field: flow.Reg0, N: 8}}}},
		&flow.Learn{Specs: []flow.LearnSpec{{FromField: true, Src: part(5, 0, 32), Dst: part(0, 0, 32)}}},
		&flow.CT{ZoneSrc: &zone}, flow.OutputReg{Src: part(7, 48, 16)},
	})
	if want := (flow.OptionBits{32, 1, 8, 1, 16, 32, 16, 64}); used != want {
		t.Errorf("%v, want %v", used, want)
	}
	table := []flow.TunnelOption{{Index: 0, Size: 4}, {Index: 1, Size: 4}, {Index: 2, Size: 4}, {Index: 4, Size: 4}, {Index: 7, Size: 4}}
	if got := used.Lacks(table); got != 3 {
		t.Errorf("lacks %d", got)
	}
	used[3], used[5], used[6] = 0, 0, 0
	if got := used.Lacks(table); got != 7 {
		t.Errorf("lacks %d: the option has 4 bytes", got)
	}
}

func TestRefresh(t *testing.T) {
	f := frame(pt.TCP4(pt.Options{FlagsOffset: 0x2000}))
	k := new(flow.Key)
	flow.Extract(f, 7, k)
	k.SetReg(3, 99)
	flow.FieldByID(flow.CTState).Put(k, flow.Value{Lo: 0x22}, flow.Ones(32))
	f.SetLen(14 + 28)
	copy(f.Bytes(), pt.UDP4(pt.Options{DstPort: 53}))
	flow.Refresh(f, k)
	want := extract(f.Bytes())
	want.SetReg(3, 99)
	flow.FieldByID(flow.CTState).Put(want, flow.Value{Lo: 0x22}, flow.Ones(32))
	flow.FieldByID(flow.InPort).Put(want, flow.Value{Lo: 7}, flow.Ones(32))
	if *k != *want {
		t.Errorf("Refresh\n got %x\nwant %x", k[:], want[:])
	}
}

// TestReaddress: after addresses and ports changed in place, the key has the new values.
func TestReaddress(t *testing.T) {
	old, now := pt.Options{SrcPort: 1000, DstPort: 80}, pt.Options{SrcPort: 2000, DstPort: 8080, Src: pt.Addr("10.9.9.9"), Dst: pt.Addr("10.8.8.8")}
	old6, now6 := old, now
	now6.Src, now6.Dst = pt.Addr("fd99::9"), pt.Addr("fd88::8")
	for name, b := range map[string][2][]byte{
		"TCP": {pt.TCP4(old), pt.TCP4(now)}, "UDP": {pt.UDP4(old), pt.UDP4(now)},
		"TCP over IPv6": {pt.TCP6(old6), pt.TCP6(now6)}, "UDP over IPv6": {pt.UDP6(old6), pt.UDP6(now6)},
	} {
		f, k := frame(b[0]), new(flow.Key)
		l := flow.Extract(f, 0, k)
		copy(f.Bytes(), b[1])
		flow.Readdress(f, &l, k)
		if want := extract(b[1]); *k != *want {
			t.Errorf("%s\n got %x\nwant %x", name, k[:], want[:])
		}
	}
}

func TestExtractAllocations(t *testing.T) {
	for name, b := range canonical() {
		f, k := frame(b), new(flow.Key)
		if n := testing.AllocsPerRun(100, func() { flow.Extract(f, 1, k); flow.Refresh(f, k) }); n != 0 {
			t.Errorf("%s: %v allocations per packet", name, n)
		}
	}
}

func BenchmarkExtract(b *testing.B) {
	f, k := frame(pt.TCP4(pt.Options{})), new(flow.Key)
	for b.Loop() {
		flow.Extract(f, 1, k)
	}
}

// poke is a copy of b with one byte set.
func poke(b []byte, off int, v byte) []byte {
	b = append([]byte{}, b...)
	b[off] = v
	return b
}

// canonical is one packet of each kind that extraction reads.
func canonical() map[string][]byte {
	o := pt.Options{
		SrcPort: 4321, DstPort: 8080, TTL: 63, TOS: 0xb9, TCPFlags: packet.TCPAck | packet.TCPPsh,
		TCPOptions: []byte{2, 4, 5, 0xb4}, Payload: []byte("payload"),
	}
	s, tagged := o, o
	s.Payload = nil
	tagged.VLAN = 0x6064
	later := o
	later.FlagsOffset = 0x2001
	return map[string][]byte{
		"tcp4": pt.TCP4(o), "tcp6": pt.TCP6(o), "udp4": pt.UDP4(o), "udp6": pt.UDP6(o),
		"sctp4": pt.SCTP4(s), "sctp6": pt.SCTP6(s), "icmp4": pt.ICMPEcho4(o), "icmp6": pt.ICMPEcho6(o),
		"arp": pt.ARPRequest(o), "ns": pt.NeighborSolicit6(s), "vlan": pt.TCP4(tagged), "later": pt.UDP4(later),
		"error": pt.ICMPError4(o, 3, 3, pt.UDP4(o), 8),
	}
}
