package dataplane_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// wantSound fails when a frame's lengths or checksums are not those that a full
// computation gives. A UDP checksum of 0 over IPv4 stays 0.
func wantSound(t testing.TB, frame []byte) {
	t.Helper()
	l := packet.ParseLayers(frame)
	if !l.Sound() {
		t.Fatalf("the frame's headers do not fit: %x", frame)
	}
	if l.EtherType == packet.EtherTypeIPv4 && !packet.IPv4(frame[l.L3:]).ChecksumValid() {
		t.Errorf("wrong IPv4 header checksum: %x", frame)
	}
	if l.L4 == 0 || l.Proto == packet.ProtoUDP && packet.UDP(frame[l.L4:]).Checksum() == 0 && l.EtherType == packet.EtherTypeIPv4 {
		return
	}
	fresh := slices.Clone(frame)
	l.SetL4Checksum(fresh)
	if string(fresh) != string(frame) {
		t.Errorf("layer 4 checksum differs from the one computed anew:\n got %x\nwant %x", frame, fresh)
	}
}

// rewritten are the packets that header fields are written into, by the match
// that an entry needs to write them.
var rewritten = map[string][]byte{
	"tcp":                             packettest.TCP4(packettest.Options{Payload: []byte("odd")}),
	"udp":                             packettest.UDP4(packettest.Options{Payload: []byte("even")}),
	"sctp":                            packettest.SCTP4(packettest.Options{}),
	"icmp":                            packettest.ICMPEcho4(packettest.Options{ICMPID: 7}),
	"tcp6":                            packettest.TCP6(packettest.Options{Payload: []byte("odd")}),
	"udp6":                            packettest.UDP6(packettest.Options{}),
	"sctp6":                           packettest.SCTP6(packettest.Options{}),
	"icmp6":                           packettest.ICMPEcho6(packettest.Options{}),
	"arp":                             packettest.ARPRequest(packettest.Options{}),
	"icmp6,icmp_type=135,icmp_code=0": packettest.NeighborSolicit6(packettest.Options{}),
	"icmp6,icmp_type=136,icmp_code=0": neighborAdvert6(),
	"tcp,dl_vlan=5":                   packettest.TCP4(packettest.Options{VLAN: 5}),
	"tcp6,dl_vlan=5":                  packettest.TCP6(packettest.Options{VLAN: 5}),
}

func neighborAdvert6() []byte {
	target := packettest.Addr("fd00::1").As16()
	return packettest.ICMP6(packettest.Options{Payload: append(target[:], packet.NDOptionTargetLinkAddr, 1, 2, 0, 0, 0, 0, 1)}, packet.ICMPv6NeighborAdvert, 0, 0)
}

