package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// The world of the tables below has three namespaces. web, api and db are on this Node, client
// and spare on others.
func shop() *world {
	w := newWorld()
	w.put(namespace("shop", "team", "a"), namespace("ops", "team", "a"), namespace("lab", "team", "b"))
	w.here(11, pod("shop", "web", "10.0.0.11", labels("app", "web"), cluster.ContainerPort{Name: "http", Number: 80, Protocol: cluster.TCP}))
	w.here(12, pod("shop", "api", "10.0.0.12", labels("app", "api"), cluster.ContainerPort{Name: "http", Number: 8080, Protocol: cluster.TCP}, cluster.ContainerPort{Name: "dns", Number: 53, Protocol: cluster.UDP}))
	w.here(13, pod("ops", "db", "10.0.0.13", labels("app", "db")))
	client := pod("lab", "client", "10.0.1.21", labels("app", "client"), cluster.ContainerPort{Name: "http", Number: 8000, Protocol: cluster.TCP})
	client.ServiceAccount = "robot"
	w.put(client, pod("shop", "spare", "10.0.1.22", labels("app", "spare")))
	w.put(&cluster.Node{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindNode, Name: "there"}, Labels: labels("rack", "1")}, Addresses: addrs("192.0.2.7"), PodCIDRs: prefixes("10.0.1.0/24")})
	return w
}

const (
	web, api, db  = "10.0.0.11", "10.0.0.12", "10.0.0.13"
	client, spare = "10.0.1.21", "10.0.1.22"
	outside       = "198.51.100.9"
)

// networkPolicy is a K8s policy of namespace shop for some Pods. It isolates in the given
// directions and in those with rules.
func networkPolicy(pods *cluster.Selector, isolate string, in, out []cluster.NetworkPolicyRule) *cluster.NetworkPolicy {
	return &cluster.NetworkPolicy{
		Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindNetworkPolicy, Namespace: "shop", Name: "np"}}, Pods: *pods,
		Ingress: strings.Contains(isolate, "in"), Egress: strings.Contains(isolate, "out"),
		IngressRules: in, EgressRules: out,
	}
}

func k8sRule(peers []cluster.NetworkPolicyPeer, ports ...cluster.PolicyPort) []cluster.NetworkPolicyRule {
	return []cluster.NetworkPolicyRule{{Peers: peers, Ports: ports}}
}

// verdicts of "FROM TO PROTO/PORT" probes.
type verdicts map[string]string

func (w *world) wantVerdicts(t *testing.T, want verdicts) {
	t.Helper()
	for what, v := range want {
		f := strings.Fields(what)
		pk := probe{from: f[0], to: f[1]}
		proto, port, _ := strings.Cut(f[2], "/")
		pk.proto, pk.port = map[string]cluster.Protocol{"tcp": cluster.TCP, "udp": cluster.UDP, "sctp": cluster.SCTP, "icmp": 1}[proto], number(port)
		if got := w.verdict(pk); got != v {
			t.Errorf("%s: %s, want %s", what, got, v)
		}
	}
}

func number(s string) (n uint16) {
	for _, c := range s {
		n = 10*n + uint16(c-'0')
	}
	return n
}

func peerPods(s *cluster.Selector) []cluster.NetworkPolicyPeer {
	return []cluster.NetworkPolicyPeer{{Pods: s}}
}

