package control

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
)

// Services by packets: each address from different senders, the chosen endpoint, and the way of the reply.

// webService is a Service of all types; settings are lines of its spec.
func webService(settings ...string) string {
	return `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.10
  externalIPs: [192.168.1.200]
  selector: {app: web}
  ports: [{protocol: TCP, port: 80, targetPort: 8080, nodePort: 30080}]
  ` + strings.Join(settings, "\n  ") + `
status: {loadBalancer: {ingress: [{ip: 192.168.1.150}]}}
`
}

// webB is an endpoint on the other Node.
const webB = `
---
apiVersion: v1
kind: Pod
metadata: {name: web-b, namespace: default, labels: {app: web}}
spec: {nodeName: node-b, containers: [{name: c, image: x}]}
status: {phase: Running, podIPs: [{ip: 10.10.1.11}], conditions: [{type: Ready, status: "True"}]}
`

var webA, webBKey = cluster.Key{Kind: cluster.KindPod, Namespace: "default", Name: "web-a"}, cluster.Key{Kind: cluster.KindPod, Namespace: "default", Name: "web-b"}

// TestServiceAddressesByPackets sends a request to each address of a Service, and the reply back.
func TestServiceAddressesByPackets(t *testing.T) {
	w := newWire(t, webService())
	for i, c := range []struct{ from, client, service string }{
		{"client-a", "10.10.0.12", "10.96.0.10:80"},
		{"client-a", "10.10.0.12", "192.168.1.150:80"},
		{"client-a", "10.10.0.12", "192.168.1.200:80"},
		{"client-a", "10.10.0.12", "192.168.1.1:30080"},
		{"gateway", "10.10.0.1", "10.96.0.10:80"},
		{"gateway", "192.0.2.9", "192.168.1.1:30080"},
		{"gateway", "192.0.2.9", "192.168.1.150:80"},
		{"gateway", "192.0.2.9", "192.168.1.200:80"},
	} {
		client := fmt.Sprintf("%s:%d", c.client, 1000+i)
		w.expect(c.from+" syn "+client+" > "+c.service, "web-a syn "+client+" > 10.10.0.11:8080")
		w.expect("web-a synack 10.10.0.11:8080 > "+client, c.from+" synack "+c.service+" > "+client)
		w.expect(c.from+" ack "+client+" > "+c.service, "web-a ack "+client+" > 10.10.0.11:8080")
	}
	t.Run("a Pod that is its own Service's endpoint", func(t *testing.T) {
		w.expect("web-a syn 10.10.0.11:1000 > 10.96.0.10:80", "web-a syn 10.10.0.1:1000 > 10.10.0.11:8080")
		w.expect("web-a synack 10.10.0.11:8080 > 10.10.0.1:1000", "web-a synack 10.96.0.10:80 > 10.10.0.11:1000")
	})
	t.Run("another protocol is none of the Service's", func(t *testing.T) {
		w.expect("client-a udp 10.10.0.12:1000 > 10.96.0.10:80", "gateway udp 10.10.0.12:1000 > 10.96.0.10:80")
	})
}

