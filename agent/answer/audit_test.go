package answer

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/internal/antrailtest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/memory"
)

// logging has rules of all actions that log. The Namespace asks for a log of the
// example's NetworkPolicy on db.
const logging = `
apiVersion: crd.antrea.io/v1beta1
kind: NetworkPolicy
metadata: {name: log-all, namespace: default}
spec:
  priority: 1
  tier: securityops
  appliedTo: [{podSelector: {matchLabels: {app: web}}}]
  ingress:
    - {name: Take, action: Allow, ports: [{protocol: TCP, port: 81}], enableLogging: true, logLabel: taken}
    - {name: Lose, action: Drop, ports: [{protocol: UDP, port: 82}], enableLogging: true}
    - {action: Reject, ports: [{protocol: TCP, port: 83}], enableLogging: true}
    - {name: LeaveIt, action: Pass, ports: [{protocol: TCP, port: 84}], enableLogging: true}
    - {name: NoEcho, action: Drop, protocols: [{icmp: {icmpType: 8}}], enableLogging: true}
    - {name: Quiet, action: Drop, ports: [{protocol: TCP, port: 85}]}
`

// annotate makes the Namespace ask for the log.
func (c *testCluster) annotate(name string) *memoryNode {
	c.Helper()
	antrailtest.ReplaceIn(c.T, filepath.Join(c.dir, "cluster.yaml"), "metadata: {name: default, ",
		`metadata: {name: default, annotations: {networkpolicy.antrea.io/enable-logging: "true"}, `)
	return c.load(name)
}

// TestAuditLines sends a packet to every kind of rule, and reads the line that
// each gets.
func TestAuditLines(t *testing.T) {
	c := newCluster(t, logging)
	c.nodes = []*memoryNode{c.annotate("node-a")}
	n := c.nodes[0]
	o := packettest.Options{EthSrc: c.macs["client-a"], Src: netip.MustParseAddr("10.10.0.26"), SrcPort: 4000}
	tcp := func(to, ip string, port uint16) []byte {
		o := o
		o.EthDst, o.Dst, o.DstPort = c.macs[to], netip.MustParseAddr(ip), port
		return packettest.TCP4(o)
	}
	web := o
	web.EthDst, web.Dst, web.DstPort = c.macs["web-a"], netip.MustParseAddr("10.10.0.24"), 82
	at, toDB := time.Unix(1700000000, 0).UTC(), o
	toDB.Src, toDB.EthSrc = netip.MustParseAddr("10.10.0.24"), c.macs["web-a"]
	n.Packets.Audit.Now = func() time.Time { return at }
	toDB.EthDst, toDB.Dst, toDB.DstPort = c.macs["db-a"], netip.MustParseAddr("10.10.0.25"), 3306
	const policy = `"policy":"AntreaNetworkPolicy/default/log-all"`
	for _, s := range []struct {
		name, from string
		frames     [][]byte
		want       string // what stands behind the time
	}{
		{"allowed", "client-a", [][]byte{tcp("web-a", "10.10.0.24", 81)},
			`"table":"AntreaPolicyIngressRule",` + policy + `,"rule":"Take","direction":"Ingress","action":"Allow","priority":44980,"pod":"default/web-a","source":"10.10.0.26","sourcePort":4000,"destination":"10.10.0.24","destinationPort":81,"protocol":"TCP","length":40,"packets":1,"label":"taken","conjunction":ID}`},
		{"dropped, thrice", "client-a", [][]byte{packettest.UDP4(web), packettest.UDP4(web), packettest.UDP4(web)},
			`"table":"AntreaPolicyIngressRule",` + policy + `,"rule":"Lose","direction":"Ingress","action":"Drop","priority":44979,"pod":"default/web-a","source":"10.10.0.26","sourcePort":4000,"destination":"10.10.0.24","destinationPort":82,"protocol":"UDP","length":28,"packets":3,"conjunction":ID}`},
		{"rejected by a rule without a name", "client-a", [][]byte{tcp("web-a", "10.10.0.24", 83)},
			`"table":"AntreaPolicyIngressRule",` + policy + `,"rule":"ingress[2]","direction":"Ingress","action":"Reject","priority":44978,"pod":"default/web-a","source":"10.10.0.26","sourcePort":4000,"destination":"10.10.0.24","destinationPort":83,"protocol":"TCP","length":40,"packets":1,"conjunction":ID}`},
		{"passed", "client-a", [][]byte{tcp("web-a", "10.10.0.24", 84)},
			`"table":"AntreaPolicyIngressRule",` + policy + `,"rule":"LeaveIt","direction":"Ingress","action":"Pass","priority":44977,"pod":"default/web-a","source":"10.10.0.26","sourcePort":4000,"destination":"10.10.0.24","destinationPort":84,"protocol":"TCP","length":40,"packets":1,"conjunction":ID}`},
		{"ICMP", "client-a", [][]byte{packettest.ICMPEcho4(web)},
			`"table":"AntreaPolicyIngressRule",` + policy + `,"rule":"NoEcho","direction":"Ingress","action":"Drop","priority":44976,"pod":"default/web-a","source":"10.10.0.26","destination":"10.10.0.24","protocol":"ICMP","icmpType":8,"icmpCode":0,"length":28,"packets":1,"conjunction":ID}`},
		{"a rule that does not log", "client-a", [][]byte{tcp("web-a", "10.10.0.24", 85)}, ""},
		{"isolated", "client-a", [][]byte{tcp("db-a", "10.10.0.25", 5432)},
			`"table":"IngressDefaultRule","policy":"NetworkPolicy","direction":"Ingress","action":"Drop","pod":"default/db-a","source":"10.10.0.26","sourcePort":4000,"destination":"10.10.0.25","destinationPort":5432,"protocol":"TCP","length":40,"packets":1}`},
		{"allowed by a NetworkPolicy", "web-a", [][]byte{packettest.TCP4(toDB)},
			`"table":"IngressRule","policy":"NetworkPolicy/default/db-from-web","rule":"ingress[0]","direction":"Ingress","action":"Allow","pod":"default/db-a","source":"10.10.0.24","sourcePort":4000,"destination":"10.10.0.25","destinationPort":3306,"protocol":"TCP","length":40,"packets":1,"conjunction":ID}`},
	} {
		t.Run(s.name, func(t *testing.T) {
			for _, f := range s.frames {
				c.send(s.from, f)
			}
			lines := n.logged()
			if s.want == "" {
				if len(lines) > 0 {
					t.Errorf("logged %v", lines)
				}
				return
			}
			if len(lines) != 1 {
				t.Fatalf("logged %v, want one line", lines)
			}
			var l packetin.AuditLine
			if err := json.Unmarshal([]byte(lines[0]), &l); err != nil {
				t.Fatal(err)
			}
			want := `{"time":"2023-11-14T22:13:20Z",` + strings.Replace(s.want, "ID", fmt.Sprint(l.Conjunction), 1)
			if lines[0] != want {
				t.Errorf("line\n%s, want\n%s", lines[0], want)
			}
			if r := n.Objects.RuleByID(l.Conjunction); r != nil && r.Title() != l.Rule {
				t.Errorf("conjunction %d is %q", l.Conjunction, r.Title())
			}
		})
	}
}

