package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/tables"
)

// Services of examples/web-app at outside addresses, and Egresses.
var (
	nodePortNumber  = 30004
	loadBalancer    = lab.Dual[string]{V4: "192.168.77.150:80", V6: "[fd00:77::150]:80"} // sent to node-a
	externalIP      = lab.Dual[string]{V4: "192.168.77.200:80", V6: "[fd00:77::200]:80"} // sent to node-a
	localBalancer   = lab.Dual[string]{V4: "192.168.77.151:80", V6: "[fd00:77::151]:80"} // sent to node-b
	egressOfWeb     = lab.Dual[string]{V4: "192.168.77.112", V6: "fd00:77::112"}         // on node-a
	egressOfClients = lab.Dual[string]{V4: "192.168.77.113", V6: "fd00:77::113"}         // on node-b
)

// served connects often enough to reach both endpoints. Each must see its client at one of
// the sources.
func (w *world) served(ctx context.Context, from, service string, sources map[string]string) error {
	const tries = 20 // misses an endpoint once in half a million times
	got := map[string]int{}
	for range tries {
		g, err := w.greet(ctx, from, service)
		if err != nil {
			return fmt.Errorf("%s to %s: %w", from, service, err)
		}
		if want := sources[g.name]; want != "" && g.source != want {
			return fmt.Errorf("%s to %s: %s saw %s, want %s", from, service, g.name, g.source, want)
		}
		got[g.name]++
	}
	if got["web-a"]+got["web-b"] != tries || got["web-a"] == 0 || got["web-b"] == 0 {
		return fmt.Errorf("%s to %s: answered by %v, want both web pods", from, service, got)
	}
	return nil
}

// seenThrough are the client addresses that endpoints see when the outside host connects by
// node-a. The one on node-a sees the host itself. The other one sees node-a's gateway, or
// without a tunnel node-a itself.
func (w *world) seenThrough() map[string]string {
	far := w.sourceOf("node-a")
	if w.lab.Topology.Encap != tables.Encap {
		far = w.addresses["node-a"].String()
	}
	return map[string]string{"web-a": w.addresses["outside"].String(), "web-b": far}
}

// nodePort connects to every Node's port from the outside host, a pod, and the Nodes
// themselves, also by 127.0.0.1.
func nodePort(ctx context.Context, w *world) (string, error) {
	for _, w := range []*world{w, w.ipv6()} {
		at := func(node string) string { return fmt.Sprintf("%s:%d", node, nodePortNumber) }
		if err := w.served(ctx, "outside", at("node-a"), w.seenThrough()); err != nil {
			return "", err
		}
		all := []attempt{
			{"outside", at("node-b")}, {"client-a", at("node-a")}, {"client-a", at("node-b")},
			{"node-a", at("node-a")}, {"node-b", at("node-a")},
		}
		if !w.v6 { // the kernel does not support it for ::1
			all = append(all, attempt{"node-a", at("127.0.0.1")})
		}
		for _, a := range all {
			if err := w.served(ctx, a.from, a.to, nil); err != nil {
				return "", err
			}
		}
	}
	return "by IPv4 and IPv6; through node-a, web-a sees 192.168.77.1, web-b " + w.seenThrough()["web-b"], nil
}

// balanced connects to a load balancer's address and an external IP.
func balanced(ctx context.Context, w *world) (string, error) {
	for _, w := range []*world{w, w.ipv6()} {
		for _, service := range []string{loadBalancer.Of(w.v6), externalIP.Of(w.v6)} {
			if err := w.served(ctx, "outside", service, w.seenThrough()); err != nil {
				return "", err
			}
			for _, from := range []string{"client-a", "client-b", "node-a"} {
				if err := w.served(ctx, from, service, nil); err != nil {
					return "", err
				}
			}
		}
	}
	return "both endpoints to outside, pods and Node", nil
}

// local connects to a Service that uses only endpoints on the Node that was asked.
func local(ctx context.Context, w *world) (string, error) {
	for _, w := range []*world{w, w.ipv6()} {
		want := greeting{"web-b", w.addresses["outside"].String()}
		for range 12 {
			g, err := w.greet(ctx, "outside", localBalancer.Of(w.v6))
			if err != nil {
				return "", err
			}
			if g != want {
				return "", fmt.Errorf("%s answered and saw %s, want %s and %s", g.name, g.source, want.name, want.source)
			}
		}
		if err := w.served(ctx, "client-a", localBalancer.Of(w.v6), nil); err != nil { // clients in the cluster may get any endpoint
			return "", err
		}
	}
	return "outside by node-b: web-b alone, which sees 192.168.77.1", nil
}

// egress lets pods of both Nodes reach the outside host, which must see the Egresses'
// addresses, whichever Node has them.
func egress(ctx context.Context, w *world) (string, error) {
	var seen []string
	web, clients := egressOfWeb.Of(w.v6), egressOfClients.Of(w.v6)
	webB, clientA := web, clients
	if w.lab.Topology.Encap == tables.NoEncap { // there is no path to another Node's Egress
		webB, clientA = w.addresses["node-b"].String(), w.addresses["node-a"].String()
	}
	for _, s := range []struct{ pod, address string }{
		{"web-a", web}, {"web-b", webB}, {"client-a", clientA}, {"client-b", clients},
	} {
		if _, err := w.ping(s.pod, "outside", waitAtMost); err != nil {
			return "", err
		}
		g, err := w.greet(ctx, s.pod, "outside:80")
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.pod, err)
		}
		if g.source != s.address {
			return "", fmt.Errorf("the outside host saw %s as %s, want %s", s.pod, g.source, s.address)
		}
		seen = append(seen, fmt.Sprintf("%s as %s", s.pod, strings.TrimPrefix(g.source, "192.168.77")))
	}
	return strings.Join(seen, ", "), nil
}
