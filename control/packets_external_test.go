package control

import (
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
)

// externalObjects make the Node of the stories external: tap0 is its card, tap1 leads to the
// machine, which has the address 192.0.2.10.
const externalObjects = `
apiVersion: antrail.io/v1alpha1
kind: NodeConfig
metadata: {name: node-a}
spec:
  features: {ExternalNode: true}
  policyBypassRules: [{direction: ingress, protocol: tcp, cidr: 198.51.100.7/32, port: 22}, {direction: egress, protocol: udp, cidr: 198.51.100.0/24, port: 53}]
  ports:
  - {name: tap0, ofPort: 21, role: uplink}
  - {name: tap1, ofPort: 22, role: host, uplink: tap0, externalEntity: vms/db}
---
apiVersion: crd.antrea.io/v1alpha1
kind: ExternalNode
metadata: {name: node-a, namespace: vms, labels: {role: db}}
spec: {interfaces: [{ips: [192.0.2.10]}]}
---
apiVersion: crd.antrea.io/v1alpha2
kind: ExternalEntity
metadata: {name: front, namespace: vms, labels: {role: front}}
spec: {externalNode: other, endpoints: [{ip: 198.51.100.9}]}
`

const externalPolicy = `
---
apiVersion: crd.antrea.io/v1beta1
kind: NetworkPolicy
metadata: {name: db, namespace: vms}
spec:
  priority: 5
  appliedTo: [{externalEntitySelector: {matchLabels: {role: db}}}]
  ingress:
  - {action: Allow, from: [{externalEntitySelector: {matchLabels: {role: front}}}], ports: [{protocol: TCP, port: 5432}]}
  - {action: Drop}
  egress:
  - {action: Drop, to: [{ipBlock: {cidr: 198.51.100.0/24}}]}
`

// newExternal is a wire whose Node is external.
func newExternal(t *testing.T, objects string) *wire {
	t.Helper()
	w := newWire(t, "")
	var gone []cluster.Key
	for _, o := range readManifest(t, "testdata/stories/node.yaml") {
		if k := o.Metadata().Key; k.Kind != cluster.KindNodeConfig {
			gone = append(gone, k)
		}
	}
	w.change(decodeAll(t, objects), gone)
	return w
}

// TestExternalNodeByPackets: policies decide on the machine's connections in both directions, except
// those that the NodeConfig exempts.
func TestExternalNodeByPackets(t *testing.T) {
	w := newExternal(t, strings.Replace(externalObjects, "vms/db", "vms/node-a", 1))
	const here = "192.0.2.10"
	w.expect("tap0 syn 198.51.100.8:2000 > "+here+":5432", "tap1 syn 198.51.100.8:2000 > "+here+":5432")
	w.put(externalPolicy)
	w.expect("tap0 syn 198.51.100.9:2000 > "+here+":5432", "tap1 syn 198.51.100.9:2000 > "+here+":5432")
	w.expect("tap1 synack "+here+":5432 > 198.51.100.9:2000", "tap0 synack "+here+":5432 > 198.51.100.9:2000")
	w.expect("tap0 ack 198.51.100.9:2000 > "+here+":5432", "tap1 ack 198.51.100.9:2000 > "+here+":5432")
	w.expect("tap0 syn 198.51.100.9:2001 > " + here + ":80")
	w.expect("tap0 syn 198.51.100.8:2002 > " + here + ":5432")
	w.expect("tap0 syn 198.51.100.8:2003 > " + here + ":22")
	w.expect("tap0 syn 198.51.100.7:2004 > "+here+":22", "tap1 syn 198.51.100.7:2004 > "+here+":22")
	w.expect("tap1 syn " + here + ":3000 > 198.51.100.8:53")
	w.expect("tap1 udp "+here+":3001 > 198.51.100.8:53", "tap0 udp "+here+":3001 > 198.51.100.8:53")
	w.expect("tap1 syn "+here+":3002 > 203.0.113.1:80", "tap0 syn "+here+":3002 > 203.0.113.1:80")
	if got := w.statuses(); slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "!") }) {
		t.Errorf("%q", got)
	}
}

// TestExternalEntityMissing: nothing passes at a port whose ExternalEntity does not exist, belongs to
// another Node, or has an address that policies do not match.
func TestExternalEntityMissing(t *testing.T) {
	for name, c := range map[string]struct{ objects, want string }{
		"missing": {externalObjects, "! NodeConfig/node-a: pending: tap1: there is no ExternalEntity/vms/db; until it comes, nothing passes there\n"},
		"other's": {strings.Replace(externalObjects, "vms/db", "vms/front", 1),
			"! ExternalEntity/vms/front: pending: its externalNode is \"other\", and a port of this Node has it; until then, nothing passes at tap1\n"},
		"IPv6": {strings.NewReplacer("vms/db", "vms/node-a", "[192.0.2.10]", `[192.0.2.10, "2001:db8::1"]`).Replace(externalObjects),
			"! ExternalEntity/vms/node-a: pending: it has an IPv6 address, and policies of an external Node are of IPv4: IPv6 would pass by them; until then, nothing passes at tap1\n"},
	} {
		w := newExternal(t, c.objects)
		if got := w.statuses(); !slices.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		w.expect("tap0 syn 198.51.100.9:2000 > 192.0.2.10:5432")
	}
}