// TestTrafficPoliciesByPackets has one endpoint here and one on the other Node.
func TestTrafficPoliciesByPackets(t *testing.T) {
	for _, c := range []struct {
		name, settings string
		from, packet   string // the request, sent from many ports
		want           []string
	}{
		{"internal Cluster", "", "client-a", "10.10.0.12:%d > 10.96.0.10:80",
			[]string{"web-a syn 10.10.0.12:%d > 10.10.0.11:8080", "tunnel(192.168.1.2) syn 10.10.0.12:%d > 10.10.1.11:8080"}},
		{"internal Local", "internalTrafficPolicy: Local", "client-a", "10.10.0.12:%d > 10.96.0.10:80",
			[]string{"web-a syn 10.10.0.12:%d > 10.10.0.11:8080"}},
		{"external Cluster", "", "gateway", "192.0.2.9:%d > 192.168.1.150:80",
			[]string{"web-a syn 192.0.2.9:%d > 10.10.0.11:8080", "tunnel(192.168.1.2) syn 10.10.0.1:%d > 10.10.1.11:8080"}},
		{"external Local", "externalTrafficPolicy: Local", "gateway", "192.0.2.9:%d > 192.168.1.150:80",
			[]string{"web-a syn 192.0.2.9:%d > 10.10.0.11:8080"}},
		{"external Local by NodePort", "externalTrafficPolicy: Local", "gateway", "192.0.2.9:%d > 192.168.1.1:30080",
			[]string{"web-a syn 192.0.2.9:%d > 10.10.0.11:8080"}},
		{"external Local by external IP", "externalTrafficPolicy: Local", "gateway", "192.0.2.9:%d > 192.168.1.200:80",
			[]string{"web-a syn 192.0.2.9:%d > 10.10.0.11:8080"}},
		{"external Local is not internal", "externalTrafficPolicy: Local", "client-a", "10.10.0.12:%d > 10.96.0.10:80",
			[]string{"web-a syn 10.10.0.12:%d > 10.10.0.11:8080", "tunnel(192.168.1.2) syn 10.10.0.12:%d > 10.10.1.11:8080"}},
		{"external Local, a Pod may use all", "externalTrafficPolicy: Local", "client-a", "10.10.0.12:%d > 192.168.1.150:80",
			[]string{"web-a syn 10.10.0.12:%d > 10.10.0.11:8080", "tunnel(192.168.1.2) syn 10.10.0.12:%d > 10.10.1.11:8080"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t, webService(c.settings)+webB)
			w.t = t
			seen := map[string]bool{}
			for port := 1000; port < 1040; port++ {
				var want []string
				for _, f := range c.want {
					want = append(want, fmt.Sprintf(f, port))
				}
				seen[strings.Fields(w.expectOneOf(fmt.Sprintf(c.from+" syn "+c.packet, port), want...))[0]] = true
			}
			if len(seen) != len(c.want) {
				t.Errorf("went to %v, want all of %q", seen, c.want)
			}
		})
	}
}

// TestNoEndpointByPackets: without an endpoint, the agent gets the request and rejects it. The same holds with
// policy Local if all endpoints are elsewhere.
func TestNoEndpointByPackets(t *testing.T) {
	w := newWire(t, webService("externalTrafficPolicy: Local", "internalTrafficPolicy: Local")+webB)
	w.change(nil, []cluster.Key{webA})
	for _, p := range []string{"client-a syn 10.10.0.12:1000 > 10.96.0.10:80", "gateway syn 192.0.2.9:1000 > 192.168.1.150:80", "gateway syn 192.0.2.9:1001 > 192.168.1.1:30080"} {
		_, packet, _ := strings.Cut(p, " ")
		w.expect(p, "agent "+packet)
	}
	w.change(nil, []cluster.Key{webBKey})
	w.expect("client-a syn 10.10.0.12:1001 > 10.96.0.10:80", "agent syn 10.10.0.12:1001 > 10.96.0.10:80")
}

// TestSourceRangesByPackets: only clients in range may use a load balancer's address. The ClusterIP is open to
// all.
func TestSourceRangesByPackets(t *testing.T) {
	w := newWire(t, webService("loadBalancerSourceRanges: [192.0.2.0/25]"))
	w.expect("gateway syn 192.0.2.127:1000 > 192.168.1.150:80", "web-a syn 192.0.2.127:1000 > 10.10.0.11:8080")
	w.expect("gateway syn 192.0.2.128:1000 > 192.168.1.150:80")
	w.expect("client-a syn 10.10.0.12:1000 > 192.168.1.150:80")
	w.expect("client-a syn 10.10.0.12:1001 > 10.96.0.10:80", "web-a syn 10.10.0.12:1001 > 10.10.0.11:8080")
	w.expect("gateway syn 192.0.2.128:1001 > 192.168.1.1:30080", "web-a syn 192.0.2.128:1001 > 10.10.0.11:8080")
	w.put(webService("loadBalancerSourceRanges: [192.0.2.128/25, 10.10.0.0/24]"))
	w.expect("gateway syn 192.0.2.127:1002 > 192.168.1.150:80")
	w.expect("gateway syn 192.0.2.128:1002 > 192.168.1.150:80", "web-a syn 192.0.2.128:1002 > 10.10.0.11:8080")
	w.expect("client-a syn 10.10.0.12:1002 > 192.168.1.150:80", "web-a syn 10.10.0.12:1002 > 10.10.0.11:8080")
}

const dsrFeature = `
apiVersion: antrail.io/v1alpha1
kind: NodeConfig
metadata: {name: node-a}
spec:
  gateway: {name: antrea-gw0, ofPort: 2, mac: "0a:00:00:00:00:02", ips: [10.10.0.1]}
  tunnel: {name: antrea-tun0, ofPort: 1, type: geneve}
  transportIPs: [192.168.1.1]
  serviceCIDRs: [10.96.0.0/12]
  nodePortAddresses: [192.168.1.1]
  proxyAll: true
  packetInRate: 500
  features: {LoadBalancerModeDSR: true}
  ports:
    - {name: web-a, ofPort: 11, pod: default/web-a, mac: "0a:00:00:00:00:0b"}
    - {name: client-a, ofPort: 12, pod: default/client-a, mac: "0a:00:00:00:00:0c"}
---`