var networkPolicyCases = []struct {
	name   string
	policy *cluster.NetworkPolicy
	rules  int
	want   verdicts
}{
	{"isolation", networkPolicy(selector("app", "web"), "in out", nil, nil), 2, verdicts{
		client + " " + web + " tcp/80":  "drop",
		web + " " + client + " udp/53":  "drop",
		client + " " + api + " tcp/80":  "allow",
		web + " " + api + " icmp/0":     "drop",
		outside + " " + web + " tcp/80": "drop",
	}},
	{"one direction", networkPolicy(selector("app", "web"), "out", nil, nil), 1, verdicts{
		client + " " + web + " tcp/80": "allow",
		web + " " + client + " tcp/80": "drop",
	}},
	{"the empty selector is every Pod of the namespace", networkPolicy(selector(), "in", nil, nil), 1, verdicts{
		client + " " + web + " tcp/80": "drop",
		client + " " + api + " tcp/80": "drop",
		client + " " + db + " tcp/80":  "allow",
	}},
	{"an empty rule allows everything", networkPolicy(selector(), "in", k8sRule(nil), nil), 1, verdicts{
		client + " " + web + " tcp/80":   "allow",
		outside + " " + api + " sctp/99": "allow",
	}},
	{"pods of the same namespace", networkPolicy(selector("app", "web"), "in", k8sRule(peerPods(selector("app", "api")), tcp(80)), nil), 1, verdicts{
		api + " " + web + " tcp/80":    "allow",
		api + " " + web + " tcp/81":    "drop",
		api + " " + web + " udp/80":    "drop",
		client + " " + web + " tcp/80": "drop",
		spare + " " + web + " tcp/80":  "drop",
	}},
	{"an empty pod selector is not any peer", networkPolicy(selector("app", "web"), "in", k8sRule(peerPods(selector())), nil), 1, verdicts{
		spare + " " + web + " tcp/80":   "allow",
		client + " " + web + " tcp/80":  "drop",
		outside + " " + web + " tcp/80": "drop",
	}},
	{"namespaces", networkPolicy(selector("app", "web"), "in", k8sRule([]cluster.NetworkPolicyPeer{{Namespaces: selector("team", "b")}}), nil), 1, verdicts{
		client + " " + web + " tcp/80": "allow",
		spare + " " + web + " tcp/80":  "drop",
	}},
	{"both together", networkPolicy(selector("app", "web"), "in", k8sRule([]cluster.NetworkPolicyPeer{{Namespaces: selector("team", "a"), Pods: selector("app", "db")}}), nil), 1, verdicts{
		db + " " + web + " tcp/80":     "allow",
		api + " " + web + " tcp/80":    "drop",
		client + " " + web + " tcp/80": "drop",
	}},
	{"selectors that choose nobody allow nobody", networkPolicy(selector("app", "web"), "in", k8sRule(peerPods(selector("app", "none"))), nil), 1, verdicts{
		api + " " + web + " tcp/80": "drop",
	}},
	{"a block with an exception", networkPolicy(selector("app", "web"), "out", nil, k8sRule([]cluster.NetworkPolicyPeer{{IPBlock: block("198.51.100.0/24", "198.51.100.8/29")}})), 1, verdicts{
		web + " 198.51.100.7 tcp/443":  "allow",
		web + " 198.51.100.8 tcp/443":  "drop",
		web + " 198.51.100.15 tcp/443": "drop",
		web + " 198.51.100.16 tcp/443": "allow",
	}},
	{"a range of ports", networkPolicy(selector("app", "web"), "in", k8sRule(nil, cluster.PolicyPort{Protocol: cluster.UDP, Port: cluster.PortRef{Number: 100}, EndPort: 200}), nil), 1, verdicts{
		client + " " + web + " udp/99":  "drop",
		client + " " + web + " udp/100": "allow",
		client + " " + web + " udp/200": "allow",
		client + " " + web + " udp/201": "drop",
		client + " " + web + " tcp/150": "drop",
	}},
	{"a protocol without a port", networkPolicy(selector("app", "web"), "in", k8sRule(nil, cluster.PolicyPort{Protocol: cluster.SCTP}), nil), 1, verdicts{
		client + " " + web + " sctp/7": "allow",
		client + " " + web + " tcp/7":  "drop",
	}},
	{"a named port is the Pod's own number", networkPolicy(selector(), "in", k8sRule(nil, namedTCP("http")), nil), 2, verdicts{
		client + " " + web + " tcp/80":   "allow",
		client + " " + web + " tcp/8080": "drop",
		client + " " + api + " tcp/8080": "allow",
		client + " " + api + " tcp/80":   "drop",
	}},
	{"a named port of another protocol is none", networkPolicy(selector(), "in", k8sRule(nil, namedTCP("dns")), nil), 0, verdicts{
		client + " " + api + " tcp/53": "drop",
		client + " " + api + " udp/53": "drop",
	}},
	{"a named port of the peer", networkPolicy(selector("app", "web"), "out", nil, k8sRule([]cluster.NetworkPolicyPeer{{Namespaces: selector()}}, namedTCP("http"), tcp(22))), 4, verdicts{
		web + " " + api + " tcp/8080":    "allow",
		web + " " + client + " tcp/8000": "allow",
		web + " " + client + " tcp/8080": "drop",
		web + " " + client + " tcp/22":   "allow",
		web + " " + db + " tcp/22":       "allow",
		web + " " + db + " tcp/8080":     "drop",
		web + " " + outside + " tcp/22":  "drop",
	}},
	{"a named port of anybody", networkPolicy(selector("app", "web"), "out", nil, k8sRule(nil, namedTCP("http"), tcp(22))), 4, verdicts{
		web + " " + api + " tcp/8080":     "allow",
		web + " " + client + " tcp/8000":  "allow",
		web + " " + outside + " tcp/22":   "allow",
		web + " " + outside + " tcp/8080": "drop",
	}},
	{"no Pod of this Node", networkPolicy(selector("app", "spare"), "in out", k8sRule(nil), k8sRule(nil)), 0, verdicts{
		client + " " + spare + " tcp/80": "allow",
	}},
}

