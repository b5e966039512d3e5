package control

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/flow"
)

// The cluster of the scale figures.
const (
	scalePods      = 10_000
	scaleLocal     = 100 // of the Pods, on this Node
	scaleServices  = 5_000
	scaleEndpoints = 10 // for each Service
	scalePolicies  = 1_000
	scaleRules     = 10 // for each policy
)

// scaleCluster makes a snapshot of that size from objects. Other benchmarks measure reading manifests.
func scaleCluster() *store.Store {
	s := store.NewStore(store.GivenEndpoints)
	var objects []cluster.Object
	objects = append(objects, scaleNodes()...)
	for i := range scalePods {
		objects = append(objects, scalePod(i))
	}
	for i := range scaleServices {
		objects = append(objects, scaleService(i), scaleSlice(i, scaleEndpoints))
	}
	for i := range scalePolicies {
		objects = append(objects, scalePolicy(i))
	}
	s.Apply(store.Change{Source: storyFile, Set: objects})
	return s
}

func meta(kind cluster.Kind, namespace, name string) cluster.Meta {
	return cluster.Meta{Key: cluster.Key{Kind: kind, Namespace: namespace, Name: name}, Source: cluster.Source{File: storyFile}}
}

func scaleNodes() []cluster.Object {
	config := &cluster.NodeConfig{Meta: meta(cluster.KindNodeConfig, "", "node-a"), ProxyAll: true,
		Gateway:      cluster.GatewayPort{Name: "antrea-gw0", OFPort: 2, MAC: [6]byte{2}, IPs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}},
		Tunnel:       cluster.TunnelPort{Name: "antrea-tun0", OFPort: 1},
		TransportIPs: []netip.Addr{netip.MustParseAddr("192.168.0.1")}}
	for i := range scaleLocal {
		config.Ports = append(config.Ports, cluster.SwitchPort{Name: fmt.Sprintf("pod%d", i), OFPort: uint32(100 + i),
			Pod: cluster.Name{Namespace: "ns", Name: fmt.Sprintf("p%d", i)}, MAC: [6]byte{2, 1, 0, 0, byte(i >> 8), byte(i)}})
	}
	objects := []cluster.Object{config}
	for i := range scalePods / scaleLocal {
		name := fmt.Sprintf("node-%d", i)
		if i == 0 {
			name = "node-a"
		}
		objects = append(objects, &cluster.Node{Meta: meta(cluster.KindNode, "", name),
			PodCIDRs:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24)},
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 168, 0, byte(i + 1)})}})
	}
	return objects
}

func scalePod(i int) *cluster.Pod {
	node := "node-a"
	if n := i / scaleLocal; n > 0 {
		node = fmt.Sprintf("node-%d", n)
	}
	return &cluster.Pod{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindPod, Namespace: "ns", Name: fmt.Sprintf("p%d", i)}, Source: cluster.Source{File: storyFile},
		Labels: cluster.Labels{"app": fmt.Sprintf("app%d", i%scalePolicies)}},
		NodeName: node, IPs: []netip.Addr{scalePodIP(i)}, Phase: cluster.PodRunning, Ready: true}
}

func scalePodIP(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(i / scaleLocal), byte(i%scaleLocal + 10)})
}

func scaleService(i int) *cluster.Service {
	return &cluster.Service{Meta: meta(cluster.KindService, "ns", fmt.Sprintf("s%d", i)), Type: cluster.ClusterIPService,
		ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)})},
		Ports:      []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80, TargetPort: cluster.PortRef{Number: 8080}}}}
}

func scaleSlice(i, endpoints int) *cluster.EndpointSlice {
	s := &cluster.EndpointSlice{Meta: meta(cluster.KindEndpointSlice, "ns", fmt.Sprintf("s%d", i)),
		Service: cluster.Name{Namespace: "ns", Name: fmt.Sprintf("s%d", i)}, Family: 4, Ports: []cluster.EndpointPort{{Protocol: cluster.TCP, Number: uint16(1024 + i)}}}
	for e := range endpoints {
		pod := (i*scaleEndpoints + e) % scalePods
		s.Endpoints = append(s.Endpoints, cluster.Endpoint{Addresses: []netip.Addr{scalePodIP(pod)}, Ready: true, Serving: true})
	}
	return s
}

// scalePolicy applies to Pods of one application. Each of its ten rules lets in another application.
func scalePolicy(i int) *cluster.NetworkPolicy {
	np := &cluster.NetworkPolicy{Meta: meta(cluster.KindNetworkPolicy, "ns", fmt.Sprintf("np%d", i)), Ingress: true,
		Pods: cluster.SelectLabels(cluster.Labels{"app": fmt.Sprintf("app%d", i%scaleLocal)})}
	for r := range scaleRules {
		from := cluster.SelectLabels(cluster.Labels{"app": fmt.Sprintf("app%d", (i*scaleRules+r)%scalePolicies)})
		np.IngressRules = append(np.IngressRules, cluster.NetworkPolicyRule{
			Peers: []cluster.NetworkPolicyPeer{{Pods: &from}},
			Ports: []cluster.PolicyPort{{Protocol: cluster.TCP, Port: cluster.PortRef{Number: uint16(8000 + r)}}}})
	}
	return np
}

