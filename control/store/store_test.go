package store

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/internal/antrailtest"
)

// objectsOf decodes texts without faults, each as a file of its own.
func objectsOf(t testing.TB, files map[string]string) []cluster.Object {
	t.Helper()
	var out []cluster.Object
	for name, text := range files {
		d := manifest.Decode(name, []byte(text))
		for _, p := range d.Problems {
			t.Fatal(p)
		}
		out = append(out, d.Objects...)
	}
	return out
}

// say makes the Change that sets the objects of a file.
func say(t testing.TB, file, text string) Change {
	t.Helper()
	return Change{Source: file, Set: objectsOf(t, map[string]string{file: text})}
}

// problemText returns the store's problems, one a line.
func problemText(s *Store) string {
	var lines []string
	for _, p := range s.Problems() {
		lines = append(lines, p.Error())
	}
	return strings.Join(lines, "\n")
}

// TestOrderOfArrival gives the seed's objects to stores in many orders. The snapshots are equal,
// and after the deletion of all objects nothing is left.
func TestOrderOfArrival(t *testing.T) {
	objects := objectsOf(t, antrailtest.Files(t, "../testdata/seed/*.yaml"))
	var want *cluster.Cluster
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rng.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		s := NewStore(DeriveEndpoints)
		for _, obj := range objects {
			s.Apply(Change{Source: obj.Metadata().Source.File, Set: []cluster.Object{obj}})
		}
		if want == nil {
			want = s.Snapshot()
		}
		if !reflect.DeepEqual(s.Snapshot(), want) {
			t.Fatalf("seed %d: the snapshot differs: %+v", seed, s.Snapshot())
		}
		for _, obj := range objects {
			s.Apply(Change{Source: obj.Metadata().Source.File, Delete: []cluster.Key{obj.Metadata().Key}})
		}
		if !reflect.DeepEqual(s.Snapshot(), cluster.EmptyCluster()) {
			t.Fatalf("seed %d: left: %+v", seed, s.Snapshot())
		}
	}
	if got := len(want.EndpointSlices); got != 6 {
		t.Errorf("%d EndpointSlices were derived", got)
	}
}

// TestUpdate checks the Update of an Apply, and that a snapshot does not change.
func TestUpdate(t *testing.T) {
	s := NewStore(DeriveEndpoints)
	var told []Update
	first, end := s.Follow(func(u Update) { told = append(told, u) })
	a := cluster.Key{Kind: cluster.KindNamespace, Namespace: "", Name: "a"}
	u := s.Apply(say(t, "f", "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"))
	if u.Old != first || u.New.Namespaces[a] == nil || first.Namespaces[a] != nil || !slices.Equal(u.Changed, []cluster.Key{a}) {
		t.Errorf("first: %+v", u)
	}
	if u = s.Apply(say(t, "f", "# moved\n{apiVersion: v1, kind: Namespace, metadata: {name: a}}")); len(u.Changed) != 0 {
		t.Errorf("moved in its file: %v", u.Changed)
	}
	if line := s.Snapshot().Namespaces[a].Source.Line; line != 2 {
		t.Errorf("the line is %d", line)
	}
	u = s.Apply(say(t, "f", "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {x: z}}}"))
	if len(u.Changed) != 1 || u.Old.Namespaces[a].Labels["x"] != "" || u.New.Namespaces[a].Labels["x"] != "z" {
		t.Errorf("changed: %+v", u)
	}
	if reflect.ValueOf(u.Old.Pods).Pointer() != reflect.ValueOf(u.New.Pods).Pointer() {
		t.Error("the map of Pods was copied for a Namespace")
	}
	end()
	s.Apply(Change{Source: "f", Delete: []cluster.Key{a}})
	if len(told) != 2 || told[1].Old != u.Old || told[1].New != u.New {
		t.Errorf("the follower got %d updates", len(told))
	}
}

