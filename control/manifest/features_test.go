package manifest

import (
	"strings"
	"testing"
)

// nodeConfigWith is a NodeConfig with additional lines in its spec, from line 6 on.
func nodeConfigWith(spec string) string {
	return `apiVersion: antrail.io/v1alpha1
kind: NodeConfig
metadata: {name: n1}
spec:
  gateway: {name: gw, ofPort: 2, mac: "ba:5e:d1:55:aa:c0", ips: [10.0.0.1]}
` + spec
}

// TestFeatureGatesRefused: a gate without effect here is an error with its place.
func TestFeatureGatesRefused(t *testing.T) {
	const at = "f.yaml:7: NodeConfig/n1: spec.features"
	for gate, want := range map[string]string{
		"Nonsense: true":  at + "[Nonsense]: Invalid value: true: there is no such feature gate; antrail has AntreaIPAM, AntreaPolicy, AntreaProxy, Egress, EgressTrafficShaping, ExternalNode, L7NetworkPolicy, LoadBalancerModeDSR, Multicast, TrafficControl",
		"Nonsense: false": at + "[Nonsense]: Invalid value: false: there is no such feature gate; antrail has AntreaIPAM, AntreaPolicy, AntreaProxy, Egress, EgressTrafficShaping, ExternalNode, L7NetworkPolicy, LoadBalancerModeDSR, Multicast, TrafficControl",
		"AntreaPolcy: true": at + "[AntreaPolcy]: Invalid value: true: there is no such feature gate" +
			" (did you mean AntreaPolicy?)",
		"antreaproxy: true":    at + "[antreaproxy]: Invalid value: true: there is no such feature gate (did you mean AntreaProxy?)",
		"Multicluster: true":   at + "[Multicluster]: Invalid value: true: antrail does not have this feature of Antrea; remove the gate, or set it to false",
		"EndpointSlice: false": at + "[EndpointSlice]: Invalid value: false: antrail has no switch for this feature of Antrea: it is always on; remove the gate",
	} {
		d := Decode("f.yaml", []byte(nodeConfigWith("  features:\n    "+gate+"\n")))
		if len(d.Problems) != 1 || d.Problems[0].Error() != want || len(d.Objects) != 0 {
			t.Errorf("%s: %v, want %q", gate, d.Problems, want)
		}
	}
	d := Decode("f.yaml", []byte(nodeConfigWith("  defaultLoadBalancerMode: dsr\n")))
	if len(d.Problems) != 1 || !strings.HasSuffix(d.Problems[0].Error(), "mode dsr needs features: {LoadBalancerModeDSR: true}") {
		t.Errorf("dsr without its gate: %v", d.Problems)
	}
	multicast := nodeConfigWith("  features: {Multicast: true}\n")
	for text, want := range map[string]string{
		strings.Replace(multicast, "10.0.0.1", `"fd00::1"`, 1): "needs an IPv4 address in spec.gateway.ips: groups are of IPv4, and queries come from the gateway",
		multicast + "  trafficEncapMode: noEncap\n":            "needs trafficEncapMode encap: packets of groups go to other Nodes through the tunnel",
	} {
		if d := Decode("f.yaml", []byte(text)); len(d.Problems) != 1 || !strings.HasSuffix(d.Problems[0].Error(), want) {
			t.Errorf("%s: %v, want %q", text, d.Problems, want)
		}
	}
}

// TestFeatureGatesTaken: gates that ask for what antrail does anyway are accepted.
func TestFeatureGatesTaken(t *testing.T) {
	for name, kind := range featureGates {
		fault := [2]string{FeatureFault(name, false), FeatureFault(name, true)}
		want := map[gateKind][2]bool{gateSwitches: {false, false}, gateAlwaysOn: {true, false}, gateNotBuilt: {false, true}}[kind]
		if got := [2]bool{fault[0] != "", fault[1] != ""}; got != want {
			t.Errorf("%s: faults %q, want them at %v", name, fault, want)
		}
	}
}
