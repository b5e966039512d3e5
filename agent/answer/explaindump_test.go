package answer

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
)

// seedClient asks the pipeline of the seed's objects.
func seedClient(t *testing.T) *api.Client {
	t.Helper()
	c, err := Offline(pipeline.Manifests{Path: "../../control/testdata/seed", Node: "k8s-node-control-plane"}, config.DefaultTunnel)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func answerTo(t *testing.T, c *api.Client, path string, q url.Values) string {
	t.Helper()
	b, err := c.Get(t.Context(), path, q)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestExplainedDump has an object below each entry, group and meter, and is still a
// dump that can be loaded.
func TestExplainedDump(t *testing.T) {
	c := seedClient(t)
	names, explained := url.Values{"names": {"1"}, "stats": {"0"}}, url.Values{"names": {"1"}, "stats": {"0"}, "explain": {"1"}}
	for path, begins := range map[string]string{"/flows": " cookie=", "/groups": " group_id=", "/meters": "type="} {
		text := answerTo(t, c, path, explained)
		lines := strings.Split(text, "\n")
		found := 0
		var rest []string
		for i, line := range lines {
			if strings.HasPrefix(line, "    # ") {
				continue
			}
			rest = append(rest, line)
			if !strings.HasPrefix(line, begins) {
				continue
			}
			found++
			if !strings.HasPrefix(lines[i+1], "    # ") {
				t.Errorf("%s: nothing explains %s", path, line)
			}
		}
		if found == 0 || strings.Join(rest, "\n") != answerTo(t, c, path, names) {
			t.Errorf("%s: %d lines, or other ones than without --explain", path, found)
		}
	}
	sources := parse.Sources{Flows: parse.Source{Text: answerTo(t, c, "/flows", explained)}, Groups: parse.Source{Text: answerTo(t, c, "/groups", explained)}, Meters: parse.Source{Text: answerTo(t, c, "/meters", explained)}}
	if p, err := parse.Program(sources); err != nil || len(p.Entries) == 0 {
		t.Errorf("the explained dump cannot be loaded: %v", err)
	}
}

// TestExplainedRecords has origins in JSON when they are asked for, and only then.
func TestExplainedRecords(t *testing.T) {
	c := seedClient(t)
	for path, least := range map[string]int{"/flows": 100, "/groups": 8, "/meters": 3} {
		for _, explain := range []bool{true, false} {
			q := url.Values{}
			if explain {
				q.Set("explain", "1")
			}
			var all []struct{ Origins []api.OriginText }
			if err := c.JSON(t.Context(), path, q, &all); err != nil || len(all) < least {
				t.Fatalf("%s: %d, %v", path, len(all), err)
			}
			for i, r := range all {
				if (len(r.Origins) > 0) != explain {
					t.Errorf("%s, explain %v: record %d has %v", path, explain, i, r.Origins)
				}
			}
		}
	}
}

// TestEntriesNameTheirMarks: an explained dump and records say what an entry asks for
// and sets in registers; a plain dump does not.
func TestEntriesNameTheirMarks(t *testing.T) {
	c := seedClient(t)
	q := url.Values{"table": {"L3Forwarding"}, "names": {"1"}, "stats": {"0"}}
	if text := answerTo(t, c, "/flows", q); strings.Contains(text, "RegMark") {
		t.Errorf("a plain dump is not ovs-ofctl's:\n%s", text)
	}
	q.Set("explain", "1")
	if text := answerTo(t, c, "/flows", q); !strings.Contains(text, "    # matches RewriteMACRegMark\n") || !strings.Contains(text, "    # sets ToTunnelRegMark\n") {
		t.Errorf("no marks:\n%s", text)
	}
	var all []api.Flow
	if err := c.JSON(t.Context(), "/flows", url.Values{"table": {"EndpointDNAT"}}, &all); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(all, func(f api.Flow) bool {
		return slices.Contains(f.Asks, "EpUnionField=EpSelectedRegMark:80") && slices.Contains(f.Sets, "ServiceCTMark")
	}) {
		t.Errorf("%+v", all)
	}
}

// TestExplainNumbers goes from meters to objects and from objects to groups and
// meters.
func TestExplainNumbers(t *testing.T) {
	c := seedClient(t)
	for what, want := range map[string]string{
		"meter=256 pktps burst":           "meter=256\n    NodeConfig/k8s-node-control-plane\n",
		" group_id=1,type=all":            "group_id=1\n    NodeConfig/k8s-node-control-plane\n",
		"Service/default/sample-nodeport": "installed, 4 entries\ngroup_id=",
		"nodeconfig/k8s-node-control-plane": `
meter=257 pktps burst bands=
`,
	} {
		if text := answerTo(t, c, "/explain", url.Values{"what": {what}}); !strings.Contains(text, want) {
			t.Errorf("%s:\n%s", what, text)
		}
	}
	if _, err := c.Get(t.Context(), "/explain", url.Values{"what": {"db-from-web"}}); err == nil || !strings.Contains(err.Error(), "or an object: KIND/NAME") {
		t.Error(err)
	}
	if _, err := c.Get(t.Context(), "/explain", url.Values{"what": {"meter=9"}}); err == nil || err.Error() != "there is no meter 9" {
		t.Errorf("meter 9: %v", err)
	}
}

// TestExplainedConnection names the ends of a connection, the Service and the rule
// that allowed it.
func TestExplainedConnection(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	n.send(t, nodeClient, syn("10.96.0.24", 1000), packet.Tunnel{}, nodeWeb)
	explained := url.Values{"explain": {"1"}, "zone": {"65520"}}
	text := answerTo(t, n.client, "/conntrack", explained)
	const want = "    # from Pod/default/client-a to Pod/default/web-a by Service/default/web-a-only\n" +
		"    # Ingress: ClusterNetworkPolicy/web-app-db-network-policy spec.ingress[0] (AllowFromClient)\n" +
		"    # ConnSourceCTMarkField=FromPodRegMark, ServiceCTMark, IngressRuleCTLabel=3\n"
	if !strings.HasPrefix(text, "tcp,orig=(src=10.10.0.26,") || !strings.HasSuffix(text, want) {
		t.Errorf("the connection is\n%s\nwant\n%s", text, want)
	}
	var all []api.Connection
	if err := n.client.JSON(t.Context(), "/conntrack", explained, &all); err != nil || len(all) != 1 || all[0].Objects == nil ||
		all[0].Objects.DecidedBy["Ingress"].Rule != "AllowFromClient" {
		t.Errorf("%+v, %v", all, err)
	}
	if text := answerTo(t, n.client, "/conntrack", nil); strings.Contains(text, "#") {
		t.Errorf("explained without being asked:\n%s", text)
	}
	gone := &api.ConnectionObjects{From: "a", To: "b"}
	decidingRule(gone, "Egress", 7, nil)
	var b bytes.Buffer
	if writeConnectionObjects(gone, &b); b.String() != "    # from a to b\n    # Egress: a removed rule (conjunction 7)\n" {
		t.Errorf("a removed rule: %s", b.String())
	}
}

// TestExplainedPorts names the Pod of a port.
func TestExplainedPorts(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	if text := answerTo(t, n.client, "/ports", url.Values{"explain": {"1"}, "which": {"default/client-a"}}); strings.Count(text, "rx pkts=") != 1 || !strings.Contains(text, "    # Pod/default/client-a\n") {
		t.Error(text)
	}
}

// TestExplainedTrace prints a made-up packet's walk with its objects, as text and
// as JSON.
func TestExplainedTrace(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	req := &api.TraceRequest{Flow: `in_port="client-a",tcp,dl_src=5e:b5:e3:a6:90:b7,dl_dst=fa:b7:53:74:21:a6,nw_src=10.10.0.26,nw_dst=10.10.0.24,tp_dst=9999`}
	text, err := n.client.Post(t.Context(), "/trace", url.Values{"explain": {"1"}}, req)
	const dropped = "│     for ClusterNetworkPolicy/web-app-db-network-policy spec.ingress[4] (DropOther)\n"
	if err != nil || !strings.HasPrefix(string(text), "tcp 10.10.0.26:40000 > 10.10.0.24:9999 syn\n") || !strings.Contains(string(text), dropped) {
		t.Errorf("%v\n%s", err, text)
	}
	b, err := n.client.Post(t.Context(), "/trace", url.Values{"format": {"json"}}, req)
	var a api.TraceAnswer
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil || len(a.Entries) < 20 || len(a.Entries[1].Objects) != 1 || a.Entries[1].Objects[0].Object != "Pod/default/client-a" {
		t.Errorf("%v: %+v", err, a.Entries)
	}
}

// TestTracesNameMarks: a walk as ofproto/trace prints it, as a tree and in JSON has the
// names of marks beside their numbers.
func TestTracesNameMarks(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	req := &api.TraceRequest{Flow: `in_port="client-a",tcp,dl_src=5e:b5:e3:a6:90:b7,dl_dst=ba:5e:d1:55:aa:c0,nw_src=10.10.0.26,nw_dst=10.96.0.24,tp_dst=80`}
	for explain, want := range map[string][]string{
		"0": {"-> reg0=0x3 (FromPodRegMark)\n", "priority 200 (EpToSelectRegMark)\n", "ct_mark=0x13,ct_label=0 (ConnSourceCTMarkField=FromPodRegMark, ServiceCTMark)\n"},
		"1": {"reg0 0 → 0x3 (FromPodRegMark)\n", "priority 200 (EpToSelectRegMark)\n", "mark 0x13, label 0 (ConnSourceCTMarkField=FromPodRegMark, ServiceCTMark)\n"},
	} {
		text, err := n.client.Post(t.Context(), "/trace", url.Values{"explain": {explain}}, req)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range want {
			if !strings.Contains(string(text), line) {
				t.Errorf("explain=%s: there is no %q in\n%s", explain, line, text)
			}
		}
	}
	b, err := n.client.Post(t.Context(), "/trace", url.Values{"format": {"json"}}, req)
	var a api.TraceAnswer
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, s := range a.Walk.Steps {
		for _, c := range s.Changes {
			found["change "+strings.Join(c.Marks, ",")] = true
		}
		if s.Entry != nil {
			found["entry "+strings.Join(s.Entry.Marks, ",")] = true
		}
		if s.CT != nil {
			found["ct "+strings.Join(s.CT.Marks, ",")] = true
		}
	}
	for _, want := range []string{"change RewriteMACRegMark", "entry EpToSelectRegMark", "ct ConnSourceCTMarkField=FromPodRegMark,ServiceCTMark"} {
		if !found[want] {
			t.Errorf("no %s in %v", want, found)
		}
	}
}

// TestExplainedFlowFiles says that there are no objects behind flow files, but cookies.
func TestExplainedFlowFiles(t *testing.T) {
	c, err := Offline(pipeline.Files{Flows: "../../examples/two-nodes/node-a.flows"}.Beside(), config.DefaultTunnel)
	if err != nil {
		t.Fatal(err)
	}
	q := url.Values{"explain": {"1"}}
	for _, path := range []string{"/groups", "/meters", "/conntrack", "/ports"} {
		if _, err := c.Get(t.Context(), path, q); err == nil || !strings.Contains(err.Error(), "flow files") {
			t.Errorf("%s: %v", path, err)
		}
	}
	req := &api.TraceRequest{Flow: `in_port="client-a",arp`}
	if _, err := c.Post(t.Context(), "/trace", q, req); err != nil {
		t.Errorf("trace: %v", err)
	}
}
