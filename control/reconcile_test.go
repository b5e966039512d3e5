package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/flow"
)

// recorder is a switch that records what it gets, and refuses chosen entries.
type recorder struct {
	*ledger.MemorySwitch
	refuse func(line string) bool // entries to refuse, as text with names
	names  *flow.Names
	log    []string // "purge ADDR", or a bundle's lines with + and -
}

func (r *recorder) Apply(b *flow.Bundle) error {
	if b.Names != nil {
		r.names = b.Names
	}
	var lines []string
	for _, list := range []struct {
		sign    string
		entries []*flow.Entry
	}{{"+", b.Add}, {"-", b.Delete}} {
		for _, e := range list.entries {
			bare := *e
			bare.Cookie = 0
			line := list.sign + bare.Text(flow.Format{Names: r.names})
			if r.refuse != nil && r.refuse(line) {
				return errors.New("refused:" + line)
			}
			lines = append(lines, line)
		}
	}
	r.log = append(r.log, strings.Join(lines, "\n"))
	return r.MemorySwitch.Apply(b)
}

func (r *recorder) Purge(all []ledger.Purge) {
	for _, p := range all {
		if p.Addr.IsValid() {
			r.log = append(r.log, "purge "+p.Addr.String())
		} else {
			r.log = append(r.log, fmt.Sprintf("purge %s %s to %s", p.Path.Proto, p.Path.Service, p.Path.Endpoint))
		}
	}
}

// when is the index in the log of the first record with a text, or -1.
func (r *recorder) when(text string) int {
	return slices.IndexFunc(r.log, func(s string) bool { return strings.Contains(s, text) })
}

// newRecorded starts a telling on a recorder with node.yaml and more.
func newRecorded(t *testing.T, yaml string) (*telling, *recorder) {
	t.Helper()
	var r *recorder
	x := newTelling(t, readManifest(t, "testdata/stories/node.yaml"), func(to ledger.Installer) ledger.Installer {
		r = &recorder{MemorySwitch: to.(*ledger.MemorySwitch)}
		return r
	})
	if yaml != "" {
		x.change(decodeAll(t, yaml), nil)
	}
	r.log = nil
	return x, r
}

func decodeAll(t testing.TB, yaml string) []cluster.Object {
	t.Helper()
	d := manifest.Decode(storyFile, []byte(yaml))
	for _, p := range d.Problems {
		t.Fatal(p)
	}
	return d.Objects
}

const (
	spareYAML = `
apiVersion: v1
kind: Pod
metadata: {name: spare, namespace: default, labels: {app: spare}}
spec: {nodeName: node-a, containers: [{name: c, image: x}]}
status: {phase: Running, podIPs: [{ip: 10.10.0.13}], conditions: [{type: Ready, status: "True"}]}
`
	guardYAML = `
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: guard, namespace: default}
spec: {podSelector: {matchLabels: {app: spare}}, policyTypes: [Ingress]}
`
	openSpare = `table=Classifier, priority=190,in_port=spare`
	guarded   = `table=IngressDefaultRule, priority=200,reg1=0xd`
)

var (
	spareKey = cluster.Key{Kind: cluster.KindPod, Namespace: "default", Name: "spare"}
	guardKey = cluster.Key{Kind: cluster.KindNetworkPolicy, Namespace: "default", Name: "guard"}
)

// TestPodWaitsForItsPolicies: a Pod's port stays closed while the switch refuses the entries that isolate the Pod.
func TestPodWaitsForItsPolicies(t *testing.T) {
	x, sw := newRecorded(t, "")
	sw.refuse = func(line string) bool { return strings.Contains(line, guarded) }
	x.change(decodeAll(t, spareYAML+guardYAML), nil)
	if sw.when(openSpare) >= 0 {
		t.Error("the Pod's port is open")
	}
	s, _ := x.r.Status(spareKey)
	if s.State != ledger.Pending {
		t.Errorf("the Pod is %s: %s", s.State, s.Reason)
	}
	sw.refuse = nil
	if err := x.r.Retry(); err != nil {
		t.Fatal(err)
	}
	if sw.when(openSpare) < sw.when(guarded) || sw.when(guarded) < 0 {
		t.Errorf("opened at %d, guarded at %d", sw.when(openSpare), sw.when(guarded))
	}
	if s, _ := x.r.Status(spareKey); s.State != ledger.Installed {
		t.Errorf("the Pod is %s: %s", s.State, s.Reason)
	}
}

// TestPodGoesFirst: a Pod's port closes in a bundle of its own before its isolation goes. While that bundle fails, the
// isolation stays.
func TestPodGoesFirst(t *testing.T) {
	x, sw := newRecorded(t, spareYAML+guardYAML)
	sw.refuse = func(line string) bool { return strings.Contains(line, "- table=Classifier") }
	u := x.store.Apply(store.Change{Source: storyFile, Delete: []cluster.Key{spareKey, guardKey}})
	if err := x.r.Update(u.New, u.Changed); err == nil {
		t.Error("nothing failed")
	}
	if sw.when(guarded) >= 0 {
		t.Error("the guard went before the Pod")
	}
	sw.refuse = nil
	if err := x.r.Retry(); err != nil {
		t.Fatal(err)
	}
	if closed, unguarded := sw.when("- "+openSpare), sw.when("- "+guarded); closed < 0 || unguarded <= closed {
		t.Errorf("closed at %d, unguarded at %d", closed, unguarded)
	}
}