// writable lists each header field with a value to write and one of the
// packets that have it.
var writable = []struct{ set, in, want string }{
	{"02:aa:00:00:00:01->eth_src", "tcp", "dl_src=02:aa:00:00:00:01"},
	{"02:aa:00:00:00:02->eth_dst", "tcp6", "dl_dst=02:aa:00:00:00:02"},
	{"4105->vlan_vid", "tcp,dl_vlan=5", "dl_vlan=9"},
	{"3->vlan_pcp", "tcp,dl_vlan=5", "dl_vlan_pcp=3"},
	{"0x7009->vlan_tci", "tcp,dl_vlan=5", "vlan_tci=0x7009"},
	{"10.1.2.3->ip_src", "tcp", "nw_src=10.1.2.3"},
	{"10.1.2.4->ip_dst", "tcp", "nw_dst=10.1.2.4"},
	{"10.1.2.3->ip_src", "udp", "nw_src=10.1.2.3"},
	{"10.1.2.4->ip_dst", "sctp", "nw_dst=10.1.2.4"},
	{"10.1.2.4->ip_dst", "icmp", "nw_dst=10.1.2.4"},
	{"10.1.2.4->ip_dst", "tcp,dl_vlan=5", "nw_dst=10.1.2.4"},
	{"fd00:1::9->ipv6_src", "tcp6", "ipv6_src=fd00:1::9"},
	{"fd00:1::8->ipv6_dst", "udp6", "ipv6_dst=fd00:1::8"},
	{"fd00:1::8->ipv6_dst", "sctp6", "ipv6_dst=fd00:1::8"},
	{"fd00:1::8->ipv6_dst", "icmp6", "ipv6_dst=fd00:1::8"},
	{"fd00:1::8->ipv6_dst", "tcp6,dl_vlan=5", "ipv6_dst=fd00:1::8"},
	{"0xabcde->ipv6_label", "tcp6", "ipv6_label=0xabcde"},
	{"0xb8->nw_tos", "tcp", "nw_tos=184"},
	{"0xb8->nw_tos", "tcp6", "nw_tos=184"},
	{"5->ip_dscp", "udp", "nw_tos=20"},
	{"5->ip_dscp", "udp6", "nw_tos=20"},
	{"2->nw_ecn", "tcp", "nw_ecn=2"},
	{"2->nw_ecn", "tcp6", "nw_ecn=2"},
	{"9->nw_ttl", "tcp", "nw_ttl=9"},
	{"9->nw_ttl", "icmp6", "nw_ttl=9"},
	{"7->tcp_src", "tcp", "tp_src=7"},
	{"7->tcp_dst", "tcp6", "tp_dst=7"},
	{"7->udp_src", "udp", "tp_src=7"},
	{"7->udp_dst", "udp6", "tp_dst=7"},
	{"7->sctp_src", "sctp", "tp_src=7"},
	{"7->sctp_dst", "sctp6", "tp_dst=7"},
	{"3->icmp_type", "icmp", "icmp_type=3"},
	{"4->icmp_code", "icmp", "icmp_code=4"},
	{"3->icmpv6_type", "icmp6", "icmp_type=3"},
	{"4->icmpv6_code", "icmp6", "icmp_code=4"},
	{"2->arp_op", "arp", "arp_op=2"},
	{"10.1.1.1->arp_spa", "arp", "arp_spa=10.1.1.1"},
	{"10.1.1.2->arp_tpa", "arp", "arp_tpa=10.1.1.2"},
	{"02:aa:00:00:00:03->arp_sha", "arp", "arp_sha=02:aa:00:00:00:03"},
	{"02:aa:00:00:00:04->arp_tha", "arp", "arp_tha=02:aa:00:00:00:04"},
	{"fd00:1::7->nd_target", "icmp6,icmp_type=135,icmp_code=0", "nd_target=fd00:1::7"},
	{"02:aa:00:00:00:05->nd_sll", "icmp6,icmp_type=135,icmp_code=0", "nd_sll=02:aa:00:00:00:05"},
	{"02:aa:00:00:00:06->nd_tll", "icmp6,icmp_type=136,icmp_code=0", "nd_tll=02:aa:00:00:00:06"},
}

// TestSetField writes every header field into a packet that has it: the entries
// behind see the value, the frame leaves with it, its checksums are those of a
// full computation, and no other byte has changed.
func TestSetField(t *testing.T) {
	for _, c := range writable {
		t.Run(c.set+" in "+c.in, func(t *testing.T) {
			frame := rewritten[c.in]
			proto := c.in
			if p, _, tagged := strings.Cut(c.in, ",dl_vlan"); tagged {
				proto = p
			}
			_, name, _ := strings.Cut(c.set, "->")
			match := proto + "," + c.want
			r := newRig(t, fmt.Sprintf("table=0,%s actions=set_field:%s,resubmit(,1)\ntable=1,%s actions=output:2", c.in, c.set, match))
			out := r.sendFrame(1, frame)
			r.wantPorts(out, 2)
			wantSound(t, out[0].frame)
			k := out[0].key()
			m, err := parse.Match(match, nil)
			r.check(err)
			if !m.Matches(k) {
				t.Errorf("left as %s, want %s", flow.KeyText(k, nil), c.want)
			}
			wantOthersKept(t, flow.FieldByName(name), frame, out[0])
			if proto = strings.TrimSuffix(proto, "6"); proto == "tcp" || proto == "udp" {
				whole := r.sendWhole(1, packettest.Undone(frame, 0))
				if len(whole) != 1 || string(whole[0].frame) != string(out[0].frame) {
					t.Errorf("with a partial checksum it leaves as %v, else as %v", whole, out)
				}
			}
		})
	}
}

