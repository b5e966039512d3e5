package control

import (
	"net/netip"
	"strings"
	"testing"
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

// plug says that a port of the CNI plugin is there, or with no number is gone.
func (x *telling) plug(port SwitchPort, uid string) {
	x.t.Helper()
	p := NewPodPort("cni", port, []netip.Addr{netip.MustParseAddr("10.10.0.77")}, uid)
	c := Change{Source: "cni", Set: []Object{p}}
	if port.OFPort == 0 {
		c = Change{Source: "cni", Delete: []Key{p.Key}}
	}
	u := x.store.Apply(c)
	if err := x.r.Update(u.New, u.Changed); err != nil {
		x.t.Error(err)
	}
}

// TestPodPort: a Pod without address and NodeConfig port has both by its port of
// the CNI plugin, and its policy with it; another port takes its place; without
// it, nothing of the Pod is left. It never goes to a Pod of another UID.
func TestPodPort(t *testing.T) {
	x, r := newRecorded(t, pluggedPod)
	x.dumpHas(t, "10.10.0.77", false)
	port := SwitchPort{Name: "plugged-abc", OFPort: 300, Pod: Name{"default", "plugged"}, MAC: [6]byte{10, 88, 10, 10, 0, 77}}
	if err := x.r.InForce(port); err == nil {
		t.Error("in force before it is there")
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

func (x *telling) dumpHas(t *testing.T, text string, want bool) {
	t.Helper()
	if all := strings.Join(x.dump(), "\n"); strings.Contains(all, text) != want {
		t.Errorf("%q in the switch: %v:\n%s", text, !want, all)
	}
}
