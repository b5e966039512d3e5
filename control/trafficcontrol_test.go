package control

import (
	"maps"
	"testing"

	"github.com/antrail/antrail/control/cluster"
)

func TestMadePorts(t *testing.T) {
	c := cluster.EmptyCluster()
	c.TrafficControls = map[cluster.Key]*cluster.TrafficControl{
		{Name: "redirect"}: {Redirect: true,
			TargetPort: cluster.TrafficPort{Type: cluster.OVSInternalPort, Name: "to"}, ReturnPort: &cluster.TrafficPort{Type: cluster.OVSInternalPort, Name: "back"}},
		{Name: "mirror"}:   {TargetPort: cluster.TrafficPort{Type: cluster.OVSInternalPort, Name: "copy"}},
		{Name: "mirror-2"}: {TargetPort: cluster.TrafficPort{Type: cluster.OVSInternalPort, Name: "to"}},
		{Name: "device"}:   {TargetPort: cluster.TrafficPort{Type: cluster.DevicePort, Name: "eth1"}},
	}
	want := map[string]Made{
		"antrea-l7-tap0": {true}, "antrea-l7-tap1": {true}, "to": {true}, "back": {true}, "copy": {false},
	}
	if got := MadePorts(c); !maps.Equal(got, want) {
		t.Errorf("the switch makes %v, want %v", got, want)
	}
}