// TestDSRByPackets: an outside request for an endpoint on the other Node goes there unchanged, with the addresses
// of client and Service. The whole connection goes to the Node of its first packet. This Node translates such
// requests from another Node, and the reply leaves by its gateway with the Service's address.
func TestDSRByPackets(t *testing.T) {
	dsr := strings.Replace(webService(), "name: web,", "name: web, annotations: {service.antrea.io/load-balancer-mode: dsr},", 1)
	t.Run("the Node that spreads", func(t *testing.T) {
		w := newWire(t, dsrFeature+dsr+webB)
		w.change(nil, []cluster.Key{webA})
		w.expect("gateway syn 192.0.2.9:1000 > 192.168.1.150:80", "tunnel(192.168.1.2) syn 192.0.2.9:1000 > 192.168.1.150:80")
		w.expect("gateway ack 192.0.2.9:1000 > 192.168.1.150:80", "tunnel(192.168.1.2) ack 192.0.2.9:1000 > 192.168.1.150:80")
		w.expect("client-a syn 10.10.0.12:1000 > 192.168.1.150:80", "tunnel(192.168.1.2) syn 10.10.0.12:1000 > 10.10.1.11:8080")
		if n := w.learned(); n != 1 {
			t.Errorf("%d connections are kept, want one from outside", n)
		}
		w.later(200) // idle for longer than a connection is kept
		if n := w.learned(); n != 0 {
			t.Errorf("%d connections are still kept", n)
		}
	})
	t.Run("the Node of the endpoint", func(t *testing.T) {
		w := newWire(t, dsrFeature+dsr+webB)
		w.expect("tunnel syn 192.0.2.9:1000 > 192.168.1.150:80", "web-a syn 192.0.2.9:1000 > 10.10.0.11:8080")
		w.expect("web-a synack 10.10.0.11:8080 > 192.0.2.9:1000", "gateway synack 192.168.1.150:80 > 192.0.2.9:1000")
		w.expect("tunnel ack 192.0.2.9:1000 > 192.168.1.150:80", "web-a ack 192.0.2.9:1000 > 10.10.0.11:8080")
	})
}

// learned counts learned entries.
func (w *wire) learned() (n int) {
	for _, line := range w.dump() {
		if strings.HasPrefix(line, "table=SessionAffinity, ") && strings.Contains(line, "_timeout=") {
			n++
		}
	}
	return n
}

// slice is a manual EndpointSlice of the Service.
func slice(endpoints ...string) string {
	return `
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: default, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: "", protocol: TCP, port: 8080}]
endpoints:
  - ` + strings.Join(endpoints, "\n  - ") + "\n"
}

const (
	endpointA = `{addresses: [10.10.0.11], nodeName: node-a, zone: east, conditions: {%s}%s}`
	endpointB = `{addresses: [10.10.1.11], nodeName: node-b, zone: west, conditions: {%s}%s}`
	toA       = "web-a syn 10.10.0.12:%d > 10.10.0.11:8080"
	toB       = "tunnel(192.168.1.2) syn 10.10.0.12:%d > 10.10.1.11:8080"
)