func TestNetworkPolicies(t *testing.T) {
	for _, c := range networkPolicyCases {
		t.Run(c.name, func(t *testing.T) {
			w := shop()
			w.put(c.policy)
			w.update(t)
			if len(w.rules) != c.rules {
				t.Errorf("%d rules, want %d: %v", len(w.rules), c.rules, w.ruleNames())
			}
			w.wantVerdicts(t, c.want)
			w.remove(c.policy.Key)
			w.update(t)
			if len(w.rules)+len(w.isolated) != 0 {
				t.Errorf("without the policy there are %v and %v", w.ruleNames(), w.isolated)
			}
		})
	}
}

func (w *world) ruleNames() (names []string) {
	for k := range w.rules {
		names = append(names, k.Policy.Name+" "+k.FieldPath()+" "+k.Part)
	}
	slices.Sort(names)
	return names
}

// cnp is a ClusterNetworkPolicy for Pods with app=web, in any namespace.
func cnp(name, tier string, priority float64, in, out []cluster.PolicyRule) *cluster.AntreaPolicy {
	return &cluster.AntreaPolicy{
		Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: name}}, Tier: tier, Priority: priority,
		AppliedTo: []cluster.AppliedTo{{Pods: selector("app", "web")}}, Ingress: in, Egress: out,
	}
}

// group is a ClusterGroup.
func group(name string, g cluster.Group) *cluster.Group {
	g.Key = cluster.Key{Kind: cluster.KindClusterGroup, Name: name}
	return &g
}

func antreaRule(a cluster.RuleAction, peers []cluster.PolicyPeer, ports ...cluster.PolicyPort) cluster.PolicyRule {
	return cluster.PolicyRule{Action: a, Peers: peers, Ports: ports}
}

// Short forms for the table below.
var (
	dropAll    = antreaRule(cluster.ActionDrop, nil)
	everywhere = []cluster.AppliedTo{{Namespaces: selector()}}
)

func ruleList(rules ...cluster.PolicyRule) []cluster.PolicyRule { return rules }
func onePeer(p cluster.PolicyPeer) []cluster.PolicyPeer         { return []cluster.PolicyPeer{p} }

