package control

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/flow"
)

// seedOffline is the pipeline of the seed's objects on their first Node.
func seedOffline(t testing.TB) (*flow.Program, *Reconciler) {
	t.Helper()
	c, problems, err := store.LoadManifests("testdata/seed")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Fatal(p)
	}
	program, r, err := Offline(c, "k8s-node-control-plane")
	if err != nil {
		t.Fatal(err)
	}
	return program, r
}

// TestExplain asks for entries of the seed's pipeline by line, with and without
// actions and priority.
func TestExplain(t *testing.T) {
	_, r := seedOffline(t)
	for _, c := range []struct{ line, want string }{
		{
			`table=ServiceLB, priority=200,tcp,reg4=0x10000/0x70000,nw_dst=10.105.31.235,tp_dst=80 actions=drop`,
			"Service/default/sample-clusterip spec.ports[0] at spec.clusterIPs",
		},
		{
			`table=ServiceLB, priority=200,tcp,reg4=0x90000/0xf0000,tp_dst=30004`,
			"Service/default/sample-nodeport spec.ports[0].nodePort",
		},
		{
			` cookie=0x2, duration=3s, table=Classifier, n_packets=7, n_bytes=9, priority=190,in_port="web-7975-274540" actions=drop`,
			"Pod/default/web-7975",
		},
		{
			`table=L3Forwarding, ip,nw_dst=10.10.1.0/24`,
			"Node/k8s-node-worker-1 spec.podCIDRs",
		},
		{
			`table=EgressMark, priority=200,ct_state=+trk,ip,in_port="web-7975-274540"`,
			"Egress/egress-web spec.appliedTo",
		},
		{
			`table=TrafficControl, reg1=0x26`,
			"TrafficControl/mirror-db-to-local spec.appliedTo",
		},
		{
			`table=IngressDefaultRule, priority=200,reg1=0x25`,
			"NetworkPolicy/default/web-app-db-network-policy spec.podSelector; Pod/default/web-7975 isolated for ingress",
		},
		{
			`table=AntreaPolicyIngressRule, priority=14600,tcp,tp_dst=8080`,
			"ClusterNetworkPolicy/ingress-allow-http-request-to-api-v2 spec.ingress[0] (AllowFromClientL7)",
		},
		{
			`table=Output, priority=0`,
			"NodeConfig/k8s-node-control-plane",
		},
	} {
		found, err := r.ExplainLine(c.line)
		if err != nil || len(found) != 1 {
			t.Errorf("%s: %d entries, %v", c.line, len(found), err)
			continue
		}
		var origins []string
		for _, o := range found[0].Origins {
			origins = append(origins, o.String())
		}
		if got := strings.Join(origins, "; "); got != c.want {
			t.Errorf("%s\n  is of %s\n  want  %s", c.line, got, c.want)
		}
	}
}

// TestExplainShared: the entry of an endpoint names every Service that has it.
func TestExplainShared(t *testing.T) {
	_, r := seedOffline(t)
	found, err := r.ExplainLine("table=EndpointDNAT, priority=200,tcp,reg3=0xa0a0018,reg4=0x20050/0x7ffff")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(found[0].Origins); n != 6 {
		t.Errorf("%d Services have the endpoint: %v", n, found[0].Origins)
	}
}

// TestExplainRefuses: a wrong line is an error with the reason.
func TestExplainRefuses(t *testing.T) {
	_, r := seedOffline(t)
	for line, want := range map[string]string{
		"table=Nowhere, priority=1":           "Nowhere",
		"table=Output, priority=7":            "no object wants",
		"table=Output, arp":                   "no object wants",
		"table=Output, priority=7, color=red": "color",
	} {
		if _, err := r.ExplainLine(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestExplainLearned finds the Service of a learned entry by its cookie.
func TestExplainLearned(t *testing.T) {
	_, r := seedOffline(t)
	var cookie string
	for _, g := range r.Services(nil) {
		if g.Object.Name == "sample-service-session-affinity" {
			cookie = (&flow.Entry{Cookie: 0x2030000000000 | uint64(g.GroupIDs[0])}).String()
		}
	}
	cookie, _, _ = strings.Cut(cookie, ",")
	line := cookie + `, table=SessionAffinity, hard_timeout=300, priority=200,tcp,nw_src=10.10.0.1,nw_dst=10.96.76.15,tp_dst=80 actions=drop`
	found, err := r.ExplainLine(line)
	if err != nil || found[0].Origins[0].String() != "Service/default/sample-service-session-affinity spec.sessionAffinity" {
		t.Errorf("%v, %v", found, err)
	}
}

// TestExplainGroup finds the Service of a group, and the origins of the groups for logging.
func TestExplainGroup(t *testing.T) {
	_, r := seedOffline(t)
	for id, want := range map[uint32]string{
		1:                 "NodeConfig/k8s-node-control-plane",
		firstServiceGroup: "Service/default/sample-clusterip-no-ep spec.ports[0]",
	} {
		if o, err := r.ExplainGroup(id); err != nil || o.String() != want {
			t.Errorf("group %d is of %v, %v; want %s", id, o, err, want)
		}
	}
	if _, err := r.ExplainGroup(4711); err == nil {
		t.Error("a missing group is explained")
	}
}

// TestEntriesOf: every entry of the pipeline belongs to an object, and every object's entries are in
// the pipeline.
func TestEntriesOf(t *testing.T) {
	program, r := seedOffline(t)
	left := map[flow.Identity]bool{}
	for _, e := range program.Entries {
		left[e.Identity()] = true
	}
	for _, s := range r.Statuses() {
		entries := r.EntriesOf(s.Object)
		isolating := 0 // a policy's, and its Pods' own
		for _, ex := range entries {
			if s.Object.Kind == cluster.KindNetworkPolicy && slices.Contains(ex.Origins, ledger.Origin{Object: s.Object, Field: "spec.podSelector"}) {
				isolating++
			}
		}
		if len(entries) != s.Entries+isolating {
			t.Errorf("%s: %d entries, the status says %d", s.Object, len(entries), s.Entries)
		}
		if s.Object.Kind == cluster.KindNetworkPolicy && isolating == 0 {
			t.Errorf("%s isolates no Pod", s.Object)
		}
		for _, ex := range entries {
			delete(left, ex.Entry.Identity())
			if !slices.ContainsFunc(ex.Origins, func(o ledger.Origin) bool { return o.Object == s.Object }) {
				t.Errorf("%s is not among the origins of%v", s.Object, ex.Entry)
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("%d entries belong to no object", len(left))
	}
}

// TestGolden compares the seed's pipeline entry by entry.
func TestGolden(t *testing.T) {
	program, r := seedOffline(t)
	for _, s := range r.Statuses() {
		if s.State != ledger.Installed {
			t.Errorf("%s is %s: %s", s.Object, s.State, s.Reason)
		}
	}
	if ok, diff := sameDump(goldenLines(t), withoutMeters(dumpLines(program))); !ok {
		t.Error(diff)
	}
}

func withoutMeters(lines []string) []string {
	return slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "meter=") })
}

// goldenLines are Antrea's entries and groups for the seed's objects. The files belong to the tests of
// package tables.
func goldenLines(t *testing.T) (lines []string) {
	t.Helper()
	paths, _ := filepath.Glob("../tables/testdata/golden/tables/*.flows")
	if len(paths) != 31 {
		t.Fatalf("%d tables", len(paths))
	}
	for _, path := range append(paths, "../tables/testdata/golden/groups.txt") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	return lines
}
