package ofserver

import (
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
)

// TestOptionsRefused: bundles, groups and packets with an unmapped field are refused, and so are too
// large numbers and sizes. Open vSwitch accepts groups and packets without an effect.
func TestOptionsRefused(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct{ args, want string }{
		{"add-tlv-map br0 {class=0x102,type=0x80,len=4}->tun_metadata0", ""},
		{"--bundle add-flow br0 tun_metadata0=1,actions=drop", ""},
		{"--bundle add-flow br0 tun_metadata1=1,actions=drop", "NXFMFC_INVALID_TLV_FIELD"},
		{"add-group br0 group_id=1,type=all,bucket=set_field:5->tun_metadata1,output:1", "NXFMFC_INVALID_TLV_FIELD"},
		{"packet-out br0 in_port=1,packet=0000000000010000000000020800,actions=set_field:5->tun_metadata1,output:2", "NXFMFC_INVALID_TLV_FIELD"},
		{"add-flow br0 tun_metadata0=0x123456789,actions=drop", "OFPBMC_BAD_VALUE"},
		{"add-tlv-map br0 {class=0x103,type=0,len=12}->tun_metadata2", "NXTTMFC_BAD_OPT_LEN"},
		{"add-tlv-map br0 {class=0x103,type=0,len=4}->tun_metadata8", "NXTTMFC_BAD_FIELD_IDX"},
		{"del-tlv-map br0", "NXTTMFC_INVALID_TLV_DEL"},
	} {
		text, ok := ofctl(t, r.dir, append([]string{"-OOpenFlow15"}, strings.Fields(c.args)...)...)
		if ok != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %t, %s, want %s", c.args, ok, text, c.want)
		}
	}
}

// TestTableOutlivesServer: the switch has the TLV table, so the next server has it, too.
func TestTableOutlivesServer(t *testing.T) {
	r := newRig(t)
	if text, ok := ofctl(t, r.dir, "add-tlv-map", bridge, "{class=0x102,type=0x80,len=4}->tun_metadata3"); !ok {
		t.Fatal(text)
	}
	want := []flow.TunnelOption{{Index: 3, Class: 0x102, Type: 0x80, Size: 4}}
	s, err := New(Config{Switch: r.client, Bridge: bridge})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.options(), want) || !slices.Equal(r.sw.Names().TunnelOptions(), want) {
		t.Errorf("%+v, the switch has %+v", s.options(), r.sw.Names().TunnelOptions())
	}
}
