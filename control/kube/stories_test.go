package kube

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/internal/kubetest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The stories of package control (control/testdata/stories) through an API server. After each step
// the store has the same objects as with manifests. The tests of package control check the rest.

const storyDir = "../testdata/stories/"

// storyStep is a file of a story.
type storyStep struct{ name, text string }

// readStory reads a file in txtar form, without its expectations.
func readStory(t *testing.T, path string) (steps []storyStep) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split("\n"+string(text), "\n-- ") {
		name, body, _ := strings.Cut(part, " --\n")
		if i > 0 && filepath.Ext(name) != ".want" {
			steps = append(steps, storyStep{name, body + "\n"})
		}
	}
	return steps
}

// publishedAs has the API's names of kinds.
func publishedAs(k cluster.Kind) (apiVersion, kind string) {
	switch k {
	case cluster.KindNode, cluster.KindNamespace, cluster.KindPod, cluster.KindService:
		return "v1", string(k)
	case cluster.KindEndpointSlice:
		return "discovery.k8s.io/v1", string(k)
	case cluster.KindNetworkPolicy:
		return "networking.k8s.io/v1", string(k)
	case cluster.KindAntreaNetworkPolicy:
		return "crd.antrea.io/v1beta1", "NetworkPolicy"
	}
	return "crd.antrea.io/v1beta1", string(k)
}

// telling is a running story, with the store that manifests fill.
type telling struct {
	*following
	api  server
	want *store.Store
}

// step applies a file of a story to both.
func (x *telling) step(s storyStep) {
	x.t.Helper()
	if filepath.Ext(s.name) == ".delete" {
		x.remove(s)
		return
	}
	d := manifest.Decode(SourceName, []byte(s.text))
	for _, p := range d.Problems {
		x.t.Fatal(p)
	}
	x.want.Apply(store.Change{Source: SourceName, Set: d.Objects})
	for doc := range strings.SplitSeq("\n"+s.text, "\n---") {
		if !strings.Contains(doc, "kind: NodeConfig") {
			x.api.Apply(doc)
		}
	}
	for _, o := range d.Objects {
		if own, ok := o.(*cluster.NodeConfig); ok {
			copied := *own
			copied.Source.File = "configuration"
			x.store.Apply(store.Change{Source: "configuration", Set: []cluster.Object{&copied}})
		}
	}
}

func (x *telling) remove(s storyStep) {
	x.t.Helper()
	for line := range strings.Lines(s.text) {
		words := strings.Split(strings.TrimSpace(line), "/")
		if len(words) < 2 {
			continue
		}
		k := cluster.Key{Kind: cluster.Kind(words[0]), Name: words[len(words)-1]}
		if len(words) == 3 {
			k.Namespace = words[1]
		}
		if k.Kind == cluster.KindNodeConfig {
			x.store.Apply(store.Change{Source: "configuration", Delete: []cluster.Key{k}})
			continue
		}
		x.want.Apply(store.Change{Source: SourceName, Delete: []cluster.Key{k}})
		apiVersion, kind := publishedAs(k.Kind)
		x.api.Delete(apiVersion, kind, k.Namespace, k.Name)
	}
}

// alike removes the fields that only one of the two sources knows.
var alike = cmp.Options{
	cmp.Exporter(func(reflect.Type) bool { return true }),
	cmp.FilterPath(func(p cmp.Path) bool {
		f, ok := p.Last().(cmp.StructField)
		return ok && (f.Name() == "Source" || f.Name() == "UID" || f.Name() == "Generation")
	}, cmp.Ignore()),
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmpopts.EquateEmpty(),
}

// expected is the snapshot from manifests, without the Pods that the source does not watch.
func (x *telling) expected() *cluster.Cluster {
	c := *x.want.Snapshot()
	c.Pods = map[cluster.Key]*cluster.Pod{}
	for k, p := range x.want.Snapshot().Pods {
		if p.NodeName == "node-a" || p.NodeName != "" && !p.Terminated() {
			c.Pods[k] = p
		}
	}
	return &c
}

func TestStories(t *testing.T) {
	base, err := os.ReadFile(storyDir + "node.yaml")
	if err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob(storyDir + "*.txtar")
	if len(paths) < 10 {
		t.Fatalf("only %d stories", len(paths))
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			api := kubetest.New(t)
			f := follow(t, api, func(s *Source) { s.store = store.NewStore(store.DeriveEndpoints) })
			f.store = f.Source.store
			x := &telling{f, api, store.NewStore(store.DeriveEndpoints)}
			x.step(storyStep{"node.yaml", string(base)})
			x.synced()
			for _, s := range readStory(t, path) {
				x.step(s)
				var diff string
				t.Cleanup(func() {
					if diff != "" {
						t.Log(diff)
					}
				})
				x.until(s.name, func() bool {
					diff = cmp.Diff(x.expected(), x.store.Snapshot(), alike)
					return diff == ""
				})
			}
		})
	}
}
