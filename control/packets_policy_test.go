package control

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
)

// Policies and TrafficControls by packets.

const cheapService = `
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {type: NodePort, clusterIP: 10.96.0.10, selector: {app: web}, ports: [{protocol: TCP, port: 80, targetPort: 8080, nodePort: 30080}]}
---
apiVersion: v1
kind: Service
metadata: {name: other, namespace: default}
spec: {clusterIP: 10.96.0.11, selector: {app: web}, ports: [{protocol: TCP, port: 80, targetPort: 8080}]}
`

// TestToServicesByPackets drops requests to one Service, and no packet that reaches the same endpoint in
// another way.
func TestToServicesByPackets(t *testing.T) {
	w := newWire(t, cheapService+`
---
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: not-web}
spec:
  priority: 5
  appliedTo: [{podSelector: {matchLabels: {app: client}}}]
  egress: [{action: Drop, toServices: [{name: web, namespace: default}]}]
`)
	w.expect("client-a syn 10.10.0.12:1000 > 10.96.0.10:80")
	w.expect("client-a syn 10.10.0.12:1001 > 192.168.1.1:30080")
	w.expect("client-a syn 10.10.0.12:1002 > 10.96.0.11:80", "web-a syn 10.10.0.12:1002 > 10.10.0.11:8080")
	w.expect("client-a syn 10.10.0.12:1003 > 10.10.0.11:8080", "web-a syn 10.10.0.12:1003 > 10.10.0.11:8080")
	w.expect("gateway syn 10.10.0.1:1004 > 10.96.0.10:80", "web-a syn 10.10.0.1:1004 > 10.10.0.11:8080")
}

// TestAppliedToServiceByPackets drops outside requests to a Service's NodePort from some addresses.
func TestAppliedToServiceByPackets(t *testing.T) {
	w := newWire(t, cheapService+`
---
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: guard-port}
spec:
  priority: 5
  appliedTo: [{service: {name: web, namespace: default}}]
  ingress: [{action: Drop, from: [{ipBlock: {cidr: 192.0.2.0/24}}]}]
`)
	w.expect("gateway syn 192.0.2.9:1000 > 192.168.1.1:30080")
	w.expect("gateway syn 198.51.100.9:1001 > 192.168.1.1:30080", "web-a syn 198.51.100.9:1001 > 10.10.0.11:8080")
	w.expect("gateway syn 192.0.2.9:1002 > 10.10.0.11:8080", "web-a syn 192.0.2.9:1002 > 10.10.0.11:8080")
}

// l7Feature adds the ports of an application-aware program.
var l7Feature = strings.NewReplacer("features: {LoadBalancerModeDSR: true}", "features: {L7NetworkPolicy: true}",
	"  ports:\n", "  ports:\n    - {name: antrea-l7-tap0, ofPort: 21}\n    - {name: antrea-l7-tap1, ofPort: 22}\n").Replace(dsrFeature)

// l7Policy has a rule for each method. A rule's port is 8000 plus ten for each letter of its method.
func l7Policy(methods ...string) string {
	text := `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: methods}
spec:
  priority: 5
  tier: application
  appliedTo: [{podSelector: {matchLabels: {app: web}}}]
  ingress:
`
	for _, m := range methods {
		text += fmt.Sprintf("    - {name: %s, action: Allow, ports: [{protocol: TCP, port: %d}], l7Protocols: [{http: {method: %s}}]}\n", m, 8000+len(m)*10, m)
	}
	return text
}

// TestL7ByPackets sends a connection that an L7 rule allows, in both directions, to the program that inspects
// it, tagged with the rule's VLAN ID. Returned packets go on. Rules inserted above it do not affect a live
// connection.
func TestL7ByPackets(t *testing.T) {
	w := newWire(t, l7Feature+l7Policy("GET"))
	const client, server = "10.10.0.12:1000", "10.10.0.11:8030"
	w.expect("client-a syn "+client+" > "+server, "tap0 vlan:1 syn "+client+" > "+server)
	w.expect("tap1 vlan:1 syn "+client+" > "+server, "web-a syn "+client+" > "+server)
	w.expect("web-a synack "+server+" > "+client, "tap0 vlan:1 synack "+server+" > "+client)
	w.expect("tap1 vlan:1 synack "+server+" > "+client, "client-a synack "+server+" > "+client)
	w.put(l7Policy("HEAD", "DELETE", "GET"))
	w.expect("client-a ack "+client+" > "+server, "tap0 vlan:1 ack "+client+" > "+server)
	w.expect("client-a syn 10.10.0.12:1001 > 10.10.0.11:8030", "tap0 vlan:1 syn 10.10.0.12:1001 > 10.10.0.11:8030")
	w.expect("client-a syn 10.10.0.12:1002 > 10.10.0.11:8040", "tap0 vlan:2 syn 10.10.0.12:1002 > 10.10.0.11:8040")
	w.expect("client-a syn 10.10.0.12:1003 > 10.10.0.11:8060", "tap0 vlan:3 syn 10.10.0.12:1003 > 10.10.0.11:8060")
	w.expect("client-a syn 10.10.0.12:1004 > 10.10.0.11:9999", "web-a syn 10.10.0.12:1004 > 10.10.0.11:9999")
}

