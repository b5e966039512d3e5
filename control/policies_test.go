package control

import (
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/tables"
)

// The world of the tables below: three namespaces; web, api and db on this
// Node, client and spare on others.
func shop() *world {
	w := newWorld()
	w.put(namespace("shop", "team", "a"), namespace("ops", "team", "a"), namespace("lab", "team", "b"))
	w.here(11, pod("shop", "web", "10.0.0.11", labels("app", "web"), ContainerPort{"http", 80, TCP}))
	w.here(12, pod("shop", "api", "10.0.0.12", labels("app", "api"), ContainerPort{"http", 8080, TCP}, ContainerPort{"dns", 53, UDP}))
	w.here(13, pod("ops", "db", "10.0.0.13", labels("app", "db")))
	client := pod("lab", "client", "10.0.1.21", labels("app", "client"), ContainerPort{"http", 8000, TCP})
	client.ServiceAccount = "robot"
	w.put(client, pod("shop", "spare", "10.0.1.22", labels("app", "spare")))
	w.put(&Node{Meta: Meta{Key: Key{Kind: KindNode, Name: "there"}, Labels: labels("rack", "1")}, Addresses: addrs("192.0.2.7"), PodCIDRs: prefixes("10.0.1.0/24")})
	return w
}

const (
	web, api, db  = "10.0.0.11", "10.0.0.12", "10.0.0.13"
	client, spare = "10.0.1.21", "10.0.1.22"
	outside       = "198.51.100.9"
)

// networkPolicy is a K8s policy of namespace shop for some Pods. Directions
// with rules, and those asked for, isolate.
func networkPolicy(pods *Selector, isolate string, in, out []NetworkPolicyRule) *NetworkPolicy {
	return &NetworkPolicy{
		Meta: Meta{Key: Key{KindNetworkPolicy, "shop", "np"}}, Pods: *pods,
		Ingress: strings.Contains(isolate, "in"), Egress: strings.Contains(isolate, "out"),
		IngressRules: in, EgressRules: out,
	}
}

func k8sRule(peers []NetworkPolicyPeer, ports ...PolicyPort) []NetworkPolicyRule {
	return []NetworkPolicyRule{{peers, ports}}
}

// verdicts of "FROM TO PROTO/PORT" probes.
type verdicts map[string]string

