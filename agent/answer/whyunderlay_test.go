package answer

import "testing"

// TestWhyOnUnderlay asks of Pods of the underlay, of which b is in VLAN 2: by which port
// packets come and leave, and that policies hold.
func TestWhyOnUnderlay(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/node.yaml", `
apiVersion: antrail.io/v1alpha1
kind: NodeConfig
metadata: {name: node-a}
spec:
  gateway: {name: antrea-gw0, ofPort: 2, mac: "0a:00:0a:0a:00:01", ips: [10.10.0.1]}
  trafficEncapMode: noEncap
  features: {AntreaIPAM: true, Egress: false, L7NetworkPolicy: false, TrafficControl: false}
  ports:
  - {name: eth0, ofPort: 3, role: uplink}
  - {name: br-int, ofPort: 4, role: bridge, mac: "0a:00:00:00:00:04"}
  - {name: port-a, ofPort: 5, pod: default/a, mac: "0a:00:00:00:00:05"}
  - {name: port-b, ofPort: 6, pod: default/b, mac: "0a:00:00:00:00:06", vlan: 2}
---
apiVersion: v1
kind: Node
metadata: {name: node-a}
spec: {podCIDRs: [10.10.0.0/24]}
status: {addresses: [{type: InternalIP, address: 192.0.2.10}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: default, labels: {app: a}}
spec: {nodeName: node-a, containers: [{name: c, image: x}]}
status: {phase: Running, podIPs: [{ip: 192.0.2.50}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b, namespace: default, labels: {app: b}}
spec: {nodeName: node-a, containers: [{name: c, image: x}]}
status: {phase: Running, podIPs: [{ip: 198.51.100.50}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: b-in, namespace: default}
spec: {podSelector: {matchLabels: {app: b}}, policyTypes: [Ingress], ingress: [{ports: [{protocol: TCP, port: 80}]}]}
`)
	clients := whyClients(t, dir, "node-a")
	for _, q := range []whyQuestion{
		{"default/b", "203.0.113.1:80", "allowed: tcp 80 from default/b to 203.0.113.1; no policy decides on egress; it leaves by eth0 to the underlay"},
		{"default/a", "192.0.2.10:80", "allowed: tcp 80 from default/a to Node node-a; no policy decides on egress; it leaves by br-int to Node node-a itself"},
		{"203.0.113.1", "default/a:80", "allowed: tcp 80 from 203.0.113.1 to default/a; no policy decides on ingress; it reaches default/a"},
		{"203.0.113.1", "default/b:80", "allowed: tcp 80 from 203.0.113.1 to default/b; NetworkPolicy default/b-in allows it (rule ingress[0]); it reaches default/b"},
		{"203.0.113.1", "default/b:81", "denied: NetworkPolicy default/b-in isolates default/b for ingress, and no rule allows tcp 81 from 203.0.113.1"},
		{"node", "default/a:80", "allowed: tcp 80 from Node node-a to default/a; no policy decides on ingress; it reaches default/a"},
		{"node", "default/b:80", "allowed: tcp 80 from Node node-a to default/b; it leaves by eth0 to the underlay"},
	} {
		q.askAgents(t, clients)
	}
}
