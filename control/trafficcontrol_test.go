package control

import (
	"maps"
	"testing"
)

func TestMadePorts(t *testing.T) {
	c := EmptyCluster()
	c.TrafficControls = map[Key]*TrafficControl{
		{Name: "redirect"}: {Redirect: true,
			TargetPort: TrafficPort{Type: OVSInternalPort, Name: "to"}, ReturnPort: &TrafficPort{Type: OVSInternalPort, Name: "back"}},
		{Name: "mirror"}:   {TargetPort: TrafficPort{Type: OVSInternalPort, Name: "copy"}},
		{Name: "mirror-2"}: {TargetPort: TrafficPort{Type: OVSInternalPort, Name: "to"}},
		{Name: "device"}:   {TargetPort: TrafficPort{Type: DevicePort, Name: "eth1"}},
	}
	want := map[string]Made{
		"antrea-l7-tap0": {true}, "antrea-l7-tap1": {true}, "to": {true}, "back": {true}, "copy": {false},
	}
	if got := c.MadePorts(); !maps.Equal(got, want) {
		t.Errorf("the switch makes %v, want %v", got, want)
	}
}
