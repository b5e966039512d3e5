// Package truth holds truth tables of NetworkPolicies. It compares the verdict of the switch on a packet with that of another
// program.
//
// Policies, Pods and Namespaces come from the generator of cyclonus. They enter as manifests, and all of control and tables
// turns them into entries of a switch with memory ports. Then every Pod sends the first packet of a connection to every other
// Pod, at every port. The matcher of cyclonus gives the expected verdicts. It shares no code with this repository, and does not
// know Nodes, switch ports or flow entries.
package truth

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/mattfenwick/cyclonus/pkg/generator"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/control/store"
)

// The cluster has this Node and another one, with Pods a, b and c in the namespaces x, y and z. Those of z are on the other Node.
const (
	thisNode  = "here"
	otherNode = "there"
	farSpace  = "z"
)

// serving are the ports that every Pod's containers name.
var (
	serving   = []int32{80, 81}
	protocols = []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
)

// endpoint is a Pod, or an address outside the cluster.
type endpoint struct {
	namespace, name string     // empty: outside
	ip              netip.Addr // source and destination address of packets
	other           netip.Addr // of the other family
	labels          map[string]string
	port            uint32 // of the switch; 0: not on this Node
}

func (e *endpoint) String() string {
	if e.name == "" {
		return e.ip.String()
	}
	return e.namespace + "/" + e.name
}

// mac is the address of an endpoint's link on this Node.
func (e *endpoint) mac() string { return fmt.Sprintf("02:00:00:00:01:%02x", e.port) }

// testCluster is the cluster that the steps of a test case change.
type testCluster struct {
	family     family // of the packets; the cluster is dual-stack
	namespaces map[string]map[string]string
	pods       map[string]*endpoint // by namespace/name
	policies   map[string]*networkingv1.NetworkPolicy
	more       []string // manifests of other kinds
	nextPort   uint32
	nextHost   byte
}

// family is 4 or 6.
type family int

// host makes an address of a Node's Pods: node is 0 for this one.
func (f family) host(node, n byte) netip.Addr {
	if f == 6 {
		return netip.AddrFrom16([16]byte{0xfd, 0, 0, 0x10, 0, 0x10, 0, node, 15: n})
	}
	return netip.AddrFrom4([4]byte{10, 10, node, n})
}

// outside is an address that belongs to no Pod.
func (f family) outside() netip.Addr {
	if f == 6 {
		return netip.MustParseAddr("2001:db8::9")
	}
	return netip.MustParseAddr("198.51.100.9")
}

func newCluster(t *testing.T, f family) *testCluster {
	c := &testCluster{
		family:     f,
		namespaces: map[string]map[string]string{}, pods: map[string]*endpoint{},
		policies: map[string]*networkingv1.NetworkPolicy{}, nextPort: 10, nextHost: 10,
	}
	for _, ns := range []string{"x", "y", farSpace} {
		c.label(ns, map[string]string{"ns": ns})
		for _, name := range []string{"a", "b", "c"} {
			c.addPod(t, ns, name, map[string]string{"pod": name})
		}
	}
	return c
}

func (c *testCluster) addPod(t *testing.T, ns, name string, labels map[string]string) {
	t.Helper()
	e := &endpoint{namespace: ns, name: name, labels: labels}
	node := byte(1)
	if ns != farSpace {
		node, e.port = 0, c.nextPort
		c.nextPort++
	}
	e.ip, e.other = c.family.host(node, c.nextHost), (10-c.family).host(node, c.nextHost)
	c.nextHost++
	c.pods[ns+"/"+name] = e
}

// endpoints returns the Pods in order of their names, and an outside address.
func (c *testCluster) endpoints() (all []*endpoint) {
	for _, k := range slices.Sorted(maps.Keys(c.pods)) {
		all = append(all, c.pods[k])
	}
	return append(all, &endpoint{ip: c.family.outside()})
}

// act performs one action of a generated test case.
func (c *testCluster) act(t *testing.T, a *generator.Action) {
	t.Helper()
	switch {
	case a.CreatePolicy != nil:
		c.putPolicy(a.CreatePolicy.Policy)
	case a.UpdatePolicy != nil:
		c.putPolicy(a.UpdatePolicy.Policy)
	case a.DeletePolicy != nil:
		delete(c.policies, a.DeletePolicy.Namespace+"/"+a.DeletePolicy.Name)
	case a.CreateNamespace != nil:
		c.label(a.CreateNamespace.Namespace, a.CreateNamespace.Labels)
	case a.SetNamespaceLabels != nil:
		c.label(a.SetNamespaceLabels.Namespace, a.SetNamespaceLabels.Labels)
	case a.DeleteNamespace != nil:
		c.removeNamespace(a.DeleteNamespace.Namespace)
	case a.CreatePod != nil:
		c.addPod(t, a.CreatePod.Namespace, a.CreatePod.Pod, a.CreatePod.Labels)
	case a.SetPodLabels != nil:
		c.relabel(a.SetPodLabels.Namespace+"/"+a.SetPodLabels.Pod, a.SetPodLabels.Labels)
	case a.DeletePod != nil:
		delete(c.pods, a.DeletePod.Namespace+"/"+a.DeletePod.Pod)
	default:
		t.Fatalf("an action of an unknown kind: %+v", a)
	}
}