// TestPurge removes the connections of an address before its new Pod's port opens, and those of a UDP endpoint when it
// is gone.
func TestPurge(t *testing.T) {
	x, sw := newRecorded(t, `
apiVersion: v1
kind: Service
metadata: {name: dns, namespace: default}
spec: {clusterIP: 10.96.0.53, selector: {app: spare}, ports: [{protocol: UDP, port: 53, targetPort: 5353}]}
`)
	x.change(decodeAll(t, spareYAML), nil)
	if purged, opened := sw.when("purge 10.10.0.13"), sw.when(openSpare); purged < 0 || purged > opened {
		t.Errorf("purged at %d, opened at %d", purged, opened)
	}
	sw.log = nil
	x.change(nil, []cluster.Key{spareKey})
	gone, purged := sw.when("- table=EndpointDNAT"), sw.when("purge UDP 10.96.0.53:53 to 10.10.0.13:5353")
	if gone < 0 || purged < gone {
		t.Errorf("the endpoint went at %d, purged at %d; log:\n%s", gone, purged, strings.Join(sw.log, "\n"))
	}
}

// TestUnchangedEntries: a change touches only the entries that it concerns.
func TestUnchangedEntries(t *testing.T) {
	x, sw := newRecorded(t, spareYAML+guardYAML)
	x.change(decodeAll(t, spareYAML+guardYAML), nil)
	if len(sw.log) != 0 {
		t.Errorf("the same objects again made bundles:\n%s", strings.Join(sw.log, "\n"))
	}
	x.change(nil, []cluster.Key{spareKey})
	for _, bundle := range sw.log {
		for line := range strings.Lines(bundle) {
			about := []string{
				"spare", "10.10.0.13", "0a:00:00:00:00:0d", "reg1=0xd",
				"conj_id=2,", "ct_label=0x2/", // the guard's: it applies to no other Pod
			}
			if !slices.ContainsFunc(about, func(s string) bool { return strings.Contains(line, s) }) {
				t.Errorf("not about the Pod: %s", line)
			}
		}
	}
}

// TestOneInTheWay installs a hundred Services except the one that the switch refuses, and installs that one when the
// switch accepts it.
func TestOneInTheWay(t *testing.T) {
	x, sw := newRecorded(t, "")
	sw.refuse = func(line string) bool { return strings.Contains(line, "nw_dst=10.96.1.57,") }
	var yaml strings.Builder
	for i := range 100 {
		fmt.Fprintf(&yaml, `
---
apiVersion: v1
kind: Service
metadata: {name: s%d, namespace: default}
spec: {clusterIP: 10.96.1.%d, selector: {app: web}, ports: [{protocol: TCP, port: 80, targetPort: 8080}]}
`, i, i)
	}
	x.change(decodeAll(t, yaml.String()), nil)
	for _, s := range x.r.Services(nil) {
		want := ledger.Installed
		if s.Object.Name == "s57" {
			want = ledger.Pending
			if !strings.Contains(s.Reason, "10.96.1.57") {
				t.Errorf("the reason does not name the entry: %s", s.Reason)
			}
		}
		if s.State != want {
			t.Errorf("%s is %s: %s", s.Object, s.State, s.Reason)
		}
	}
	sw.refuse = nil
	if err := x.r.Retry(); err != nil {
		t.Fatal(err)
	}
	if s, _ := x.r.Status(cluster.Key{Kind: cluster.KindService, Namespace: "default", Name: "s57"}); s.State != ledger.Installed {
		t.Errorf("s57 is %s: %s", s.State, s.Reason)
	}
}

// TestFeatureOffWhole: when AntreaProxy goes off, all Services are removed. While the switch refuses the new tables,
// nothing changes.
func TestFeatureOffWhole(t *testing.T) {
	x, sw := newRecorded(t, `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {clusterIP: 10.96.0.10, selector: {app: web}, ports: [{protocol: TCP, port: 80, targetPort: 8080}]}
`)
	before := x.dump()
	config := *x.store.Snapshot().NodeConfig(storyNode)
	config.Features = map[string]bool{"AntreaProxy": false}
	sw.refuse = func(line string) bool { return strings.Contains(line, "+ table=DNAT") }
	x.change([]cluster.Object{&config}, nil)
	if diff := diffDumps(before, x.dump()); diff != "" {
		t.Errorf("half of the change is in:\n%s", diff)
	}
	sw.refuse = nil
	if err := x.r.Retry(); err != nil {
		t.Fatal(err)
	}
	for _, line := range x.dump() {
		if strings.Contains(line, "ServiceLB") || strings.HasPrefix(line, "group_id=9,") {
			t.Errorf("left: %s", line)
		}
	}
}