var antreaPolicyCases = []struct {
	name    string
	objects []cluster.Object
	want    verdicts
}{
	{"the first rule decides", []cluster.Object{
		cnp("a", "", 5, ruleList(antreaRule(cluster.ActionAllow, nil, tcp(80)), dropAll), nil),
	}, verdicts{client + " " + web + " tcp/80": "allow", client + " " + web + " tcp/81": "drop", client + " " + api + " tcp/81": "allow"}},
	{"the lower policy priority first", []cluster.Object{
		cnp("a", "", 5, ruleList(dropAll), nil), cnp("b", "", 4.9, ruleList(antreaRule(cluster.ActionAllow, nil, tcp(80))), nil),
	}, verdicts{client + " " + web + " tcp/80": "allow", client + " " + web + " tcp/81": "drop"}},
	{"tiers before priorities", []cluster.Object{
		cnp("a", "", 1, ruleList(antreaRule(cluster.ActionAllow, nil)), nil), cnp("b", "emergency", 100, ruleList(antreaRule(cluster.ActionReject, nil, tcp(80))), nil),
	}, verdicts{client + " " + web + " tcp/80": "reject", client + " " + web + " tcp/81": "allow"}},
	{"a tier of one's own", []cluster.Object{
		&cluster.Tier{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindTier, Name: "mine"}}, Priority: 251},
		cnp("a", "mine", 1, ruleList(dropAll), nil), cnp("b", "", 9000, ruleList(antreaRule(cluster.ActionAllow, nil, tcp(80))), nil),
	}, verdicts{client + " " + web + " tcp/80": "allow", client + " " + web + " tcp/81": "drop"}},
	{"before policies of Kubernetes", []cluster.Object{
		cnp("a", "", 5, ruleList(antreaRule(cluster.ActionAllow, nil, tcp(80))), nil), networkPolicy(selector(), "in", nil, nil),
	}, verdicts{client + " " + web + " tcp/80": "allow", client + " " + web + " tcp/81": "drop"}},
	{"Pass leaves it to Kubernetes", []cluster.Object{
		cnp("a", "", 5, ruleList(antreaRule(cluster.ActionPass, nil, tcp(80)), antreaRule(cluster.ActionAllow, nil)), nil), networkPolicy(selector(), "in", nil, nil),
	}, verdicts{client + " " + web + " tcp/80": "drop", client + " " + web + " tcp/81": "allow"}},
	{"Baseline comes last", []cluster.Object{
		cnp("a", "baseline", 5, ruleList(dropAll), nil), networkPolicy(selector("app", "web"), "in", k8sRule(nil, tcp(80)), nil),
	}, verdicts{client + " " + web + " tcp/80": "allow", client + " " + web + " tcp/81": "drop"}},
	{"Baseline without others", []cluster.Object{
		cnp("a", "baseline", 5, ruleList(antreaRule(cluster.ActionAllow, nil, tcp(80)), dropAll), nil),
	}, verdicts{client + " " + web + " tcp/80": "allow", client + " " + web + " tcp/81": "drop"}},
	{"appliedTo of a rule", []cluster.Object{
		&cluster.AntreaPolicy{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "a"}}, Priority: 5, Ingress: ruleList(
			cluster.PolicyRule{Action: cluster.ActionDrop, AppliedTo: []cluster.AppliedTo{{Pods: selector("app", "db"), Namespaces: selector("team", "a")}}})},
	}, verdicts{client + " " + db + " tcp/1": "drop", client + " " + web + " tcp/1": "allow"}},
	{"a namespaced policy", []cluster.Object{
		&cluster.AntreaPolicy{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindAntreaNetworkPolicy, Namespace: "shop", Name: "a"}}, Priority: 5, AppliedTo: []cluster.AppliedTo{{Pods: selector()}},
			Ingress: ruleList(antreaRule(cluster.ActionDrop, onePeer(cluster.PolicyPeer{Pods: selector("app", "spare")})))},
	}, verdicts{spare + " " + web + " tcp/1": "drop", spare + " " + db + " tcp/1": "allow", client + " " + web + " tcp/1": "allow"}},
	{"groups, their children and Services", []cluster.Object{
		group("all", cluster.Group{ChildGroups: []string{"net", "svc", "missing"}}),
		group("net", cluster.Group{IPBlocks: []cluster.IPBlock{*block("198.51.100.0/24")}}),
		group("svc", cluster.Group{Service: &cluster.Name{Namespace: "lab", Name: "clients"}}),
		&cluster.Service{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindService, Namespace: "lab", Name: "clients"}}, Selector: labels("app", "client")},
		cnp("a", "", 5, ruleList(antreaRule(cluster.ActionAllow, onePeer(cluster.PolicyPeer{Group: "all"})), dropAll), nil),
	}, verdicts{client + " " + web + " tcp/1": "allow", outside + " " + web + " tcp/1": "allow", spare + " " + web + " tcp/1": "drop"}},
	{"a group of appliedTo", []cluster.Object{
		group("dbs", cluster.Group{Pods: selector("app", "db")}),
		&cluster.AntreaPolicy{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "a"}}, Priority: 5, AppliedTo: []cluster.AppliedTo{{Group: "dbs"}}, Egress: ruleList(dropAll)},
	}, verdicts{db + " " + web + " tcp/1": "drop", web + " " + db + " tcp/1": "allow"}},
	{"a group that is not there chooses nobody", []cluster.Object{
		cnp("a", "", 5, ruleList(antreaRule(cluster.ActionDrop, onePeer(cluster.PolicyPeer{Group: "none"}))), nil),
	}, verdicts{client + " " + web + " tcp/1": "allow"}},
	{"service accounts", []cluster.Object{
		cnp("a", "", 5, ruleList(antreaRule(cluster.ActionDrop, onePeer(cluster.PolicyPeer{ServiceAccount: &cluster.Name{Namespace: "lab", Name: "robot"}}))), nil),
		&cluster.AntreaPolicy{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "b"}}, Priority: 5,
			AppliedTo: []cluster.AppliedTo{{ServiceAccount: &cluster.Name{Namespace: "ops", Name: "default"}}}, Ingress: ruleList(dropAll)},
	}, verdicts{client + " " + web + " tcp/1": "drop", spare + " " + web + " tcp/1": "allow", spare + " " + db + " tcp/1": "drop"}},
	{"Nodes and their gateways", []cluster.Object{
		cnp("a", "", 5, ruleList(antreaRule(cluster.ActionDrop, onePeer(cluster.PolicyPeer{Nodes: selector("rack", "1")}))), nil),
	}, verdicts{"192.0.2.7 " + web + " tcp/1": "drop", "10.0.1.1 " + web + " tcp/1": "drop", client + " " + web + " tcp/1": "allow"}},
	{"the namespace itself", []cluster.Object{
		&cluster.AntreaPolicy{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "a"}}, Priority: 5, AppliedTo: everywhere, Ingress: ruleList(
			antreaRule(cluster.ActionAllow, onePeer(cluster.PolicyPeer{PeerNamespaces: &cluster.PeerNamespaces{Self: true}})), dropAll)},
	}, verdicts{spare + " " + web + " tcp/1": "allow", db + " " + web + " tcp/1": "drop", spare + " " + db + " tcp/1": "drop"}},
	{"namespaces of the same team", []cluster.Object{
		&cluster.AntreaPolicy{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "a"}}, Priority: 5, AppliedTo: everywhere, Ingress: ruleList(
			antreaRule(cluster.ActionAllow, onePeer(cluster.PolicyPeer{PeerNamespaces: &cluster.PeerNamespaces{SameLabels: []string{"team"}}})), dropAll)},
	}, verdicts{spare + " " + db + " tcp/1": "allow", db + " " + web + " tcp/1": "allow", client + " " + db + " tcp/1": "drop"}},
	{"ICMP", []cluster.Object{
		cnp("a", "", 5, ruleList(cluster.PolicyRule{Action: cluster.ActionDrop, Protocols: []cluster.PolicyProtocol{{ICMP: &cluster.ICMPProtocol{}}}}), nil),
	}, verdicts{client + " " + web + " icmp/0": "drop", client + " " + web + " tcp/1": "allow"}},
	{"blocks of a rule out", []cluster.Object{
		cnp("a", "", 5, nil, ruleList(antreaRule(cluster.ActionReject, onePeer(cluster.PolicyPeer{IPBlock: block("0.0.0.0/0", "10.0.0.0/8")})))),
	}, verdicts{web + " " + outside + " tcp/1": "reject", web + " " + client + " tcp/1": "allow"}},
}