// TestTwoSources has one object in two files. The first file by name wins, in either order of
// arrival. When it goes, the other one takes over.
func TestTwoSources(t *testing.T) {
	a := say(t, "a.yaml", "{apiVersion: v1, kind: Namespace, metadata: {name: ns, labels: {from: a}}}")
	b := say(t, "b.yaml", "{apiVersion: v1, kind: Namespace, metadata: {name: ns, labels: {from: b}}}")
	for _, order := range [][]Change{{a, b}, {b, a}} {
		s := NewStore(DeriveEndpoints)
		s.Apply(order[0])
		s.Apply(order[1])
		if from := s.Snapshot().Namespace("ns").Labels["from"]; from != "a" {
			t.Errorf("from %s", from)
		}
		if got, want := problemText(s), "b.yaml:1: Namespace/ns: is there already, at a.yaml:1"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		s.Apply(Change{Source: "a.yaml", Delete: []cluster.Key{{Kind: cluster.KindNamespace, Namespace: "", Name: "ns"}}})
		if from := s.Snapshot().Namespace("ns").Labels["from"]; from != "b" || len(s.Problems()) != 0 {
			t.Errorf("then from %s, problems %v", from, s.Problems())
		}
	}
}

const antrea = "apiVersion: crd.antrea.io/v1beta1\n"

// TestRefusedBetweenObjects judges tiers, policies and groups at once, and one by one in both
// orders. The refused object is the same. In the second case, an object that was good before
// the other came stays.
func TestRefusedBetweenObjects(t *testing.T) {
	tests := map[string]struct {
		files []string
		want  string
		gone  []cluster.Key
	}{
		"two tiers of a priority": {
			[]string{antrea + "kind: Tier\nmetadata: {name: one}\nspec: {priority: 10}", antrea + "kind: Tier\nmetadata: {name: two}\nspec: {priority: 10}"},
			"1:1: Tier/two: spec.priority: tier one has priority 10 already", []cluster.Key{{Kind: cluster.KindTier, Namespace: "", Name: "two"}},
		},
		"a tier in a default one's place": {
			[]string{antrea + "kind: Tier\nmetadata: {name: one}\nspec: {priority: 250}"},
			"0:1: Tier/one: spec.priority: tier application has priority 250 already", []cluster.Key{{Kind: cluster.KindTier, Namespace: "", Name: "one"}},
		},
		"a policy without its tier": {
			[]string{antrea + "kind: ClusterNetworkPolicy\nmetadata: {name: p}\nspec: {priority: 1, tier: mine, appliedTo: [{podSelector: {}}]}"},
			"0:1: ClusterNetworkPolicy/p: spec.tier: there is no tier mine", []cluster.Key{{Kind: cluster.KindClusterNetworkPolicy, Namespace: "", Name: "p"}},
		},
		"a policy with its tier": {
			[]string{antrea + "kind: ClusterNetworkPolicy\nmetadata: {name: p}\nspec: {priority: 1, tier: mine, appliedTo: [{podSelector: {}}]}",
				antrea + "kind: Tier\nmetadata: {name: mine}\nspec: {priority: 10}"},
			"", nil,
		},
		"groups in a circle": {
			[]string{antrea + "kind: ClusterGroup\nmetadata: {name: a}\nspec: {childGroups: [b]}", antrea + "kind: ClusterGroup\nmetadata: {name: b}\nspec: {childGroups: [a]}"},
			"0:1: ClusterGroup/a: spec.childGroups[0]: group b has child groups itself\n1:1: ClusterGroup/b: spec.childGroups[0]: group a has child groups itself",
			[]cluster.Key{{Kind: cluster.KindClusterGroup, Namespace: "", Name: "a"}, {Kind: cluster.KindClusterGroup, Namespace: "", Name: "b"}},
		},
		"a group in itself": {
			[]string{antrea + "kind: Group\nmetadata: {name: a, namespace: ns}\nspec: {childGroups: [a]}"},
			"0:1: Group/ns/a: spec.childGroups[0]: group a has child groups itself", []cluster.Key{{Kind: cluster.KindGroup, Namespace: "ns", Name: "a"}},
		},
		"groups of two kinds": {
			[]string{antrea + "kind: Group\nmetadata: {name: a}\nspec: {childGroups: [b]}", antrea + "kind: ClusterGroup\nmetadata: {name: b}\nspec: {childGroups: [c]}"},
			"", nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var all []Change
			for i, file := range tt.files {
				all = append(all, say(t, fmt.Sprint(i), file))
			}
			s := NewStore(DeriveEndpoints)
			s.Apply(all...)
			if got := problemText(s); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			for _, k := range tt.gone {
				if s.Snapshot().Object(k) != nil {
					t.Errorf("%v is there", k)
				}
			}
			for range 2 {
				s := NewStore(DeriveEndpoints)
				for _, c := range all {
					s.Apply(c)
				}
				if got := strings.ReplaceAll(problemText(s), manifest.LastGoodStays, ""); got != tt.want {
					t.Errorf("one by one: got %q, want %q", got, tt.want)
				}
				for _, k := range tt.gone {
					if first := all[0].Set[0].Metadata().Key; (s.Snapshot().Object(k) != nil) != (k == first && len(all) > 1) {
						t.Errorf("one by one, %v first: %v: %v", first, k, s.Snapshot().Object(k))
					}
				}
				slices.Reverse(all)
			}
		})
	}
}

