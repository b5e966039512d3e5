package flow_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// TestExtractAsOpenVSwitch mutates packets and compares the key with the flow
// that Open vSwitch extracts (ovs-ofctl parse-pcap), as text.
func TestExtractAsOpenVSwitch(t *testing.T) {
	if _, err := exec.LookPath("ovs-ofctl"); err != nil {
		t.Skip("Open vSwitch is not installed")
	}
	const seed = 3100
	packets := mutants(rand.New(rand.NewPCG(seed, 0)), 200)
	got := ovsFlows(t, packets)
	if len(got) != len(packets) {
		t.Fatalf("Open vSwitch read %d packets of %d", len(got), len(packets))
	}
	for i, b := range packets {
		if want := ovsText(extract(b)); got[i] != want {
			t.Errorf("seed %d, packet %d: %x\nantrail      %s\nOpen vSwitch %s", seed, i, b, want, got[i])
		}
	}
}

// TestComposeAsOpenVSwitch compares composed packets byte by byte with those of
// ovs-ofctl compose-packet.
func TestComposeAsOpenVSwitch(t *testing.T) {
	if _, err := exec.LookPath("ovs-ofctl"); err != nil {
		t.Skip("Open vSwitch is not installed")
	}
	const v4, v6 = 0x800, 0x86dd
	for text, key := range map[string]fields{
		"dl_type=0x1234,dl_src=02:00:00:00:00:01": {flow.EthType: 0x1234, flow.EthSrc: 0x020000000001},
		"arp,arp_op=2,arp_spa=10.0.0.1,arp_tha=02:00:00:00:00:02": {
			flow.EthType: 0x806, flow.ArpOp: 2, flow.ArpSPA: 0x0a000001, flow.ArpTHA: 0x020000000002},
		"tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64,tcp_src=1000,tcp_dst=80,tcp_flags=syn": {
			flow.EthType: v4, flow.IPProto: 6, flow.IPSrc: 0x0a000001, flow.IPDst: 0x0a000002, flow.IPTTL: 64,
			flow.TCPSrc: 1000, flow.TCPDst: 80, flow.TCPFlags: 2},
		"tcp,tcp_flags=ack,nw_tos=184,nw_ecn=1": {flow.EthType: v4, flow.IPProto: 6, flow.IPTOS: 0xb9, flow.TCPFlags: 16},
		"tcp,dl_vlan=5,dl_vlan_pcp=3":           {flow.EthType: v4, flow.IPProto: 6, flow.VlanTCI: 0x7005},
		"tcp,nw_frag=first,tcp_src=5":           {flow.EthType: v4, flow.IPProto: 6, flow.IPFrag: 1, flow.TCPSrc: 5},
		"ip,nw_frag=later,nw_proto=17":          {flow.EthType: v4, flow.IPProto: 17, flow.IPFrag: 3},
		"udp,udp_dst=53,nw_src=10.0.0.1":        {flow.EthType: v4, flow.IPProto: 17, flow.UDPDst: 53, flow.IPSrc: 0x0a000001},
		"icmp,icmp_type=8":                      {flow.EthType: v4, flow.IPProto: 1, flow.ICMPType: 8},
		"icmp,icmp_type=3,icmp_code=1":          {flow.EthType: v4, flow.IPProto: 1, flow.ICMPType: 3, flow.ICMPCode: 1},
		"ip,nw_proto=2":                         {flow.EthType: v4, flow.IPProto: 2},
		"ip,nw_proto=47":                        {flow.EthType: v4, flow.IPProto: 47},
		"udp6,ipv6_dst=::9,ipv6_label=0x12345,udp_dst=53": {
			flow.EthType: v6, flow.IPProto: 17, flow.IPv6Dst: 9, flow.IPv6Label: 0x12345, flow.UDPDst: 53},
		"icmp6,icmpv6_type=128": {flow.EthType: v6, flow.IPProto: 58, flow.ICMPv6Type: 128},
		"icmp6,icmpv6_type=135,nd_target=::7": {
			flow.EthType: v6, flow.IPProto: 58, flow.ICMPv6Type: 135, flow.NDTarget: 7},
	} {
		k := new(flow.Key)
		for id, v := range key {
			put(k, id, flow.Value{Lo: v})
		}
		if got, want := fmt.Sprintf("%x", flow.Compose(k)), ovsPacket(t, text); got != want {
			t.Errorf("%s\nantrail      %s\nOpen vSwitch %s", text, got, want)
		}
	}
}

