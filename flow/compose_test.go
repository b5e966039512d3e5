package flow_test

import (
	"math/rand/v2"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// sameHeaders reports whether composing k's packet and extracting it again gives
// k's header fields.
func sameHeaders(t *testing.T, k *flow.Key, why string) {
	t.Helper()
	b := flow.Compose(k)
	got := extract(b)
	if [flow.KeySize - flow.HeaderStart]byte(got[flow.HeaderStart:]) != [flow.KeySize - flow.HeaderStart]byte(k[flow.HeaderStart:]) ||
		num(got, flow.IPFrag) != num(k, flow.IPFrag) {
		t.Fatalf("%s: Extract(Compose(k)) is not k\n got %x\nwant %x\npacket %x", why, got[flow.HeaderStart:], k[flow.HeaderStart:], b)
	}
	l := packet.ParseLayers(b)
	if !l.Sound() && l.Proto != 0 {
		t.Fatalf("%s: network header is not sound in %x", why, b)
	}
	if l.L4 != 0 && l.Frag == 0 && !l.L4Valid(b) {
		t.Fatalf("%s: checksum is wrong in %x", why, b)
	}
}

// TestComposeRandomKeys writes random values into the fields that each kind of
// packet has.
func TestComposeRandomKeys(t *testing.T) {
	const seed = 31
	r := rand.New(rand.NewPCG(seed, 0))
	l2 := []flow.FieldID{flow.EthSrc, flow.EthDst}
	ip4 := append([]flow.FieldID{flow.IPSrc, flow.IPDst, flow.IPTOS, flow.IPTTL}, l2...)
	ip6 := append([]flow.FieldID{flow.IPv6Src, flow.IPv6Dst, flow.IPv6Label, flow.IPTOS, flow.IPTTL}, l2...)
	tcp := []flow.FieldID{flow.TCPSrc, flow.TCPDst, flow.TCPFlags}
	icmp := []flow.FieldID{flow.ICMPType, flow.ICMPCode}
	nd := []flow.FieldID{flow.NDTarget, flow.NDSLL, flow.NDTLL}
	for _, kind := range []struct {
		name   string
		fixed  fields
		random [][]flow.FieldID
	}{
		{"other type", fields{flow.EthType: 0x88cc}, [][]flow.FieldID{l2}},
		{"802.3", fields{flow.EthType: 0x5ff}, [][]flow.FieldID{l2}},
		{"arp", fields{flow.EthType: 0x806, flow.ArpOp: 2}, [][]flow.FieldID{l2, {flow.ArpSPA, flow.ArpTPA, flow.ArpSHA, flow.ArpTHA}}},
		{"tcp", fields{flow.EthType: 0x800, flow.IPProto: 6}, [][]flow.FieldID{ip4, tcp}},
		{"tcp first fragment", fields{flow.EthType: 0x800, flow.IPProto: 6, flow.IPFrag: 1}, [][]flow.FieldID{ip4, tcp}},
		{"later fragment", fields{flow.EthType: 0x800, flow.IPProto: 6, flow.IPFrag: 3}, [][]flow.FieldID{ip4}},
		{"udp", fields{flow.EthType: 0x800, flow.IPProto: 17}, [][]flow.FieldID{ip4, tcp[:2]}},
		{"sctp", fields{flow.EthType: 0x800, flow.IPProto: 132}, [][]flow.FieldID{ip4, tcp[:2]}},
		{"icmp", fields{flow.EthType: 0x800, flow.IPProto: 1}, [][]flow.FieldID{ip4, icmp}},
		{"echo", fields{flow.EthType: 0x800, flow.IPProto: 1, flow.ICMPType: 8}, [][]flow.FieldID{ip4}},
		{"gre", fields{flow.EthType: 0x800, flow.IPProto: 47}, [][]flow.FieldID{ip4}},
		{"tcp6", fields{flow.EthType: 0x86dd, flow.IPProto: 6}, [][]flow.FieldID{ip6, tcp}},
		{"udp6 first fragment", fields{flow.EthType: 0x86dd, flow.IPProto: 17, flow.IPFrag: 1}, [][]flow.FieldID{ip6, tcp[:2]}},
		{"later fragment 6", fields{flow.EthType: 0x86dd, flow.IPProto: 44, flow.IPFrag: 3}, [][]flow.FieldID{ip6}},
		{"echo6", fields{flow.EthType: 0x86dd, flow.IPProto: 58, flow.ICMPv6Type: 128}, [][]flow.FieldID{ip6}},
		{"icmp6", fields{flow.EthType: 0x86dd, flow.IPProto: 58, flow.ICMPv6Type: 1}, [][]flow.FieldID{ip6, {flow.ICMPv6Code}}},
		{"solicitation", fields{flow.EthType: 0x86dd, flow.IPProto: 58, flow.ICMPv6Type: 135}, [][]flow.FieldID{ip6, nd}},
		{"advertisement", fields{flow.EthType: 0x86dd, flow.IPProto: 58, flow.ICMPv6Type: 136}, [][]flow.FieldID{ip6, nd[:1]}},
	} {
		for i := range 50 {
			k := new(flow.Key)
			for _, list := range kind.random {
				for _, id := range list {
					put(k, id, flow.Value{Hi: r.Uint64(), Lo: r.Uint64()})
				}
			}
			for id, v := range kind.fixed {
				put(k, id, flow.Value{Lo: v})
			}
			if i%2 == 1 {
				put(k, flow.VlanTCI, flow.Value{Lo: r.Uint64() | packet.VLANPresent})
			}
			sameHeaders(t, k, kind.name)
		}
	}
}

func put(k *flow.Key, id flow.FieldID, v flow.Value) {
	f := flow.FieldByID(id)
	f.Put(k, v, flow.Ones(f.Bits))
}

// TestComposeForGopacket lets an independent decoder read composed packets.
func TestComposeForGopacket(t *testing.T) {
	for name, b := range canonical() {
		if name == "later" || name == "error" {
			continue // payload that gopacket wants and a key does not have
		}
		c := flow.Compose(extract(b))
		p := gopacket.NewPacket(c, layers.LayerTypeEthernet, gopacket.Default)
		if e := p.ErrorLayer(); e != nil {
			t.Errorf("%s: %v in %x", name, e.Error(), c)
		}
		want := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
		if p.TransportLayer() != nil && p.TransportLayer().TransportFlow() != want.TransportLayer().TransportFlow() {
			t.Errorf("%s: composed %v of %v", name, p, want)
		}
	}
}

// TestComposePayload pins the payload of composed packets.
func TestComposePayload(t *testing.T) {
	for _, tt := range []struct {
		name string
		like []byte
		len  int
	}{
		{"syn", pt.TCP4(pt.Options{TCPFlags: packet.TCPSyn}), 54},
		{"ack", pt.TCP4(pt.Options{TCPFlags: packet.TCPAck}), 54 + 64},
		{"udp", pt.UDP4(pt.Options{}), 42 + 64},
		{"echo", pt.ICMPEcho4(pt.Options{}), 42 + 64},
		{"echo6", pt.ICMPEcho6(pt.Options{}), 62 + 64},
		{"arp", pt.ARPRequest(pt.Options{}), 42},
	} {
		if b := flow.Compose(extract(tt.like)); len(b) != tt.len {
			t.Errorf("%s: %d bytes, want %d: %x", tt.name, len(b), tt.len, b)
		}
	}
}

// FuzzExtract extracts a key from any bytes, composes the packet that the key
// describes, and extracts the same key from that.
func FuzzExtract(f *testing.F) {
	for _, b := range canonical() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		k := extract(b)
		if num(k, flow.EthType) != 0 {
			sameHeaders(t, k, "fuzz")
		}
	})
}