// TestNodeUnknown: while the snapshot lacks the Node, nothing changes. When the Node is back, everything is caught up.
func TestNodeUnknown(t *testing.T) {
	x, _ := newRecorded(t, "")
	node := x.store.Snapshot().Node(storyNode)
	before := x.dump()
	u := x.store.Apply(store.Change{Source: storyFile, Delete: []cluster.Key{node.Key}})
	if err := x.r.Update(u.New, u.Changed); err == nil || !strings.Contains(err.Error(), storyNode) {
		t.Errorf("without the Node: %v", err)
	}
	u = x.store.Apply(store.Change{Source: storyFile, Set: decodeAll(t, spareYAML)})
	if err := x.r.Update(u.New, u.Changed); err == nil {
		t.Error("still without the Node")
	}
	if diff := diffDumps(before, x.dump()); diff != "" {
		t.Errorf("changed:\n%s", diff)
	}
	x.change([]cluster.Object{node}, nil)
	if s, _ := x.r.Status(spareKey); s.State != ledger.Installed || s.Entries == 0 {
		t.Errorf("the Pod that came meanwhile is %s with %d entries", s.State, s.Entries)
	}
}

// serviceAt is a Service with an external IP.
func serviceAt(name, ip string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Service
metadata: {name: %s, namespace: default}
spec: {externalIPs: [%s], selector: {app: web}, ports: [{protocol: TCP, port: 80, targetPort: 8080}]}
`, name, ip)
}

// TestSwapAndClash: two Services swap their addresses. A third wants the address of a fourth, and keeps its own.
func TestSwapAndClash(t *testing.T) {
	x, _ := newRecorded(t, serviceAt("a", "1.0.0.1")+serviceAt("b", "1.0.0.2")+serviceAt("c", "1.0.0.3")+serviceAt("d", "1.0.0.4"))
	x.change(decodeAll(t, serviceAt("a", "1.0.0.2")+serviceAt("b", "1.0.0.1")+serviceAt("c", "1.0.0.4")), nil)
	for ip, name := range map[string]string{"1.0.0.1": "b", "1.0.0.2": "a", "1.0.0.3": "c", "1.0.0.4": "d"} {
		found, err := x.r.ExplainLine("table=ServiceLB, priority=200,tcp,reg4=0x10000/0x70000,tp_dst=80,nw_dst=" + ip)
		if err != nil || len(found) != 1 || found[0].Origins[0].Object.Name != name {
			t.Errorf("%s is of %v, %v; want %s", ip, found, err, name)
		}
	}
	if s, _ := x.r.Status(cluster.Key{Kind: cluster.KindService, Namespace: "default", Name: "c"}); s.State != ledger.Refused || !strings.Contains(s.Reason, "Service/default/d") {
		t.Errorf("c is %s: %s", s.State, s.Reason)
	}
	x.change(nil, []cluster.Key{{Kind: cluster.KindService, Namespace: "default", Name: "d"}})
	if s, _ := x.r.Status(cluster.Key{Kind: cluster.KindService, Namespace: "default", Name: "c"}); s.State != ledger.Installed {
		t.Errorf("without d, c is %s: %s", s.State, s.Reason)
	}
}

// TestFeatures switches each feature off and on again. Meanwhile its objects have the reason, and afterwards the dump is
// as before.
func TestFeatures(t *testing.T) {
	var objects []cluster.Object
	for _, name := range []string{"egress", "trafficcontrol", "antreapolicy", "networkpolicy", "service-external"} {
		objects = append(objects, readStory(t, "testdata/stories/"+name+".txtar").steps[0].objects...)
	}
	x, _ := newRecorded(t, "")
	x.change(objects, nil)
	start := x.dump()
	for feature, say := range map[string]string{
		"AntreaProxy":    "! Service/default/web: installed: the feature AntreaProxy is off",
		"AntreaPolicy":   "! ClusterNetworkPolicy/app: installed: the feature AntreaPolicy is off",
		"Egress":         "! Egress/here: installed: the feature Egress is off",
		"TrafficControl": "! TrafficControl/a-redirect: installed: the feature TrafficControl is off",
	} {
		on := x.store.Snapshot().NodeConfig(storyNode)
		off := *on
		off.Features = map[string]bool{feature: false}
		x.change([]cluster.Object{&off}, nil)
		if got := strings.Join(x.statuses(), ""); !strings.Contains(got, say) {
			t.Errorf("without %s:\n%swant: %s", feature, got, say)
		}
		x.change([]cluster.Object{on}, nil)
		if ok, diff := sameDump(start, x.dump()); !ok {
			t.Errorf("%s off and on:\n%s", feature, diff)
		}
		if got := x.statuses(); len(got) > 0 {
			t.Errorf("with %s again: %v", feature, got)
		}
	}
}
