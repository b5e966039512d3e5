//go:build k8s

package kube

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/store"
)

// A large cluster: the memory of a source, which must not grow after many changes and a second list.

// Sizes of the cluster. The last Node is the agent's.
const (
	manyNodes    = 100
	manyPods     = 10_000
	manyServices = 5_000
	manyPolicies = 200
)

// growth bounds the growth of the heap by the churn, in bytes. It allows for the garbage
// collector's slack, but not for a second copy of the 20,000 objects.
const growth = 12 << 20

// anonymousGrowth bounds the growth of the agent's anonymous memory. Go returns memory to the
// kernel late, and the heap may double between collections.
const anonymousGrowth = 128 << 20

type named = map[string]any

func metaOf(name string, labels named) named {
	return named{"name": name, "namespace": "default", "labels": labels}
}

func manyPod(i int, version string) named {
	ip := fmt.Sprintf("10.%d.%d.%d", 100+i/62500, i/250%250, 2+i%250)
	return named{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": metaOf(fmt.Sprint("pod-", i), named{"app": fmt.Sprint("app-", i%500), "version": version, "pod-template-hash": "7d9fbc5c6b"}),
		"spec": named{"nodeName": fmt.Sprint("node-", i%manyNodes), "containers": []named{{
			"name": "main", "image": "registry.example.org/team/app:1.2.3", "ports": []named{{"name": "http", "containerPort": 8080}},
			"env": []named{{"name": "A", "value": "some value of a variable"}, {"name": "B", "value": "another value"}},
		}}},
		"status": named{"phase": "Running", "podIP": ip, "podIPs": []named{{"ip": ip}}, "conditions": []named{{"type": "Ready", "status": "True"}}},
	}
}

func manyService(i int) named {
	name := fmt.Sprint("svc-", i)
	return named{"apiVersion": "v1", "kind": "Service", "metadata": metaOf(name, named{}), "spec": named{
		"selector": named{"app": fmt.Sprint("app-", i%500)}, "ports": []named{{"name": "http", "port": 80, "targetPort": "http"}},
	}}
}

func manySlice(i int) named {
	return named{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
		"metadata": metaOf(fmt.Sprintf("svc-%d-a", i), named{"kubernetes.io/service-name": fmt.Sprint("svc-", i)}),
		"ports":    []named{{"name": "http", "port": 8080, "protocol": "TCP"}},
		"endpoints": []named{
			{"addresses": []string{fmt.Sprintf("10.100.%d.%d", i/250, 2+i%250)}, "conditions": named{"ready": true}, "nodeName": "node-1"},
			{"addresses": []string{fmt.Sprintf("10.101.%d.%d", i/250, 2+i%250)}, "conditions": named{"ready": true}, "nodeName": "node-2"},
		},
	}
}

func manyPolicy(i int) named {
	return named{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metaOf(fmt.Sprint("policy-", i), named{}), "spec": named{
		"podSelector": named{"matchLabels": named{"app": fmt.Sprint("app-", i)}}, "policyTypes": []string{"Ingress"},
		"ingress": []named{{"from": []named{{"podSelector": named{"matchLabels": named{"app": fmt.Sprint("app-", i+1)}}}}}},
	}}
}

func manyNode(i int) named {
	return named{"apiVersion": "v1", "kind": "Node", "metadata": named{"name": fmt.Sprint("node-", i)},
		"spec":   named{"podCIDR": fmt.Sprintf("10.20.%d.0/24", i)},
		"status": named{"addresses": []named{{"type": "InternalIP", "address": fmt.Sprintf("192.168.77.%d", 2+i)}}}}
}

// each calls f for all numbers below n, several at a time.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	const at = 8
	for first := range at {
		wg.Go(func() {
			for i := first; i < n; i += at {
				f(i)
			}
		})
	}
	wg.Wait()
}

// heap is the heap in use, in bytes.
func heap() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func mega(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20)) }

// reconciling is a model of a Node's switch that follows the store.
func (f *following) reconciling(node string) (r *control.Reconciler, took time.Duration) {
	f.t.Helper()
	key := cluster.Key{Kind: cluster.KindNodeConfig, Name: node}
	f.store.Apply(store.Change{Source: "configuration", Set: []cluster.Object{&cluster.NodeConfig{
		Meta:    cluster.Meta{Key: key, Source: cluster.Source{File: "configuration"}},
		Gateway: cluster.GatewayPort{Name: "antrea-gw0", OFPort: 2, MAC: [6]byte{2, 0, 0, 0, 0, 1}},
		Tunnel:  cluster.TunnelPort{Name: "antrea-tun0", OFPort: 1, Type: "geneve"},
	}}})
	r = control.NewReconciler(node, ledger.NewMemorySwitch(), time.Now)
	now, _ := f.store.Follow(func(u store.Update) {
		if err := r.Update(u.New, u.Changed); err != nil {
			f.t.Error(err)
		}
	})
	began := time.Now()
	if err := r.Update(now, nil); err != nil {
		f.t.Fatal(err)
	}
	return r, time.Since(began)
}

