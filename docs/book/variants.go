package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/antrail/antrail/agent/answer"
)

// Tables that the sample lacks, because it does not use their feature, are shown as bookNode
// would have them with that feature.

// variant is a change of the sample's objects: texts, and their replacements. told describes it
// on the page. With alone, it has other objects.
type variant struct {
	table, told string
	changes     map[string]string
	alone       string
}

var variants = []variant{
	{table: "DSRServiceMark", told: "`features: {LoadBalancerModeDSR: true}` and `defaultLoadBalancerMode: dsr`",
		changes: map[string]string{"AntreaProxy: true,": "AntreaProxy: true, LoadBalancerModeDSR: true,", "\n  packetInRate:": "\n  defaultLoadBalancerMode: dsr\n  packetInRate:"}},
	{table: "DNAT", told: "`features: {AntreaProxy: false}`", changes: map[string]string{"AntreaProxy: true,": "AntreaProxy: false,"}},
	{table: "EgressQoS", told: "`features: {EgressTrafficShaping: true}` and `bandwidth: {rate: 800M, burst: 2G}` in Egress egress-web",
		changes: map[string]string{"Egress: true,": "Egress: true, EgressTrafficShaping: true,",
			"egressIP: 192.168.77.112}": "egressIP: 192.168.77.112, bandwidth: {rate: 800M, burst: 2G}}"}},
	{table: "VLAN", told: "`features: {AntreaIPAM: true}` and db-a in VLAN 2 of the underlay", changes: underlay},
	{table: "PipelineIPClassifier", told: multicastTold, changes: multicast},
	{table: "MulticastEgressRule", told: multicastTold, changes: multicast},
	{table: "MulticastEgressMetric", told: multicastTold, changes: multicast},
	{table: "MulticastEgressPodMetric", told: multicastTold, changes: multicast},
	{table: "MulticastRouting", told: multicastTold, changes: multicast},
	{table: "MulticastIngressRule", told: multicastTold, changes: multicast},
	{table: "MulticastIngressMetric", told: multicastTold, changes: multicast},
	{table: "MulticastIngressPodMetric", told: multicastTold, changes: multicast},
	{table: "MulticastOutput", told: multicastTold, changes: multicast},
	{table: "EgressSecurityClassifier", told: externalTold, alone: external},
	{table: "NonIP", told: externalTold, alone: external},
}

// underlay has db-a on the underlay, and ports for the card and the Node's own network.
var underlay = map[string]string{
	`, "fd00:10:10::1"]`:                     "]",
	"tunnel: {name: antrea-tun0, ofPort: 1}": "trafficEncapMode: noEncap",
	"\"fd00:77::102\"]\n  proxyAll: true\n  features: {AntreaProxy: true, AntreaPolicy: true, Egress: true, TrafficControl: true, L7NetworkPolicy: true": "\"fd00:77::102\"]\n  proxyAll: true\n" +
		"  features: {AntreaIPAM: true, AntreaProxy: true, AntreaPolicy: true, Egress: false, TrafficControl: false, L7NetworkPolicy: false",
	"    # The ports of the TrafficControls.":                               "    - {name: eth0, ofPort: 40, role: uplink}\n    - {name: br-int, ofPort: 41, role: bridge, mac: \"0a:00:00:00:00:02\"}\n    #",
	`mac: "36:48:21:a2:9d:b4"`:                                              `mac: "36:48:21:a2:9d:b4", vlan: 2`,
	`podIP: 10.10.0.25, podIPs: [{ip: 10.10.0.25}, {ip: "fd00:10:10::25"}]`: "podIP: 192.168.77.50, podIPs: [{ip: 192.168.77.50}]",
}

// multicast has the tables of Multicast. Groups come from Pods, not from objects.
var multicast = map[string]string{"AntreaProxy: true,": "AntreaProxy: true, Multicast: true,"}

const multicastTold = "`features: {Multicast: true}`"

// external is a machine without pods.
const external = `apiVersion: antrail.io/v1alpha1
kind: NodeConfig
metadata: {name: node-a}
spec:
  features: {ExternalNode: true}
  policyBypassRules:
    - {direction: ingress, protocol: tcp, cidr: 192.0.2.7/32, port: 22}
    - {direction: egress, protocol: udp, cidr: 192.0.2.53/32, port: 53}
  ports:
    - {name: eth0, ofPort: 40, role: uplink}
    - {name: br-eth0, ofPort: 41, role: host, uplink: eth0, externalEntity: vms/node-a}
---
apiVersion: crd.antrea.io/v1alpha1
kind: ExternalNode
metadata: {name: node-a, namespace: vms, labels: {role: db}}
spec: {interfaces: [{ips: [192.0.2.10]}]}
`

const externalTold = "`features: {ExternalNode: true}`, a card `eth0`, the machine behind `br-eth0`, and two `policyBypassRules`"

// rehearse makes bookNode with the change.
func (v *variant) rehearse(top string) (*answer.Rehearsal, error) {
	dir, err := os.MkdirTemp("", "antrail-book-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if v.alone != "" {
		if err := os.WriteFile(filepath.Join(dir, "node.yaml"), []byte(v.alone), 0o600); err != nil {
			return nil, err
		}
		return answer.Rehearse(dir, bookNode)
	}
	files, err := filepath.Glob(filepath.Join(top, objects, "*.yaml"))
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(path)), v.change(text, found), 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	for was := range v.changes {
		if !found[was] {
			return nil, fmt.Errorf("there is no %q to change for %s", was, v.table)
		}
	}
	return answer.Rehearse(dir, bookNode)
}

// change replaces each text once in a file, and records those that it found.
func (v *variant) change(text []byte, found map[string]bool) []byte {
	for was, is := range v.changes {
		found[was] = found[was] || bytes.Contains(text, []byte(was))
		text = bytes.Replace(text, []byte(was), []byte(is), 1)
	}
	return text
}