// TestRefusedRecovers ends a refusal by a change of the other object. Meanwhile the refused
// object stays as it was.
func TestRefusedRecovers(t *testing.T) {
	s := NewStore(DeriveEndpoints)
	s.Apply(say(t, "a", antrea+"kind: ClusterGroup\nmetadata: {name: a}\nspec: {childGroups: [b]}"))
	a, b := cluster.Key{Kind: cluster.KindClusterGroup, Namespace: "", Name: "a"}, cluster.Key{Kind: cluster.KindClusterGroup, Namespace: "", Name: "b"}
	u := s.Apply(say(t, "b", antrea+"kind: ClusterGroup\nmetadata: {name: b}\nspec: {childGroups: [c]}"))
	if !slices.Equal(u.Changed, []cluster.Key{b}) || u.New.Groups[a] == nil || u.New.Groups[b] == nil || s.RefusedEdits()[a] == "" {
		t.Errorf("nested: %v", u.Changed)
	}
	u = s.Apply(say(t, "b", antrea+"kind: ClusterGroup\nmetadata: {name: b}\nspec: {podSelector: {}}"))
	if !slices.Equal(u.Changed, []cluster.Key{b}) || u.New.Groups[a] == nil || len(s.Problems()) != 0 || len(s.RefusedEdits()) != 0 {
		t.Errorf("corrected: %v, %v", u.Changed, s.Problems())
	}
}

// TestDefaultTiers: the default tiers exist from the start, and still after a manifest that
// repeats one goes.
func TestDefaultTiers(t *testing.T) {
	s := NewStore(DeriveEndpoints)
	k := cluster.Key{Kind: cluster.KindTier, Namespace: "", Name: "platform"}
	s.Apply(say(t, "f", antrea+"kind: Tier\nmetadata: {name: platform}\nspec: {priority: 200}"))
	s.Apply(Change{Source: "f", Delete: []cluster.Key{k}})
	if c := s.Snapshot(); len(c.Tiers) != 6 || c.Tier("platform").Priority != 200 || c.Tier("baseline").Priority != cluster.BaselineTier {
		t.Errorf("%+v", c.Tiers)
	}
}

