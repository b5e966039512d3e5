package config

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
)

// programConfig is a Node with its card, its own network and two pods.
const programConfig = `
nodeName: node-a
program: windows2020
gateway: {mac: "00:15:5d:0a:00:01", addresses: [10.10.0.1/24]}
tunnel: {localAddress: 192.0.2.10}
podCIDRs: [10.10.0.0/24]
services:
- {protocol: tcp, address: "10.96.0.10:80", endpoint: "10.10.0.5:8080"}
- {protocol: udp, address: "10.96.0.10:80", endpoint: "10.10.0.4:53"}
peers:
- {name: node-b, address: 192.0.2.11, podCIDRs: [10.10.1.0/24], gateways: [10.10.1.1]}
ports:
- {name: uplink, ofPort: 3, role: uplink}
- {name: br-int, ofPort: 4, role: bridge}
- {name: pod-a, ofPort: 5, mac: "00:15:5d:0a:00:04", address: 10.10.0.4}
- {name: pod-b, ofPort: 6, mac: "00:15:5d:0a:00:05", address: 10.10.0.5, role: pod}
`

// TestProgramNode: a program's Node is what the configuration says of it.
func TestProgramNode(t *testing.T) {
	c, err := Parse([]byte(programConfig))
	if err != nil {
		t.Fatal(err)
	}
	n := c.ProgramNode()
	if n.Uplink.No != 3 || n.Bridge.No != 4 || n.Gateway.No != 2 || n.Tunnel.No != 1 || len(n.Pods) != 2 || n.Pods[1].Port.Name != "pod-b" {
		t.Errorf("ports: %+v", n.Ports())
	}
	if n.NodeIP != netip.MustParseAddr("192.0.2.10") || n.GatewayIP != netip.MustParseAddr("10.10.0.1") || n.PodCIDR.String() != "10.10.0.0/24" {
		t.Errorf("addresses: %+v", n)
	}
	if len(n.Services) != 2 || n.Services[0].Proto != 6 || n.Services[1].Proto != 17 || n.Services[1].Endpoint.String() != "10.10.0.4:53" {
		t.Errorf("services: %+v", n.Services)
	}
	if len(n.Peers) != 1 || n.Peers[0].PodCIDRs[0].String() != "10.10.1.0/24" || n.Pods[0].IP().String() != "10.10.0.4" || n.Pods[0].Link == n.Pods[1].Link {
		t.Errorf("pods and peers: %+v", n)
	}
}

// TestProgramFaults: what a program does not take is refused by its key.
func TestProgramFaults(t *testing.T) {
	for _, s := range []struct{ name, old, new, want string }{
		{"unknown", "windows2020", "windows2021", `program: there is no program "windows2021" (did you mean windows2020?)`},
		{"of objects", "windows2020", "antrea", "program: program antrea: its entries come from objects"},
		{"two sources", "program:", "flows: a.flows\nprogram:", "program: not together with flows"},
		{"two uplinks", "role: bridge", "role: uplink", "role"},
		{"a role of nobody", "role: bridge", "role: card", `ports[1].role: "card" is none of pod, uplink and bridge`},
		{"no bridge", "- {name: br-int, ofPort: 4, role: bridge}", "", "program: program windows2020: there is no bridge port"},
		{"no address", ", address: 10.10.0.4", "", "ports[2].address: missing"},
		{"no mac", `mac: "00:15:5d:0a:00:04", `, "", "ports[2].mac: missing"},
		{"a Pod of the API", "address: 10.10.0.4", "address: 10.10.0.4, pod: default/a", "ports[2].pod: only with kubernetes"},
		{"a Service of ICMP", "protocol: tcp", "protocol: icmp", `services[0].protocol: "icmp" is neither tcp nor udp`},
		{"a Service twice", "protocol: udp", "protocol: tcp", "services[1].address: tcp 10.96.0.10:80 is taken by services[0]"},
		{"a Service of IPv6", "\"10.96.0.10:80\", endpoint: \"10.10.0.5", "\"[fd00::1]:80\", endpoint: \"10.10.0.5", "services[0].address: [fd00::1]:80 is not an IPv4"},
		{"a Service without an endpoint", ", endpoint: \"10.10.0.5:8080\"", "", "services[0].endpoint: invalid AddrPort is not an IPv4"},
		{"a policy of a program without any", "peers:", "policies: [{pod: 10.10.0.4}]\npeers:", "policies: program windows2020 has none"},
		{"Services without a program", "program: windows2020", "flows: a.flows", "services: only with program"},
		{"a further program of nobody", "address: 10.10.0.4", "address: 10.10.0.4, program: windows2021", `program: there is no program "windows2021"`},
		{"two of one zone", "address: 10.10.0.4", "address: 10.10.0.4, program: uplink", "program: program uplink: there is no"},
		{"without a program", "program: windows2020", "flows: a.flows", "ports[0].role and address: only with program"},
	} {
		_, err := Parse([]byte(strings.Replace(programConfig, s.old, s.new, 1)))
		if err == nil || !strings.Contains(err.Error(), s.want) {
			t.Errorf("%s: %v, want %q", s.name, err, s.want)
		}
	}
}