// TestConditionsByPackets: terminating endpoints are used only if no endpoint is ready, and while they serve. If
// there are endpoints for this zone, those for other zones are not used.
func TestConditionsByPackets(t *testing.T) {
	const ready, leaving, gone = "ready: true", "ready: false, serving: true, terminating: true", "ready: false, serving: false, terminating: true"
	const east, west = ", hints: {forZones: [{name: east}]}", ", hints: {forZones: [{name: west}]}"
	plain := `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default%s}
spec: {clusterIP: 10.96.0.10, ports: [{protocol: TCP, port: 80, targetPort: 8080}]}
`
	topology := fmt.Sprintf(plain, `, annotations: {service.kubernetes.io/topology-mode: Auto}`)
	plain = fmt.Sprintf(plain, "")
	w := newWire(t, plain)
	port := 1000
	for _, c := range []struct {
		name, yaml string
		want       []string
	}{
		{"both ready", plain + slice(fmt.Sprintf(endpointA, ready, ""), fmt.Sprintf(endpointB, ready, "")), []string{toA, toB}},
		{"one terminates", plain + slice(fmt.Sprintf(endpointA, leaving, ""), fmt.Sprintf(endpointB, ready, "")), []string{toB}},
		{"both terminate", plain + slice(fmt.Sprintf(endpointA, leaving, ""), fmt.Sprintf(endpointB, leaving, "")), []string{toA, toB}},
		{"one has ended", plain + slice(fmt.Sprintf(endpointA, leaving, ""), fmt.Sprintf(endpointB, gone, "")), []string{toA}},
		{"hints, not asked for", plain + slice(fmt.Sprintf(endpointA, ready, east), fmt.Sprintf(endpointB, ready, west)), []string{toA, toB}},
		{"hints", topology + slice(fmt.Sprintf(endpointA, ready, east), fmt.Sprintf(endpointB, ready, west)), []string{toA}},
		{"hints the other way", topology + slice(fmt.Sprintf(endpointA, ready, west), fmt.Sprintf(endpointB, ready, east)), []string{toB}},
		{"one without a hint", topology + slice(fmt.Sprintf(endpointA, ready, ""), fmt.Sprintf(endpointB, ready, east)), []string{toA, toB}},
		{"none for this zone", topology + slice(fmt.Sprintf(endpointA, ready, west), fmt.Sprintf(endpointB, ready, west)), []string{toA, toB}},
	} {
		w.put(c.yaml)
		seen := map[string]bool{}
		for range 40 {
			port++
			var want []string
			for _, f := range c.want {
				want = append(want, fmt.Sprintf(f, port))
			}
			seen[strings.Fields(w.expectOneOf(fmt.Sprintf("client-a syn 10.10.0.12:%d > 10.96.0.10:80", port), want...))[0]] = true
		}
		if len(seen) != len(c.want) {
			t.Errorf("%s: went to %v, want all of %q", c.name, seen, c.want)
		}
	}
}

// TestAffinityByPackets: by the switch's own clock, a client keeps its endpoint until the timeout. Other clients
// are not affected.
func TestAffinityByPackets(t *testing.T) {
	w := newWire(t, webService("sessionAffinity: ClientIP", "sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}")+webB)
	port := 1000
	connect := func() string {
		port++
		left := w.expectOneOf(fmt.Sprintf("client-a syn 10.10.0.12:%d > 10.96.0.10:80", port), fmt.Sprintf(toA, port), fmt.Sprintf(toB, port))
		return strings.Fields(left)[0]
	}
	chosen := map[string]bool{}
	for range 30 {
		first := connect()
		chosen[first] = true
		for range 5 {
			w.later(11)
			if to := connect(); to != first {
				t.Fatalf("within the timeout a client went from %s to %s", first, to)
			}
		}
		if w.learned() != 1 {
			t.Fatalf("%d entries are learned, want 1", w.learned())
		}
		w.later(6)
		if w.learned() != 0 {
			t.Fatal("after the timeout, the choice is still there")
		}
	}
	if len(chosen) != 2 {
		t.Errorf("after the timeout a client always goes to %v", chosen)
	}
}

// TestLiveConnectionsByPackets: a connection keeps its endpoint, whatever else comes and goes.
func TestLiveConnectionsByPackets(t *testing.T) {
	w := newWire(t, webService())
	const client = "10.10.0.12:1000"
	w.expect("client-a syn "+client+" > 10.96.0.10:80", "web-a syn "+client+" > 10.10.0.11:8080")
	w.expect("web-a synack 10.10.0.11:8080 > "+client, "client-a synack 10.96.0.10:80 > "+client)
	alive := func(event string) {
		t.Helper()
		up, down := w.send("client-a ack "+client+" > 10.96.0.10:80"), w.send("web-a ack 10.10.0.11:8080 > "+client)
		if fmt.Sprint(up) != "[web-a ack "+client+" > 10.10.0.11:8080]" || fmt.Sprint(down) != "[client-a ack 10.96.0.10:80 > "+client+"]" {
			t.Errorf("%s: up %q, down %q", event, up, down)
		}
	}
	w.around = alive
	w.put(webB)
	w.put(spareYAML)
	w.put(strings.Replace(spareYAML, "app: spare", "app: web", 1))
	w.change(nil, []cluster.Key{webBKey})
	w.change(nil, []cluster.Key{spareKey})
	w.put(webService("internalTrafficPolicy: Local"))
	w.put(webService("sessionAffinity: ClientIP"))
	if w.bundle < 8 {
		t.Errorf("only %d bundles", w.bundle)
	}
}