// BenchmarkLoad makes the pipeline of a large cluster, in the model and in the switch. crowd is a cluster with
// 10,000 rules that let in all of its Pods. It reports:
//
//   - the CPU time of all threads, which other load on the machine does not affect;
//   - the heap of cluster, reconciler and switch;
//   - all mapped memory of the process, which includes other tests' data.
//
// So run one case alone, with -benchtime 1x.
func BenchmarkLoad(b *testing.B) {
	for _, c := range []struct {
		name string
		more []cluster.Object // of the cluster
		to   func(*testing.B) ledger.Installer
	}{
		{"model", nil, func(*testing.B) ledger.Installer { return ledger.NewMemorySwitch() }},
		{"switch", nil, func(b *testing.B) ledger.Installer { return newRealSwitch(b) }},
		{"crowd", lettingIn(cluster.Selector{}), func(b *testing.B) ledger.Installer { return newRealSwitch(b) }},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkLoad(b, c.more, c.to) })
	}
}

func benchmarkLoad(b *testing.B, more []cluster.Object, to func(*testing.B) ledger.Installer) {
	before := heapMiB()
	objects := scaleCluster()
	objects.Apply(store.Change{Source: storyFile, Set: more})
	var heap float64
	cpu := cpuTime(b)
	for b.Loop() {
		sw := to(b)
		r := load(b, objects, sw)
		b.StopTimer()
		cpu -= cpuTime(b)
		heap = heapMiB() - before
		runtime.KeepAlive(r)
		runtime.KeepAlive(sw)
		cpu += cpuTime(b)
		b.StartTimer()
	}
	reportCPU(b, cpuTime(b)-cpu)
	b.ReportMetric(heap, "MiB-heap")
	b.ReportMetric(mappedMiB(), "MiB-mapped")
}

func load(b *testing.B, objects *store.Store, to ledger.Installer) *Reconciler {
	r := NewReconciler("node-a", to, time.Now)
	if err := r.Update(objects.Snapshot(), nil); err != nil {
		b.Fatal(err)
	}
	return r
}

// cpuTime is the CPU time of the process so far, in user mode and kernel, with its garbage collector.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func reportCPU(b *testing.B, used time.Duration) {
	b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "ms-cpu/op")
}

func heapMiB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// mappedMiB is all memory that the runtime has mapped.
func mappedMiB() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.Sys) / (1 << 20)
}

// BenchmarkChange measures one changed object of a large cluster, from the store's Apply to the switch. It reports
// the maximum of half of the changes, of 99 in 100 and of all, and the switch's own share.
func BenchmarkChange(b *testing.B) {
	unknown, known := podNamed(9_001, "none"), podNamed(9_001, "everybody")
	everybody := cluster.SelectLabels(cluster.Labels{"app": "everybody"})
	for _, c := range []struct {
		name string
		more []cluster.Object // of the cluster
		to   [2]cluster.Object
	}{
		{"Endpoint", nil, [2]cluster.Object{scaleSlice(77, scaleEndpoints-1), scaleSlice(77, scaleEndpoints)}},
		{"RemotePod", nil, [2]cluster.Object{podNamed(9_001, "none"), scalePod(9_001)}},
		{"LocalPod", nil, [2]cluster.Object{podNamed(7, "none"), scalePod(7)}},
		{"FirstPodOfAllPolicies", appliedTo(everybody), [2]cluster.Object{podNamed(7, "none"), podNamed(7, "everybody")}},
		{"LocalPodOfAllPolicies", append(appliedTo(everybody), podNamed(8, "everybody")), [2]cluster.Object{podNamed(7, "none"), podNamed(7, "everybody")}},
		{"PodOfAllRules", lettingIn(everybody), [2]cluster.Object{unknown, known}},
		{"PodOfCrowd", lettingIn(cluster.Selector{}), [2]cluster.Object{podMoved(9_001), scalePod(9_001)}},
		{"PodOfAllRanks", rankedNamingAll(), [2]cluster.Object{unknown, known}},
	} {
		b.Run(c.name, func(b *testing.B) {
			objects := scaleCluster()
			objects.Apply(store.Change{Source: storyFile, Set: c.more})
			sw := newRealSwitch(b)
			measureChanges(b, objects, load(b, objects, sw), sw, c.to)
		})
	}
}