// label sets the labels of a namespace, and the label that an API server adds.
func (c *testCluster) label(ns string, labels map[string]string) {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelMetadataName] = ns
	c.namespaces[ns] = labels
}

// putPolicy sets the defaults of an API server.
func (c *testCluster) putPolicy(p *networkingv1.NetworkPolicy) {
	p = p.DeepCopy()
	p.TypeMeta = metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}
	if p.Namespace == "" {
		p.Namespace = "default"
	}
	if len(p.Spec.PolicyTypes) == 0 {
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(p.Spec.Egress) > 0 {
			p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	c.policies[p.Namespace+"/"+p.Name] = p
}

func (c *testCluster) relabel(pod string, labels map[string]string) {
	e := *c.pods[pod]
	e.labels = labels
	c.pods[pod] = &e
}

func (c *testCluster) removeNamespace(ns string) {
	delete(c.namespaces, ns)
	maps.DeleteFunc(c.pods, func(_ string, e *endpoint) bool { return e.namespace == ns })
	maps.DeleteFunc(c.policies, func(_ string, p *networkingv1.NetworkPolicy) bool { return p.Namespace == ns })
}

// nodes are the manifests that do not change, and the ports of Pods.
func (c *testCluster) nodes() string {
	var b strings.Builder
	b.WriteString(`apiVersion: v1
kind: Node
metadata: {name: here}
spec: {podCIDRs: [10.10.0.0/24, "fd00:10:10::/64"]}
status: {addresses: [{type: InternalIP, address: 192.168.77.101}, {type: InternalIP, address: "fd00:77::101"}]}
---
apiVersion: v1
kind: Node
metadata: {name: there}
spec: {podCIDRs: [10.10.1.0/24, "fd00:10:10:1::/64"]}
status: {addresses: [{type: InternalIP, address: 192.168.77.102}, {type: InternalIP, address: "fd00:77::102"}]}
---
apiVersion: antrail.io/v1alpha1
kind: NodeConfig
metadata: {name: here}
spec:
  gateway: {name: antrea-gw0, ofPort: 2, mac: "` + gatewayMAC + `", ips: [10.10.0.1, "fd00:10:10::1"]}
  tunnel: {name: antrea-tun0, ofPort: 1, type: geneve}
  transportIPs: [192.168.77.101, "fd00:77::101"]
  serviceCIDRs: [10.96.0.0/12, "fd00:10:96::/112"]
  ports:
`)
	for _, e := range c.endpoints() {
		if e.port != 0 {
			fmt.Fprintf(&b, "    - {name: %s-%s, ofPort: %d, pod: %s, mac: %q}\n", e.namespace, e.name, e.port, e, e.mac())
		}
	}
	return b.String()
}

// manifests returns all objects of the cluster.
func (c *testCluster) manifests(t *testing.T) string {
	t.Helper()
	docs := []string{c.nodes()}
	add := func(object any) {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(text))
	}
	for _, ns := range slices.Sorted(maps.Keys(c.namespaces)) {
		add(&corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: ns, Labels: c.namespaces[ns]},
		})
	}
	for _, e := range c.endpoints() {
		if e.name != "" {
			add(e.pod())
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.policies)) {
		add(c.policies[k])
	}
	return strings.Join(append(docs, c.more...), "\n---\n")
}

// pod is a Pod's manifest.
func (e *endpoint) pod() *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: e.name, Labels: e.labels},
		Spec:       corev1.PodSpec{NodeName: thisNode},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: e.ip.String(),
			PodIPs: []corev1.PodIP{{IP: e.ip.String()}, {IP: e.other.String()}},
		},
	}
	if e.port == 0 {
		p.Spec.NodeName = otherNode
	}
	for _, port := range serving {
		for _, proto := range protocols {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
				Name: fmt.Sprintf("c%d-%s", port, strings.ToLower(string(proto))), Image: "none",
				Ports: []corev1.ContainerPort{{Name: portName(port, proto), ContainerPort: port, Protocol: proto}},
			})
		}
	}
	return p
}

// portName is the containers' name of a port; empty if it has none.
func portName(port int32, proto corev1.Protocol) string {
	if !slices.Contains(serving, port) {
		return ""
	}
	return fmt.Sprintf("serve-%d-%s", port, strings.ToLower(string(proto)))
}

// apply applies the manifests to a store.
func (c *testCluster) apply(t *testing.T, objects *store.Store) store.Update {
	t.Helper()
	const source = "truth.yaml"
	d := manifest.Decode(source, []byte(c.manifests(t)))
	for _, p := range d.Problems {
		t.Fatalf("a manifest is refused: %v", p)
	}
	change := store.Change{Source: source, Set: d.Objects}
	keep := map[cluster.Key]bool{}
	for _, o := range d.Objects {
		keep[o.Metadata().Key] = true
	}
	change.Delete = gone(objects.Snapshot(), keep)
	return objects.Apply(change)
}

// gone returns the objects of a snapshot to remove.
func gone(c *cluster.Cluster, keep map[cluster.Key]bool) (keys []cluster.Key) {
	for k := range c.Namespaces {
		keys = append(keys, k)
	}
	for k := range c.Pods {
		keys = append(keys, k)
	}
	for k := range c.AntreaPolicies {
		keys = append(keys, k)
	}
	for k := range c.NetworkPolicies {
		keys = append(keys, k)
	}
	return slices.DeleteFunc(keys, func(k cluster.Key) bool { return keep[k] })
}
