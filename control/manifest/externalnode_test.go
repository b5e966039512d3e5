package manifest

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

const externalConfig = `apiVersion: antrail.io/v1alpha1
kind: NodeConfig
metadata: {name: vm1}
spec:
  features: {ExternalNode: true}
  policyBypassRules: [{direction: ingress, protocol: tcp, cidr: 192.0.2.7/32, port: 22}, {direction: egress, protocol: ip, cidr: 10.0.0.0/8}]
  ports:
  - {name: eth0, ofPort: 3, role: uplink}
  - {name: br-eth0, ofPort: 4, role: host, uplink: eth0, externalEntity: vms/vm1}
`

const externalNode = `apiVersion: crd.antrea.io/v1alpha1
kind: ExternalNode
metadata: {name: vm1, namespace: vms, labels: {role: db}}
spec: {interfaces: [{ips: [192.0.2.10]}]}
`

const externalEntity = `apiVersion: crd.antrea.io/v1alpha2
kind: ExternalEntity
metadata: {name: front, namespace: vms, labels: {role: front}}
spec: {externalNode: vm2, endpoints: [{ip: 192.0.2.1, name: eth0}, {ip: 192.0.2.2}], ports: [{name: web, port: 80}]}
`

// TestExternalNode: a NodeConfig names the ports of a card and of the machine behind it. An
// ExternalNode becomes the ExternalEntity of its name.
func TestExternalNode(t *testing.T) {
	d := Decode("f.yaml", []byte(externalConfig+"---\n"+externalNode+"---\n"+externalEntity))
	if len(d.Problems) != 0 || len(d.Objects) != 3 {
		t.Fatalf("%d objects, %v", len(d.Objects), d.Problems)
	}
	n := d.Objects[0].(*cluster.NodeConfig)
	if p := n.Ports[1]; !n.External() || p.Role != cluster.RoleHost || p.Uplink != "eth0" || p.Entity != (cluster.Name{Namespace: "vms", Name: "vm1"}) {
		t.Errorf("%+v", p)
	}
	want := tables.Bypass{Direction: tables.Ingress, Proto: 6, Peer: netip.MustParsePrefix("192.0.2.7/32"), Port: 22}
	if b := n.Bypasses; len(b) != 2 || b[0] != want || b[1].Direction != tables.Egress || b[1].Proto != 0 {
		t.Errorf("%+v", b)
	}
	own, front := d.Objects[1].(*cluster.ExternalEntity), d.Objects[2].(*cluster.ExternalEntity)
	if own.Key.String() != "ExternalEntity/vms/vm1" || own.ExternalNode != "vm1" || own.Labels["role"] != "db" || len(own.IPs) != 1 {
		t.Errorf("%+v", own)
	}
	if port, _ := front.Port("web", cluster.TCP); port != 80 || front.ExternalNode != "vm2" || len(front.IPs) != 2 {
		t.Errorf("%+v", front)
	}
}

// TestExternalNodeRefused checks the requirements of the gate, fields that need the gate, and features
// that an external Node would not enforce.
func TestExternalNodeRefused(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"{ExternalNode: true}", "{}", "spec.ports[1]: Invalid value: \"br-eth0\": needs features: {ExternalNode: true}"},
		{"{ExternalNode: true}", "{}", "spec.policyBypassRules: Invalid value: 2: needs features: {ExternalNode: true}"},
		{"ExternalNode: true", "ExternalNode: true, AntreaPolicy: false", "needs AntreaPolicy"},
		{"ExternalNode: true", "ExternalNode: true, Egress: true", "has no effect together with Egress"},
		{"  ports:\n", "  gateway: {name: gw0}\n  ports:\n", "an external Node has no gateway"},
		{"  ports:\n", "  tunnel: {name: t, ofPort: 9}\n  ports:\n", "an external Node has no tunnel"},
		{"  ports:\n", "  proxyAll: true\n  ports:\n", "has no Services"},
		{"role: host", "role: bridge", "spec.ports[1].role: Invalid value: \"bridge\": must be uplink or host"},
		{"role: uplink", "role: uplink, vlan: 2", "an external Node has neither Pods nor VLANs"},
		{"uplink: eth0", "uplink: eth1", "spec.ports[1].uplink: Invalid value: \"eth1\": is not a port with role: uplink"},
		{"uplink: eth0", "uplink: eth1", "spec.ports[0].name: Invalid value: \"eth0\": has 0 ports with role: host"},
		{", externalEntity: vms/vm1", "", "spec.ports[1].externalEntity: Required value"},
		{"role: uplink", "role: uplink, uplink: eth0", "uplink and externalEntity are of ports with role: host"},
		{"protocol: tcp", "protocol: sctp", "spec.policyBypassRules[0].protocol: Unsupported value: \"sctp\""},
		{"direction: egress", "direction: out", "spec.policyBypassRules[1].direction: Unsupported value: \"out\""},
		{", port: 22", "", "spec.policyBypassRules[0].port: Invalid value: 0"},
		{"10.0.0.0/8", "10.0.0.0/8, port: 1", "only tcp and udp have ports"},
		{"10.0.0.0/8", `"2001:db8::/32"`, "policies of an external Node are of IPv4"},
		{"ips: [192.0.2.10]", "name: eth0, ips: [192.0.2.10]", "spec.interfaces[0].name: Forbidden"},
		{"ips: [192.0.2.10]", "ips: []", "spec.interfaces[0].ips: Required value"},
		{"[{ips: [192.0.2.10]}]", "[]", "spec.interfaces: Invalid value: 0: must be one interface"},
		{"192.0.2.10", "127.0.0.1", "may not be unspecified, loopback"},
		{"ip: 192.0.2.2", "ip: vm2", "spec.endpoints[1].ip: Invalid value: \"vm2\": is not an IP address"},
		{"port: 80", "port: 0", "spec.ports[0].port: Invalid value: 0"},
	} {
		text := externalConfig + "---\n" + externalNode + "---\n" + externalEntity
		if !strings.Contains(text, c.from) {
			t.Fatalf("no %q", c.from)
		}
		var all []string
		for _, p := range Decode("f.yaml", []byte(strings.Replace(text, c.from, c.to, 1))).Problems {
			all = append(all, p.Error())
		}
		if text := strings.Join(all, "\n"); !strings.Contains(text, c.want) {
			t.Errorf("%s -> %s: %q, want %q", c.from, c.to, text, c.want)
		}
	}
}
