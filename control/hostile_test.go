package control

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/internal/antrailtest"
)

// Objects are hostile input: huge, contradictory, cyclic or malformed. Here they arrive like an
// operator's mistakes, as a file in a directory, and go to a real switch. Each must be refused with its
// place, name and reason, and nothing else may change.

// manifestWire is a wire that gets its objects from a directory.
type manifestWire struct {
	*wire
	dir       string
	manifests *store.Manifests
}

const hostileScene = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {clusterIP: 10.96.0.10, selector: {app: web}, ports: [{protocol: TCP, port: 80, targetPort: 8080}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: guard, namespace: default}
spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{ports: [{protocol: TCP, port: 8080}]}]}
`

// newManifestWire reads node.yaml and the scene from a directory.
func newManifestWire(t *testing.T) *manifestWire {
	t.Helper()
	m := &manifestWire{wire: newWire(t, ""), dir: t.TempDir()}
	node, err := os.ReadFile("testdata/stories/node.yaml")
	if err != nil {
		t.Fatal(err)
	}
	antrailtest.Write(t, string(node), m.dir, "node.yaml")
	antrailtest.Write(t, hostileScene, m.dir, "scene.yaml")
	m.store = store.NewStore(store.DeriveEndpoints) // only the directory fills the store
	if m.manifests, err = store.NewManifests(m.dir, m.store); err != nil {
		t.Fatal(err)
	}
	m.bring()
	return m
}

// bring reads the changes and returns everything that is not in force, a line each.
func (m *manifestWire) bring() string {
	m.clock = m.clock.Add(time.Minute)
	u := m.manifests.Read()
	_ = m.r.Update(u.New, nil) // the statuses have the errors
	var all strings.Builder
	for _, p := range m.manifests.Problems() {
		fmt.Fprintln(&all, strings.TrimPrefix(p.Error(), m.dir+"/"))
	}
	return all.String() + strings.Join(m.statuses(), "")
}

// write writes a file.
func (m *manifestWire) write(name, text string) {
	m.t.Helper()
	antrailtest.Write(m.t, text, m.dir, name)
}

func metaText(kind, name string) string {
	versions := map[string]string{"NetworkPolicy": "networking.k8s.io/v1", "ClusterGroup": "crd.antrea.io/v1beta1",
		"ClusterNetworkPolicy": "crd.antrea.io/v1beta1", "Egress": "crd.antrea.io/v1beta1", "Tier": "crd.antrea.io/v1beta1"}
	version := versions[kind]
	if version == "" {
		version = "v1"
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\n", version, kind, name)
}

func repeat(n int, form string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, form, i)
	}
	return b.String()
}

// hostileObjects are files by their faults, with the expected problem.
var hostileObjects = map[string]map[string]struct{ text, want string }{
	"huge": {
		"a document of 10 MB":            {metaText("Service", "big") + "spec: {externalName: \"" + strings.Repeat("a", 10<<20) + "\"}\n", "bad.yaml:1: Service/default/big: the object is larger than 1572864 bytes"},
		"a file of 65 MB":                {strings.Repeat("# nothing\n", 65<<20/10), "bad.yaml:1: the file is larger than 67108864 bytes"},
		"100,000 labels":                 {"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: labels\n  labels:\n" + repeat(100000, "    label-%d: value\n"), "Namespace/labels: the object is larger than"},
		"100,000 selector expressions":   {metaText("NetworkPolicy", "wide") + "spec:\n  podSelector:\n    matchExpressions:\n" + repeat(100000, "    - {key: key-%d, operator: Exists}\n"), "NetworkPolicy/default/wide: the object is larger than"},
		"a list of a million lines":      {"apiVersion: v1\nkind: List\nitems:\n" + repeat(1000001, "- x%d\n"), "bad.yaml:1: the document has more than 1000000 values"},
		"nesting":                        {metaText("Pod", "deep") + "spec: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n", "bad.yaml:4: Pod/default/deep: is nested more than 64 deep"},
		"nesting deeper than YAML reads": {metaText("Pod", "deeper") + "spec: " + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "\n", "bad.yaml:4: exceeded max depth"},
		"an alias bomb":                  {metaText("Pod", "bomb") + aliasBomb(), "Pod/default/bomb: the object is larger than"},
	},
	"contradictory": {
		"a name twice in a file":       {metaText("Namespace", "twice") + "---\n" + metaText("Namespace", "twice"), "bad.yaml:5: Namespace/twice: is there already, at line 1"},
		"a name twice in two files":    {metaText("Service", "web") + "spec: {clusterIP: 10.96.0.99, ports: [{port: 1}]}\n", "Service/default/web: is there already"},
		"an address of another":        {metaText("Service", "thief") + "spec: {clusterIP: 10.96.0.10, ports: [{port: 80}]}\n", "Service/default/thief: refused"},
		"a key twice":                  {metaText("Service", "double") + "spec: {clusterIP: 10.96.0.99, clusterIP: 10.96.0.98, ports: [{port: 1}]}\n", "bad.yaml:4: Service/default/double: the key \"clusterIP\" is there twice"},
		"ports of one number":          {metaText("Service", "ports") + "spec:\n  clusterIP: 10.96.0.99\n  ports:\n  - {name: a, port: 80}\n  - {name: b, port: 80}\n", "bad.yaml:8: Service/default/ports: spec.ports[1].port: Duplicate value"},
		"podCIDRs that overlap":        {metaText("Node", "node-c") + "spec: {podCIDRs: [10.10.1.0/25]}\nstatus: {addresses: [{type: InternalIP, address: 192.168.1.3}]}\n", "Node/node-c: refused: spec.podCIDRs[0] 10.10.1.0/25 overlaps with 10.10.1.0/24 of Node/node-b"},
		"a podCIDR of two Nodes":       {metaText("Node", "node-c") + "spec: {podCIDRs: [10.10.1.0/24]}\nstatus: {addresses: [{type: InternalIP, address: 192.168.1.3}]}\n", "Node/node-c: refused: spec.podCIDRs[0] 10.10.1.0/24 overlaps with 10.10.1.0/24 of Node/node-b"},
		"a range backwards":            {metaText("NetworkPolicy", "back") + "spec: {podSelector: {}, ingress: [{ports: [{protocol: TCP, port: 90, endPort: 80}]}]}\n", "bad.yaml:4: NetworkPolicy/default/back: spec.ingress[0].ports[0].endPort: Invalid value: 80"},
		"a podCIDR of this Node":       {metaText("Node", "node-c") + "spec: {podCIDRs: [10.0.0.0/8]}\nstatus: {addresses: [{type: InternalIP, address: 192.168.1.3}]}\n", "Node/node-c: refused: spec.podCIDRs[0] 10.0.0.0/8 overlaps with 10.10.0.0/24 of Node/node-a"},
		"headless with an address":     {metaText("Service", "neither") + "spec: {clusterIP: None, clusterIPs: [10.96.0.99], ports: [{port: 1}]}\n", "bad.yaml:4: Service/default/neither: spec.clusterIPs: Invalid value"},
		"an except outside its block":  {metaText("NetworkPolicy", "out") + "spec: {podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/24, except: [10.0.1.0/25]}}]}]}\n", "NetworkPolicy/default/out: spec.ingress[0].from[0].ipBlock.except[0]"},
		"a tier in another's place":    {metaText("Tier", "mine") + "spec: {priority: 250}\n", "bad.yaml:1: Tier/mine: spec.priority: tier application has priority 250 already"},
		"an affinity without a client": {metaText("Service", "affine") + "spec: {clusterIP: 10.96.0.99, sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}, ports: [{port: 1}]}\n", "Service/default/affine: spec.sessionAffinityConfig"},
	},
	"cyclic": {
		"groups in a circle":   {metaText("ClusterGroup", "a") + "spec: {childGroups: [b]}\n---\n" + metaText("ClusterGroup", "b") + "spec: {childGroups: [a]}\n", "bad.yaml:6: ClusterGroup/b: spec.childGroups[0]: group a has child groups itself"},
		"a group in itself":    {metaText("ClusterGroup", "a") + "spec: {childGroups: [a]}\n", "bad.yaml:1: ClusterGroup/a: spec.childGroups[0]: group a has child groups itself"},
		"an alias of itself":   {metaText("Pod", "a") + "spec: &s {containers: [*s]}\n", "Pod/default/a: is nested more than 64 deep"},
		"a policy that has it": {metaText("ClusterGroup", "a") + "spec: {childGroups: [a]}\n---\n" + metaText("ClusterNetworkPolicy", "p") + "spec: {priority: 1, appliedTo: [{group: a}], ingress: [{action: Drop}]}\n", "bad.yaml:1: ClusterGroup/a: spec.childGroups[0]: group a has child groups itself"},
	},
	"malformed": {
		"a wrong type":           {metaText("Service", "typed") + "spec: {ports: {port: 80}}\n", "bad.yaml:4: Service/default/typed: spec.ports: a object stands where a list is expected"},
		"a negative port":        {metaText("Service", "below") + "spec: {clusterIP: 10.96.0.99, ports: [{port: -1}]}\n", "bad.yaml:4: Service/default/below: spec.ports[0].port: Invalid value: -1"},
		"a port of six digits":   {metaText("Service", "above") + "spec: {clusterIP: 10.96.0.99, ports: [{port: 100000}]}\n", "bad.yaml:4: Service/default/above: spec.ports[0].port: Invalid value: 100000"},
		"a bad address":          {metaText("Service", "addr") + "spec: {clusterIP: 10.96.0.999, ports: [{port: 1}]}\n", "bad.yaml:4: Service/default/addr: spec.clusterIPs[0]: Invalid value"},
		"a bad prefix":           {metaText("NetworkPolicy", "cidr") + "spec: {podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/33}}]}]}\n", "bad.yaml:4: NetworkPolicy/default/cidr: spec.ingress[0].from[0].ipBlock.cidr: Invalid value"},
		"an unknown field":       {metaText("Service", "field") + "spec: {clusterIPP: 10.96.0.99}\n", "bad.yaml:4: Service/default/field: spec.clusterIPP: unknown field (did you mean clusterIP?)"},
		"NUL":                    {metaText("Service", "nul") + "spec: {externalName: \"\x00\"}\n", "bad.yaml:4: control characters are not allowed"},
		"NUL, escaped":           {metaText("Service", "nul") + "spec: {externalName: \"a\\0b\", type: ExternalName}\n", "bad.yaml:4: Service/default/nul: spec.externalName"},
		"no UTF-8":               {metaText("Service", "latin") + "spec: {externalName: \"\xff\xfe\"}\n", "bad.yaml:4: "},
		"a name with a slash":    {metaText("Service", "\"a/b\"") + "spec: {clusterIP: 10.96.0.99, ports: [{port: 1}]}\n", "bad.yaml:3: Service/default/a/b: metadata.name: Invalid value"},
		"no name":                {"apiVersion: v1\nkind: Service\nmetadata: {}\n", "Service/default/: metadata.name: Required value"},
		"no YAML":                {"apiVersion: v1\nkind: Service\n\tmetadata: {}\n", "bad.yaml:2: found a tab character that violates indentation"},
		"half a document":        {metaText("Service", "half") + "spec: {clusterIP: 10.96", "bad.yaml:4: did not find expected"},
		"an operator not known":  {metaText("NetworkPolicy", "op") + "spec: {podSelector: {matchExpressions: [{key: a, operator: Like}]}}\n", "NetworkPolicy/default/op: spec.podSelector.matchExpressions[0].operator: Invalid value"},
		"an Egress of no family": {metaText("Egress", "e") + "spec: {appliedTo: {podSelector: {}}, egressIP: here}\n", "bad.yaml:4: Egress/e: spec.egressIP: Invalid value"},
	},
}

// aliasBomb would be ten billion values.
func aliasBomb() string {
	bomb := "spec:\n  a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("  %c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ","))
	}
	return bomb
}

// TestHostileObjects puts each file beside good objects. Its problem is reported, and the switch stays
// as it was. After the removal of the file, there is no problem.
func TestHostileObjects(t *testing.T) {
	for kind, cases := range hostileObjects {
		t.Run(kind, func(t *testing.T) {
			m := newManifestWire(t)
			before, told := m.dump(), m.bring()
			if told != "" {
				t.Fatalf("the scene: %s", told)
			}
			for name, c := range cases {
				m.write("z-bad.yaml", c.text)
				if told := m.bring(); !strings.Contains(told, c.want) {
					t.Errorf("%s: want %q, got %.600s", name, c.want, told)
				}
				if diff := diffDumps(before, m.dump()); diff != "" {
					t.Errorf("%s changes the switch:\n%s", name, diff)
				}
				if err := os.Remove(filepath.Join(m.dir, "z-bad.yaml")); err != nil {
					t.Fatal(err)
				}
				if told := m.bring(); told != "" {
					t.Errorf("%s, taken away: %s", name, told)
				}
			}
		})
	}
}

// TestBrokenFileStays breaks the file of good objects, as an editor or a full disk might. The fault is
// reported with file and line. The last good objects stay until the file is corrected.
func TestBrokenFileStays(t *testing.T) {
	m := newManifestWire(t)
	before := m.dump()
	for _, c := range []struct{ name, text, want string }{
		{"cut short", hostileScene[:len(hostileScene)-30], "scene.yaml:10: did not find expected ',' or '}'; what the file held before stays"},
		{"one object refused", strings.Replace(hostileScene, "clusterIP: 10.96.0.10", "clusterIP: 10.96.0.910", 1),
			"scene.yaml:5: Service/default/web: spec.clusterIPs[0]: Invalid value: \"10.96.0.910\""},
		{"no YAML from the first line", "{" + hostileScene, "what the file held before stays"},
		{"of one object no name", strings.Replace(hostileScene, "name: guard, ", "", 1), "metadata.name: Required value"},
	} {
		m.write("scene.yaml", c.text)
		if told := m.bring(); !strings.Contains(told, c.want) {
			t.Errorf("%s: want %q, got %s", c.name, c.want, told)
		}
		if diff := diffDumps(before, m.dump()); diff != "" {
			t.Errorf("%s changes the switch:\n%s", c.name, diff)
		}
	}
	m.write("scene.yaml", strings.Replace(hostileScene, "10.96.0.10", "10.96.0.11", 1))
	if told := m.bring(); told != "" {
		t.Errorf("corrected: %s", told)
	}
	if diff := diffDumps(before, m.dump()); !strings.Contains(diff, "+ table=ServiceLB, priority=200,tcp,reg4=0x10000/0x70000,nw_dst=10.96.0.11,tp_dst=80") {
		t.Errorf("corrected, the switch differs by\n%s", diff)
	}
}
