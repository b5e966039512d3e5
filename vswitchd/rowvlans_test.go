package vswitchd

import (
	"reflect"
	"strings"
	"testing"

	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/vswitchd/bridge"
)

// TestVLANsOfRows: the columns of Port are VLANs of the port of the switch. Columns that Open
// vSwitch ignores are left out.
func TestVLANsOfRows(t *testing.T) {
	for _, c := range []struct {
		port bridge.Port
		want l2.PortSecurity
	}{
		{bridge.Port{Tag: -1}, l2.PortSecurity{}},
		{bridge.Port{Tag: 10}, l2.PortSecurity{VLAN: 10, VLANMode: l2.VLANAccess}},
		{bridge.Port{Tag: 0}, l2.PortSecurity{VLANMode: l2.VLANAccess}},
		{bridge.Port{Tag: 10, Trunks: []int64{20}}, l2.PortSecurity{VLAN: 10, VLANMode: l2.VLANAccess}},
		{bridge.Port{Tag: -1, Trunks: []int64{20, 30}}, l2.PortSecurity{Trunks: []uint16{20, 30}}},
		{bridge.Port{Tag: 10, VLANMode: "trunk"}, l2.PortSecurity{VLANMode: l2.VLANTrunk}},
		{bridge.Port{Tag: 10, Trunks: []int64{20}, VLANMode: "native-untagged"}, l2.PortSecurity{VLAN: 10, VLANMode: l2.VLANNativeUntagged, Trunks: []uint16{20}}},
		{bridge.Port{Tag: 10, Type: "internal", VLANMode: "native-tagged"}, l2.PortSecurity{VLAN: 10, VLANMode: l2.VLANNativeTagged}},
	} {
		c.port.Name, c.port.Number = "p", 1
		spec, err := specOf(&c.port)
		if err != nil || !reflect.DeepEqual(spec.Security, c.want) {
			t.Errorf("%+v: %+v, %v; want %+v", c.port, spec, err, c.want)
		}
	}
	if _, err := specOf(&bridge.Port{Name: "p", Tag: 4095}); err == nil || !strings.Contains(err.Error(), "4095 is more than 4094") {
		t.Errorf("tag=4095: %v", err)
	}
}

// TestOneBridge: a second bridge is refused with the name of the first, and so is a patch port.
func TestOneBridge(t *testing.T) {
	b := &bridges{current: &bridge.Bridge{Name: "br-int"}}
	if err := b.AddBridge(bridge.Bridge{Name: "br-ex"}); err == nil || !strings.Contains(err.Error(), "bridge br-int already") {
		t.Errorf("a second bridge: %v", err)
	}
	if _, err := specOf(&bridge.Port{Name: "p", Type: "patch", Tag: -1}); err == nil {
		t.Error("a patch port was taken")
	}
}
