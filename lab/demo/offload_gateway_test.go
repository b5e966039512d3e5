package demo

import (
	"fmt"
	"testing"

	"github.com/antrail/antrail/lab"
	"github.com/cilium/ebpf"
)

// gatewayObjects are a Service that is reached from outside, and Egresses of a pod of each
// Node, both of which leave by node-a.
const gatewayObjects = `
apiVersion: v1
kind: Service
metadata: {name: bulk, namespace: default}
spec:
  type: LoadBalancer
  selector: {pod: client-a}
  ipFamilies: [IPv4, IPv6]
  clusterIPs: [10.96.0.77, "fd00:10:96::77"]
  ports: [{protocol: TCP, port: 9000, targetPort: 5001, nodePort: 30077}]
status: {loadBalancer: {ingress: [{ip: 192.168.77.150}, {ip: "fd00:77::150"}]}}
---
apiVersion: crd.antrea.io/v1beta1
kind: Egress
metadata: {name: egress-client}
spec: {appliedTo: {podSelector: {matchLabels: {app: client}}}, egressIP: 192.168.77.112}
status: {egressNode: node-a, egressIP: 192.168.77.112}
`

// sinkAside is where the host outside and node-a take bytes.
const sinkAside = 5003

// gatewayLab is an offloadLab with gatewayObjects and sinks on both sides of the gateway.
func gatewayLab(t *testing.T) *world {
	t.Helper()
	l := offloadLab(t)
	w := l.world(t)
	l.put(t, "gateway.yaml", gatewayObjects)
	for _, name := range []string{"outside", "node-a"} {
		if err := w.listen(name, sinkAside, digest); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range []*world{w, w.ipv6()} {
		waitUntil(t, "the Service's answer outside", func() bool {
			_, err := w.greet(t.Context(), "outside", w.loaded())
			return err == nil
		})
	}
	waitUntil(t, "the Egress", func() bool {
		g, err := w.greet(t.Context(), far, w.aside("outside"))
		return err == nil && g.source == egressOfWeb.V4
	})
	return w
}

// loaded is the bulk Service at its load balancer's address.
func (w *world) loaded() string {
	return fmt.Sprintf("[%s]:%d", loadBalancerAddress.Of(w.v6), bulkPort)
}

var loadBalancerAddress = lab.Dual[string]{V4: "192.168.77.150", V6: "fd00:77::150"}

func (w *world) aside(name string) string { return fmt.Sprintf("%s:%d", name, sinkAside) }

// TestOffloadThroughGateway moves bytes between pods, the Node and a host outside. Nearly all
// of them pass the gateway in the kernel and arrive as they were sent. Their source is the one
// that the Node's stack gives them.
func TestOffloadThroughGateway(t *testing.T) {
	w := gatewayLab(t)
	for family, w := range map[string]*world{"IPv4": w, "IPv6": w.ipv6()} {
		masqueraded, own := w.addresses["node-a"].String(), w.sourceOf("node-a")
		egress := masqueraded
		if !w.v6 {
			egress = egressOfWeb.V4
		}
		for _, x := range []struct{ name, from, to, source string }{
			{"pod to outside", sender, w.aside("outside"), masqueraded},
			{"pod with an Egress", receiver, w.aside("outside"), egress},
			{"pod of another Node with an Egress", far, w.aside("outside"), egress},
			{"pod to its Node", sender, w.aside("node-a"), w.addresses[sender].String()},
			{"Node to pod", "node-a", w.sink(receiver), own},
			{"Node to a pod of another Node", "node-a", w.sink(far), own},
			{"outside to a NodePort", "outside", "node-a:30077", w.addresses["outside"].String()},
			{"outside to a load balancer", "outside", w.loaded(), w.addresses["outside"].String()},
		} {
			if w.v6 && x.from == far {
				continue // the Egress has an IPv4 address only, so node-b masquerades
			}
			t.Run(family+", "+x.name, func(t *testing.T) { w.sendPast(t, x.from, x.to, x.source) })
		}
	}
}

// sendPast transfers past the gateway of node-a. Before the kernel has the connection, as
// much as both sockets' buffers hold may pass the switch. So the transfer is much larger.
func (w *world) sendPast(t *testing.T, from, to, source string) {
	const size = 100 * megabyte
	g, err := w.greet(t.Context(), from, to)
	if err != nil || g.source != source {
		t.Errorf("%s was seen as %q, want %q: %v", from, g.source, source, err)
	}
	before := w.pastGateway(t)
	r, err := w.transfer(t.Context(), from, to, size)
	if err != nil {
		t.Fatal(err)
	}
	passed := w.pastGateway(t) - before
	t.Logf("%.2f Gbit/s, %d bytes passed in the kernel", r.gbits(), passed)
	if passed < size*9/10 {
		t.Errorf("%d of %d bytes passed in the kernel", passed, size)
	}
}

// pastGateway is the bytes that passed node-a's gateway in the kernel, both ways.
func (w *world) pastGateway(t *testing.T) uint64 {
	t.Helper()
	all, err := w.ports(t.Context(), "node-a")
	if err != nil {
		t.Fatal(err)
	}
	gw := all["antrea-gw0"].Offload
	return gw.Rx.Bytes + gw.Tx.Bytes
}

// TestOffloadThroughGatewayGoes: when the switch is killed, the program at the gateway goes
// with it and nothing passes. The next switch goes on with the connection.
func TestOffloadThroughGatewayGoes(t *testing.T) {
	w := gatewayLab(t)
	before := w.pastGateway(t)
	end := w.stream(t, sender, w.aside("outside"))
	waitUntil(t, "the transfer to be offloaded", func() bool { return w.pastGateway(t) > before+50*megabyte })
	if n := w.gatewayPrograms(t); n != 1 {
		t.Errorf("%d programs at the gateway, want 1", n)
	}
	killBoth(t, w.lab, "node-a")
	waitUntil(t, "the program at the gateway to go", func() bool { return w.gatewayPrograms(t) == 0 })
	if err := w.lab.RestartAgent(t.Context(), "node-a", antrail); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the transfer to be offloaded by the next switch", func() bool { return w.pastGateway(t) > 20*megabyte })
	if err := end(); err != nil {
		t.Error(err)
	}
}

// gatewayPrograms counts programs at tc egress of node-a's gateway; none if it is gone.
func (w *world) gatewayPrograms(t *testing.T) int {
	t.Helper()
	return w.programsAt(t, "node-a", "antrea-gw0", ebpf.AttachTCXEgress)
}
