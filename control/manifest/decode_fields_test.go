package manifest

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antrail/antrail/control/cluster"
)

// TestServiceFields reads every relevant field of a Service.
func TestServiceFields(t *testing.T) {
	got := decodeOne[*cluster.Service](t, `
apiVersion: v1
kind: Service
metadata:
  name: s
  namespace: ns
  annotations:
    service.antrea.io/load-balancer-mode: DSR
    service.kubernetes.io/topology-mode: Auto
spec:
  type: LoadBalancer
  selector: {app: web}
  clusterIP: 10.96.0.1
  clusterIPs: [10.96.0.1, "fd00::1"]
  ipFamilies: [IPv4, IPv6]
  externalIPs: [192.0.2.1]
  loadBalancerSourceRanges: [" 10.0.0.1/8"]
  sessionAffinity: ClientIP
  externalTrafficPolicy: Local
  internalTrafficPolicy: Local
  healthCheckNodePort: 30001
  publishNotReadyAddresses: true
  allocateLoadBalancerNodePorts: false
  ports:
    - {name: http, port: 80, targetPort: web, nodePort: 30080}
    - {name: dns, port: 53, protocol: UDP, targetPort: 5353}
    - {name: sig, port: 99, protocol: SCTP}
status:
  loadBalancer:
    ingress: [{ip: 192.0.2.9}, {hostname: h}, {ip: 192.0.2.10, ipMode: Proxy}]
`)
	want := &cluster.Service{
		Meta:     cluster.Meta{Key: cluster.Key{Kind: cluster.KindService, Namespace: "ns", Name: "s"}, Source: cluster.Source{File: "test.yaml", Line: 2}},
		Type:     cluster.LoadBalancerService,
		Selector: cluster.Labels{"app": "web"},
		Ports: []cluster.ServicePort{
			{Name: "http", Protocol: cluster.TCP, Port: 80, TargetPort: cluster.PortRef{Name: "web"}, NodePort: 30080},
			{Name: "dns", Protocol: cluster.UDP, Port: 53, TargetPort: cluster.PortRef{Number: 5353}},
			{Name: "sig", Protocol: cluster.SCTP, Port: 99, TargetPort: cluster.PortRef{Number: 99}},
		},
		ClusterIPs:           []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00::1")},
		ExternalIPs:          []netip.Addr{netip.MustParseAddr("192.0.2.1")},
		LoadBalancerIPs:      []netip.Addr{netip.MustParseAddr("192.0.2.9")},
		SourceRanges:         []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		AffinitySeconds:      10800,
		ExternalLocal:        true,
		InternalLocal:        true,
		HealthCheckNodePort:  30001,
		PublishNotReady:      true,
		Families:             []int{4, 6},
		TopologyHints:        true,
		LoadBalancerMode:     cluster.DSRMode,
		AllocateNodePortsOff: true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestDefaults checks the API's defaults for omitted fields.
func TestDefaults(t *testing.T) {
	slice := decodeOne[*cluster.EndpointSlice](t, `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: e},
  addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: [10.0.0.1]}, {addresses: [10.0.0.2], conditions: {ready: false, terminating: true}}]}`)
	if e := slice.Endpoints[0]; !e.Ready || !e.Serving || e.Terminating {
		t.Errorf("conditions not set: %+v", e)
	}
	if e := slice.Endpoints[1]; e.Ready || e.Serving || !e.Terminating {
		t.Errorf("terminating: %+v", e)
	}
	if slice.Ports[0].Protocol != cluster.TCP || slice.Key.Namespace != "default" {
		t.Errorf("%+v", slice)
	}
	headless := decodeOne[*cluster.Service](t, `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: None}}`)
	if !headless.Headless || headless.ClusterIPs != nil || headless.Type != cluster.ClusterIPService {
		t.Errorf("%+v", headless)
	}
	for spec, want := range map[string][2]bool{
		`{podSelector: {}}`:                        {true, false},
		`{podSelector: {}, egress: [{}]}`:          {true, true},
		`{podSelector: {}, policyTypes: [Egress]}`: {false, true},
	} {
		p := decodeOne[*cluster.NetworkPolicy](t, `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: p}, spec: `+spec+`}`)
		if got := [2]bool{p.Ingress, p.Egress}; got != want {
			t.Errorf("%s: isolates %v, want %v", spec, got, want)
		}
	}
	pod := decodeOne[*cluster.Pod](t, `{apiVersion: v1, kind: Pod, metadata: {name: p, deletionTimestamp: "2024-01-01T00:00:00Z"}, status: {podIP: 10.0.0.1}}`)
	if !pod.Deleting || pod.Ready || pod.ServiceAccount != "default" || len(pod.IPs) != 1 {
		t.Errorf("%+v", pod)
	}
}

// TestAntreaPolicyFields reads every field of an Antrea-native policy.
func TestAntreaPolicyFields(t *testing.T) {
	got := decodeOne[*cluster.AntreaPolicy](t, `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: p}
spec:
  tier: SecurityOps
  priority: 1.5
  ingress:
    - name: in
      action: Reject
      appliedTo: [{service: {name: s, namespace: ns}}]
      from:
        - {ipBlock: {cidr: 10.1.2.3/8, except: [10.2.0.0/16]}}
        - {namespaces: {match: Self}, podSelector: {matchLabels: {a: b}}}
        - {serviceAccount: {name: sa, namespace: ns}}
      ports: [{protocol: UDP, port: 53, endPort: 60, sourcePort: 1, sourceEndPort: 9}, {port: http}]
      enableLogging: true
      logLabel: label
  egress:
    - action: Allow
      appliedTo: [{group: g}]
      to: [{fqdn: "*.example.org"}, {nodeSelector: {matchLabels: {k: v}}}]
      l7Protocols: [{http: {host: h, method: GET, path: /p}}, {tls: {sni: s}}]
    - {action: Drop, appliedTo: [{nodeSelector: {}}], toServices: [{name: s, namespace: ns}]}
    - {action: Pass, appliedTo: [{podSelector: {}, namespaceSelector: {}}], protocols: [{icmp: {icmpType: 8, icmpCode: 0}}, {igmp: {igmpType: 0x11, groupAddress: 224.0.0.1}}]}
`)
	zero, eight, query := uint8(0), uint8(8), uint8(0x11)
	all, labelled, k := cluster.Selector{}, cluster.SelectLabels(cluster.Labels{"a": "b"}), cluster.SelectLabels(cluster.Labels{"k": "v"})
	empty := cluster.NewSelector()
	want := &cluster.AntreaPolicy{
		Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Namespace: "", Name: "p"}, Source: cluster.Source{File: "test.yaml", Line: 2}}, Tier: "securityops", Priority: 1.5,
		Ingress: []cluster.PolicyRule{{
			Name: "in", Action: cluster.ActionReject, AppliedTo: []cluster.AppliedTo{{Service: &cluster.Name{Namespace: "ns", Name: "s"}}},
			Peers: []cluster.PolicyPeer{
				{IPBlock: &cluster.IPBlock{CIDR: netip.MustParsePrefix("10.0.0.0/8"), Except: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16")}}},
				{PeerNamespaces: &cluster.PeerNamespaces{Self: true}, Pods: &labelled},
				{ServiceAccount: &cluster.Name{Namespace: "ns", Name: "sa"}},
			},
			Ports: []cluster.PolicyPort{{Protocol: cluster.UDP, Port: cluster.PortRef{Number: 53}, EndPort: 60, SourcePort: 1, SourceEndPort: 9}, {Protocol: cluster.TCP, Port: cluster.PortRef{Name: "http"}}},
			Log:   true, LogLabel: "label",
		}},
		Egress: []cluster.PolicyRule{{
			Action: cluster.ActionAllow, AppliedTo: []cluster.AppliedTo{{Group: "g"}},
			Peers: []cluster.PolicyPeer{{FQDN: "*.example.org"}, {Nodes: &k}},
			L7:    []cluster.L7Protocol{{HTTP: &cluster.L7HTTP{Host: "h", Method: "GET", Path: "/p"}}, {TLS: &cluster.L7TLS{SNI: "s"}}},
		}, {
			Action: cluster.ActionDrop, AppliedTo: []cluster.AppliedTo{{Nodes: &empty}}, ToServices: []cluster.Name{{Namespace: "ns", Name: "s"}},
		}, {
			Action: cluster.ActionPass, AppliedTo: []cluster.AppliedTo{{Pods: &empty, Namespaces: &empty}},
			Protocols: []cluster.PolicyProtocol{{ICMP: &cluster.ICMPProtocol{Type: &eight, Code: &zero}},
				{IGMP: &cluster.IGMPProtocol{Type: &query, Group: netip.MustParseAddr("224.0.0.1")}}},
		}},
	}
	bySelector := cmp.Comparer(func(a, b cluster.Selector) bool { return a.String() == b.String() })
	byText := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	byPrefix := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
	if diff := cmp.Diff(want, got, bySelector, byText, byPrefix); diff != "" {
		t.Error(diff)
	}
	if !all.Empty() || !empty.Empty() || labelled.Empty() {
		t.Error("Empty")
	}
}

// TestEndpointSliceFields reads every field of an endpoint.
func TestEndpointSliceFields(t *testing.T) {
	got := decodeOne[*cluster.EndpointSlice](t, `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: e, namespace: ns, labels: {kubernetes.io/service-name: s}}
addressType: IPv6
ports: [{name: http, protocol: UDP, port: 80}, {name: any}]
endpoints:
  - addresses: ["fd00::1", "fd00::2"]
    conditions: {ready: false, serving: true, terminating: true}
    nodeName: n1
    zone: z1
    targetRef: {kind: Pod, namespace: ns, name: p}
    hints: {forZones: [{name: z1}, {name: z2}], forNodes: [{name: n1}]}
  - {addresses: ["fd00::3"], targetRef: {kind: Node, name: n1}}
`)
	addr := netip.MustParseAddr
	want := &cluster.EndpointSlice{Meta: got.Meta, Service: cluster.Name{Namespace: "ns", Name: "s"}, Family: 6,
		Ports: []cluster.EndpointPort{{Name: "http", Protocol: cluster.UDP, Number: 80}, {Name: "any", Protocol: cluster.TCP, Number: 0}},
		Endpoints: []cluster.Endpoint{
			{Addresses: []netip.Addr{addr("fd00::1"), addr("fd00::2")}, Serving: true, Terminating: true, NodeName: "n1", Zone: "z1",
				ForZones: []string{"z1", "z2"}, ForNodes: []string{"n1"}, Pod: cluster.Name{Namespace: "ns", Name: "p"}},
			{Addresses: []netip.Addr{addr("fd00::3")}, Ready: true, Serving: true},
		}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestPodPorts reads the ports of containers and of init containers that keep running.
func TestPodPorts(t *testing.T) {
	pod := decodeOne[*cluster.Pod](t, `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  initContainers:
    - {name: first, ports: [{name: http, containerPort: 1}]}
    - {name: beside, restartPolicy: Always, ports: [{name: proxy, containerPort: 2}]}
  containers:
    - {name: c, ports: [{name: http, containerPort: 3}, {name: http, containerPort: 4, protocol: UDP}]}
`)
	for _, tt := range []struct {
		name  string
		proto cluster.Protocol
		want  uint16
	}{{"http", cluster.TCP, 3}, {"http", cluster.UDP, 4}, {"proxy", cluster.TCP, 2}, {"proxy", cluster.UDP, 0}, {"none", cluster.TCP, 0}} {
		if got, ok := pod.Port(tt.name, tt.proto); got != tt.want || ok != (tt.want != 0) {
			t.Errorf("%s %v: %d, %v", tt.name, tt.proto, got, ok)
		}
	}
}

// TestEgressFields reads Egresses and their pools.
func TestEgressFields(t *testing.T) {
	web := cluster.SelectLabels(cluster.Labels{"app": "web"})
	egress := decodeOne[*cluster.Egress](t, `
apiVersion: crd.antrea.io/v1beta1
kind: Egress
metadata: {name: e}
spec:
  appliedTo: {podSelector: {matchLabels: {app: web}}}
  egressIPs: ["", 192.0.2.7]
  externalIPPools: [p, q]
status: {egressNode: n1, egressIP: 192.0.2.8, conditions: [{type: IPAssigned, status: "True"}]}
`)
	want := &cluster.Egress{Meta: egress.Meta, AppliedTo: cluster.PodSet{Pods: &web}, Addr: netip.MustParseAddr("192.0.2.8"),
		Node: "n1", Pools: []string{"p", "q"}}
	if !reflect.DeepEqual(egress, want) {
		t.Errorf("got %+v, want %+v", egress, want)
	}
	pool := decodeOne[*cluster.ExternalIPPool](t, `
apiVersion: crd.antrea.io/v1alpha2
kind: ExternalIPPool
metadata: {name: p}
spec:
  ipRanges: [{cidr: 192.0.2.9/29}, {start: "2001:db8::1", end: "2001:db8::9"}]
  nodeSelector: {matchLabels: {app: web}}
`)
	addr := netip.MustParseAddr
	wantPool := &cluster.ExternalIPPool{Meta: pool.Meta, Nodes: web,
		Ranges: []cluster.IPRange{{First: addr("192.0.2.8"), Last: addr("192.0.2.15")}, {First: addr("2001:db8::1"), Last: addr("2001:db8::9")}}}
	if !reflect.DeepEqual(pool, wantPool) {
		t.Errorf("got %+v, want %+v", pool, wantPool)
	}
}

// TestTrafficControlPorts reads each type of port.
func TestTrafficControlPorts(t *testing.T) {
	remote := netip.MustParseAddr("192.0.2.1")
	for text, want := range map[string]cluster.TrafficPort{
		`ovsInternal: {name: tap0}`: {Type: cluster.OVSInternalPort, Name: "tap0"},
		`device: {name: eth1}`:      {Type: cluster.DevicePort, Name: "eth1"},
		`vxlan: {remoteIP: 192.0.2.1, vni: 7, destinationPort: 4790}`:       {Type: cluster.VXLANPort, RemoteIP: remote, Key: 7, DestinationPort: 4790},
		`geneve: {remoteIP: 192.0.2.1}`:                                     {Type: cluster.GenevePort, RemoteIP: remote},
		`gre: {remoteIP: 192.0.2.1, key: 9}`:                                {Type: cluster.GREPort, RemoteIP: remote, Key: 9},
		`erspan: {remoteIP: 192.0.2.1, version: 1, sessionID: 1, index: 2}`: {Type: cluster.ERSPANPort, RemoteIP: remote, Key: 1, ERSPAN: &cluster.ERSPAN{Version: 1, Index: 2}},
	} {
		tc := decodeOne[*cluster.TrafficControl](t, `{apiVersion: crd.antrea.io/v1alpha2, kind: TrafficControl, metadata: {name: t}, spec:
  {appliedTo: {namespaceSelector: {}}, direction: Both, action: Redirect, targetPort: {`+text+`}, returnPort: {device: {name: back}}}}`)
		if !reflect.DeepEqual(tc.TargetPort, want) || !tc.Redirect || tc.Direction != cluster.DirectionBoth || tc.ReturnPort.Name != "back" || tc.AppliedTo.Namespaces == nil {
			t.Errorf("%s: got %+v", text, tc)
		}
	}
}

// TestGroupFields reads each way of selection in a group.
func TestGroupFields(t *testing.T) {
	for spec, check := range map[string]func(*cluster.Group) bool{
		`{podSelector: {}, namespaceSelector: {}}`:                                 func(g *cluster.Group) bool { return g.Pods != nil && g.Namespaces != nil },
		`{ipBlocks: [{cidr: 10.0.0.0/8}, {cidr: 11.0.0.0/8}]}`:                     func(g *cluster.Group) bool { return len(g.IPBlocks) == 2 },
		`{serviceReference: {name: s, namespace: ns}}`:                             func(g *cluster.Group) bool { return *g.Service == cluster.Name{Namespace: "ns", Name: "s"} },
		`{childGroups: [a, b]}`:                                                    func(g *cluster.Group) bool { return len(g.ChildGroups) == 2 },
		`{externalEntitySelector: {}, namespaceSelector: {matchLabels: {a: "1"}}}`: func(g *cluster.Group) bool { return g.ExternalEntities != nil && g.Namespaces.String() == "a=1" },
	} {
		g := decodeOne[*cluster.Group](t, `{apiVersion: crd.antrea.io/v1beta1, kind: ClusterGroup, metadata: {name: g}, spec: `+spec+`}`)
		if !check(g) {
			t.Errorf("%s: %+v", spec, g)
		}
	}
}

// TestNodeFields reads Nodes and NodeConfigs.
func TestNodeFields(t *testing.T) {
	addr := netip.MustParseAddr
	node := decodeOne[*cluster.Node](t, `
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: z}}
spec: {podCIDR: 10.0.0.0/24, podCIDRs: [10.0.0.0/24, "fd00::/64"]}
status:
  addresses: [{type: Hostname, address: n1}, {type: ExternalIP, address: 192.0.2.1}, {type: InternalIP, address: 10.9.0.1}, {type: ExternalIP, address: "2001:db8::1"}]
`)
	if want := []netip.Addr{addr("10.9.0.1"), addr("2001:db8::1")}; !reflect.DeepEqual(node.Addresses, want) || len(node.PodCIDRs) != 2 || node.Zone() != "z" {
		t.Errorf("%+v", node)
	}
	cfg := decodeOne[*cluster.NodeConfig](t, `
apiVersion: antrail.io/v1alpha1
kind: NodeConfig
metadata: {name: n1}
spec:
  gateway: {name: gw, ofPort: 2, mac: "ba:5e:d1:55:aa:c0", ips: [10.0.0.1, "fd00::1"]}
  features: {Egress: false, LoadBalancerModeDSR: true}
  defaultLoadBalancerMode: dsr
  egressExceptCIDRs: [10.1.0.0/16]
  ports: [{name: p, ofPort: 9, pod: ns/p, mac: "fa:b7:53:74:21:a6"}, {name: tap, ofPort: 10}]
`)
	ports := []cluster.SwitchPort{{Name: "p", OFPort: 9, Pod: cluster.Name{Namespace: "ns", Name: "p"}, MAC: [6]byte{0xfa, 0xb7, 0x53, 0x74, 0x21, 0xa6}}, {Name: "tap", OFPort: 10}}
	if !reflect.DeepEqual(cfg.Ports, ports) || !cfg.DefaultDSR || cfg.Feature("Egress", true) || !cfg.Feature("Other", true) || cfg.Tunnel != (cluster.TunnelPort{}) {
		t.Errorf("%+v", cfg)
	}
}
