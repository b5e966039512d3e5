package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/flow"
)

// Packets during changes: these tests send packets around every bundle and every purge.

// allowPort is a policy of the application tier that allows one port of web-a.
func allowPort(name string, priority float64, port int) string {
	return fmt.Sprintf(`---
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: %s}
spec:
  priority: %v
  appliedTo: [{podSelector: {matchLabels: {app: web}}}]
  ingress: [{action: Allow, ports: [{protocol: TCP, port: %d}]}]
`, name, priority, port)
}

// TestPrioritiesMoveByPackets inserts policies between others with adjacent priorities, so that those must move.
// No packet misses a rule, even if the switch refuses one change in three.
func TestPrioritiesMoveByPackets(t *testing.T) {
	for _, c := range []struct {
		name    string
		refuses int // one change of this many; 0: none
	}{{"at once", 0}, {"in parts", 3}} {
		t.Run(c.name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			all := ""
			for i := range 12 {
				all += allowPort(fmt.Sprint("p", i), 5+float64(i)/100, 8000+i)
			}
			w := newWire(t, all+strings.Replace(allowPort("z-drop", 6, 0), "{action: Allow, ports: [{protocol: TCP, port: 0}]}", "{action: Drop}", 1))
			source := 1000
			w.around = func(event string) {
				for port := 8000; port < 8014; port++ {
					source++
					got := w.send(fmt.Sprintf("client-a syn 10.10.0.12:%d > 10.10.0.11:%d", source, port))
					if len(got) == 1 != (port < 8012) {
						t.Errorf("%s %d, port %d: left %q", event, w.bundle, port, got)
					}
				}
			}
			if c.refuses > 0 {
				w.fail = func() bool { return rng.IntN(c.refuses) == 0 }
			}
			was := prioritiesOf(w, 8000, 8011)
			for i := range 8 {
				w.put(allowPort(fmt.Sprint("between", i), 5.05+float64(i+1)/1000, 9000+i))
				_ = w.r.Retry() // installs parts that clashed
			}
			if now := prioritiesOf(w, 8000, 8011); slices.Equal(was, now) {
				t.Errorf("no rule has moved: %v", now)
			}
			for i := range 8 {
				w.change(nil, []cluster.Key{{Kind: cluster.KindClusterNetworkPolicy, Name: fmt.Sprint("between", i)}})
			}
		})
	}
}

// prioritiesOf returns the priorities of the rules for some ports.
func prioritiesOf(w *wire, first, last int) (all []uint16) {
	for port := first; port <= last; port++ {
		for _, e := range w.has().Entries {
			if strings.Contains(e.Text(flow.Format{}), fmt.Sprintf("tp_dst=%d ", port)) {
				all = append(all, e.Priority)
			}
		}
	}
	return all
}

const guardedSpare = spareYAML + `---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: guard, namespace: default}
spec:
  podSelector: {matchLabels: {app: spare}}
  policyTypes: [Ingress, Egress]
  ingress: [{from: [{podSelector: {matchLabels: {app: client}}}], ports: [{protocol: TCP, port: 80}]}]
  egress: [{to: [{podSelector: {matchLabels: {app: web}}}]}]
`

// TestFailClosedByPackets: a packet that a Pod's policies forbid never passes between two bundles. This holds
// while the Pod comes, while Pod and policies go, and if bundles fail. A Pod that comes before its policy stays
// closed until both are complete.
func TestFailClosedByPackets(t *testing.T) {
	for _, refuses := range []int{0, 2} {
		t.Run(fmt.Sprintf("one bundle in %d refused", refuses), func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			w := newWire(t, "")
			source := 1000
			w.around = func(event string) {
				source++
				for _, p := range []string{
					"client-a syn 10.10.0.12:%d > 10.10.0.13:81",
					"web-a syn 10.10.0.11:%d > 10.10.0.13:80",
					"tunnel syn 10.10.1.50:%d > 10.10.0.13:80",
					"gateway syn 192.0.2.9:%d > 10.10.0.13:80",
					"spare syn 10.10.0.13:%d > 10.10.0.12:80",
					"spare syn 10.10.0.13:%d > 192.0.2.9:80",
				} {
					p = fmt.Sprintf(p, source)
					if got := w.send(p); len(got) > 0 {
						t.Errorf("%s %d: %s left %q", event, w.bundle, p, got)
					}
				}
			}
			if refuses > 0 {
				w.fail = func() bool { return rng.IntN(refuses) == 0 }
			}
			for range 10 {
				w.put(guardedSpare)
				source++
				w.expect(fmt.Sprintf("client-a syn 10.10.0.12:%d > 10.10.0.13:80", source), fmt.Sprintf("spare syn 10.10.0.12:%d > 10.10.0.13:80", source))
				w.expect(fmt.Sprintf("spare syn 10.10.0.13:%d > 10.10.0.11:80", source), fmt.Sprintf("web-a syn 10.10.0.13:%d > 10.10.0.11:80", source))
				w.change(nil, []cluster.Key{spareKey, guardKey})
			}
			if w.bundle < 20 {
				t.Errorf("only %d bundles", w.bundle)
			}
		})
	}
}

// TestNewPodOfAnAddressByPackets gives the address of a Pod to another Pod, at once or in two changes. Packets of
// the first Pod's connections do not reach the second, which its policy isolates.
func TestNewPodOfAnAddressByPackets(t *testing.T) {
	next := strings.Replace(guardedSpare, "10.10.0.13", "10.10.0.11", 1)
	for _, c := range []struct {
		name  string
		steps func(w *wire)
	}{
		{"at once", func(w *wire) { w.change(decodeAll(w.t, next), []cluster.Key{webA}) }},
		{"one after the other", func(w *wire) {
			w.change(nil, []cluster.Key{webA})
			w.put(next)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t, "")
			w.t = t
			const there, back = "tunnel ack 10.10.1.50:1000 > 10.10.0.11:8080", "ack 10.10.0.11:8080 > 10.10.1.50:1000"
			w.expect("tunnel syn 10.10.1.50:1000 > 10.10.0.11:8080", "web-a syn 10.10.1.50:1000 > 10.10.0.11:8080")
			w.expect("web-a synack 10.10.0.11:8080 > 10.10.1.50:1000", "tunnel(192.168.1.2) synack 10.10.0.11:8080 > 10.10.1.50:1000")
			w.expect(there, "web-a ack 10.10.1.50:1000 > 10.10.0.11:8080")
			purged := false
			w.around = func(event string) {
				purged = purged || event == "after a purge"
				for _, left := range append(w.send(there), w.send("spare "+back)...) {
					// While no Pod has the address, it is the gateway's.
					if !strings.HasPrefix(left, "web-a ") && left != "gateway "+strings.TrimPrefix(there, "tunnel ") {
						t.Errorf("%s %d: left %q", event, w.bundle, left)
					}
				}
			}
			c.steps(w)
			w.around("at the end")
			if !purged {
				t.Error("no connection was removed")
			}
			w.expect("client-a syn 10.10.0.12:1001 > 10.10.0.11:80")
		})
	}
}