// ovsPacket is the packet that ovs-ofctl composes from a flow, in hex. It is
// printed as a dump: offset, two spaces, bytes.
func ovsPacket(t *testing.T, text string) string {
	t.Helper()
	out, err := exec.Command("ovs-ofctl", "compose-packet", text).CombinedOutput()
	if err != nil {
		t.Fatalf("ovs-ofctl compose-packet %s: %v: %s", text, err, out)
	}
	var hex strings.Builder
	for line := range strings.Lines(string(out)) {
		if _, bytes, ok := strings.Cut(line, "  "); ok {
			hex.WriteString(strings.NewReplacer(" ", "", "-", "", "\n", "").Replace(bytes))
		}
	}
	return hex.String()
}

// mutants are n variants of every canonical packet: with changed header bytes,
// cut short, or padded.
func mutants(r *rand.Rand, n int) [][]byte {
	kinds := canonical()
	var all [][]byte
	for _, name := range []string{"tcp4", "tcp6", "udp4", "udp6", "sctp4", "icmp4", "icmp6", "arp", "ns", "vlan", "later"} {
		for range n {
			b := append([]byte{}, kinds[name]...)
			for range r.IntN(3) {
				// Addresses stay, because any value of them is valid.
				if at := 12 + r.IntN(len(b)-12); at < 26 || at > 33 {
					b[at] = byte(r.Uint32())
				}
			}
			switch r.IntN(4) {
			case 0:
				b = b[:14+r.IntN(len(b)-13)]
			case 1:
				b = append(b, make([]byte, r.IntN(300))...)
			}
			if knownToBoth(b) {
				all = append(all, b)
			}
		}
	}
	return all
}

// knownToBoth leaves out the parts that the key cannot hold (a second tag, MPLS,
// NSH), and one deliberate difference: a version that is not the EtherType's.
func knownToBoth(b []byte) bool {
	l := packet.ParseLayers(b)
	switch l.EtherType {
	case 0x8847, 0x8848, 0x894f:
		return false
	case packet.EtherTypeIPv4:
		return l.L3 == 0 || b[l.L3]>>4 == 4
	case packet.EtherTypeIPv6:
		return l.L3 == 0 || b[l.L3]>>4 == 6
	}
	return !packet.IsVLAN(l.EtherType)
}

