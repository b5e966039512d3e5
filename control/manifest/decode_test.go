package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/internal/antrailtest"
)

// decodeOne decodes a text with one object and no problem.
func decodeOne[P cluster.Object](t *testing.T, text string) P {
	t.Helper()
	d := Decode("test.yaml", []byte(text))
	for _, p := range d.Problems {
		t.Error(p)
	}
	if len(d.Objects) != 1 {
		t.Fatalf("%d objects", len(d.Objects))
	}
	return d.Objects[0].(P)
}

// TestSeedObjects reads the manifests of the seed's cluster without a problem.
func TestSeedObjects(t *testing.T) {
	counts := map[cluster.Kind]int{}
	for file, text := range antrailtest.Files(t, "../testdata/seed/*.yaml") {
		d := Decode(file, []byte(text))
		for _, p := range d.Problems {
			t.Error(p)
		}
		for _, obj := range d.Objects {
			counts[obj.Metadata().Key.Kind]++
		}
	}
	want := map[cluster.Kind]int{cluster.KindNode: 2, cluster.KindNamespace: 1, cluster.KindPod: 4, cluster.KindService: 7, cluster.KindEgress: 2,
		cluster.KindTrafficControl: 2, cluster.KindNetworkPolicy: 1, cluster.KindClusterNetworkPolicy: 2, cluster.KindNodeConfig: 1}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error(diff)
	}
}

// TestRefused reads manifests with faults. Each fault has a problem with its line; there are no other
// problems.
func TestRefused(t *testing.T) {
	for file, text := range antrailtest.Files(t, "testdata/refused/*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := map[int]string{}
			for _, p := range Decode(file, []byte(text)).Problems {
				if p.Source.File != file {
					t.Errorf("the problem names another file: %v", p)
				}
				got[p.Source.Line] += p.Error() + "\n"
			}
			for i, line := range strings.Split(text, "\n") {
				_, want, expected := strings.Cut(line, "# refused: ")
				if !expected && got[i+1] != "" {
					t.Errorf("line %d has the problem %s", i+1, got[i+1])
				}
				for _, part := range strings.Split(want, "; ") {
					if !strings.Contains(got[i+1], part) {
						t.Errorf("line %d: want %q, got %q", i+1, part, got[i+1])
					}
				}
			}
		})
	}
}