// controlOf is a TrafficControl of web-a.
func controlOf(action, direction string) string {
	back := ""
	if action == "Redirect" {
		back = "\n  returnPort: {ovsInternal: {name: tap1}}"
	}
	return `
apiVersion: crd.antrea.io/v1alpha2
kind: TrafficControl
metadata: {name: watch}
spec:
  appliedTo: {podSelector: {matchLabels: {app: web}}}
  direction: ` + direction + `
  action: ` + action + `
  targetPort: {ovsInternal: {name: tap0}}` + back + "\n"
}

// TestTrafficControlByPackets mirrors or redirects the packets to a Pod, from it, or both. A mirror sends one
// copy. A redirect sends the packet itself, and returned packets go on.
func TestTrafficControlByPackets(t *testing.T) {
	const to, from = "syn 10.10.0.12:1000 > 10.10.0.11:80", "syn 10.10.0.11:1000 > 10.10.0.12:80"
	for _, c := range []struct {
		action, direction  string
		wantTo, wantFrom   []string
		wantTapTo, wantTap []string
	}{
		{"Mirror", "Ingress", []string{"web-a " + to, "tap0 " + to}, []string{"client-a " + from}, nil, nil},
		{"Mirror", "Egress", []string{"web-a " + to}, []string{"client-a " + from, "tap0 " + from}, nil, nil},
		{"Mirror", "Both", []string{"web-a " + to, "tap0 " + to}, []string{"client-a " + from, "tap0 " + from}, nil, nil},
		{"Redirect", "Ingress", []string{"tap0 " + to}, []string{"client-a " + from}, []string{"web-a " + to}, nil},
		{"Redirect", "Egress", []string{"web-a " + to}, []string{"tap0 " + from}, nil, []string{"client-a " + from}},
		{"Redirect", "Both", []string{"tap0 " + to}, []string{"tap0 " + from}, []string{"web-a " + to}, []string{"client-a " + from}},
	} {
		t.Run(c.action+" "+c.direction, func(t *testing.T) {
			w := newWire(t, controlOf(c.action, c.direction))
			w.t = t
			w.expect("client-a "+to, c.wantTo...)
			w.expect("web-a "+from, c.wantFrom...)
			if c.wantTapTo != nil {
				w.expect("tap1 "+to, c.wantTapTo...)
			}
			if c.wantTap != nil {
				w.expect("tap1 "+from, c.wantTap...)
			}
			w.expect("client-a syn 10.10.0.12:1000 > 10.10.1.99:80", "tunnel(192.168.1.2) syn 10.10.0.12:1000 > 10.10.1.99:80")
			w.change(nil, []cluster.Key{{Kind: cluster.KindTrafficControl, Name: "watch"}})
			w.expect("client-a "+to, "web-a "+to)
			w.expect("web-a "+from, "client-a "+from)
		})
	}
}

// TestLogByPackets: packets of a rule that logs go to the agent, and go on if the rule allows them.
// An allowed connection is logged once.
func TestLogByPackets(t *testing.T) {
	w := newWire(t, `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: noted}
spec:
  priority: 5
  appliedTo: [{podSelector: {matchLabels: {app: web}}}]
  ingress:
    - {action: Allow, ports: [{protocol: TCP, port: 80}], enableLogging: true}
    - {action: Drop, ports: [{protocol: TCP, port: 81}], enableLogging: true}
    - {action: Drop, ports: [{protocol: TCP, port: 82}]}
`)
	w.expect("client-a syn 10.10.0.12:1000 > 10.10.0.11:80",
		"agent syn 10.10.0.12:1000 > 10.10.0.11:80", "web-a syn 10.10.0.12:1000 > 10.10.0.11:80")
	w.expect("web-a synack 10.10.0.11:80 > 10.10.0.12:1000", "client-a synack 10.10.0.11:80 > 10.10.0.12:1000")
	w.expect("client-a ack 10.10.0.12:1000 > 10.10.0.11:80", "web-a ack 10.10.0.12:1000 > 10.10.0.11:80")
	w.expect("client-a syn 10.10.0.12:1000 > 10.10.0.11:81", "agent syn 10.10.0.12:1000 > 10.10.0.11:81")
	w.expect("client-a syn 10.10.0.12:1000 > 10.10.0.11:82")
}
