package control

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"
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

// scaleCluster makes a snapshot of that size. Objects are made, not decoded:
// reading manifests has figures of its own.
func scaleCluster() *Store {
	s := NewStore(GivenEndpoints)
	var objects []Object
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
	s.Apply(Change{Source: storyFile, Set: objects})
	return s
}

func meta(kind Kind, namespace, name string) Meta {
	return Meta{Key: Key{kind, namespace, name}, Source: Source{File: storyFile}}
}

func scaleNodes() []Object {
	config := &NodeConfig{Meta: meta(KindNodeConfig, "", "node-a"), ProxyAll: true,
		Gateway:      GatewayPort{Name: "antrea-gw0", OFPort: 2, MAC: [6]byte{2}, IPs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}},
		Tunnel:       TunnelPort{Name: "antrea-tun0", OFPort: 1},
		TransportIPs: []netip.Addr{netip.MustParseAddr("192.168.0.1")}}
	for i := range scaleLocal {
		config.Ports = append(config.Ports, SwitchPort{Name: fmt.Sprintf("pod%d", i), OFPort: uint32(100 + i),
			Pod: Name{"ns", fmt.Sprintf("p%d", i)}, MAC: [6]byte{2, 1, 0, 0, byte(i >> 8), byte(i)}})
	}
	objects := []Object{config}
	for i := range scalePods / scaleLocal {
		name := fmt.Sprintf("node-%d", i)
		if i == 0 {
			name = "node-a"
		}
		objects = append(objects, &Node{Meta: meta(KindNode, "", name),
			PodCIDRs:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24)},
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 168, 0, byte(i + 1)})}})
	}
	return objects
}

func scalePod(i int) *Pod {
	node := "node-a"
	if n := i / scaleLocal; n > 0 {
		node = fmt.Sprintf("node-%d", n)
	}
	return &Pod{Meta: Meta{Key: Key{KindPod, "ns", fmt.Sprintf("p%d", i)}, Source: Source{File: storyFile},
		Labels: Labels{"app": fmt.Sprintf("app%d", i%scalePolicies)}},
		NodeName: node, IPs: []netip.Addr{scalePodIP(i)}, Phase: PodRunning, Ready: true}
}

func scalePodIP(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(i / scaleLocal), byte(i%scaleLocal + 10)})
}

func scaleService(i int) *Service {
	return &Service{Meta: meta(KindService, "ns", fmt.Sprintf("s%d", i)), Type: ClusterIPService,
		ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)})},
		Ports:      []ServicePort{{Protocol: TCP, Port: 80, TargetPort: PortRef{Number: 8080}}}}
}

func scaleSlice(i, endpoints int) *EndpointSlice {
	s := &EndpointSlice{Meta: meta(KindEndpointSlice, "ns", fmt.Sprintf("s%d", i)),
		Service: Name{"ns", fmt.Sprintf("s%d", i)}, Family: 4, Ports: []EndpointPort{{Protocol: TCP, Number: uint16(1024 + i)}}}
	for e := range endpoints {
		pod := (i*scaleEndpoints + e) % scalePods
		s.Endpoints = append(s.Endpoints, Endpoint{Addresses: []netip.Addr{scalePodIP(pod)}, Ready: true, Serving: true})
	}
	return s
}

// scalePolicy applies to Pods of one application and lets in those of ten
// others, a rule each.
func scalePolicy(i int) *NetworkPolicy {
	np := &NetworkPolicy{Meta: meta(KindNetworkPolicy, "ns", fmt.Sprintf("np%d", i)), Ingress: true,
		Pods: SelectLabels(Labels{"app": fmt.Sprintf("app%d", i%scaleLocal)})}
	for r := range scaleRules {
		from := SelectLabels(Labels{"app": fmt.Sprintf("app%d", (i*scaleRules+r)%scalePolicies)})
		np.IngressRules = append(np.IngressRules, NetworkPolicyRule{
			Peers: []NetworkPolicyPeer{{Pods: &from}},
			Ports: []PolicyPort{{Protocol: TCP, Port: PortRef{Number: uint16(8000 + r)}}}})
	}
	return np
}

// BenchmarkLoad makes the pipeline of a large cluster from nothing.
func BenchmarkLoad(b *testing.B) {
	store := scaleCluster()
	for b.Loop() {
		sw := NewMemorySwitch()
		r := NewReconciler("node-a", sw, time.Now)
		if err := r.Update(store.Snapshot(), nil); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(sw.entries)), "entries")
		b.ReportMetric(float64(len(sw.groups)), "groups")
		b.ReportMetric(heapMiB(), "MiB")
		runtime.KeepAlive(r)
	}
}

func heapMiB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// BenchmarkChange brings one changed object of a large cluster into force.
func BenchmarkChange(b *testing.B) {
	for name, objects := range map[string][2]Object{
		"Endpoint":  {scaleSlice(77, scaleEndpoints-1), scaleSlice(77, scaleEndpoints)},
		"RemotePod": {podWithout(scalePod(9_001)), scalePod(9_001)},
		"LocalPod":  {podWithout(scalePod(7)), scalePod(7)},
	} {
		b.Run(name, func(b *testing.B) {
			store := scaleCluster()
			r := NewReconciler("node-a", NewMemorySwitch(), time.Now)
			if err := r.Update(store.Snapshot(), nil); err != nil {
				b.Fatal(err)
			}
			i := 0
			for b.Loop() {
				u := store.Apply(Change{Source: storyFile, Set: []Object{objects[i%2]}})
				if err := r.Update(u.New, u.Changed); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// podWithout is a Pod that lost its labels.
func podWithout(p *Pod) *Pod {
	p.Labels = Labels{"app": "none"}
	return p
}