// wantOthersKept fails when a header field that does not overlap f has changed.
func wantOthersKept(t *testing.T, f *flow.Field, before []byte, after sent) {
	t.Helper()
	old, now := sent{frame: before}.key(), after.key()
	f.Put(old, flow.Value{}, flow.Ones(128))
	f.Put(now, flow.Value{}, flow.Ones(128))
	if d := flow.Diff(old, now); len(d) != 0 && !strings.HasPrefix(f.Name, "icmp") {
		t.Errorf("other fields changed too: %s, was %s", flow.KeyText(now, nil), flow.KeyText(old, nil))
	}
}

// TestEveryHeaderFieldIsWritten fails when the registry has a writable header
// field that no case of TestSetField writes.
func TestEveryHeaderFieldIsWritten(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range writable {
		_, name, _ := strings.Cut(c.set, "->")
		seen[flow.FieldByName(name).Name] = true
	}
	for id := flow.Reg0; id <= flow.NDTLL; id++ {
		if f := flow.FieldByID(id); f.Off >= flow.HeaderStart && !f.ReadOnly && !seen[f.Name] {
			t.Errorf("no case writes %s", f.Name)
		}
	}
}

// TestPartOfAField writes some bits of a field, by mask, load and move.
func TestPartOfAField(t *testing.T) {
	for _, c := range []struct{ actions, want string }{
		{"set_field:0.0.9.0/0.0.255.0->ip_dst", "nw_dst=10.0.9.2"},
		{"load:0x9->NXM_OF_IP_DST[8..15]", "nw_dst=10.0.9.2"},
		{"move:NXM_OF_TCP_SRC[]->NXM_OF_TCP_DST[]", "tp_dst=1000"},
		{"move:NXM_OF_IP_SRC[0..15]->NXM_OF_TCP_DST[]", "tp_dst=1"},
		{"set_field:0x50/0xff->tcp_src", "tp_src=848"},
		{"move:NXM_OF_ETH_SRC[0..15]->NXM_OF_ETH_DST[32..47]", "dl_dst=00:01:00:00:00:02"},
		{"set_field:00:00:00:00:00:ff/00:00:00:00:00:ff->eth_dst", "dl_dst=02:00:00:00:00:ff"},
		{"set_field:7->reg3,move:NXM_NX_REG3[]->NXM_OF_IP_SRC[]", "nw_src=0.0.0.7"},
	} {
		t.Run(c.actions, func(t *testing.T) {
			r := newRig(t, "table=0,tcp actions="+c.actions+",resubmit(,1)\ntable=1,tcp,"+c.want+" actions=output:2")
			out := r.sendFrame(1, rewritten["tcp"])
			r.wantPorts(out, 2)
			wantSound(t, out[0].frame)
		})
	}
}

// TestUDPWithoutChecksum keeps a UDP checksum of 0, which means none, and never
// makes one.
func TestUDPWithoutChecksum(t *testing.T) {
	r := newRig(t, "table=0,udp actions=set_field:1.2.3.4->ip_dst,set_field:9->udp_dst,output:2")
	frame := slices.Clone(rewritten["udp"])
	l := packet.ParseLayers(frame)
	packet.UDP(frame[l.L4:]).SetChecksum(0)
	out := r.sendFrame(1, frame)
	if got := packet.UDP(out[0].frame[l.L4:]).Checksum(); got != 0 {
		t.Errorf("checksum %#x was made for a datagram without", got)
	}
	wantSound(t, out[0].frame)
}

