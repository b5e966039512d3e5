package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/flow"
)

// countingAll gives every entry its priority as packets and ten times that as bytes, so that sums show which entries were
// counted.
func countingAll(e *flow.Entry) (packets, bytes uint64) {
	return uint64(e.Priority), 10 * uint64(e.Priority)
}

func expectRows(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRows shows the seed's objects as `get` does.
func TestRows(t *testing.T) {
	_, r := seedOffline(t)
	var rows []string
	for _, s := range r.Services(countingAll) {
		rows = append(rows, fmt.Sprintf("%s %s %v %d/%d groups=%d packets=%d bytes=%d %s",
			s.Object.Name, s.Type, s.Addresses, s.Local, s.Endpoints, len(s.GroupIDs), s.Packets, s.Bytes, s.State))
	}
	expectRows(t, rows,
		"sample-clusterip ClusterIP [10.105.31.235:80/TCP] 1/2 groups=1 packets=200 bytes=2000 installed",
		"sample-clusterip-no-ep ClusterIP [10.101.255.29:80/TCP] 0/0 groups=1 packets=200 bytes=2000 installed",
		"sample-loadbalancer LoadBalancer [192.168.77.150:80/TCP] 1/2 groups=1 packets=200 bytes=2000 installed",
		"sample-nodeport NodePort [*:30004/TCP] 1/2 groups=1 packets=200 bytes=2000 installed",
		"sample-service-etp-local LoadBalancer [192.168.77.151:80/TCP] 1/2 groups=2 packets=410 bytes=4100 installed",
		"sample-service-externalip ClusterIP [192.168.77.200:80/TCP] 1/2 groups=1 packets=200 bytes=2000 installed",
		"sample-service-session-affinity ClusterIP [10.96.76.15:80/TCP] 1/2 groups=1 packets=390 bytes=3900 installed",
	)
	rows = nil
	for _, p := range r.Pods(countingAll) {
		rows = append(rows, fmt.Sprintf("%s %v %s %d %v packets=%d %s", p.Object.Name, p.IPs, p.Port, p.OFPort, p.Isolated, p.Packets, p.State))
	}
	expectRows(t, rows,
		"client-6 [10.10.0.26] client-6-3353ef 36 [] packets=200 installed",
		"db-755c6 [10.10.0.25] db-755c6-5080e3 38 [] packets=200 installed",
		"web-7975 [10.10.0.24] web-7975-274540 37 [egress ingress] packets=200 installed",
	)
	rows = nil
	for _, e := range r.Egresses(countingAll) {
		rows = append(rows, fmt.Sprintf("%s %v %s pods=%d packets=%d %s", e.Object.Name, e.Addr, e.Node, e.Pods, e.Packets, e.State))
	}
	expectRows(t, rows,
		"egress-client 192.168.77.113 k8s-node-worker-1 pods=1 packets=200 installed",
		"egress-web 192.168.77.112 k8s-node-control-plane pods=1 packets=400 installed",
	)
	rows = nil
	for _, c := range r.TrafficControls(countingAll) {
		rows = append(rows, fmt.Sprintf("%s %s %s %s %s pods=%d packets=%d %s", c.Object.Name, c.Action, c.Direction, c.Target, c.Return, c.Pods, c.Packets, c.State))
	}
	expectRows(t, rows,
		"mirror-db-to-local Mirror Both antrea-tc-tap2  pods=1 packets=400 installed",
		"redirect-web-to-local Redirect Both antrea-tc-tap0 antrea-tc-tap1 pods=1 packets=400 installed",
	)
	rows = nil
	for _, p := range r.Policies(countingAll) {
		rows = append(rows, fmt.Sprintf("%s %s %s %v rules=%d packets=%d %s", p.Object.Kind, p.Object.Name, p.Tier, p.Priority, len(p.Rules), p.Packets, p.State))
	}
	expectRows(t, rows,
		"NetworkPolicy web-app-db-network-policy  0 rules=2 packets=800 installed",
		"ClusterNetworkPolicy ingress-allow-http-request-to-api-v2 application 4 rules=1 packets=400 installed",
		"ClusterNetworkPolicy web-app-db-network-policy application 5 rules=4 packets=1200 installed",
	)
}

// TestRowsUnknownNode: an unknown Node has no rows. Without a switch, counters are zero.
func TestRowsUnknownNode(t *testing.T) {
	r := NewReconciler("nobody", ledger.NewMemorySwitch(), nil)
	if n := len(r.Services(nil)) + len(r.Pods(nil)) + len(r.Egresses(nil)) + len(r.TrafficControls(nil)) + len(r.Policies(nil)) + len(r.Statuses()); n > 0 {
		t.Errorf("%d rows", n)
	}
	if _, err := r.ExplainLine("priority=1 actions=drop"); err == nil {
		t.Error("an unknown Node's entries are explained")
	}
}

// TestTrafficControlRows shows a TrafficControl that waits for its port, which leaves its Pods to the next one, and one with
// a tunnel.
func TestTrafficControlRows(t *testing.T) {
	x, _ := newRecorded(t, `
apiVersion: crd.antrea.io/v1alpha2
kind: TrafficControl
metadata: {name: a-waits}
spec: {appliedTo: {podSelector: {matchLabels: {app: web}}}, direction: Both, action: Redirect, targetPort: {ovsInternal: {name: tap9}}, returnPort: {ovsInternal: {name: tap1}}}
---
apiVersion: crd.antrea.io/v1alpha2
kind: TrafficControl
metadata: {name: b-mirror}
spec: {appliedTo: {namespaceSelector: {}}, direction: Egress, action: Mirror, targetPort: {device: {name: tap1}}}
---
apiVersion: crd.antrea.io/v1alpha2
kind: TrafficControl
metadata: {name: c-tunnel}
spec: {appliedTo: {podSelector: {}}, direction: Ingress, action: Mirror, targetPort: {vxlan: {remoteIP: 192.0.2.1}}}
`)
	var rows []string
	for _, c := range x.r.TrafficControls(countingAll) {
		rows = append(rows, fmt.Sprintf("%s %s %s %s %q pods=%d packets=%d %s: %s", c.Object.Name, c.Action, c.Direction, c.Target, c.Return, c.Pods, c.Packets, c.State, c.Reason))
	}
	expectRows(t, rows,
		`a-waits Redirect Both tap9 "tap1" pods=0 packets=0 pending: this Node's switch has no port tap9`,
		`b-mirror Mirror Egress tap1 "" pods=2 packets=400 installed: `,
		`c-tunnel Mirror Ingress vxlan to 192.0.2.1 "" pods=0 packets=0 pending: this Node's switch has no vxlan port to 192.0.2.1`,
	)
}

// TestEgressMarks: when all marks are taken, the next Egress is refused. It is installed when another goes.
func TestEgressMarks(t *testing.T) {
	x, _ := newRecorded(t, "")
	var yaml strings.Builder
	for i := range maxMark + 1 {
		fmt.Fprintf(&yaml, `
---
apiVersion: crd.antrea.io/v1beta1
kind: Egress
metadata: {name: e%03d}
spec: {appliedTo: {podSelector: {matchLabels: {app: web}}}, egressIP: 192.168.2.%d}
status: {egressNode: node-a, egressIP: 192.168.2.%d}
`, i, i, i)
	}
	x.change(decodeAll(t, yaml.String()), nil)
	var refused []cluster.Key
	for _, e := range x.r.Egresses(nil) {
		if e.State == ledger.Refused {
			refused = append(refused, e.Object)
		}
	}
	if len(refused) != 1 || refused[0].Name != "e255" {
		t.Fatalf("refused: %v", refused)
	}
	x.change(nil, []cluster.Key{{Kind: cluster.KindEgress, Name: "e007"}})
	if s, _ := x.r.Status(refused[0]); s.State != ledger.Installed || s.Entries == 0 {
		t.Errorf("after another went, e255 is %s: %s", s.State, s.Reason)
	}
}