// measureChanges alternates between two states of an object.
func measureChanges(b *testing.B, objects *store.Store, r *Reconciler, sw *realSwitch, to [2]cluster.Object) {
	var took []time.Duration
	sw.took = nil
	runtime.GC() // building the cluster is not part of a change
	cpu := cpuTime(b)
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		u := objects.Apply(store.Change{Source: storyFile, Set: []cluster.Object{to[i%2]}})
		if err := r.Update(u.New, u.Changed); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	reportCPU(b, cpuTime(b)-cpu)
	slices.Sort(took)
	slices.Sort(sw.took)
	for _, m := range []struct {
		of    []time.Duration
		share float64
		unit  string
	}{{took, .5, "ms-p50"}, {took, .99, "ms-p99"}, {took, 1, "ms-max"}, {sw.took, .5, "ms-switch-p50"}} {
		if len(m.of) > 0 {
			b.ReportMetric(float64(m.of[int(m.share*float64(len(m.of)-1))].Microseconds())/1000, m.unit)
		}
	}
}

func podNamed(i int, app string) *cluster.Pod {
	p := scalePod(i)
	p.Labels = cluster.Labels{"app": app}
	return p
}

// podMoved returns a Pod with another address.
func podMoved(i int) *cluster.Pod {
	p := scalePod(i)
	p.IPs = []netip.Addr{netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})}
	return p
}

// lettingIn returns policies to replace those of scaleCluster. Every rule lets in the Pods that one selector
// chooses.
func lettingIn(who cluster.Selector) (all []cluster.Object) {
	for i := range scalePolicies {
		np := scalePolicy(i)
		for r := range np.IngressRules {
			np.IngressRules[r].Peers = []cluster.NetworkPolicyPeer{{Pods: &who}}
		}
		all = append(all, np)
	}
	return all
}

// appliedTo returns policies to replace those of scaleCluster. All apply to the Pods that one selector chooses.
func appliedTo(whom cluster.Selector) (all []cluster.Object) {
	for i := range scalePolicies {
		np := scalePolicy(i)
		np.Pods = whom
		all = append(all, np)
	}
	return all
}

// rankedNamingAll returns as many Antrea-native rules of different ranks. All name the Pods of app=everybody, and
// each has its own entries for them.
func rankedNamingAll() (all []cluster.Object) {
	everybody := cluster.SelectLabels(cluster.Labels{"app": "everybody"})
	for i := range scalePolicies {
		applied := cluster.SelectLabels(cluster.Labels{"app": fmt.Sprintf("app%d", i%scaleLocal)})
		ap := &cluster.AntreaPolicy{Meta: meta(cluster.KindClusterNetworkPolicy, "", fmt.Sprintf("cnp%d", i)), Tier: cluster.DefaultTier, Priority: 1 + float64(i)/10,
			AppliedTo: []cluster.AppliedTo{{Pods: &applied}}}
		for r := range scaleRules {
			ap.Ingress = append(ap.Ingress, cluster.PolicyRule{Action: cluster.ActionAllow, Peers: []cluster.PolicyPeer{{Pods: &everybody}},
				Ports: []cluster.PolicyPort{{Protocol: cluster.TCP, Port: cluster.PortRef{Number: uint16(8000 + r)}}}})
		}
		all = append(all, ap)
	}
	return all
}

// counting counts the contents of bundles.
type counting struct {
	ledger.Installer
	added, deleted, groups int
}

func (c *counting) Apply(b *flow.Bundle) error {
	c.added += len(b.Add)
	c.deleted += len(b.Delete)
	c.groups += len(b.Groups) + len(b.DeleteGroups)
	return c.Installer.Apply(b)
}

// TestOnePodOneEntry: in a large cluster, a Pod that 10,000 rules name has one entry with all their conjunctions. A
// change of the Pod touches this entry only, and no other claim.
func TestOnePodOneEntry(t *testing.T) {
	objects := scaleCluster()
	objects.Apply(store.Change{Source: storyFile, Set: lettingIn(cluster.SelectLabels(cluster.Labels{"app": "everybody"}))})
	sw := newRealSwitch(t)
	count := &counting{Installer: sw}
	r := NewReconciler("node-a", count, time.Now)
	if err := r.Update(objects.Snapshot(), nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		app  string
		want counting
	}{
		{"none", counting{}}, // no rule of scaleCluster names it now
		{"everybody", counting{added: 1}},
		{"none", counting{deleted: 1}},
	} {
		*count = counting{Installer: sw}
		u := objects.Apply(store.Change{Source: storyFile, Set: []cluster.Object{podNamed(9_001, c.app)}})
		if err := r.Update(u.New, u.Changed); err != nil {
			t.Fatal(err)
		}
		if count.added != c.want.added || count.deleted != c.want.deleted || count.groups != 0 {
			t.Errorf("app=%s: %d entries are added, %d deleted and %d groups changed, want %d, %d and none",
				c.app, count.added, count.deleted, count.groups, c.want.added, c.want.deleted)
		}
		explained, _ := r.ExplainLine("table=IngressRule, priority=200,ip,nw_src=" + scalePodIP(9_001).String())
		if there := c.want.added == 1; there != (len(explained) == 1) ||
			there && (len(explained[0].Origins) != 10_000 || len(explained[0].Entry.Actions) != 10_000) {
			t.Errorf("app=%s: the Pod's entry is explained as %d entries", c.app, len(explained))
		}
	}
}