// TestUDPChecksumNeverBecomesNone writes every port: where the sum comes to 0,
// the field says 0xffff.
func TestUDPChecksumNeverBecomesNone(t *testing.T) {
	r := newRig(t, "table=0,udp actions=move:NXM_OF_ETH_DST[0..15]->NXM_OF_UDP_DST[],output:2")
	frame, zero := slices.Clone(rewritten["udp"]), 0
	for port := range 65536 {
		frame[4], frame[5] = byte(port>>8), byte(port)
		out := r.sendFrame(1, frame)
		l := packet.ParseLayers(out[0].frame)
		switch packet.UDP(out[0].frame[l.L4:]).Checksum() {
		case 0:
			t.Fatalf("port %d: checksum 0", port)
		case 0xffff:
			zero++
			wantSound(t, out[0].frame)
		}
	}
	if zero == 0 {
		t.Error("no port made the sum 0")
	}
}

// TestWrongChecksumStaysWrong checks that a rewrite does not make a damaged
// packet look sound.
func TestWrongChecksumStaysWrong(t *testing.T) {
	for _, proto := range []string{"tcp", "udp", "sctp", "tcp6"} {
		t.Run(proto, func(t *testing.T) {
			r := newRig(t, fmt.Sprintf("table=0,%s actions=set_field:9->%s_dst,output:2", proto, strings.TrimSuffix(proto, "6")))
			frame := slices.Clone(rewritten[proto])
			frame[len(frame)-1] ^= 1
			out := r.sendFrame(1, frame)
			l := packet.ParseLayers(out[0].frame)
			if l.L4Valid(out[0].frame) {
				t.Error("a damaged packet left with a valid checksum")
			}
		})
	}
}

// TestFragmentKeepsItsPayload rewrites the addresses of a later fragment: only
// its IPv4 header changes.
func TestFragmentKeepsItsPayload(t *testing.T) {
	r := newRig(t, "table=0,ip actions=set_field:1.2.3.4->ip_dst,output:2")
	frame := packettest.TCP4(packettest.Options{FlagsOffset: 100, Payload: []byte("payload")})
	l := packet.ParseLayers(frame)
	out := r.sendFrame(1, frame)
	after := out[0].frame
	if !packet.IPv4(after[l.L3:]).ChecksumValid() || out[0].field(flow.IPDst) != "1.2.3.4" {
		t.Errorf("header after the rewrite: %x", after)
	}
	if string(after[l.L3+packet.IPv4Len:]) != string(frame[l.L3+packet.IPv4Len:]) {
		t.Error("a later fragment's payload was changed")
	}
}