func TestAntreaPolicies(t *testing.T) {
	for _, c := range antreaPolicyCases {
		t.Run(c.name, func(t *testing.T) {
			w := shop()
			w.put(c.objects...)
			w.update(t)
			if bad := w.policies.Refused(); len(bad) != 0 {
				t.Fatalf("refused: %v", bad)
			}
			w.wantVerdicts(t, c.want)
			for _, o := range c.objects {
				w.remove(o.Metadata().Key)
			}
			w.update(t)
			if len(w.rules)+len(w.isolated) != 0 {
				t.Errorf("without the objects there are %v and %v", w.ruleNames(), w.isolated)
			}
		})
	}
}

// TestServiceRules: rules about a Service have its groups, and follow their changes.
func TestServiceRules(t *testing.T) {
	w := shop()
	target := cluster.Name{Namespace: "shop", Name: "web"}
	w.put(cnp("to", "", 5, nil, []cluster.PolicyRule{{Action: cluster.ActionDrop, ToServices: []cluster.Name{target}}}),
		&cluster.AntreaPolicy{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "on"}}, Priority: 6,
			AppliedTo: []cluster.AppliedTo{{Service: &target}},
			Ingress:   []cluster.PolicyRule{antreaRule(cluster.ActionDrop, []cluster.PolicyPeer{{IPBlock: block("198.51.100.0/24")}})}})
	want := func(to, on []string) {
		t.Helper()
		w.update(t)
		got := map[string][]string{}
		for k, r := range w.rules {
			got[k.Policy.Name] = addressTexts(r.to())
		}
		if !slices.Equal(got["to"], to) || !slices.Equal(got["on"], on) {
			t.Errorf("To is %v, want to %v and on %v", got, to, on)
		}
	}
	want([]string{}, nil)
	w.groups[target] = []uint32{9, 8}
	want([]string{"group 8", "group 9"}, []string{"service 8", "service 9"})
	w.groups[target] = []uint32{9}
	want([]string{"group 9"}, []string{"service 9"})
}