// besideObjects is a Node with manifests, and a port of another program.
const besideObjects = `
nodeName: node-a
manifests: objects
gateway: {mac: "00:15:5d:0a:00:01", addresses: [10.10.0.1/24]}
tunnel: {localAddress: 192.0.2.10}
podCIDRs: [10.10.0.0/24]
ports:
- {name: veth-a}
- {name: routed, ofPort: 21, mac: "00:00:00:00:00:02", address: 10.1.1.9, program: vppl3}
`

// TestBesideObjects: a port names a program beside the objects' pipeline. A program that cannot be there
// is refused, and a port that lacks something, or has a number of the NodeConfig's.
func TestBesideObjects(t *testing.T) {
	c, err := Parse([]byte(besideObjects))
	if err != nil {
		t.Fatal(err)
	}
	if all := c.ProgramsBeside(); len(c.PortsBeside()) != 1 || len(all) != 1 || all[0].Name != "vppl3" || len(all[0].Node.Pods) != 1 {
		t.Errorf("programs beside: %+v", all)
	}
	if err := c.portsFit(&cluster.NodeConfig{Ports: []cluster.SwitchPort{{Name: "web", OFPort: 21}}}); err == nil || !strings.Contains(err.Error(), "port web of NodeConfig/node-a has number 21") {
		t.Errorf("a NodeConfig with the same number: %v", err)
	}
	for _, s := range []struct{ old, new, want string }{
		{"manifests: objects", "flows: a.flows", "ports[1].program: only with program, manifests or kubernetes"},
		{"ofPort: 21, ", "", "ports[1].ofPort: 0 is not between"},
		{"address: 10.1.1.9, ", "", "ports[1].mac and address: missing"},
		{"program: vppl3", "program: vppl3, role: uplink", `ports[1].role: "uplink"`},
		{"program: vppl3", "program: vppl4", `program: there is no program "vppl4"`},
		{"program: vppl3", "program: windows2020", "program: program windows2020: there is no"},
	} {
		if _, err := Parse([]byte(strings.Replace(besideObjects, s.old, s.new, 1))); err == nil || !strings.Contains(err.Error(), s.want) {
			t.Errorf("%s: %v, want %q", s.new, err, s.want)
		}
	}
}

// TestProgramPolicies: rules of pods are those of the program, and what no entry can match is refused.
func TestProgramPolicies(t *testing.T) {
	with := func(policies string) string { return strings.Replace(uplinkSection, "peers:", policies+"\npeers:", 1) }
	c, err := Parse([]byte(with("policies: [{pod: 10.10.0.5, egress: [], ingress: [{protocol: udp, port: 53, other: 10.10.0.9/16}, {}]}]")))
	if err != nil {
		t.Fatal(err)
	}
	p := c.ProgramNode().Policies
	if len(p) != 1 || p[0].Pod.String() != "10.10.0.5" || p[0].Egress == nil || len(*p[0].Egress) != 0 || len(*p[0].Ingress) != 2 {
		t.Fatalf("%+v", p)
	}
	if r := (*p[0].Ingress)[0]; r.Proto != 17 || r.Port != 53 || r.Other.String() != "10.10.0.0/16" {
		t.Errorf("%+v", r)
	}
	for policies, want := range map[string]string{
		"policies: [{pod: 10.10.0.5}, {pod: 10.10.0.5}]":                 "policies[1].pod: 10.10.0.5 is taken by policies[0]",
		"policies: [{pod: 10.10.0.5, ingress: [{protocol: icmp}]}]":      `policies[0].ingress[0].protocol: "icmp" is neither tcp nor udp`,
		"policies: [{pod: 10.10.0.5, egress: [{port: 80}]}]":             "policies[0].egress[0].port: only with protocol",
		"policies: [{pod: 10.10.0.5, egress: [{other: \"fd00::/64\"}]}]": "policies[0].egress[0].other: fd00::/64 is not an IPv4 range",
		"policies: [{pod: 10.10.0.77, egress: []}]":                      "the policy of 10.10.0.77 is of no pod",
	} {
		if _, err := Parse([]byte(with(policies))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", policies, err, want)
		}
	}
}

// TestPoliciesOfRoutedPods: program vppl3 takes the policies, too.
func TestPoliciesOfRoutedPods(t *testing.T) {
	text := strings.NewReplacer(
		"windows2020", "vppl3", "- {name: uplink, ofPort: 3, role: uplink}\n", "", "- {name: br-int, ofPort: 4, role: bridge}\n", "",
		"services:", "policies: [{pod: 10.10.0.5, ingress: [{protocol: tcp, port: 8080}]}]\nservices:",
	).Replace(programConfig)
	c, err := Parse([]byte(text))
	if err != nil || len(c.ProgramNode().Policies) != 1 {
		t.Errorf("%v, %+v", err, c.Policies)
	}
}