// TestVLAN pushes, pops and writes tags.
func TestVLAN(t *testing.T) {
	for _, c := range []struct {
		name, flows string
		in          []byte
		want        string // KeyText's part
	}{
		{"push", "table=0,tcp actions=push_vlan:0x8100,set_field:4103->vlan_vid,resubmit(,1)\ntable=1,tcp,dl_vlan=7 actions=output:2", rewritten["tcp"], "dl_vlan=7"},
		{"pop", "table=0,tcp,dl_vlan=5 actions=pop_vlan,resubmit(,1)\ntable=1,tcp,vlan_tci=0 actions=output:2", rewritten["tcp,dl_vlan=5"], "vlan_tci=0"},
		{"push a second", "table=0,tcp,dl_vlan=5 actions=push_vlan:0x88a8,set_field:4105->vlan_vid,output:2", rewritten["tcp,dl_vlan=5"], "dl_vlan=9"},
		{"pop and rewrite below", "table=0,tcp,dl_vlan=5 actions=pop_vlan,set_field:10.9.9.9->ip_dst,set_field:9->tcp_dst,output:2", rewritten["tcp,dl_vlan=5"], "nw_dst=10.9.9.9"},
		{"push and rewrite below", "table=0,tcp actions=push_vlan:0x8100,set_field:10.9.9.9->ip_dst,set_field:9->tcp_dst,output:2", rewritten["tcp"], "nw_dst=10.9.9.9"},
		{"vlan_tci makes a tag", "table=0,tcp actions=set_field:0x1007->vlan_tci,resubmit(,1)\ntable=1,tcp,dl_vlan=7 actions=output:2", rewritten["tcp"], "dl_vlan=7"},
		{"vlan_tci takes the tag", "table=0,tcp,dl_vlan=5 actions=set_field:0->vlan_tci,resubmit(,1)\ntable=1,tcp,vlan_tci=0 actions=output:2", rewritten["tcp,dl_vlan=5"], "vlan_tci=0"},
		{"vlan_vid without a tag", "table=0,tcp actions=set_field:5->reg0,move:NXM_NX_REG0[0..11]->OXM_OF_VLAN_VID[],resubmit(,1)\ntable=1,tcp,vlan_tci=0x0005/0x1fff actions=output:2", rewritten["tcp"], "vlan_tci=0"},
		{"vlan_vid in a tag", "table=0,tcp actions=set_field:9->reg0,move:NXM_NX_REG0[0..11]->OXM_OF_VLAN_VID[],resubmit(,1)\ntable=1,tcp,dl_vlan=9,dl_vlan_pcp=1 actions=output:2", tagged(packettest.TCP4(packettest.Options{})), "dl_vlan=9,dl_vlan_pcp=1"},
		{"vlan_vid read without a tag", "table=0,tcp actions=set_field:7->reg0,move:OXM_OF_VLAN_VID[]->NXM_NX_REG0[0..11],resubmit(,1)\ntable=1,reg0=0 actions=output:2", rewritten["tcp"], "vlan_tci=0"},
		{"vlan_tci below the tag bit", "table=0,tcp actions=move:NXM_NX_REG0[0..11]->NXM_OF_VLAN_TCI[0..11],output:2", rewritten["tcp"], "vlan_tci=0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.flows)
			out := r.sendFrame(1, c.in)
			r.wantPorts(out, 2)
			wantSound(t, out[0].frame)
			m, err := parse.Match("tcp,"+c.want, nil)
			r.check(err)
			if c.name == "push a second" { // nothing is read behind two tags
				m, err = parse.Match(c.want+",dl_type=0x8100", nil)
				r.check(err)
			}
			if !m.Matches(out[0].key()) {
				t.Errorf("left as %s, want %s", flow.KeyText(out[0].key(), nil), c.want)
			}
			if l := packet.ParseLayers(out[0].frame); l.TCI != 0 && out[0].frame[14]&0x10 != 0 {
				t.Error("the drop eligible bit is set in the tag")
			}
		})
	}
}

// TestDecTTL takes one from the TTL, and loses the packet at 1 or 0; actions
// behind a resubmit still run.
func TestDecTTL(t *testing.T) {
	for _, c := range []struct {
		proto string
		ttl   uint8
		want  string
	}{
		{"ip", 64, "2 3"}, {"ip", 2, "2 3"}, {"ip", 1, "3"}, {"ipv6", 64, "2 3"}, {"ipv6", 2, "2 3"}, {"ipv6", 1, "3"},
	} {
		t.Run(fmt.Sprint(c.proto, c.ttl), func(t *testing.T) {
			r := newRig(t, fmt.Sprintf("table=0 actions=resubmit(,1),output:3\ntable=1,%s actions=dec_ttl,output:2", c.proto))
			o := packettest.Options{TTL: c.ttl}
			frame := packettest.TCP4(o)
			if c.proto == "ipv6" {
				frame = packettest.TCP6(o)
			}
			var ports []string
			for _, s := range r.sendFrame(1, frame) {
				ports = append(ports, fmt.Sprint(s.port))
				wantSound(t, s.frame)
				if s.port == 2 && s.field(flow.IPTTL) != fmt.Sprint(c.ttl-1) {
					t.Errorf("left with TTL %s", s.field(flow.IPTTL))
				}
			}
			if got := strings.Join(ports, " "); got != c.want {
				t.Errorf("left by %q, want %q", got, c.want)
			}
		})
	}
}