func (w *world) wantVerdicts(t *testing.T, want verdicts) {
	t.Helper()
	for what, v := range want {
		f := strings.Fields(what)
		pk := probe{from: f[0], to: f[1]}
		proto, port, _ := strings.Cut(f[2], "/")
		pk.proto, pk.port = map[string]Protocol{"tcp": TCP, "udp": UDP, "sctp": SCTP, "icmp": 1}[proto], number(port)
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

func peerPods(s *Selector) []NetworkPolicyPeer { return []NetworkPolicyPeer{{Pods: s}} }

var networkPolicyCases = []struct {
	name   string
	policy *NetworkPolicy
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
	{"namespaces", networkPolicy(selector("app", "web"), "in", k8sRule([]NetworkPolicyPeer{{Namespaces: selector("team", "b")}}), nil), 1, verdicts{
		client + " " + web + " tcp/80": "allow",
		spare + " " + web + " tcp/80":  "drop",
	}},
	{"both together", networkPolicy(selector("app", "web"), "in", k8sRule([]NetworkPolicyPeer{{Namespaces: selector("team", "a"), Pods: selector("app", "db")}}), nil), 1, verdicts{
		db + " " + web + " tcp/80":     "allow",
		api + " " + web + " tcp/80":    "drop",
		client + " " + web + " tcp/80": "drop",
	}},
	{"selectors that choose nobody allow nobody", networkPolicy(selector("app", "web"), "in", k8sRule(peerPods(selector("app", "none"))), nil), 1, verdicts{
		api + " " + web + " tcp/80": "drop",
	}},
	{"a block with an exception", networkPolicy(selector("app", "web"), "out", nil, k8sRule([]NetworkPolicyPeer{{IPBlock: block("198.51.100.0/24", "198.51.100.8/29")}})), 1, verdicts{
		web + " 198.51.100.7 tcp/443":  "allow",
		web + " 198.51.100.8 tcp/443":  "drop",
		web + " 198.51.100.15 tcp/443": "drop",
		web + " 198.51.100.16 tcp/443": "allow",
	}},
	{"a range of ports", networkPolicy(selector("app", "web"), "in", k8sRule(nil, PolicyPort{Protocol: UDP, Port: PortRef{Number: 100}, EndPort: 200}), nil), 1, verdicts{
		client + " " + web + " udp/99":  "drop",
		client + " " + web + " udp/100": "allow",
		client + " " + web + " udp/200": "allow",
		client + " " + web + " udp/201": "drop",
		client + " " + web + " tcp/150": "drop",
	}},
	{"a protocol without a port", networkPolicy(selector("app", "web"), "in", k8sRule(nil, PolicyPort{Protocol: SCTP}), nil), 1, verdicts{
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
	{"a named port of the peer", networkPolicy(selector("app", "web"), "out", nil, k8sRule([]NetworkPolicyPeer{{Namespaces: selector()}}, namedTCP("http"), tcp(22))), 4, verdicts{
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
		names = append(names, k.Policy.Name+" "+k.describe()+" "+k.Part)
	}
	slices.Sort(names)
	return names
}

// cnp is a ClusterNetworkPolicy for Pods with app=web, in any namespace.
func cnp(name, tier string, priority float64, in, out []PolicyRule) *AntreaPolicy {
	return &AntreaPolicy{
		Meta: Meta{Key: Key{Kind: KindClusterNetworkPolicy, Name: name}}, Tier: tier, Priority: priority,
		AppliedTo: []AppliedTo{{Pods: selector("app", "web")}}, Ingress: in, Egress: out,
	}
}

// group is a ClusterGroup.
func group(name string, g Group) *Group {
	g.Key = Key{Kind: KindClusterGroup, Name: name}
	return &g
}

func antreaRule(a RuleAction, peers []PolicyPeer, ports ...PolicyPort) PolicyRule {
	return PolicyRule{Action: a, Peers: peers, Ports: ports}
}

// Short forms for the table below.
var (
	dropAll    = antreaRule(ActionDrop, nil)
	everywhere = []AppliedTo{{Namespaces: selector()}}
)

func ruleList(rules ...PolicyRule) []PolicyRule { return rules }
func onePeer(p PolicyPeer) []PolicyPeer         { return []PolicyPeer{p} }

var antreaPolicyCases = []struct {
	name    string
	objects []Object
	want    verdicts
}{
	{"the first rule decides", []Object{
		cnp("a", "", 5, ruleList(antreaRule(ActionAllow, nil, tcp(80)), dropAll), nil),
	}, verdicts{client + " " + web + " tcp/80": "allow", client + " " + web + " tcp/81": "drop", client + " " + api + " tcp/81": "allow"}},
	{"the lower policy priority first", []Object{
		cnp("a", "", 5, ruleList(dropAll), nil), cnp("b", "", 4.9, ruleList(antreaRule(ActionAllow, nil, tcp(80))), nil),
	}, verdicts{client + " " + web + " tcp/80": "allow", client + " " + web + " tcp/81": "drop"}},
	{"tiers before priorities", []Object{
		cnp("a", "", 1, ruleList(antreaRule(ActionAllow, nil)), nil), cnp("b", "emergency", 100, ruleList(antreaRule(ActionReject, nil, tcp(80))), nil),
	}, verdicts{client + " " + web + " tcp/80": "reject", client + " " + web + " tcp/81": "allow"}},
	{"a tier of one's own", []Object{
		&Tier{Meta: Meta{Key: Key{Kind: KindTier, Name: "mine"}}, Priority: 251},
		cnp("a", "mine", 1, ruleList(dropAll), nil), cnp("b", "", 9000, ruleList(antreaRule(ActionAllow, nil, tcp(80))), nil),
	}, verdicts{client + " " + web + " tcp/80": "allow", client + " " + web + " tcp/81": "drop"}},
	{"before policies of Kubernetes", []Object{
		cnp("a", "", 5, ruleList(antreaRule(ActionAllow, nil, tcp(80))), nil), networkPolicy(selector(), "in", nil, nil),
	}, verdicts{client + " " + web + " tcp/80": "allow", client + " " + web + " tcp/81": "drop"}},
	{"Pass leaves it to Kubernetes", []Object{
		cnp("a", "", 5, ruleList(antreaRule(ActionPass, nil, tcp(80)), antreaRule(ActionAllow, nil)), nil), networkPolicy(selector(), "in", nil, nil),
	}, verdicts{client + " " + web + " tcp/80": "drop", client + " " + web + " tcp/81": "allow"}},
	{"Baseline comes last", []Object{
		cnp("a", "baseline", 5, ruleList(dropAll), nil), networkPolicy(selector("app", "web"), "in", k8sRule(nil, tcp(80)), nil),
	}, verdicts{client + " " + web + " tcp/80": "allow", client + " " + web + " tcp/81": "drop"}},
	{"Baseline without others", []Object{
		cnp("a", "baseline", 5, ruleList(antreaRule(ActionAllow, nil, tcp(80)), dropAll), nil),
	}, verdicts{client + " " + web + " tcp/80": "allow", client + " " + web + " tcp/81": "drop"}},
	{"appliedTo of a rule", []Object{
		&AntreaPolicy{Meta: Meta{Key: Key{Kind: KindClusterNetworkPolicy, Name: "a"}}, Priority: 5, Ingress: ruleList(
			PolicyRule{Action: ActionDrop, AppliedTo: []AppliedTo{{Pods: selector("app", "db"), Namespaces: selector("team", "a")}}})},
	}, verdicts{client + " " + db + " tcp/1": "drop", client + " " + web + " tcp/1": "allow"}},
	{"a namespaced policy", []Object{
		&AntreaPolicy{Meta: Meta{Key: Key{KindAntreaNetworkPolicy, "shop", "a"}}, Priority: 5, AppliedTo: []AppliedTo{{Pods: selector()}},
			Ingress: ruleList(antreaRule(ActionDrop, onePeer(PolicyPeer{Pods: selector("app", "spare")})))},
	}, verdicts{spare + " " + web + " tcp/1": "drop", spare + " " + db + " tcp/1": "allow", client + " " + web + " tcp/1": "allow"}},
	{"groups, their children and Services", []Object{
		group("all", Group{ChildGroups: []string{"net", "svc", "missing"}}),
		group("net", Group{IPBlocks: []IPBlock{*block("198.51.100.0/24")}}),
		group("svc", Group{Service: &Name{"lab", "clients"}}),
		&Service{Meta: Meta{Key: Key{KindService, "lab", "clients"}}, Selector: labels("app", "client")},
		cnp("a", "", 5, ruleList(antreaRule(ActionAllow, onePeer(PolicyPeer{Group: "all"})), dropAll), nil),
	}, verdicts{client + " " + web + " tcp/1": "allow", outside + " " + web + " tcp/1": "allow", spare + " " + web + " tcp/1": "drop"}},
	{"a group of appliedTo", []Object{
		group("dbs", Group{Pods: selector("app", "db")}),
		&AntreaPolicy{Meta: Meta{Key: Key{Kind: KindClusterNetworkPolicy, Name: "a"}}, Priority: 5, AppliedTo: []AppliedTo{{Group: "dbs"}}, Egress: ruleList(dropAll)},
	}, verdicts{db + " " + web + " tcp/1": "drop", web + " " + db + " tcp/1": "allow"}},
	{"a group that is not there chooses nobody", []Object{
		cnp("a", "", 5, ruleList(antreaRule(ActionDrop, onePeer(PolicyPeer{Group: "none"}))), nil),
	}, verdicts{client + " " + web + " tcp/1": "allow"}},
	{"service accounts", []Object{
		cnp("a", "", 5, ruleList(antreaRule(ActionDrop, onePeer(PolicyPeer{ServiceAccount: &Name{"lab", "robot"}}))), nil),
		&AntreaPolicy{Meta: Meta{Key: Key{Kind: KindClusterNetworkPolicy, Name: "b"}}, Priority: 5,
			AppliedTo: []AppliedTo{{ServiceAccount: &Name{"ops", "default"}}}, Ingress: ruleList(dropAll)},
	}, verdicts{client + " " + web + " tcp/1": "drop", spare + " " + web + " tcp/1": "allow", spare + " " + db + " tcp/1": "drop"}},
	{"Nodes and their gateways", []Object{
		cnp("a", "", 5, ruleList(antreaRule(ActionDrop, onePeer(PolicyPeer{Nodes: selector("rack", "1")}))), nil),
	}, verdicts{"192.0.2.7 " + web + " tcp/1": "drop", "10.0.1.1 " + web + " tcp/1": "drop", client + " " + web + " tcp/1": "allow"}},
	{"the namespace itself", []Object{
		&AntreaPolicy{Meta: Meta{Key: Key{Kind: KindClusterNetworkPolicy, Name: "a"}}, Priority: 5, AppliedTo: everywhere, Ingress: ruleList(
			antreaRule(ActionAllow, onePeer(PolicyPeer{PeerNamespaces: &PeerNamespaces{Self: true}})), dropAll)},
	}, verdicts{spare + " " + web + " tcp/1": "allow", db + " " + web + " tcp/1": "drop", spare + " " + db + " tcp/1": "drop"}},
	{"namespaces of the same team", []Object{
		&AntreaPolicy{Meta: Meta{Key: Key{Kind: KindClusterNetworkPolicy, Name: "a"}}, Priority: 5, AppliedTo: everywhere, Ingress: ruleList(
			antreaRule(ActionAllow, onePeer(PolicyPeer{PeerNamespaces: &PeerNamespaces{SameLabels: []string{"team"}}})), dropAll)},
	}, verdicts{spare + " " + db + " tcp/1": "allow", db + " " + web + " tcp/1": "allow", client + " " + db + " tcp/1": "drop"}},
	{"ICMP", []Object{
		cnp("a", "", 5, ruleList(PolicyRule{Action: ActionDrop, Protocols: []PolicyProtocol{{ICMP: &ICMPProtocol{}}}}), nil),
	}, verdicts{client + " " + web + " icmp/0": "drop", client + " " + web + " tcp/1": "allow"}},
	{"blocks of a rule out", []Object{
		cnp("a", "", 5, nil, ruleList(antreaRule(ActionReject, onePeer(PolicyPeer{IPBlock: block("0.0.0.0/0", "10.0.0.0/8")})))),
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

// TestServiceRules: rules that speak of a Service have its groups, and follow
// them.
func TestServiceRules(t *testing.T) {
	w := shop()
	target := Name{"shop", "web"}
	w.put(cnp("to", "", 5, nil, []PolicyRule{{Action: ActionDrop, ToServices: []Name{target}}}),
		&AntreaPolicy{Meta: Meta{Key: Key{Kind: KindClusterNetworkPolicy, Name: "on"}}, Priority: 6,
			AppliedTo: []AppliedTo{{Service: &target}},
			Ingress:   []PolicyRule{antreaRule(ActionDrop, []PolicyPeer{{IPBlock: block("198.51.100.0/24")}})}})
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

// TestRefusedPolicies: a policy that cannot be had is named with its reason,
// stands in no table, and is taken when the reason is gone.
func TestRefusedPolicies(t *testing.T) {
	bad := func(r PolicyRule) *AntreaPolicy { return cnp("bad", "", 5, []PolicyRule{r}, nil) }
	for _, c := range []struct {
		name    string
		objects []Object
		want    string
	}{
		{"tier", []Object{cnp("bad", "lost", 5, []PolicyRule{{Action: ActionDrop}}, nil)}, `there is no Tier "lost"`},
		{"fqdn", []Object{bad(antreaRule(ActionDrop, []PolicyPeer{{FQDN: "example.com"}}))}, "spec.ingress[0]: peer 0: peers by fqdn"},
		{"other clusters", []Object{bad(antreaRule(ActionDrop, []PolicyPeer{{Pods: selector(), ClusterSet: true}}))}, "other clusters"},
		{"Nodes", []Object{bad(PolicyRule{Action: ActionDrop, AppliedTo: []AppliedTo{{Nodes: selector()}}})}, "apply to Nodes"},
		{"peers outside of the cluster", []Object{bad(antreaRule(ActionDrop, []PolicyPeer{{ExternalEntities: selector(), Namespaces: selector()}}))}, "ExternalEntities are not supported"},
		{"applied outside of the cluster", []Object{bad(PolicyRule{Action: ActionDrop, AppliedTo: []AppliedTo{{ExternalEntities: selector()}}})}, "ExternalEntities are not supported"},
		{"a group outside of the cluster", []Object{
			group("a", Group{ExternalEntities: selector(), Namespaces: selector()}), bad(antreaRule(ActionDrop, []PolicyPeer{{Group: "a"}})),
		}, "ClusterGroup/a: ExternalEntities are not supported"},
		{"a ring of groups", []Object{
			group("a", Group{ChildGroups: []string{"b"}}), group("b", Group{ChildGroups: []string{"a"}}),
			bad(antreaRule(ActionDrop, []PolicyPeer{{Group: "a"}})),
		}, "ClusterGroup/a is a child of itself"},
		{"a Service in egress", []Object{&AntreaPolicy{
			Meta: Meta{Key: Key{Kind: KindClusterNetworkPolicy, Name: "bad"}}, Priority: 5,
			AppliedTo: []AppliedTo{{Service: &Name{"shop", "web"}}}, Egress: []PolicyRule{{Action: ActionDrop}},
		}}, "only ingress rules"},
		{"Pass in baseline", []Object{cnp("bad", "baseline", 5, []PolicyRule{{Action: ActionPass}}, nil)}, "cannot Pass"},
		{"too many ranks", []Object{cnp("bad", "baseline", 5, slices.Repeat([]PolicyRule{{Action: ActionDrop}}, 172), nil)}, "all flow priorities"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := shop()
			w.put(c.objects...)
			w.put(cnp("good", "", 7, []PolicyRule{{Action: ActionDrop}}, nil))
			w.update(t)
			k := Key{Kind: KindClusterNetworkPolicy, Name: "bad"}
			if err := w.policies.Refused()[k]; err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if got := w.ruleNames(); len(got) != 1 {
				t.Errorf("rules %v, want that of the good policy", got)
			}
			w.put(cnp("bad", "", 5, []PolicyRule{{Action: ActionDrop}}, nil))
			w.update(t)
			if len(w.policies.Refused()) != 0 || len(w.rules) != 2 {
				t.Errorf("mended, it is still refused: %v", w.policies.Refused())
			}
		})
	}
}

// TestL7VLANs: every L7 rule has a VLAN id of its own, which it keeps when its
// policy changes and when rules come and go above it.
func TestL7VLANs(t *testing.T) {
	w := shop()
	l7 := PolicyRule{Action: ActionAllow, Ports: []PolicyPort{tcp(80)}, L7: []L7Protocol{{HTTP: &L7HTTP{Method: "GET"}}}}
	w.put(cnp("a", "", 5, []PolicyRule{l7, l7}, nil))
	w.update(t)
	vlan := func(index int) uint16 {
		return w.rules[RuleKey{Key{Kind: KindClusterNetworkPolicy, Name: "a"}, tables.Ingress, index, ""}].Rule.L7VLAN
	}
	if vlan(0) != 1 || vlan(1) != 2 {
		t.Fatalf("VLAN ids %d and %d, want 1 and 2", vlan(0), vlan(1))
	}
	w.put(cnp("a", "", 5, []PolicyRule{{Action: ActionAllow}, l7}, nil))
	w.update(t)
	if vlan(0) != 0 || vlan(1) != 2 {
		t.Errorf("VLAN ids %d and %d, want 0 and 2", vlan(0), vlan(1))
	}
	post := l7
	post.L7 = []L7Protocol{{HTTP: &L7HTTP{Method: "POST"}}}
	w.put(cnp("a", "", 5, []PolicyRule{post, {Action: ActionAllow}, l7}, nil))
	w.update(t)
	if vlan(0) != 1 || vlan(2) != 2 {
		t.Errorf("with a rule above it, VLAN ids %d and %d, want 1 and 2", vlan(0), vlan(2))
	}
	w.put(cnp("a", "", 5, []PolicyRule{l7}, nil))
	w.update(t)
	if vlan(0) != 2 {
		t.Errorf("alone, VLAN id %d, want 2", vlan(0))
	}
	w.remove(Key{Kind: KindClusterNetworkPolicy, Name: "a"})
	w.update(t)
	if n := len(w.policies.vlans.of); n != 0 {
		t.Errorf("%d VLAN ids belong to no rule", n)
	}
}