// ovsFlows are the flows that ovs-ofctl makes of packets, one line each.
func ovsFlows(t *testing.T, packets [][]byte) []string {
	t.Helper()
	le := binary.LittleEndian
	pcap := le.AppendUint32(nil, 0xa1b2c3d4)
	pcap = le.AppendUint16(le.AppendUint16(pcap, 2), 4)
	for _, v := range []uint32{0, 0, 65535, 1} {
		pcap = le.AppendUint32(pcap, v)
	}
	for _, b := range packets {
		for _, v := range []uint32{0, 0, uint32(len(b)), uint32(len(b))} {
			pcap = le.AppendUint32(pcap, v)
		}
		pcap = append(pcap, b...)
	}
	file := filepath.Join(t.TempDir(), "mutants.pcap")
	if err := os.WriteFile(file, pcap, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ovs-ofctl", "parse-pcap", file).Output()
	if err != nil {
		t.Fatalf("ovs-ofctl parse-pcap: %v", err)
	}
	// For every tagged packet it prints that there is no second tag.
	text := strings.ReplaceAll(string(out), ",vlan_tci1=0x0000", "")
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// ovsText writes a key as parse-pcap writes a flow: every field of a packet of
// its kind, zeros too.
func ovsText(k *flow.Key) string {
	name, named := ovsName(k)
	parts := append(name, "in_port=ANY")
	if tci := num(k, flow.VlanTCI); tci == 0 {
		parts = append(parts, "vlan_tci=0x0000")
	} else {
		parts = append(parts, fmt.Sprintf("dl_vlan=%d", tci&0xfff), fmt.Sprintf("dl_vlan_pcp=%d", tci>>13))
	}
	parts = append(parts, "dl_src="+mac(k, flow.EthSrc), "dl_dst="+mac(k, flow.EthDst))
	switch num(k, flow.EthType) {
	case 0x800:
		parts = append(parts, "nw_src="+ip4(k, flow.IPSrc), "nw_dst="+ip4(k, flow.IPDst))
	case 0x86dd:
		parts = append(parts, "ipv6_src="+ip6(k, flow.IPv6Src), "ipv6_dst="+ip6(k, flow.IPv6Dst),
			fmt.Sprintf("ipv6_label=0x%05x", num(k, flow.IPv6Label)))
	case 0x806, 0x8035:
		return strings.Join(append(parts, "arp_spa="+ip4(k, flow.ArpSPA), "arp_tpa="+ip4(k, flow.ArpTPA),
			fmt.Sprintf("arp_op=%d", num(k, flow.ArpOp)), "arp_sha="+mac(k, flow.ArpSHA), "arp_tha="+mac(k, flow.ArpTHA)), ",")
	default:
		return strings.Join(append(parts, fmt.Sprintf("dl_type=0x%04x", num(k, flow.EthType))), ",")
	}
	if !named {
		parts = append(parts, fmt.Sprintf("nw_proto=%d", num(k, flow.IPProto)))
	}
	frag := []string{"no", "first", "", "later"}[num(k, flow.IPFrag)]
	parts = append(parts, fmt.Sprintf("nw_tos=%d", num(k, flow.IPTOS)&^3), fmt.Sprintf("nw_ecn=%d", num(k, flow.IPECN)),
		fmt.Sprintf("nw_ttl=%d", num(k, flow.IPTTL)), "nw_frag="+frag)
	if frag != "later" {
		parts = append(parts, ovsPorts(k)...)
	}
	return strings.Join(parts, ",")
}

// ovsName is the protocol at the beginning of a flow's text. named is true if it
// also stands for nw_proto.
func ovsName(k *flow.Key) (name []string, named bool) {
	v4, v6 := num(k, flow.EthType) == 0x800, num(k, flow.EthType) == 0x86dd
	proto, ok := map[uint64]string{6: "tcp", 17: "udp", 132: "sctp"}[num(k, flow.IPProto)]
	switch {
	case v4 && ok:
		return []string{proto}, true
	case v6 && ok:
		return []string{proto + "6"}, true
	case v4 && num(k, flow.IPProto) == 1:
		return []string{"icmp"}, true
	case v6 && num(k, flow.IPProto) == 58:
		return []string{"icmp6"}, true
	case v4:
		return []string{"ip"}, false
	case v6:
		return []string{"ipv6"}, false
	case num(k, flow.EthType) == 0x806:
		return []string{"arp"}, true
	case num(k, flow.EthType) == 0x8035:
		return []string{"rarp"}, true
	}
	return nil, false
}

func ovsPorts(k *flow.Key) []string {
	src, dst := num(k, flow.TCPSrc), num(k, flow.TCPDst)
	ports := []string{fmt.Sprintf("tp_src=%d", src), fmt.Sprintf("tp_dst=%d", dst)}
	v6 := num(k, flow.EthType) == 0x86dd
	switch proto := num(k, flow.IPProto); {
	case proto == 6:
		return append(ports, "tcp_flags="+ovsTCPFlags(num(k, flow.TCPFlags)))
	case proto == 1 && !v6, proto == 58 && v6:
		parts := []string{fmt.Sprintf("icmp_type=%d", src), fmt.Sprintf("icmp_code=%d", dst)}
		if v6 && (src == 135 || src == 136) && dst == 0 {
			parts = append(parts, "nd_target="+ip6(k, flow.NDTarget), "nd_sll="+mac(k, flow.NDSLL), "nd_tll="+mac(k, flow.NDTLL))
		}
		return parts
	case proto == 17, proto == 132, proto == 1, proto == 2, proto == 58:
		return ports
	}
	return nil
}

func ovsTCPFlags(v uint64) string {
	if v == 0 {
		return "0"
	}
	var names []string
	for i, name := range []string{"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns", "[200]", "[400]", "[800]"} {
		if v>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

func mac(k *flow.Key, id flow.FieldID) string {
	return net.HardwareAddr(binary.BigEndian.AppendUint64(nil, num(k, id))[2:]).String()
}

func ip4(k *flow.Key, id flow.FieldID) string {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(num(k, id))))).String()
}

func ip6(k *flow.Key, id flow.FieldID) string {
	v := get(k, id)
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, v.Hi), v.Lo)
	return netip.AddrFrom16([16]byte(b)).String()
}