// TestRefusedPolicies: a refused policy is named with its reason and has no rule. When the
// reason is gone, it is enforced.
func TestRefusedPolicies(t *testing.T) {
	bad := func(r cluster.PolicyRule) *cluster.AntreaPolicy {
		return cnp("bad", "", 5, []cluster.PolicyRule{r}, nil)
	}
	for _, c := range []struct {
		name    string
		objects []cluster.Object
		want    string
	}{
		{"tier", []cluster.Object{cnp("bad", "lost", 5, []cluster.PolicyRule{{Action: cluster.ActionDrop}}, nil)}, `there is no Tier "lost"`},
		{"fqdn", []cluster.Object{bad(antreaRule(cluster.ActionDrop, []cluster.PolicyPeer{{FQDN: "example.com"}}))}, "spec.ingress[0]: peer 0: peers by fqdn"},
		{"other clusters", []cluster.Object{bad(antreaRule(cluster.ActionDrop, []cluster.PolicyPeer{{Pods: selector(), ClusterSet: true}}))}, "other clusters"},
		{"Nodes", []cluster.Object{bad(cluster.PolicyRule{Action: cluster.ActionDrop, AppliedTo: []cluster.AppliedTo{{Nodes: selector()}}})}, "apply to Nodes"},
		{"entities of related namespaces", []cluster.Object{bad(antreaRule(cluster.ActionDrop, []cluster.PolicyPeer{{ExternalEntities: selector(), PeerNamespaces: &cluster.PeerNamespaces{Self: true}}}))}, "externalEntitySelector with namespaces"},
		{"a ring of groups", []cluster.Object{
			group("a", cluster.Group{ChildGroups: []string{"b"}}), group("b", cluster.Group{ChildGroups: []string{"a"}}),
			bad(antreaRule(cluster.ActionDrop, []cluster.PolicyPeer{{Group: "a"}})),
		}, "ClusterGroup/a is a child of itself"},
		{"a Service in egress", []cluster.Object{&cluster.AntreaPolicy{
			Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "bad"}}, Priority: 5,
			AppliedTo: []cluster.AppliedTo{{Service: &cluster.Name{Namespace: "shop", Name: "web"}}}, Egress: []cluster.PolicyRule{{Action: cluster.ActionDrop}},
		}}, "only ingress rules"},
		{"Pass in baseline", []cluster.Object{cnp("bad", "baseline", 5, []cluster.PolicyRule{{Action: cluster.ActionPass}}, nil)}, "cannot Pass"},
		{"too many ranks", []cluster.Object{cnp("bad", "baseline", 5, slices.Repeat([]cluster.PolicyRule{{Action: cluster.ActionDrop}}, 172), nil)}, "all flow priorities"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := shop()
			w.put(c.objects...)
			w.put(cnp("good", "", 7, []cluster.PolicyRule{{Action: cluster.ActionDrop}}, nil))
			w.update(t)
			k := cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "bad"}
			if err := w.policies.Refused()[k]; err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if got := w.ruleNames(); len(got) != 1 {
				t.Errorf("rules %v, want that of the good policy", got)
			}
			w.put(cnp("bad", "", 5, []cluster.PolicyRule{{Action: cluster.ActionDrop}}, nil))
			w.update(t)
			if len(w.policies.Refused()) != 0 || len(w.rules) != 2 {
				t.Errorf("without the fault it is still refused: %v", w.policies.Refused())
			}
		})
	}
}