// TestAuditWithoutAnnotation: nobody asked for a log of the NetworkPolicy.
func TestAuditWithoutAnnotation(t *testing.T) {
	c := newCluster(t, "")
	c.send("client-a", packettest.TCP4(packettest.Options{
		EthSrc: c.macs["client-a"], EthDst: c.macs["db-a"], DstPort: 5432,
		Src: netip.MustParseAddr("10.10.0.26"), Dst: netip.MustParseAddr("10.10.0.25"),
	}))
	if lines := c.node("client-a").logged(); len(lines) > 0 {
		t.Errorf("logged %v", lines)
	}
}

// TestRuleCountersSurvive changes a rule beside the one that counts, and its
// priority with it.
func TestRuleCountersSurvive(t *testing.T) {
	c := newCluster(t, refusing)
	objects := store.NewStore(store.DeriveEndpoints)
	files, err := store.NewManifests(c.dir, objects)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.NewPipeline(pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Local.Close()
	p.Objects = control.NewReconciler("node-a", &pipeline.Installer{Pipeline: p}, time.Now)
	if err := p.Objects.Update(objects.Snapshot(), nil); err != nil {
		t.Fatal(err)
	}
	n := &memoryNode{Answers: New(p), name: "node-a", ports: map[string]*memory.Port{"client-a": memory.New("client-a", memory.Options{})}}
	n.tunnel = c.addPort(n, 1, memory.New("tunnel", memory.Options{Tunnel: true}))
	c.addPort(n, 36, n.ports["client-a"])
	c.nodes = []*memoryNode{n}
	o := packettest.Options{
		EthSrc: c.macs["client-a"], EthDst: c.macs["web-a"], DstPort: 81,
		Src: netip.MustParseAddr("10.10.0.26"), Dst: netip.MustParseAddr("10.10.0.24"),
	}
	ask := func(flags uint16) { o.TCPFlags = flags; c.send("client-a", packettest.TCP4(o)) }
	ask(packet.TCPSyn)
	ask(packet.TCPSyn)
	before := n.ruleRows("refuse")["NoDebug"]

	antrailtest.ReplaceIn(t, filepath.Join(c.dir, "more.yaml"), "  ingress:\n", "  ingress:\n    - {name: First, action: Drop, ports: [{protocol: TCP, port: 99}], appliedTo: [{podSelector: {matchLabels: {app: web}}}]}\n")
	antrailtest.ReplaceIn(t, filepath.Join(c.dir, "more.yaml"), "name: NoMail\n      action: Reject", "name: NoMail\n      action: Drop")
	u := files.Read()
	if err := p.Objects.Update(u.New, u.Changed); err != nil {
		t.Fatal(err)
	}
	ask(packet.TCPSyn)
	after := n.ruleRows("refuse")
	if before.Sessions != 2 || after["NoDebug"].Sessions != 3 || after["NoDebug"].Index != 1 {
		t.Errorf("NoDebug before %+v, after %+v; want 2 and 3 sessions", before, after["NoDebug"])
	}
	if first := after["First"]; first.Sessions != 0 || first.State != ledger.Installed || after["NoMail"].Action != cluster.ActionDrop {
		t.Errorf("changed: %+v and %+v", first, after["NoMail"])
	}
}
