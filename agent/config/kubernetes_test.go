package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestKubeConfigFaults(t *testing.T) {
	t.Setenv("NODE_NAME", "node-x")
	c, err := Parse([]byte("kubernetes: {}\n"))
	if err != nil || c.NodeName != "node-x" || c.Gateway.MAC[0]&3 != 2 || gatewayMAC("node-x") != c.Gateway.MAC || gatewayMAC("node-y") == c.Gateway.MAC {
		t.Errorf("%+v, %v", c, err)
	}
	if c.Gateway.MTU != 0 {
		t.Errorf("the MTU is %d before the API has told of the Node", c.Gateway.MTU)
	}
	for text, want := range map[string]string{
		"kubernetes: {}\nmanifests: objects\n":                                           "kubernetes: not together with manifests",
		"kubernetes: {}\nflows: x.flows\n":                                               "kubernetes: not together with manifests",
		"kubernetes: {kubeconfg: x}\n":                                                   `kubernetes.kubeconfg: unknown key (did you mean kubeconfig?)`,
		"kubernetes: {serviceCIDRs: [10.96.0.1/12]}\n":                                   "kubernetes.serviceCIDRs[0]: 10.96.0.1/12 is not a range",
		"kubernetes: {nodePortAddresses: [\"::1\"]}\n":                                   "kubernetes.nodePortAddresses[0]",
		"kubernetes: {defaultLoadBalancerMode: dst}\n":                                   `"dst" is neither nat nor dsr`,
		"kubernetes: {pipeline: v3}\n":                                                   `kubernetes.pipeline: "v3" is neither v1.15 nor v2`,
		"kubernetes: {defaultLoadBalancerMode: dsr}\n":                                   "kubernetes.defaultLoadBalancerMode: mode dsr needs features: {LoadBalancerModeDSR: true}",
		"kubernetes: {features: {AntreaIPAM: true}}\n":                                   "kubernetes.features.AntreaIPAM: only a NodeConfig (manifests) can say which Pods are on the underlay",
		"kubernetes: {features: {Multicast: true}}\ntrafficEncapMode: noEncap\n":         "kubernetes.features.Multicast: needs trafficEncapMode encap",
		"kubernetes: {features: {Nonsense: true}}\n":                                     "kubernetes.features.Nonsense: there is no such feature gate; antrail has AntreaIPAM, AntreaPolicy, ",
		"kubernetes: {features: {TrafficContol: true}}\n":                                "kubernetes.features.TrafficContol: there is no such feature gate (did you mean TrafficControl?)",
		"kubernetes: {features: {Multicluster: true}}\n":                                 "kubernetes.features.Multicluster: antrail does not have this feature of Antrea; remove the gate, or set it to false",
		"kubernetes: {}\nports: [{name: a, ofPort: 5, pod: web}]\n":                      `ports[0].pod: "web" is not namespace/name`,
		"kubernetes: {}\nports: [{name: a, ofPort: 5, pod: default/web}]\n":              "ports[0].mac: missing",
		"kubernetes: {}\nports: [{name: a}]\n":                                           "ports[0].ofPort: 0 is not between",
		"kubernetes: {}\npeers: [{name: b, address: 1.2.3.4, podCIDRs: [1.0.0.0/8]}]\n":  "peers: not together with kubernetes",
		strings.Replace(goodConfig, "{name: client-a,", "{name: client-a, pod: a/b,", 1): "ports[0].pod and mac: only with kubernetes",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

// TestPipelineConfig: the release of the entries reaches the NodeConfig, and gives the ports
// to the Node and to other Nodes their numbers, unless they have some.
func TestPipelineConfig(t *testing.T) {
	t.Setenv("NODE_NAME", "node-x")
	for text, want := range map[string]string{
		"kubernetes: {}\n":                "v1.15 2 1 500",
		"kubernetes: {pipeline: v1.15}\n": "v1.15 2 1 500",
		"kubernetes: {pipeline: v2}\n":    "v2 32769 32768 5000",
		"kubernetes: {pipeline: v2, packetInRate: 9}\ngateway: {ofPort: 7}\n": "v2 7 32768 9",
	} {
		c, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(text, err)
		}
		n := c.NodeConfig(&NodeFacts{})
		if got := fmt.Sprint(n.Release, n.Gateway.OFPort, c.Tunnel.OFPort, n.PacketInRate); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