// TestL7VLANs: every L7 rule has its own VLAN id. The rule keeps it when its policy changes and
// when rules come and go above it.
func TestL7VLANs(t *testing.T) {
	w := shop()
	l7 := cluster.PolicyRule{Action: cluster.ActionAllow, Ports: []cluster.PolicyPort{tcp(80)}, L7: []cluster.L7Protocol{{HTTP: &cluster.L7HTTP{Method: "GET"}}}}
	w.put(cnp("a", "", 5, []cluster.PolicyRule{l7, l7}, nil))
	w.update(t)
	vlan := func(index int) uint16 {
		return w.rules[RuleKey{cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "a"}, tables.Ingress, index, ""}].Rule.L7VLAN
	}
	if vlan(0) != 1 || vlan(1) != 2 {
		t.Fatalf("VLAN ids %d and %d, want 1 and 2", vlan(0), vlan(1))
	}
	w.put(cnp("a", "", 5, []cluster.PolicyRule{{Action: cluster.ActionAllow}, l7}, nil))
	w.update(t)
	if vlan(0) != 0 || vlan(1) != 2 {
		t.Errorf("VLAN ids %d and %d, want 0 and 2", vlan(0), vlan(1))
	}
	post := l7
	post.L7 = []cluster.L7Protocol{{HTTP: &cluster.L7HTTP{Method: "POST"}}}
	w.put(cnp("a", "", 5, []cluster.PolicyRule{post, {Action: cluster.ActionAllow}, l7}, nil))
	w.update(t)
	if vlan(0) != 1 || vlan(2) != 2 {
		t.Errorf("with a rule above it, VLAN ids %d and %d, want 1 and 2", vlan(0), vlan(2))
	}
	w.put(cnp("a", "", 5, []cluster.PolicyRule{l7}, nil))
	w.update(t)
	if vlan(0) != 2 {
		t.Errorf("alone, VLAN id %d, want 2", vlan(0))
	}
	w.remove(cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "a"})
	w.update(t)
	if n := len(w.policies.vlans.Assigned); n != 0 {
		t.Errorf("%d VLAN ids belong to no rule", n)
	}
}
