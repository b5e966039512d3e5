package control

import (
	"reflect"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
)

// TestFeatureGatesSwitch: each switching feature gate of a NodeConfig changes the features.
func TestFeatureGatesSwitch(t *testing.T) {
	for _, name := range []string{"AntreaPolicy", "AntreaProxy", "Egress", "EgressTrafficShaping", "L7NetworkPolicy", "LoadBalancerModeDSR", "Multicast", "TrafficControl"} {
		var now [2]*cluster.NodeConfig
		for i, on := range []string{"false", "true"} {
			d := manifest.Decode("f.yaml", []byte("apiVersion: antrail.io/v1alpha1\nkind: NodeConfig\nmetadata: {name: n1}\nspec:\n"+
				"  gateway: {name: gw, ofPort: 2, mac: \"ba:5e:d1:55:aa:c0\", ips: [10.0.0.1]}\n  features: {"+name+": "+on+"}\n"))
			if len(d.Objects) != 1 {
				t.Fatal(name, d.Problems)
			}
			now[i] = d.Objects[0].(*cluster.NodeConfig)
		}
		if reflect.DeepEqual(tableFeatures(now[0]), tableFeatures(now[1])) {
			t.Errorf("%s switches nothing", name)
		}
	}
}
