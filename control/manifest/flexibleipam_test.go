package manifest

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
)

const underlayConfig = `  trafficEncapMode: noEncap
  features: {AntreaIPAM: true, Egress: false, L7NetworkPolicy: false, TrafficControl: false}
  ports:
  - {name: eth0, ofPort: 3, role: uplink}
  - {name: br-int, ofPort: 4, role: bridge, mac: "0a:00:00:00:00:02"}
  - {name: web, ofPort: 5, pod: default/web, mac: "0a:00:00:00:00:05", vlan: 2}
`

// TestUnderlay: a NodeConfig names the ports of the Node's card and of its own network, and the VLANs of
// Pods.
func TestUnderlay(t *testing.T) {
	d := Decode("f.yaml", []byte(nodeConfigWith(underlayConfig)))
	if len(d.Problems) != 0 || len(d.Objects) != 1 {
		t.Fatalf("%d objects, %v", len(d.Objects), d.Problems)
	}
	n := d.Objects[0].(*cluster.NodeConfig)
	if p := n.Ports; p[0].Role != cluster.RoleUplink || p[1].Role != cluster.RoleBridge || p[2].VLAN != 2 {
		t.Errorf("%+v", p)
	}
}

// TestUnderlayRefused checks the requirements of the gate, fields that need the gate, and features that
// would not reach the Pods of the underlay.
func TestUnderlayRefused(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"  trafficEncapMode: noEncap\n", "", "needs trafficEncapMode noEncap"},
		{"AntreaIPAM: true, ", "", "spec.ports[0].role: Invalid value: \"uplink\": needs features: {AntreaIPAM: true}"},
		{"AntreaIPAM: true, ", "", "spec.ports[2].vlan: Invalid value: 2: needs features: {AntreaIPAM: true}"},
		{"Egress: false, ", "", "needs features: {Egress: false}"},
		{"TrafficControl: false", "TrafficControl: true", "needs features: {TrafficControl: false}"},
		{"L7NetworkPolicy: false, ", "", "needs features: {L7NetworkPolicy: false}"},
		{", role: uplink", "", "needs a port in spec.ports with role: uplink"},
		{"role: bridge", "role: uplink", "spec.ports[1].role: Duplicate value: \"uplink\""},
		{"role: bridge", "role: card", "spec.ports[1].role: Invalid value: \"card\": must be uplink or bridge"},
		{`role: bridge, mac: "0a:00:00:00:00:02"`, "role: bridge", "spec.ports[1].mac: Required value"},
		{"pod: default/web", "role: uplink, pod: default/web", "spec.ports[2].role: Invalid value: \"uplink\": is of a port without a pod"},
		{"pod: default/web, ", "", "spec.ports[2].vlan: Invalid value: 2: is of a Pod's port"},
		{"vlan: 2", "vlan: 4095", "spec.ports[2].vlan: Invalid value: 4095: must be between 1 and 4094, inclusive"},
	} {
		d := Decode("f.yaml", []byte(nodeConfigWith(strings.Replace(underlayConfig, c.from, c.to, 1))))
		var all []string
		for _, p := range d.Problems {
			all = append(all, p.Error())
		}
		if text := strings.Join(all, "\n"); !strings.Contains(text, c.want) {
			t.Errorf("%s -> %s: %q, want %q", c.from, c.to, text, c.want)
		}
	}
	six := strings.Replace(nodeConfigWith(underlayConfig), "ips: [10.0.0.1]", `ips: [10.0.0.1, "fd00::1"]`, 1)
	if d := Decode("f.yaml", []byte(six)); len(d.Problems) != 1 || !strings.Contains(d.Problems[0].Error(), "is of IPv4 only") {
		t.Errorf("with IPv6: %v", d.Problems)
	}
}