// TestDerive makes the slices of one Service from some Pods.
func TestDerive(t *testing.T) {
	const pods = `
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: z1}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {app: web}}, spec: {nodeName: n1, containers: [{name: c, ports: [{name: http, containerPort: 8080}]}]},
 status: {phase: Running, podIPs: [{ip: 10.0.0.1}, {ip: "fd00::1"}], conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: b, labels: {app: web}}, spec: {nodeName: n1, containers: [{name: c, ports: [{name: http, containerPort: 9090}]}]},
 status: {phase: Running, podIP: 10.0.0.2, conditions: [{type: Ready, status: "False"}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: c, labels: {app: web}, deletionTimestamp: "2024-01-01T00:00:00Z"},
 status: {phase: Running, podIP: 10.0.0.3, conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: ended, labels: {app: web}}, status: {phase: Succeeded, podIP: 10.0.0.4}}
---
{apiVersion: v1, kind: Pod, metadata: {name: new, labels: {app: web}}, status: {phase: Pending}}
---
{apiVersion: v1, kind: Pod, metadata: {name: other, labels: {app: db}}, status: {phase: Running, podIP: 10.0.0.5}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: elsewhere, labels: {app: web}}, status: {phase: Running, podIP: 10.0.0.6}}
---
`
	tests := map[string]struct{ service, want string }{
		"ports by number": {`spec: {selector: {app: web}, clusterIP: 10.96.0.1, ports: [{port: 80}]}`,
			"s:ipv4:port=80 [TCP 80]: 10.0.0.1 ready serving, 10.0.0.2, 10.0.0.3 serving terminating\n"},
		"ports by name": {`spec: {selector: {app: web}, ports: [{name: w, port: 80, targetPort: http}]}`,
			"s:ipv4:w=8080 [w TCP 8080]: 10.0.0.1 ready serving\n" +
				"s:ipv4:w=9090 [w TCP 9090]: 10.0.0.2\n" +
				"s:ipv6:w=8080 [w TCP 8080]: fd00::1 ready serving\n"},
		"some ports by name": {`spec: {selector: {app: web}, ipFamilies: [IPv4], ports: [{name: w, port: 80, targetPort: http}, {name: d, port: 53, protocol: UDP}]}`,
			"s:ipv4:d=53 [d UDP 53]: 10.0.0.3 serving terminating\n" +
				"s:ipv4:w=8080:d=53 [w TCP 8080] [d UDP 53]: 10.0.0.1 ready serving\n" +
				"s:ipv4:w=9090:d=53 [w TCP 9090] [d UDP 53]: 10.0.0.2\n"},
		"not ready too": {`spec: {selector: {app: web}, publishNotReadyAddresses: true, clusterIP: 10.96.0.1, ports: [{port: 80}]}`,
			"s:ipv4:port=80 [TCP 80]: 10.0.0.1 ready serving, 10.0.0.2 ready, 10.0.0.3 ready serving terminating\n"},
		"near": {`spec: {selector: {app: web}, trafficDistribution: PreferClose, clusterIP: "fd00:96::1", ports: [{port: 80}]}`,
			"s:ipv6:port=80 [TCP 80]: fd00::1 ready serving for [z1]\n"},
		"same node": {`spec: {selector: {app: web}, trafficDistribution: PreferSameNode, ipFamilies: [IPv6], ports: [{port: 80}]}`,
			"s:ipv6:port=80 [TCP 80]: fd00::1 ready serving for [n1]\n"},
		"without selector": {`spec: {ports: [{port: 80}]}`, ""},
		"nobody":           {`spec: {selector: {app: nobody}, ports: [{port: 80}]}`, ""},
		"external name":    {`spec: {type: ExternalName, externalName: example.org, selector: {app: web}, ports: [{port: 80}]}`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := NewStore(DeriveEndpoints)
			s.Apply(say(t, "f", pods+"apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"+tt.service))
			if got := sliceText(s.Snapshot().SlicesOf(cluster.Name{Namespace: "default", Name: "s"})); got != tt.want {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
		})
	}
}

// sliceText writes slices, one a line.
func sliceText(slices []*cluster.EndpointSlice) string {
	var b strings.Builder
	for _, s := range slices {
		b.WriteString(s.Key.Name)
		for _, p := range s.Ports {
			fmt.Fprintf(&b, " [%s]", strings.TrimSpace(fmt.Sprint(p.Name, " ", p.Protocol, " ", p.Number)))
		}
		sep := ": "
		for _, e := range s.Endpoints {
			b.WriteString(sep + e.Addresses[0].String())
			for word, is := range []bool{e.Ready, e.Serving, e.Terminating} {
				if is {
					b.WriteString([]string{" ready", " serving", " terminating"}[word])
				}
			}
			if hints := append(e.ForZones, e.ForNodes...); len(hints) > 0 {
				fmt.Fprintf(&b, " for %v", hints)
			}
			sep = ", "
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestGivenSlices: given slices replace derived ones. When they go, the derived ones return.
func TestGivenSlices(t *testing.T) {
	s := NewStore(DeriveEndpoints)
	s.Apply(say(t, "pods", `
{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {app: web}}, status: {podIP: 10.0.0.1}}
---
{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {selector: {app: web}, ports: [{port: 80}]}}`))
	svc := cluster.Name{Namespace: "default", Name: "s"}
	derived := s.Snapshot().SlicesOf(svc)
	if len(derived) != 1 || !derived[0].Derived {
		t.Fatalf("derived: %v", derived)
	}
	given := say(t, "slice", "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: e, labels: {kubernetes.io/service-name: s}}\naddressType: IPv4\nendpoints: [{addresses: [10.9.9.9]}]")
	u := s.Apply(given)
	if now := u.New.SlicesOf(svc); len(now) != 1 || now[0].Derived || len(u.Changed) != 2 {
		t.Errorf("given: %v, changed %v", now, u.Changed)
	}
	s.Apply(say(t, "pods", "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {app: web}}, status: {podIP: 10.0.0.2}}"))
	if now := s.Snapshot().SlicesOf(svc); len(now) != 1 || now[0].Derived {
		t.Errorf("after a Pod: %v", now)
	}
	s.Apply(Change{Source: "slice", Delete: []cluster.Key{given.Set[0].Metadata().Key}})
	if got := sliceText(s.Snapshot().SlicesOf(svc)); got != "s:ipv4:port=80 [TCP 80]: 10.0.0.2\n" {
		t.Errorf("gone: %q", got)
	}
	g := NewStore(GivenEndpoints)
	g.Apply(Change{Source: "pods", Set: []cluster.Object{s.Snapshot().Service(svc), s.Snapshot().Pod(cluster.Name{Namespace: "default", Name: "a"})}})
	if n := len(g.Snapshot().EndpointSlices); n != 0 {
		t.Errorf("%d slices derived where all are given", n)
	}
}

// TestDeriveStepByStep makes random changes in a small cluster. The derived slices are those
// that a derivation from the last snapshot alone makes.
func TestDeriveStepByStep(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, seed))
	s := NewStore(DeriveEndpoints)
	for step := range 2000 {
		s.Apply(randomChange(rng), randomChange(rng))
		c := s.Snapshot()
		var got []*cluster.EndpointSlice
		for _, slice := range c.EndpointSlices {
			if slice.Derived {
				got = append(got, slice)
			}
		}
		slices.SortFunc(got, func(a, b *cluster.EndpointSlice) int { return a.Key.Compare(b.Key) })
		if want := derivedAnew(c); !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d: got\n%swant\n%s", step, sliceText(got), sliceText(want))
		}
		checkIndex(t, c)
	}
}

