package answer

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// whyCluster is the lab's cluster with other policies in place of its own: the
// files of examples/web-app that are named, and the policies.
func whyCluster(t *testing.T, policies string, change func(file, text string) string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"cluster.yaml", "node-a.yaml", "node-b.yaml", "pods.yaml", "services.yaml"} {
		b, err := os.ReadFile(filepath.Join("../../examples/web-app", name))
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		if change != nil {
			text = change(name, text)
		}
		write(t, filepath.Join(dir, name), text)
	}
	write(t, filepath.Join(dir, "policies.yaml"), policies)
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// whyClients are Nodes of manifests.
func whyClients(t *testing.T, dir string, nodes ...string) (all []*api.Client) {
	t.Helper()
	for _, node := range nodes {
		c, err := Offline(pipeline.Manifests{Path: dir, Node: node}, config.DefaultTunnel)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// whyQuestion is a question with its protocol, and the sentence that answers it.
type whyQuestion struct{ from, to, sentence string }

func (q *whyQuestion) request() *api.WhyRequest {
	r := &api.WhyRequest{From: q.from}
	proto, to, ok := strings.Cut(q.to, " ")
	if !ok {
		r.To = q.to
		return r
	}
	proto, r.IPv6 = strings.CutSuffix(proto, "6")
	r.To, r.Protocol = to, proto
	return r
}

func (q *whyQuestion) askAgents(t *testing.T, clients []*api.Client) *api.WhyAnswer {
	t.Helper()
	a, err := api.Why(t.Context(), clients, q.request())
	if err != nil {
		t.Errorf("%s to %s: %v", q.from, q.to, err)
		return nil
	}
	if a.Sentence != q.sentence {
		t.Errorf("%s to %s:\n%s\nwant\n%s", q.from, q.to, a.Sentence, q.sentence)
	}
	if a.Allowed != strings.HasPrefix(q.sentence, "allowed") {
		t.Errorf("%s to %s: allowed is %v", q.from, q.to, a.Allowed)
	}
	return a
}

const clientEgress = "no policy decides on egress; "

// whyStories are policies, and what follows from them.
var whyStories = []struct {
	name, policies string
	questions      []whyQuestion
}{
	{"no policy", "", []whyQuestion{
		{"default/client-a", "default/db-a:3306", "allowed: tcp 3306 from default/client-a to default/db-a; " + clientEgress + "no policy decides on ingress; it reaches default/db-a"},
		{"default/client-a", "udp default/db-a:53", "allowed: udp 53 from default/client-a to default/db-a; " + clientEgress + "no policy decides on ingress; it reaches default/db-a"},
		{"default/client-a", "icmp default/db-a", "allowed: icmp from default/client-a to default/db-a; " + clientEgress + "no policy decides on ingress; it reaches default/db-a"},
		{"default/client-a", "icmp6 default/db-a", "allowed: icmpv6 from default/client-a to default/db-a; " + clientEgress + "no policy decides on ingress; it reaches default/db-a"},
		{"default/client-a", "sctp6 default/db-b:9", "allowed: sctp 9 from default/client-a to default/db-b; " + clientEgress + "no policy decides on ingress; it goes to Node node-b through the tunnel; it reaches default/db-b"},
		{"default/client-a", "tcp default/web-a:http", "allowed: tcp 80 from default/client-a to default/web-a; " + clientEgress + "no policy decides on ingress; it reaches default/web-a"},
		{"10.10.0.26", "10.10.0.25:1", "allowed: tcp 1 from default/client-a to default/db-a; " + clientEgress + "no policy decides on ingress; it reaches default/db-a"},
		{"node", "default/db-a:1", "allowed: tcp 1 from Node node-a to default/db-a; no policy decides on ingress; it reaches default/db-a"},
		{"default/client-a", "external:443", "allowed: tcp 443 from default/client-a to the outside; " + clientEgress + "it leaves by antrea-gw0 to the network of Node node-a"},
		{"default/client-a", "10.10.0.99:443", "allowed: tcp 443 from default/client-a to 10.10.0.99; " + clientEgress + "it leaves by antrea-gw0 to the network of Node node-a; but no Pod has 10.10.0.99, which is in Node node-a's range"},
		{"default/client-b", "[fd00:10:10::99]:443", "denied: on Node node-a, no Pod has fd00:10:10::99, which is in Node node-a's range; tcp 443 from default/client-b to fd00:10:10::99 ends in table EgressMark (entry): A flow entry without an output says drop."},
		{"default/client-a", "svc:default/sample-clusterip-no-ep", "denied: Service default/sample-clusterip-no-ep has no endpoint for tcp 80, so the switch rejects packets of default/client-a"},
		{"default/web-a", "svc:default/web-a-only", "allowed: tcp 80 from default/web-a to default/web-a by Service default/web-a-only; " + clientEgress + "no policy decides on ingress; it reaches default/web-a"},
		{"external", "192.168.77.102:30004", "allowed: tcp 80 from the outside to default/web-a by Service default/sample-nodeport; no policy decides on ingress; it reaches default/web-a; all 2 endpoints are allowed"},
		{"external", "192.168.77.102:30005", "allowed: tcp 30005 from the outside to Node node-a; it is for the Node itself, whose kernel answers before the switch"},
	}},
	{"kubernetes", `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db-closed, namespace: default}
spec: {podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db-web, namespace: default}
spec: {podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: web}}}], ports: [{protocol: TCP, port: 3306}]}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: client-out, namespace: default}
spec: {podSelector: {matchLabels: {app: client}}, policyTypes: [Egress], egress: [{ports: [{protocol: TCP, port: 80}]}]}
`, []whyQuestion{
		{"default/web-a", "default/db-a:3306", "allowed: tcp 3306 from default/web-a to default/db-a; " + clientEgress + "NetworkPolicy default/db-web allows it (rule ingress[0]); it reaches default/db-a"},
		{"default/web-a", "default/db-a:5432", "denied: NetworkPolicy default/db-closed, NetworkPolicy default/db-web isolate default/db-a for ingress, and no rule allows tcp 5432 from default/web-a"},
		{"default/client-a", "default/web-a:8080", "denied: NetworkPolicy default/client-out isolates default/client-a for egress, and no rule allows tcp 8080 to default/web-a"},
		{"default/client-a", "svc:default/web-a-only", "allowed: tcp 80 from default/client-a to default/web-a by Service default/web-a-only; NetworkPolicy default/client-out allows it (rule egress[0]); no policy decides on ingress; it reaches default/web-a"},
		{"default/web-b", "default/db-a:5432", "denied: on Node node-a, NetworkPolicy default/db-closed, NetworkPolicy default/db-web isolate default/db-a for ingress, and no rule allows tcp 5432 from default/web-b"},
	}},
	{"antrea", `
apiVersion: crd.antrea.io/v1beta1
kind: NetworkPolicy
metadata: {name: guard, namespace: default}
spec:
  priority: 5
  tier: securityops
  appliedTo: [{podSelector: {matchLabels: {app: db}}}]
  ingress:
    - {name: no-telnet, action: Drop, ports: [{protocol: TCP, port: 23}]}
    - {name: no-ssh, action: Reject, enableLogging: true, ports: [{protocol: TCP, port: 22}]}
    - {name: no-ftp, action: Drop, enableLogging: true, ports: [{protocol: TCP, port: 21}]}
    - {name: others, action: Pass, ports: [{protocol: TCP, port: 3306}, {protocol: TCP, port: 80}]}
---
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: late}
spec:
  priority: 1.5
  tier: application
  appliedTo: [{podSelector: {matchLabels: {app: db}}}]
  ingress:
    - {action: Allow, ports: [{protocol: TCP, port: 23}]}
    - {name: log-it, action: Allow, enableLogging: true, ports: [{protocol: TCP, port: 25}]}
---
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: base}
spec:
  priority: 1
  tier: baseline
  appliedTo: [{podSelector: {matchLabels: {app: db}}}, {podSelector: {matchLabels: {app: web}}}]
  ingress: [{name: nothing, action: Drop}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db, namespace: default}
spec: {podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress], ingress: [{ports: [{protocol: TCP, port: 3306}]}]}
`, []whyQuestion{
		{"default/web-a", "default/db-a:23", "denied: AntreaNetworkPolicy default/guard drops tcp 23 from default/web-a to default/db-a (ingress rule no-telnet, tier securityops, priority 5)"},
		{"default/web-a", "default/db-a:22", "denied: AntreaNetworkPolicy default/guard rejects tcp 22 from default/web-a to default/db-a (ingress rule no-ssh, tier securityops, priority 5)"},
		{"default/web-a", "default/db-a:21", "denied: AntreaNetworkPolicy default/guard drops tcp 21 from default/web-a to default/db-a (ingress rule no-ftp, tier securityops, priority 5)"},
		{"default/web-a", "default/db-a:25", "allowed: tcp 25 from default/web-a to default/db-a; " + clientEgress + "ClusterNetworkPolicy late allows it (ingress rule log-it, tier application, priority 1.5); it reaches default/db-a"},
		{"default/web-a", "default/db-a:80", "denied: NetworkPolicy default/db isolates default/db-a for ingress, and no rule allows tcp 80 from default/web-a"},
		{"default/web-a", "default/db-a:3306", "allowed: tcp 3306 from default/web-a to default/db-a; " + clientEgress + "NetworkPolicy default/db allows it (rule ingress[0]); it reaches default/db-a"},
		{"default/client-a", "default/web-a:1", "denied: ClusterNetworkPolicy base drops tcp 1 from default/client-a to default/web-a (ingress rule nothing, tier baseline, priority 1)"},
	}},
	{"pass", `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: onward}
spec:
  priority: 5
  appliedTo: [{podSelector: {matchLabels: {app: web}}}]
  ingress: [{name: leave-it, action: Pass}]
---
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: far}
spec:
  priority: 6
  appliedTo: [{podSelector: {matchLabels: {pod: client-a}}}]
  egress: [{name: not-there, action: Drop, to: [{podSelector: {matchLabels: {pod: web-b}}}]}]
`, []whyQuestion{
		{"default/client-a", "default/web-a:1", "allowed: tcp 1 from default/client-a to default/web-a; " + clientEgress + "ClusterNetworkPolicy onward (ingress rule leave-it, tier application, priority 5) passes it, and nothing behind it decides; it reaches default/web-a"},
		{"default/client-a", "svc:default/sample-clusterip:80", "denied for 1 of 2 endpoints: ClusterNetworkPolicy far drops tcp 80 from default/client-a to default/web-b by Service default/sample-clusterip (egress rule not-there, tier application, priority 6)"},
	}},
	{"logged isolation", `
apiVersion: v1
kind: Namespace
metadata: {name: default, annotations: {networkpolicy.antrea.io/enable-logging: "true"}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, namespace: default}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
`, []whyQuestion{
		{"default/client-a", "default/web-a:1", "denied: NetworkPolicy default/closed isolates default/client-a for egress, and no rule allows tcp 1 to default/web-a"},
		{"external", "default/web-a:1", "denied: NetworkPolicy default/closed isolates default/web-a for ingress, and no rule allows tcp 1 from the outside"},
	}},
	{"egress", `
apiVersion: crd.antrea.io/v1beta1
kind: Egress
metadata: {name: by-a}
spec: {appliedTo: {podSelector: {matchLabels: {app: db}}}, egressIP: 192.168.77.112}
status: {egressNode: node-a, egressIP: 192.168.77.112}
`, []whyQuestion{
		{"default/db-a", "external:443", "allowed: tcp 443 from default/db-a to the outside; " + clientEgress + "it leaves by antrea-gw0 to the network of Node node-a, as Egress by-a says"},
		{"default/db-b", "external:443", "allowed: tcp 443 from default/db-b to the outside; " + clientEgress + "it goes to Node node-a through the tunnel; it leaves by antrea-gw0 to the network of Node node-a, as Egress by-a says"},
	}},
	{"traffic control", `
apiVersion: crd.antrea.io/v1alpha2
kind: TrafficControl
metadata: {name: look}
spec: {appliedTo: {podSelector: {matchLabels: {app: web}}}, direction: Both, action: Redirect, targetPort: {ovsInternal: {name: antrea-tc-tap0}}, returnPort: {ovsInternal: {name: antrea-tc-tap1}}}
---
apiVersion: crd.antrea.io/v1alpha2
kind: TrafficControl
metadata: {name: copy}
spec: {appliedTo: {podSelector: {matchLabels: {app: db}}}, direction: Both, action: Mirror, targetPort: {ovsInternal: {name: antrea-tc-tap2}}}
`, []whyQuestion{
		{"default/client-a", "default/web-a:1", "allowed: tcp 1 from default/client-a to default/web-a; " + clientEgress + "no policy decides on ingress; it leaves by antrea-tc-tap0 for TrafficControl look; if it comes back by antrea-tc-tap1, it reaches default/web-a"},
		{"default/web-a", "default/db-b:1", "allowed: tcp 1 from default/web-a to default/db-b; " + clientEgress + "no policy decides on ingress; it leaves by antrea-tc-tap0 for TrafficControl look; if it comes back by antrea-tc-tap1, it goes to Node node-b through the tunnel; it reaches default/db-b"},
		{"default/client-a", "default/db-a:1", "allowed: tcp 1 from default/client-a to default/db-a; " + clientEgress + "no policy decides on ingress; it reaches default/db-a; a copy leaves by antrea-tc-tap2 for TrafficControl copy"},
	}},
}

// TestWhy asks both Nodes of a cluster with each kind of policy, and compares the
// whole sentence.
func TestWhy(t *testing.T) {
	for _, story := range whyStories {
		t.Run(story.name, func(t *testing.T) {
			clients := whyClients(t, whyCluster(t, story.policies, nil), "node-a", "node-b")
			for _, q := range story.questions {
				a := q.askAgents(t, clients)
				if a == nil {
					continue
				}
				text := whyText(t, a)
				if n := strings.Count(text, "\n"); !strings.HasPrefix(text, a.Sentence+"\nwhere:  Node ") || !strings.Contains(text, "\nnext:   ") || n < 3 || n > 6 {
					t.Errorf("not the sentence and a few lines:\n%s", text)
				}
				var b bytes.Buffer
				if err := a.WriteWalks(&b); err != nil || !strings.Contains(b.String(), "├─ PipelineRootClassifier") {
					t.Errorf("%v, no walk:\n%s", err, &b)
				}
			}
		})
	}
}

func whyText(t *testing.T, a *api.WhyAnswer) string {
	t.Helper()
	var b bytes.Buffer
	if err := a.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestWhyText compares whole answers: where the packet comes to, and what to do next.
func TestWhyText(t *testing.T) {
	clients := whyClients(t, "../../examples/web-app", "node-a", "node-b")
	for _, c := range []struct{ from, to, below string }{
		{"default/client-a", "default/db-a:3306", `
where:  Node node-a, from client-a to table IngressDefaultRule, entry priority=200,reg1=0x26 (TargetOFPortField=db-a)
next:   to allow it, a policy for default/db-a needs an ingress rule that allows tcp 3306 from default/client-a
`},
		{"default/client-a", "default/web-b:80", `
where:  Node node-a, from client-a to antrea-tun0; Node node-b, from antrea-tun0 to web-b
next:   if it still fails, run antrail drops on each Node of the way, then antrail trace --live during a try
`},
		{"default/client-a", "svc:default/sample-clusterip-no-ep", `
where:  Node node-a, from client-a to table EndpointDNAT, entry priority=200,reg0=0x4000/0x4000 (SvcNoEpRegMark)
next:   check that Pods match its selector and are ready: antrail get services, kubectl get endpointslices
`},
		{"external", "192.168.77.102:30005", `
where:  Node node-a, from antrea-gw0 to antrea-gw0
next:   if it still fails, check that a process listens there (ss -ltnu on node-a), and that the Node's firewall lets it in
`},
		{"default/client-a", "10.10.0.99:80", `
where:  Node node-a, from client-a to antrea-gw0
next:   antrail get pods lists the Pods' addresses
`},
	} {
		a, err := api.Why(t.Context(), clients, &api.WhyRequest{From: c.from, To: c.to})
		if err != nil {
			t.Fatal(err)
		}
		if text := whyText(t, a); text != a.Sentence+c.below {
			t.Errorf("%s to %s:\n%swant\n%s", c.from, c.to, text, c.below)
		}
	}
	a, err := api.Why(t.Context(), clients[:1], &api.WhyRequest{From: "default/client-a", To: "default/web-b:80"})
	if err != nil || !strings.Contains(whyText(t, a), "\nnext:   ask node-b too: ") {
		t.Errorf("%v: %+v", err, a)
	}
}

// TestWhySeen: an answer has what the switch has seen of the two ends, and of the entry
// that decides.
func TestWhySeen(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	ask := func(from, to string) *api.WhyAnswer {
		a, err := api.Why(t.Context(), []*api.Client{n.client}, &api.WhyRequest{From: from, To: to})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if text := whyText(t, ask("default/client-a", "default/db-a:3306")); strings.Contains(text, "so far") {
		t.Errorf("nothing has passed:\n%s", text)
	}
	for port := range uint16(2) {
		n.send(t, nodeClient, clientSYN(func(o *packettest.Options) {
			o.EthDst, o.Dst, o.SrcPort, o.DstPort = [6]byte{0x36, 0x48, 0x21, 0xa2, 0x9d, 0xb4}, packettest.Addr("10.10.0.25"), 4000+port, 3306
		}), packet.Tunnel{}, nodeDB)
	}
	a := ask("default/client-a", "default/db-a:3306")
	if a.Seen == nil || a.Seen.Dropped != 2 || a.Seen.LastDropped.IsZero() || a.Seen.Connections != 0 || a.Ways[0].Met == nil || a.Ways[0].Met.Packets != 2 {
		t.Errorf("%+v %+v", a.Seen, a.Ways[0].Met)
	}
	text := whyText(t, a)
	for _, want := range []string{
		"\nentry:  2 packets have met the entry since it was installed 0s ago, the last one 0s ago\n",
		"\nso far: 0 such connections are tracked now, and of their packets 2 are kept as dropped, the last one at ",
		": entry in table IngressDefaultRule\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if s := ask("default/client-a", "default/db-a:22").Seen; s.Dropped != 0 {
		t.Errorf("of another port: %+v", s)
	}
	n.send(t, nodeClient, packettest.ARPRequest(packettest.Options{EthSrc: [6]byte{2, 9}, Src: packettest.Addr("10.10.0.26"), Dst: packettest.Addr("10.10.0.25")}), packet.Tunnel{}, nodeDB)
	if s := ask("default/client-a", "default/db-a:22").Seen; s.Dropped != 1 {
		t.Errorf("ARP: %+v", s)
	}
	n.send(t, nodeClient, clientSYN(func(o *packettest.Options) {
		o.Src, o.Dst, o.DstPort = packettest.Addr("10.10.0.99"), packettest.Addr("10.10.0.25"), 22
	}), packet.Tunnel{}, nodeDB)
	if s := ask("default/client-a", "default/db-a:22").Seen; s.Dropped != 2 || s.LastReason != "entry in table SpoofGuard, 10.10.0.99 is not the Pod's" {
		t.Errorf("another source: %+v", s)
	}
	n.connect(t)
	a = ask("default/db-a", "192.0.2.1:80")
	if a.Seen.Connections != 1 || !strings.Contains(whyText(t, a), "so far: 1 such connection is tracked now, and of their packets none is kept as dropped") {
		t.Errorf("%+v", a.Seen)
	}
}

// TestWhyOneNode asks one Node only: nothing is allowed that another one has a say in,
// be it where the packet comes from or where it goes.
func TestWhyOneNode(t *testing.T) {
	clients := whyClients(t, whyCluster(t, whyStories[1].policies, nil), "node-a")
	for _, q := range []whyQuestion{
		{"default/web-a", "default/db-b:3306", "undecided: tcp 3306 from default/web-a to default/db-b; no policy decides on egress; it goes to Node node-b through the tunnel; Node node-b, which decides the rest, was not asked"},
		{"default/web-b", "default/db-a:3306", "undecided: tcp 3306 from default/web-b to default/db-a; NetworkPolicy default/db-web allows it (rule ingress[0]); it reaches default/db-a; Node node-b, where it comes from, was not asked"},
		{"default/web-a", "svc:default/sample-clusterip", "undecided: tcp 80 from default/web-a to default/web-b by Service default/sample-clusterip; no policy decides on egress; it goes to Node node-b through the tunnel; Node node-b, which decides the rest, was not asked; that holds for 1 of 2 endpoints, and no other is denied"},
		{"default/client-a", "default/db-b:1", "denied: NetworkPolicy default/client-out isolates default/client-a for egress, and no rule allows tcp 1 to default/db-b"},
		{"default/web-b", "default/db-a:5432", "denied: NetworkPolicy default/db-closed, NetworkPolicy default/db-web isolate default/db-a for ingress, and no rule allows tcp 5432 from default/web-b"},
	} {
		a := q.askAgents(t, clients)
		if a.Undecided != strings.HasPrefix(q.sentence, "undecided") {
			t.Errorf("%s to %s: undecided is %v", q.from, q.to, a.Undecided)
		}
	}
}

// TestWhySilentNode has agents that do not answer: they are not asked for what others
// know, and make nothing allowed.
func TestWhySilentNode(t *testing.T) {
	nobody := api.NewClient("/no/such.sock")
	clients := append(whyClients(t, whyCluster(t, whyStories[1].policies, nil), "node-a"), nobody)
	(&whyQuestion{"default/web-a", "default/db-a:3306", "allowed: tcp 3306 from default/web-a to default/db-a; no policy decides on egress; NetworkPolicy default/db-web allows it (rule ingress[0]); it reaches default/db-a"}).askAgents(t, clients)
	for _, q := range []whyQuestion{{from: "default/web-a", to: "default/db-b:3306"}, {from: "default/web-b", to: "default/db-a:3306"}} {
		slices.Reverse(clients)
		a, err := api.Why(t.Context(), clients, q.request())
		if err != nil || a.Allowed || !a.Undecided || !slices.ContainsFunc(a.Notes, func(n string) bool { return strings.HasPrefix(n, "no agent answers at /no/such.sock") }) {
			t.Errorf("%s to %s: %v %+v", q.from, q.to, err, a)
		}
	}
	if _, err := api.Why(t.Context(), []*api.Client{nobody}, &api.WhyRequest{From: "default/web-a", To: "default/db-a:1"}); err == nil {
		t.Error("nobody has an answer")
	}
}

// TestWhyByRoutes has Nodes that reach one another without a tunnel.
func TestWhyByRoutes(t *testing.T) {
	dir := whyCluster(t, whyStories[1].policies, func(file, text string) string {
		return strings.Replace(text, "  tunnel: {name: antrea-tun0, ofPort: 1}\n", "  trafficEncapMode: noEncap\n", 1)
	})
	clients := whyClients(t, dir, "node-b", "node-a")
	for _, q := range []whyQuestion{
		{"default/web-a", "default/db-b:3306", "allowed: tcp 3306 from default/web-a to default/db-b; no policy decides on egress; NetworkPolicy default/db-web allows it (rule ingress[0]); it goes to Node node-b by the Nodes' own network; it reaches default/db-b"},
		{"default/client-a", "default/web-b:1", "denied: NetworkPolicy default/client-out isolates default/client-a for egress, and no rule allows tcp 1 to default/web-b"},
		{"default/web-a", "default/db-b:1", "denied: on Node node-b, NetworkPolicy default/db-closed, NetworkPolicy default/db-web isolate default/db-b for ingress, and no rule allows tcp 1 from default/web-a"},
	} {
		q.askAgents(t, clients)
	}
}

// TestWhyErrors asks what has no answer.
func TestWhyErrors(t *testing.T) {
	dir := whyCluster(t, "", func(file, text string) string {
		return strings.Replace(text, "    - {name: db-a, ofPort: 38, pod: default/db-a, mac: \"36:48:21:a2:9d:b4\"}\n", "", 1)
	})
	clients := whyClients(t, dir, "node-a")
	for _, c := range []struct{ from, to, want string }{
		{"default/nobody", "default/web-a:80", "there is no Pod default/nobody"},
		{"default/client-a", "default/web-a", "a port is missing"},
		{"default/client-a", "default/web-a:mysql", `names no TCP port "mysql"`},
		{"default/client-a", "default/web-a:99999", "not between 1 and 65535"},
		{"default/client-a", "svc:default/none", "there is no Service default/none"},
		{"default/client-a", "svc:default/sample-clusteripp:80", "there is no Service default/sample-clusteripp; there is default/sample-clusterip"},
		{"default/client-a", "svc:default/sample-clusterip:81", `has no port "81"; it has [80]`},
		{"default/client-a", "udp svc:default/sample-clusterip", "the Service's port is for TCP"},
		{"default/client-a", "svc:default/sample-nodeport", "has no address"},
		{"svc:default/sample-clusterip", "default/web-a:80", "a Service sends no packets"},
		{"default/db-a", "default/web-a:80", "no port in this Node's switch"},
		{"client-a", "default/web-a:80", "an end is namespace/pod"},
		{"default/client-a", "igmp default/web-a", "none of tcp, udp"},
		{"10.10.0.26", "[fd00:10:10::24]:80", "no addresses of one family"},
	} {
		_, err := api.Why(t.Context(), clients, (&whyQuestion{from: c.from, to: c.to}).request())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s: %v, want %q", c.from, c.to, err, c.want)
		}
	}
	q := whyQuestion{"default/client-a", "default/db-a:1", "denied: default/db-a has no port in this Node's switch"}
	q.askAgents(t, clients)
	if _, err := api.Why(t.Context(), clients, &api.WhyRequest{Carried: &api.Carried{To: "node-b"}}); err == nil || !strings.Contains(err.Error(), "this is Node node-a") {
		t.Errorf("a packet for another Node: %v", err)
	}
	files, err := Offline(pipeline.Files{Flows: "../../examples/two-nodes/node-a.flows"}.Beside(), config.DefaultTunnel)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.Why(t.Context(), []*api.Client{files}, &api.WhyRequest{From: "a/b", To: "c/d:1"}); err == nil || !strings.Contains(err.Error(), "without objects an end is ADDRESS") {
		t.Errorf("flow files: %v", err)
	}
}

// TestWhyFromNobody: a note says that no Pod has the source address.
func TestWhyFromNobody(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	for from, want := range map[string][]string{
		"10.10.0.99": {"no Pod has 10.10.0.99, which is in Node node-a's range: SpoofGuard stops a Pod that sends by it"},
		"10.10.0.26": nil, "10.10.0.1": nil, "192.0.2.1": nil,
	} {
		a, err := api.Why(t.Context(), []*api.Client{n.client}, &api.WhyRequest{From: from, To: "default/web-a:80"})
		if err != nil || !slices.Equal(a.Notes, want) {
			t.Errorf("%s: %v, %q, want %q", from, err, a.Notes, want)
		}
	}
}

// TestWhyNotes tells of a policy that is not in force, and, of what leaves the cluster, of
// an Egress.
func TestWhyNotes(t *testing.T) {
	clients := whyClients(t, whyCluster(t, `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: names}
spec: {priority: 5, appliedTo: [{podSelector: {}}], egress: [{action: Drop, to: [{fqdn: example.org}]}]}
---
apiVersion: crd.antrea.io/v1beta1
kind: Egress
metadata: {name: nowhere}
spec: {appliedTo: {podSelector: {matchLabels: {app: db}}}, egressIP: 192.168.77.199}
`, nil), "node-a")
	a, err := api.Why(t.Context(), clients, &api.WhyRequest{From: "default/client-a", To: "default/web-a:1"})
	if err != nil || len(a.Notes) != 1 || !strings.HasPrefix(a.Notes[0], "ClusterNetworkPolicy names is refused: ") {
		t.Errorf("%v %v", a, err)
	}
	a, err = api.Why(t.Context(), clients, &api.WhyRequest{From: "default/db-a", To: "external:80"})
	if err != nil || len(a.Notes) != 2 || a.Notes[1] != "Egress nowhere is pending: no Node holds the address 192.168.77.199 yet" {
		t.Errorf("%v %v", a, err)
	}
}

// TestWhyLive asks a switch that runs, over its socket: a connection that is there
// is seen, and nothing is sent, counted or tracked for the question.
func TestWhyLive(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	question := &api.WhyRequest{From: "default/client-a", To: "default/db-a:3306", SourcePort: 4711}
	const denied = "denied: NetworkPolicy default/db-from-web isolates default/db-a for ingress, and no rule allows tcp 3306 from default/client-a"
	a, err := api.Why(t.Context(), []*api.Client{n.client}, question)
	if err != nil || a.Sentence != denied {
		t.Fatalf("%v %v", a, err)
	}
	out := &api.WhyRequest{From: "default/db-a", To: "external:80", SourcePort: 4711}
	for _, there := range []bool{false, true} {
		if there {
			n.connect(t)
		}
		before, entries := n.Switch.Flows(), n.Connections.Stats().Entries
		a, err := api.Why(t.Context(), []*api.Client{n.client}, out)
		if err != nil || !a.Allowed || strings.Contains(a.Sentence, "an established connection") != there {
			t.Errorf("%v: %v %v", there, a, err)
		}
		same := slices.EqualFunc(before, n.Switch.Flows(), func(a, b telemetry.FlowStats) bool { return a.Packets == b.Packets })
		if !same || n.Connections.Stats().Entries != entries || (entries > 0) != there || n.ports[gatewayPort].Collect(make([]*packet.Frame, 1)) != 0 {
			t.Errorf("%v: the question left a mark", there)
		}
	}
}

const gatewayPort = 2

// connect has db-a open a connection to the outside, and the outside answer.
func (n *watchedNode) connect(t *testing.T) {
	t.Helper()
	b := packettest.TCP4(packettest.Options{
		EthSrc: [6]byte{0x36, 0x48, 0x21, 0xa2, 0x9d, 0xb4}, EthDst: [6]byte{0xba, 0x5e, 0xd1, 0x55, 0xaa, 0xc0},
		Src: packettest.Addr("10.10.0.25"), Dst: packettest.Addr("192.0.2.1"), SrcPort: 4711, DstPort: 80, TCPFlags: packet.TCPSyn,
	})
	sent := n.send(t, nodeDB, b, packet.Tunnel{}, gatewayPort)
	if len(sent) != 1 {
		t.Fatalf("%d frames left for the outside", len(sent))
	}
	answer := packettest.Answer(sent[0].Bytes(), packet.TCPSyn|packet.TCPAck)
	packet.Ethernet(answer).SetDst([6]byte{0x36, 0x48, 0x21, 0xa2, 0x9d, 0xb4})
	packet.Ethernet(answer).SetSrc([6]byte{0xba, 0x5e, 0xd1, 0x55, 0xaa, 0xc0})
	if back := n.send(t, gatewayPort, answer, packet.Tunnel{}, nodeDB); len(back) != 1 {
		t.Fatalf("%d frames came back", len(back))
	}
}