// TestRefusedAlone: a refused object affects no other object, and its key is known.
func TestRefusedAlone(t *testing.T) {
	d := Decode("f.yaml", []byte(`
{apiVersion: v1, kind: Namespace, metadata: {name: a}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a}, spec: {unknown: 1}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: b}}
`))
	if len(d.Objects) != 2 || d.Broken {
		t.Errorf("%d objects, broken %v", len(d.Objects), d.Broken)
	}
	if want := []cluster.Key{{Kind: cluster.KindPod, Namespace: "a", Name: "p"}}; !reflect.DeepEqual(d.Refused, want) {
		t.Errorf("refused: %v", d.Refused)
	}
	want := "f.yaml:4: Pod/a/p: spec.unknown: unknown field"
	if got := d.Problems[0].Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSyntaxError: a document with a syntax error affects no other document.
func TestSyntaxError(t *testing.T) {
	d := Decode("f.yaml", []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\na: b: c\n---\n"+
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n"))
	if len(d.Objects) != 2 || !d.Broken || len(d.Problems) != 1 {
		t.Fatalf("%d objects, broken %v, problems %v", len(d.Objects), d.Broken, d.Problems)
	}
	if got := d.Problems[0].Error(); got != "f.yaml:5: mapping values are not allowed in this context" {
		t.Error(got)
	}
	if line := d.Objects[1].Metadata().Source.Line; line != 7 {
		t.Errorf("the last object is at line %d", line)
	}
}

// TestForms reads one object in each valid form of a file.
func TestForms(t *testing.T) {
	forms := map[string]string{
		"json":         `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"x": "1"}}}`,
		"list":         "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {x: '1'}}}",
		"typed list":   "apiVersion: v1\nkind: NamespaceList\nmetadata: {resourceVersion: '1'}\nitems:\n- metadata: {name: a, labels: {x: '1'}}",
		"comments":     "# head\n---\n# nothing\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: {x: '1'}}\n---\n",
		"directive":    "%YAML 1.2\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: {x: '1'}}\n",
		"crlf":         "apiVersion: v1\r\nkind: Namespace\r\nmetadata: {name: a, labels: {x: '1'}}\r\n---\r\n",
		"anchor":       "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: &n a\n  labels: {x: '1'}\n  annotations: {y: *n}\n",
		"merge":        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  annotations: &l {x: '1'}\n  labels: {<<: *l}\n",
		"server sends": `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","labels":{"x":"1"},"uid":"u","creationTimestamp":"2024-01-01T00:00:00Z","managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}}]},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`,
	}
	for name, text := range forms {
		t.Run(name, func(t *testing.T) {
			ns := decodeOne[*cluster.Namespace](t, text)
			want := cluster.Meta{Key: cluster.Key{Kind: cluster.KindNamespace, Namespace: "", Name: "a"}, Labels: cluster.Labels{"x": "1", cluster.NamespaceNameLabel: "a"}, Source: ns.Source}
			if diff := cmp.Diff(want, ns.Meta); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLoopbackNodePorts: the IPv4 loopback address is accepted, the IPv6 one refused.
func TestLoopbackNodePorts(t *testing.T) {
	const node = "apiVersion: antrail.io/v1alpha1\nkind: NodeConfig\nmetadata: {name: a}\nspec:\n" +
		"  gateway: {name: gw0, ofPort: 2, mac: \"ba:5e:d1:55:aa:c0\", ips: [10.10.0.1]}\n  nodePortAddresses: [127.0.0.1%s]\n"
	if n := decodeOne[*cluster.NodeConfig](t, fmt.Sprintf(node, "")); len(n.NodePortAddresses) != 1 {
		t.Errorf("addresses %v", n.NodePortAddresses)
	}
	d := Decode("test.yaml", fmt.Appendf(nil, node, `, "::1"`))
	if len(d.Problems) != 1 || !strings.Contains(d.Problems[0].Error(), `spec.nodePortAddresses[1]: Invalid value: "::1"`) {
		t.Errorf("problems %v", d.Problems)
	}
}

// TestHostileText: hostile text is refused with a reason and little work.
func TestHostileText(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat("*"+string(c-1)+",", 10))
	}
	merges := "a: &a {k: v}\n"
	for c := 'b'; c < 'z'; c++ {
		merges += fmt.Sprintf("%c: &%c {<<: [%s]}\n", c, c, strings.Repeat("*"+string(c-1)+",", 10))
	}
	texts := map[string]struct{ text, want string }{
		"merges":     {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n" + merges, "more than"},
		"many":       {strings.Repeat("- a\n---\n", maxDocs+1), "more than 200000 documents"},
		"deep":       {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: " + strings.Repeat("[", 500), "did not find expected"},
		"nested":     {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: " + strings.Repeat("[", 500) + strings.Repeat("]", 500), "nested more than"},
		"bomb":       {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n" + bomb, "larger than"},
		"cycle":      {"apiVersion: v1\nkind: Pod\nmetadata: &m {name: a, annotations: *m}\n", "nested more than"},
		"values":     {"a: [" + strings.Repeat(",", maxValues+1), "more than 1000000 values"},
		"long key":   {"apiVersion: v1\nkind: Pod\nmetadata: {name: " + strings.Repeat("a", 100000) + "}\n", "metadata.name"},
		"long label": {"apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {a: " + strings.Repeat("a", 100000) + "}}\n", "metadata.labels"},
		"long field": {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {" + strings.Repeat("a", 1000) + ": 1}\n", "unknown field"},
		"large":      {"apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {a: \"" + strings.Repeat("a", maxObject) + "\"}}\n", "larger than"},
		"infinite":   {"apiVersion: v1\nkind: Pod\nmetadata: {name: a, generation: .inf}\n", "not a number"},
	}
	for name, tt := range texts {
		t.Run(name, func(t *testing.T) {
			d := Decode("f.yaml", []byte(tt.text))
			if len(d.Objects) != 0 || len(d.Problems) == 0 {
				t.Fatalf("%d objects, problems %v", len(d.Objects), d.Problems)
			}
			got := d.Problems[0].Error()
			if !strings.Contains(got, tt.want) || len(got) > 1000 {
				t.Errorf("want %q, got %.1000q", tt.want, got)
			}
		})
	}
}

// TestAsKubectl compares the JSON of manifests with that of kubectl's library.
func TestAsKubectl(t *testing.T) {
	files := antrailtest.Files(t, "../testdata/seed/*.yaml")
	files["scalars"] = "a: yes\nb: 'yes'\nc: 0x1f\nd: 017\ne: 1.5\nf: 1e3\ng: ~\nh: 2024-01-01\ni: |\n  a\n  b\n" +
		"j: >-\n  a\n  b\nk: \"\\u00e9<\"\nl: .5\nm: -3\nn: \"0x1f\"\n1: one\n8080: [on, Off]\no: 12345678901234567890\np: &p {q: 1}\nr: {<<: *p, s: 2}\n"
	for file, text := range files {
		for _, doc := range documents(text) {
			root, fault := doc.parse()
			if fault != nil {
				t.Fatalf("%s: %v", file, fault)
			}
			ours, _, fault := toJSON(root)
			if fault != nil {
				t.Fatalf("%s: %v", file, fault)
			}
			theirs, err := yaml.YAMLToJSON([]byte(doc.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decodeAny(t, theirs), decodeAny(t, ours)); diff != "" {
				t.Errorf("%s:%d: %s", file, doc.line, diff)
			}
		}
	}
}

func decodeAny(t *testing.T, text []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// TestManyProblems: at most a thousand problems of a file and ten of an object are listed.
func TestManyProblems(t *testing.T) {
	d := Decode("f", []byte(strings.Repeat("{apiVersion: v1, kind: Other}\n---\n", 5000)))
	if n := len(d.Problems); n != maxTold+1 || d.Problems[maxTold].Reason != "and more from here on" {
		t.Errorf("%d problems are listed", n)
	}
	d = Decode("f", []byte(`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: None, ports: [`+
		strings.Repeat("{name: a, port: 0},", 30)+`]}}`))
	if n := len(d.Problems); n != maxReasons+1 || !strings.Contains(d.Problems[maxReasons].Reason, "and 49 more") {
		t.Errorf("%d problems are listed: %v", n, d.Problems)
	}
}

// FuzzDecode: for any text, Decode does not panic, names only lines of the text, and returns no key
// twice.
func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"../testdata/seed/*.yaml", "testdata/refused/*.yaml"} {
		for _, text := range antrailtest.Files(f, pattern) {
			f.Add(text)
			for _, doc := range documents(text) {
				f.Add(doc.text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := Decode("fuzz", []byte(text))
		lines := 1 // as YAML counts them
		for _, br := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
			lines += strings.Count(text, br)
		}
		seen := map[cluster.Key]bool{}
		for _, obj := range d.Objects {
			m := obj.Metadata()
			if m.Key.Name == "" || seen[m.Key] || m.Source.Line < 1 || m.Source.Line > lines {
				t.Errorf("object %v at %v of %d lines", m.Key, m.Source, lines)
			}
			seen[m.Key] = true
		}
		for _, p := range d.Problems {
			if p.Source.Line < 1 || p.Source.Line > lines+1 || p.Reason == "" {
				t.Errorf("problem %q at line %d of %d", p.Reason, p.Source.Line, lines)
			}
		}
	})
}
