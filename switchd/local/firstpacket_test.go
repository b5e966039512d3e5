package local

import (
	"net/netip"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
)

// TestFirstPacketOfStranger: the entries name the port and VLAN of packets from outside to a pod.
// So a restored connection that began outside is revalidated as it came.
func TestFirstPacketOfStranger(t *testing.T) {
	var entries []telemetry.FlowStats
	for _, text := range []string{
		"table=3,ip,in_port=3,dl_vlan=2,dl_dst=0a:00:00:00:00:06 actions=goto_table:4",
		"table=3,ip,in_port=3,vlan_tci=0/0x1000,dl_dst=0a:00:00:00:00:05 actions=goto_table:4",
		"table=4,ip,in_port=5,dl_src=0a:00:00:00:00:05,nw_src=192.0.2.50 actions=goto_table:5",
		"table=4,ip,in_port=6,dl_src=0a:00:00:00:00:06,nw_src=198.51.100.50 actions=goto_table:5",
	} {
		e, err := parse.Entry(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, telemetry.FlowStats{Entry: e})
	}
	first := NewFirstPackets(entries, &door.NodePorts{Gateway: 2, Tunnel: 1, FarMAC: [6]byte{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}})
	if _, known := first.senders[3]; !known {
		t.Error("nobody may send where strangers' packets come in")
	}
	for dst, want := range map[string]struct {
		mac byte
		tci uint16
	}{"192.0.2.50": {5, 0}, "198.51.100.50": {6, packet.VLANPresent | 2}} {
		c := &conntrack.Conn{InPort: 3, Orig: conntrack.Direction{Tuple: conntrack.Tuple{
			Src: netip.MustParseAddr("203.0.113.9"), Dst: netip.MustParseAddr(dst), Proto: packet.ProtoTCP, SrcPort: 1000, DstPort: 80,
		}}}
		b := first.Compose(c)
		if l := packet.ParseLayers(b); b[5] != want.mac || l.TCI != want.tci || l.Proto != packet.ProtoTCP || b[6] != 0xaa {
			t.Errorf("to %s: %x", dst, b[:min(len(b), 20)])
		}
	}
}

// TestEndpointOf: the endpoint of a bucket is found in both families.
func TestEndpointOf(t *testing.T) {
	for text, want := range map[string]string{
		"set_field:0xa0a0018->reg3,set_field:0x50/0xffff->reg4,resubmit(,7)":                              "10.10.0.24:80",
		"set_field:0x10000000/0x10000000->reg4,set_field:0xa0a0018->reg3,set_field:0x50/0xffff->reg4":     "10.10.0.24:80",
		"set_field:0xfd000010001000000000000000000024->xxreg3,set_field:0x1f90/0xffff->reg4,resubmit(,7)": "[fd00:10:10::24]:8080",
		"set_field:0x4000/0x4000->reg0,resubmit(,7)":                                                      "",
	} {
		actions, err := parse.Actions(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := EndpointOf(&flow.Bucket{Actions: actions})
		if ok != (want != "") || ok && got != netip.MustParseAddrPort(want) {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}
