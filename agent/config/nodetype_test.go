package config

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
)

const externalText = "nodeName: vm1\nnodeType: externalNode\nmanifests: m\n"

// TestExternal: an external Node has neither gateway nor tunnel, and what it cannot have is refused.
func TestExternal(t *testing.T) {
	c, err := Parse([]byte(externalText))
	if err != nil || !c.External() || c.HasTunnel() || *c.Masquerade || c.Gateway.Name != "" {
		t.Fatalf("%+v: %v", c, err)
	}
	for add, want := range map[string]string{
		"gateway: {ofPort: 2}": "gateway: not with nodeType externalNode",
		"tunnel: {type: gre}":  "tunnel: not with", "podCIDRs: [10.0.0.0/24]": "podCIDRs: not with",
		"masquerade: true": "masquerade: not with", "trafficEncapMode: encap": "trafficEncapMode: not with",
	} {
		if _, err := Parse([]byte(externalText + add + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", add, err, want)
		}
	}
	const fromAPI = "nodeName: vm1\nnodeType: externalNode\nports: [{name: uplink}]\nkubernetes: {kubeconfig: k, nodeConfig: n}\n"
	if c, err := Parse([]byte(fromAPI)); err != nil || c.Gateway.MAC != (MAC{}) || *c.Kubernetes.Status || c.waits() {
		t.Errorf("objects of the API: %+v: %v", c, err)
	}
	for text, want := range map[string]string{
		strings.Replace(fromAPI, ", nodeConfig: n", "", 1):                            "kubernetes.nodeConfig: missing",
		strings.Replace(fromAPI, "nodeConfig: n", "nodeConfig: n, status: true", 1):   "kubernetes.status: true",
		strings.Replace(fromAPI, "nodeConfig: n", "nodeConfig: n, proxyAll: true", 1): "kubernetes: an external Node takes kubeconfig",
		strings.Replace(fromAPI, "name: uplink", "name: uplink, ofPort: 3", 1):        "leave it out: the NodeConfig has it",
		strings.Replace(fromAPI, "nodeType: externalNode\n", "", 1):                   "kubernetes.nodeConfig: only with nodeType externalNode",
		strings.Replace(externalText, "manifests: m\n", "flows: f\n", 1):              "manifests, kubernetes: set one of them",
		strings.Replace(externalText, "externalNode", "vm", 1):                        `nodeType: "vm" is neither k8sNode nor externalNode`,
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	key := cluster.Key{Kind: cluster.KindNodeConfig, Name: "vm1"}
	if err := c.Fits(&cluster.NodeConfig{Meta: cluster.Meta{Key: key}}); err == nil || !strings.Contains(err.Error(), "has no features: {ExternalNode: true}") {
		t.Errorf("fits a Node with Pods: %v", err)
	}
	if err := c.Fits(&cluster.NodeConfig{Meta: cluster.Meta{Key: key}, Features: map[string]bool{"ExternalNode": true}}); err != nil {
		t.Errorf("does not fit: %v", err)
	}
}

// TestPolicyOnly: mode networkPolicyOnly has manifests, and leaves masquerading to another CNI.
func TestPolicyOnly(t *testing.T) {
	const text = "nodeName: n\nmanifests: m\ntrafficEncapMode: networkPolicyOnly\npodCIDRs: [10.0.0.0/24]\n" +
		"gateway: {mac: \"0a:00:00:00:00:01\", addresses: [192.0.2.1/32]}\ntunnel: {localAddress: 192.0.2.1}\n"
	c, err := Parse([]byte(text))
	if err != nil || c.HasTunnel() || *c.Masquerade {
		t.Fatalf("%+v: %v", c, err)
	}
	for from, to := range map[string][2]string{
		"manifests: m":  {"flows: f", "networkPolicyOnly needs manifests"},
		"nodeName: n\n": {"nodeName: n\nmasquerade: true\n", "masquerade: must be false"},
	} {
		if _, err := Parse([]byte(strings.Replace(text, from, to[0], 1))); err == nil || !strings.Contains(err.Error(), to[1]) {
			t.Errorf("%s: %v, want %q", to[0], err, to[1])
		}
	}
}
