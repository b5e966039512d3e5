package control

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/control/ledger"
)

const guardACNP = `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: guard, uid: u-%d, generation: %d}
spec: {priority: %d, appliedTo: [{podSelector: {matchLabels: {app: %s}}}], ingress: [{action: %s}]}
`

// progressLine is the state of a Node's policies, in a line.
func progressLine(r *Reconciler) string {
	p, known := r.Progress()
	if !known {
		return "unknown"
	}
	line := fmt.Sprintf("pods=%d policies=%d groups=%d/%d", p.Pods, p.NetworkPolicies, p.AppliedToGroups, p.AddressGroups)
	for _, q := range p.Policies {
		line += fmt.Sprintf(" %s %s/%d %s", q.Policy.Key.Name, q.Policy.UID, q.Policy.Generation, q.State)
		if q.Reason != "" {
			line += " because"
		}
	}
	return line
}

// TestProgress: on a Node with Pods that a policy applies to, a generation is realised when its entries are in the
// switch. The Pods may be unconnected.
func TestProgress(t *testing.T) {
	if p, known := NewReconciler("nobody", ledger.NewMemorySwitch(), time.Now).Progress(); known {
		t.Errorf("before the first snapshot, a Node reports %+v", p)
	}
	x, sw := newRecorded(t, "")
	is := func(want string) {
		t.Helper()
		if got := progressLine(x.r); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	is("pods=2 policies=0 groups=0/0")
	x.change(decodeAll(t, fmt.Sprintf(guardACNP, 1, 1, 5, "web", "Drop")), nil)
	is("pods=2 policies=1 groups=1/0 guard u-1/1 installed")

	sw.refuse = func(line string) bool { return strings.Contains(line, "table=AntreaPolicyIngressRule") }
	x.change(decodeAll(t, fmt.Sprintf(guardACNP, 1, 2, 5, "web", "Allow")), nil)
	is("pods=2 policies=1 groups=1/0 guard u-1/2 pending because")
	sw.refuse = nil
	if err := x.r.Retry(); err != nil {
		t.Fatal(err)
	}
	is("pods=2 policies=1 groups=1/0 guard u-1/2 installed")

	x.change(decodeAll(t, fmt.Sprintf(guardACNP, 1, 3, 5, "spare", "Drop")), nil)
	is("pods=2 policies=0 groups=0/0") // it applies to no Pod here
	x.change(decodeAll(t, strings.Replace(spareYAML, "podIPs: [{ip: 10.10.0.13}], ", "", 1)), nil)
	is("pods=2 policies=1 groups=0/0 guard u-1/3 installed") // it applies to a Pod that is not connected yet
	x.change(decodeAll(t, spareYAML+guardYAML), nil)
	is("pods=3 policies=2 groups=2/0 guard u-1/3 installed")
}