// forget drops the recorded steps and their snapshots.
func (f *following) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.updates = nil
}

// TestRealScale prints the time to the first state and its memory. Then it changes a part many times
// and lists everything again. The heap must not grow.
func TestRealScale(t *testing.T) {
	api := newReal(t, true)
	began := time.Now()
	each(manyNodes, func(i int) { api.Create(manyNode(i)) })
	each(manyPods, func(i int) { api.Create(manyPod(i, "1")) })
	each(manyServices, func(i int) { api.Create(manyService(i)); api.Create(manySlice(i)) })
	each(manyPolicies, func(i int) { api.Create(manyPolicy(i)) })
	t.Logf("%d Pods, %d Services, %d EndpointSlices, %d NetworkPolicies, %d Nodes: made in %v",
		manyPods, manyServices, manyServices, manyPolicies, manyNodes, time.Since(began).Round(time.Second))

	before := heap()
	began = time.Now()
	f := followAs(t, api, "node-99", nil).synced()
	took := time.Since(began)
	f.forget()
	held := heap() - before
	c := f.store.Snapshot()
	if len(c.Pods) != manyPods || len(c.Services) != manyServices+1 || len(c.EndpointSlices) != manyServices || len(f.Problems()) > 0 {
		t.Fatalf("%d pods, %d services, %d slices, problems %v", len(c.Pods), len(c.Services), len(c.EndpointSlices), f.Problems())
	}
	t.Logf("first state after %v, in one step; the heap holds %s of it", took.Round(10*time.Millisecond), mega(held))

	r, took := f.reconciling("node-99")
	t.Logf("its entries for one Node after %v; the heap holds %s of all", took.Round(10*time.Millisecond), mega(heap()-before))
	agent := newWhole(t, api)
	t.Logf("a whole agent is ready %v after its start: %v", agent.ready().Round(10*time.Millisecond), agent.holds())
	f.churn(api, 0) // a first change allocates what stays
	agent.follows(api)
	steady, first := heap(), agent.holds()
	rnd := rand.New(rand.NewPCG(7, 7))
	for round := range 3 {
		began = time.Now()
		f.churn(api, 1+rnd.IntN(100))
		t.Logf("round %d: 600 changes, the last in the store after %v; heap %s", round+1, time.Since(began).Round(10*time.Millisecond), mega(heap()-steady))
		t.Logf("         the agent, a Service after these: %v later; %v", agent.follows(api).Round(10*time.Millisecond), agent.holds())
	}
	api.gate.set(true)
	api.Stop()
	api.Start()
	api.gate.set(false)
	f.churn(api, 0)
	f.forget()
	grown := heap() - steady
	t.Logf("after the API server was started again, and all was listed: heap %s, %d parts of objects wait", mega(grown), r.Waiting())
	agent.follows(api)
	last := agent.holds()
	t.Logf("the agent then: %v", last)
	if grown > growth {
		t.Errorf("the heap has grown by %s", mega(grown))
	}
	if by := last.heap - first.heap; by > growth {
		t.Errorf("the agent's heap has grown by %s", mega(by))
	}
	if by := last.anonymous - first.anonymous; by > anonymousGrowth {
		t.Errorf("the agent's memory has grown by %s", mega(by))
	}
	f.allowed()
}

// churn changes 500 Pods and replaces 100, and waits for the last change.
func (f *following) churn(api *realAPI, offset int) {
	f.t.Helper()
	version := fmt.Sprint("v", time.Now().UnixNano())
	each(500, func(i int) {
		path := fmt.Sprint("/api/v1/namespaces/default/pods/pod-", offset+i*13)
		for api.Change(path, "labels", "version", version) != 200 {
		}
	})
	each(100, func(i int) {
		n := offset + 7000 + i
		api.Delete("v1", "Pod", "default", fmt.Sprint("pod-", n))
		api.Create(manyPod(n, version))
	})
	f.until("the changes", func() bool {
		for i := range 500 {
			if p := f.pod(fmt.Sprint("pod-", offset+i*13)); p == nil || p.Labels["version"] != version {
				return false
			}
		}
		for i := range 100 {
			if p := f.pod(fmt.Sprint("pod-", offset+7000+i)); p == nil || p.Labels["version"] != version {
				return false
			}
		}
		return true
	})
	f.forget()
}