// derivedAnew derives the EndpointSlices of a snapshot's Services from its Pods alone, in order
// of their keys.
func derivedAnew(c *cluster.Cluster) (all []*cluster.EndpointSlice) {
	d := newDerivation()
	for _, p := range c.Pods {
		d.addPod(p)
	}
	for _, svc := range c.Services {
		given := func(s *cluster.EndpointSlice) bool { return !s.Derived }
		if !slices.ContainsFunc(c.SlicesOf(cluster.Name{Namespace: svc.Key.Namespace, Name: svc.Key.Name}), given) {
			all = append(all, d.derive(c, svc)...)
		}
	}
	slices.SortFunc(all, func(a, b *cluster.EndpointSlice) int { return a.Key.Compare(b.Key) })
	return all
}

// randomChange sets or deletes one of few objects.
func randomChange(rng *rand.Rand) Change {
	pick := func(names ...string) string { return names[rng.IntN(len(names))] }
	ns := pick("a", "b")
	labels := cluster.Labels{"app": pick("x", "y"), "v": pick("1", "2")}
	var obj cluster.Object
	switch rng.IntN(7) {
	case 0, 1, 2:
		obj = &cluster.Pod{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindPod, Namespace: ns, Name: pick("p", "q", "r")}, Labels: labels}, Ready: rng.IntN(2) == 0,
			NodeName: pick("n", "m"), Phase: cluster.PodPhase(pick("Running", "Failed")), IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(rng.IntN(4))})},
			Ports: []cluster.ContainerPort{{Name: pick("http", "other"), Number: uint16(80 + rng.IntN(2)), Protocol: cluster.TCP}}}
	case 3, 4:
		obj = &cluster.Service{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindService, Namespace: ns, Name: pick("s", "t")}}, Selector: cluster.Labels{"app": pick("x", "y")},
			Ports: []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80, TargetPort: cluster.PortRef{Name: "http"}}}}
	case 5:
		obj = &cluster.EndpointSlice{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindEndpointSlice, Namespace: ns, Name: "e"}}, Service: cluster.Name{Namespace: ns, Name: pick("s", "t", "")}, Family: 4}
	default:
		obj = &cluster.Node{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindNode, Namespace: "", Name: pick("n", "m")}, Labels: cluster.Labels{"topology.kubernetes.io/zone": pick("z1", "z2")}}}
	}
	if rng.IntN(4) == 0 {
		return Change{Source: "f", Delete: []cluster.Key{obj.Metadata().Key}}
	}
	obj.Metadata().Source = cluster.Source{File: "f", Line: rng.IntN(3)}
	return Change{Source: "f", Set: []cluster.Object{obj}}
}

// checkIndex compares the index of slices with the slices.
func checkIndex(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	count := 0
	for name, list := range c.ServiceSlices {
		for _, s := range list {
			if c.EndpointSlices[s.Key] == nil || s.Service != name {
				t.Fatalf("index of %v has %v", name, s.Key)
			}
			count++
		}
	}
	for _, s := range c.EndpointSlices {
		if s.Service.Name != "" {
			count--
		}
	}
	if count != 0 {
		t.Fatalf("the index has %d slices too many", count)
	}
}
