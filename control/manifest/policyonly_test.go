package manifest

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

const policyOnlyConfig = `  trafficEncapMode: networkPolicyOnly
  features: {Egress: false, L7NetworkPolicy: false, TrafficControl: false}
`

// TestPolicyOnly: mode networkPolicyOnly is accepted, but not with features that it would not enforce.
func TestPolicyOnly(t *testing.T) {
	d := Decode("f.yaml", []byte(nodeConfigWith(policyOnlyConfig)))
	if len(d.Problems) != 0 || d.Objects[0].(*cluster.NodeConfig).Encap != tables.PolicyOnly {
		t.Fatalf("%v", d.Problems)
	}
	for _, c := range []struct{ from, to, want string }{
		{"Egress: false, ", "", "needs features: {Egress: false}"},
		{"L7NetworkPolicy: false, ", "", "needs features: {L7NetworkPolicy: false}"},
		{"TrafficControl: false", "TrafficControl: true", "needs features: {TrafficControl: false}"},
		{"Egress: false", "Multicast: true, Egress: false", "needs trafficEncapMode encap"},
		{"Egress: false", "AntreaIPAM: true, Egress: false", "has no effect together with AntreaIPAM"},
		{"  features", "  proxyAll: true\n  features", "serves no NodePorts"},
		{"  features", "  tunnel: {name: t, ofPort: 9}\n  features", "has no tunnel"},
	} {
		var all []string
		for _, p := range Decode("f.yaml", []byte(nodeConfigWith(strings.Replace(policyOnlyConfig, c.from, c.to, 1)))).Problems {
			all = append(all, p.Error())
		}
		if text := strings.Join(all, "\n"); !strings.Contains(text, c.want) {
			t.Errorf("%s -> %s: %q, want %q", c.from, c.to, text, c.want)
		}
	}
	six := strings.Replace(nodeConfigWith(policyOnlyConfig), "ips: [10.0.0.1]", `ips: [10.0.0.1, "fd00::1"]`, 1)
	if d := Decode("f.yaml", []byte(six)); len(d.Problems) != 1 || !strings.Contains(d.Problems[0].Error(), "is of IPv4 only") {
		t.Errorf("with IPv6: %v", d.Problems)
	}
}
