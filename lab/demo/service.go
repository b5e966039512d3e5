package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/antrail/antrail/lab"
	"golang.org/x/sys/unix"
)

// Services of examples/web-app; examples/two-nodes has their IPv4 addresses.
var (
	clusterIPService = lab.Dual[string]{V4: "10.105.31.235:80", V6: "[fd00:10:96::235]:80"} // web-a and web-b
	affinityService  = lab.Dual[string]{V4: "10.96.76.15:80", V6: "[fd00:10:96::15]:80"}    // web-a and web-b, one client keeps one
	emptyService     = lab.Dual[string]{V4: "10.101.255.29:80", V6: "[fd00:10:96::29]:80"}
	hairpinService   = lab.Dual[string]{V4: "10.96.0.24:80", V6: "[fd00:10:96::24]:80"} // web-a only
)

// spread connects to a Service count times and counts the endpoints. They must see the
// client's own address.
func (w *world) spread(ctx context.Context, from, service string, count int) (map[string]int, error) {
	got := make(map[string]int)
	for i := range count {
		g, err := w.greet(ctx, from, service)
		if err != nil {
			return got, fmt.Errorf("connection %d of %d from %s to %s: %w", i+1, count, from, service, err)
		}
		if g.source != w.sourceOf(from) {
			return got, fmt.Errorf("%s saw %s, want %s", g.name, g.source, w.sourceOf(from))
		}
		got[g.name]++
	}
	return got, nil
}

// clusterIP connects 200 times. One endpoint is on the client's Node, the other is not, and
// each must serve some.
func clusterIP(ctx context.Context, w *world) (string, error) {
	got, err := w.spread(ctx, "client-a", clusterIPService.Of(w.v6), 200)
	if err != nil {
		return "", err
	}
	if got["web-a"] == 0 || got["web-b"] == 0 || len(got) != 2 {
		return "", fmt.Errorf("answered: %v", got)
	}
	return fmt.Sprintf("web-a (local) %d, web-b (remote) %d", got["web-a"], got["web-b"]), nil
}

// affinity connects 20 times from each of two clients.
func affinity(ctx context.Context, w *world) (string, error) {
	var seen []string
	for _, from := range []string{"client-a", "client-b"} {
		got, err := w.spread(ctx, from, affinityService.Of(w.v6), 20)
		if err != nil {
			return "", err
		}
		if len(got) != 1 {
			return "", fmt.Errorf("%s was served by several: %v", from, got)
		}
		for name, n := range got {
			seen = append(seen, fmt.Sprintf("%s: %d of 20 by %s", from, n, name))
		}
	}
	return strings.Join(seen, ", "), nil
}

// noEndpoints expects a reset, not silence.
func noEndpoints(ctx context.Context, w *world) (string, error) {
	service := emptyService.Of(w.v6)
	for _, from := range []string{"client-a", "client-b"} {
		c, err := w.dial(ctx, from, service, waitAtMost)
		if err == nil {
			c.Close()
			return "", fmt.Errorf("%s is connected to %s", from, service)
		}
		if !errors.Is(err, unix.ECONNREFUSED) {
			return "", fmt.Errorf("%s: %w, want connection refused", from, err)
		}
	}
	return "connection refused, from both Nodes", nil
}

// hairpin lets web-a connect to a Service whose only endpoint is itself. It must see its
// gateway as source. If it saw itself, it would answer without the switch.
func hairpin(ctx context.Context, w *world) (string, error) {
	g, err := w.greet(ctx, "web-a", hairpinService.Of(w.v6))
	if err != nil {
		return "", err
	}
	if want := w.sourceOf("node-a"); g.name != "web-a" || g.source != want {
		return "", fmt.Errorf("%s answered and saw %s, want web-a and %s", g.name, g.source, want)
	}
	return fmt.Sprintf("web-a answered and saw %s", g.source), nil
}

// outside lets pods of both Nodes reach the outside host. It has no route to pods, so it
// must see the Node's address.
func outside(ctx context.Context, w *world) (string, error) {
	var seen []string
	for _, s := range []struct{ pod, node string }{{"db-a", "node-a"}, {"db-b", "node-b"}} {
		if _, err := w.ping(s.pod, "outside", waitAtMost); err != nil {
			return "", err
		}
		g, err := w.greet(ctx, s.pod, "outside:80")
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.pod, err)
		}
		if want := w.addresses[s.node].String(); g.source != want {
			return "", fmt.Errorf("the outside host saw %s as %s, want %s", s.pod, g.source, want)
		}
		seen = append(seen, fmt.Sprintf("%s seen as %s", s.pod, g.source))
	}
	return strings.Join(seen, ", "), nil
}
