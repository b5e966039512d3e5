package control

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/store"
)

const pluggedPod = `
apiVersion: v1
kind: Pod
metadata: {name: plugged, namespace: default, uid: u1, labels: {app: plugged}}
spec: {nodeName: node-a, containers: [{name: c, image: x}]}
status: {phase: Pending}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: shut, namespace: default}
spec: {podSelector: {matchLabels: {app: plugged}}, policyTypes: [Ingress]}
`

// plug adds a port of the CNI plugin. A port without a number is removed.
func (x *telling) plug(port cluster.SwitchPort, uid string) {
	x.t.Helper()
	p := store.NewPodPort("cni", port, []netip.Addr{netip.MustParseAddr("10.10.0.77")}, uid)
	c := store.Change{Source: "cni", Set: []cluster.Object{p}}
	if port.OFPort == 0 {
		c = store.Change{Source: "cni", Delete: []cluster.Key{p.Key}}
	}
	x.apply(c)
}

// TestPodPort: a Pod without address and NodeConfig port gets both from its port of the CNI plugin, and its policy
// applies. Another port replaces the first. Without a port, nothing of the Pod is left. The port never goes to a
// Pod with another UID.
func TestPodPort(t *testing.T) {
	x, r := newRecorded(t, pluggedPod)
	x.dumpHas(t, "10.10.0.77", false)
	port := cluster.SwitchPort{Name: "plugged-abc", OFPort: 300, Pod: cluster.Name{Namespace: "default", Name: "plugged"}, MAC: [6]byte{10, 88, 10, 10, 0, 77}}
	if err := x.r.InForce(port); err == nil {
		t.Error("in force before it exists")
	}
	x.plug(port, "u1")
	if err := x.r.InForce(port); err != nil {
		t.Error(err)
	}
	x.dumpHas(t, "10.10.0.77", true)
	x.dumpHas(t, `in_port="plugged-abc"`, true)
	if !strings.Contains(strings.Join(r.log, "\n"), "IngressDefaultRule") {
		t.Errorf("the Pod is not isolated:\n%s", strings.Join(r.log, "\n"))
	}
	other := port
	other.Name, other.OFPort = "plugged-def", 301
	x.plug(other, "u1")
	x.dumpHas(t, "plugged-abc", false)
	x.dumpHas(t, `in_port="plugged-def"`, true)
	if err := x.r.InForce(port); err == nil {
		t.Error("the port that was replaced is in force")
	}
	x.plug(other, "u2")
	x.dumpHas(t, "10.10.0.77", false)
	if err := x.r.InForce(other); err == nil {
		t.Error("in force for another Pod")
	}
	x.plug(other, "")
	x.dumpHas(t, "10.10.0.77", true)
	other.OFPort = 0
	x.plug(other, "")
	x.dumpHas(t, "10.10.0.77", false)
}

// TestPodWithTwoPorts: each further interface has its own entries, and the Pod's policies apply to it. It goes with
// its port and with the Pod. Services do not use it as an endpoint.
func TestPodWithTwoPorts(t *testing.T) {
	x, r := newRecorded(t, pluggedPod+`---
apiVersion: v1
kind: Service
metadata: {name: svc, namespace: default}
spec: {clusterIP: 10.96.0.77, selector: {app: plugged}, ports: [{port: 80, protocol: TCP}]}
`)
	first := cluster.SwitchPort{Name: "plugged-abc", OFPort: 300, Pod: cluster.Name{Namespace: "default", Name: "plugged"}, MAC: [6]byte{10, 88, 10, 10, 0, 77}}
	second := cluster.SwitchPort{Name: "plugged-net1", OFPort: 301, Pod: cluster.Name{Namespace: "default", Name: store.TwinName("plugged", "net1")}, MAC: [6]byte{10, 88, 10, 10, 0, 78}}
	x.plug(first, "u1")
	entries, isolated := len(x.dump()), strings.Count(strings.Join(r.log, "\n"), "IngressDefaultRule")
	twin := store.NewPodPort("cni", second, []netip.Addr{netip.MustParseAddr("10.10.0.78")}, "u1")
	x.apply(store.Change{Source: "cni", Set: []cluster.Object{twin}})
	if err := x.r.InForce(second); err != nil {
		t.Error(err)
	}
	for _, text := range []string{`in_port="plugged-abc"`, `in_port="plugged-net1"`, "10.10.0.77", "10.10.0.78"} {
		x.dumpHas(t, text, true)
	}
	if n := strings.Count(strings.Join(r.log, "\n"), "IngressDefaultRule"); n <= isolated {
		t.Errorf("the second port is not isolated:\n%s", strings.Join(r.log, "\n"))
	}
	for k, s := range x.store.Snapshot().EndpointSlices {
		for _, e := range s.Endpoints {
			if slices.Contains(e.Addresses, twin.IPs[0]) {
				t.Errorf("%v has the second port's address", k)
			}
		}
	}
	x.apply(store.Change{Source: "cni", Delete: []cluster.Key{twin.Key}})
	x.dumpHas(t, "10.10.0.78", false)
	if n := len(x.dump()); n != entries {
		t.Errorf("%d entries are left, want %d", n, entries)
	}
	x.apply(store.Change{Source: "cni", Set: []cluster.Object{twin}})
	pod := x.store.Snapshot().Pod(cluster.Name{Namespace: "default", Name: "plugged"})
	x.apply(store.Change{Source: pod.Source.File, Delete: []cluster.Key{pod.Key}})
	x.dumpHas(t, "10.10.0.78", false)
	x.dumpHas(t, "10.10.0.77", false)
}

// apply changes the store and updates the switch.
func (x *telling) apply(c store.Change) {
	x.t.Helper()
	u := x.store.Apply(c)
	if err := x.r.Update(u.New, u.Changed); err != nil {
		x.t.Error(err)
	}
}

func (x *telling) dumpHas(t *testing.T, text string, want bool) {
	t.Helper()
	if all := strings.Join(x.dump(), "\n"); strings.Contains(all, text) != want {
		t.Errorf("%q in the switch: %v:\n%s", text, !want, all)
	}
}
