package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
)

// The cluster of the benchmarks has 10,000 Pods on 100 Nodes, 5,000 Services with ten Pods each,
// and 1,000 policies with ten rules each.
const (
	loadPods     = 10_000
	loadServices = 5_000
	loadPolicies = 1_000
)

// podText is a Pod that the selectors of two in a thousand Services choose.
func podText(i int, version string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: pod-%d
  namespace: ns-%d
  labels: {app: app-%d, pod-template-hash: h%d, version: "%s"}
spec:
  nodeName: node-%d
  containers:
    - {name: c, image: example, ports: [{name: http, containerPort: 8080, protocol: TCP}]}
status:
  phase: Running
  podIP: 10.%d.%d.%d
  podIPs: [{ip: 10.%d.%d.%d}]
  conditions: [{type: Ready, status: "True"}]
---
`, i, i%10, i/10%100, i%7, version, i%100, i>>16, i>>8&255, i&255, i>>16, i>>8&255, i&255)
}

func serviceText(i int) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: svc-%d, namespace: ns-%d}
spec:
  clusterIP: 10.96.%d.%d
  selector: {app: app-%d}
  ports: [{name: http, port: 80, targetPort: http}]
---
`, i, i%10, i>>8, i&255, i/10%100)
}

func policyText(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: np-%d, namespace: ns-%d}\nspec:\n"+
		"  podSelector: {matchLabels: {app: app-%d}}\n  ingress:\n", i, i%10, i%100)
	for r := range 10 {
		fmt.Fprintf(&b, "    - from: [{podSelector: {matchLabels: {app: app-%d}}}]\n      ports: [{protocol: TCP, port: %d}]\n", (i+r)%100, 8000+r)
	}
	return b.String() + "---\n"
}

// largeManifests writes the cluster into a few files.
func largeManifests(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	file := func(name string, n int, one func(int) string) {
		var text strings.Builder
		for i := range n {
			text.WriteString(one(i))
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	file("pods.yaml", loadPods, func(i int) string { return podText(i, "1") })
	file("services.yaml", loadServices, serviceText)
	file("policies.yaml", loadPolicies, policyText)
	return dir
}

// BenchmarkLoadManifests reads a large cluster into an empty store.
func BenchmarkLoadManifests(b *testing.B) {
	dir := largeManifests(b)
	b.ReportAllocs()
	for b.Loop() {
		c, problems, err := LoadManifests(dir)
		if err != nil || len(problems) > 0 || len(c.Pods) != loadPods {
			b.Fatal(err, len(problems), len(c.Pods))
		}
		endpoints := 0
		for _, s := range c.EndpointSlices {
			endpoints += len(s.Endpoints)
		}
		b.ReportMetric(float64(endpoints), "endpoints")
	}
}

// BenchmarkOnePod changes one Pod of a large cluster, first in the store alone, then in the
// file of all Pods, which is read again.
func BenchmarkOnePod(b *testing.B) {
	dir := largeManifests(b)
	store := NewStore(DeriveEndpoints)
	m, err := NewManifests(dir, store)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("store", func(b *testing.B) {
		a, z := manifest.Decode("x", []byte(podText(1, "1"))), manifest.Decode("x", []byte(podText(1, "2")))
		source := filepath.Join(dir, "pods.yaml")
		for _, d := range []*manifest.Decoded{a, z} {
			d.Objects[0].Metadata().Source.File = source
		}
		for i := 0; b.Loop(); i++ {
			store.Apply(Change{Source: source, Set: [][]cluster.Object{z.Objects, a.Objects}[i%2]})
		}
	})
	b.Run("file", func(b *testing.B) {
		name := filepath.Join(dir, "pods.yaml")
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "---\n")
		for i := 0; b.Loop(); i++ {
			if err := os.WriteFile(name, []byte(podText(0, fmt.Sprint(i))+rest), 0o600); err != nil {
				b.Fatal(err)
			}
			if u := m.Read(); len(u.Changed) != 1 {
				b.Fatal("changed", u.Changed)
			}
		}
	})
}
