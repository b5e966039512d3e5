//go:build linux && !portable

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/internal/browsertest"
	"github.com/antrail/antrail/internal/nstest"
)

// startForeign is `antrail vswitchd` with entries that drop pings of a host behind port v0.
func startForeign(t *testing.T) (r *vswitchdRig, host *nstest.Namespace) {
	t.Helper()
	r, host = newVswitchdRig(t), nstest.New(t)
	nstest.AddVeth(t, r.sw.Namespace, "v0", host, "host0")
	host.AddAddress(t, "host0", "10.9.0.1/24")
	host.AddNeighbour(t, "host0", "10.9.0.2", net.HardwareAddr{2, 0, 0, 0, 0, 2})
	r.start("db.sock")
	r.tool("ovs-vsctl", "add-br", "br0", "--", "set-fail-mode", "br0", "secure", "--", "add-port", "br0", "v0", "--", "set", "interface", "v0", "ofport_request=1")
	for _, entry := range []string{
		"cookie=0x1234000000000001,table=0,priority=10,ip,in_port=1,actions=resubmit(,5)",
		"cookie=0x1234000000000002,table=5,priority=20,icmp,nw_dst=10.9.0.2,actions=drop",
		"cookie=0x1234000000000002,table=5,priority=10,udp,nw_dst=10.9.0.2,actions=drop",
		"table=6,priority=7,arp,actions=drop",
	} {
		r.tool("ovs-ofctl", "-OOpenFlow15", "add-flow", "br0", entry)
	}
	if host.Command("ping", "-c1", "-W1", "10.9.0.2").Run() == nil {
		t.Fatal("the entries do not drop")
	}
	return r, host
}

// TestForeignController: entries that ovs-ofctl installs by antrail vswitchd have no objects, so
// explain takes their cookies, and drops, traces, dumps, top and why name them.
func TestForeignController(t *testing.T) {
	r, host := startForeign(t)
	const packet = "in_port=1,icmp,nw_dst=10.9.0.2,nw_src=10.9.0.1"
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"explain 0x1234000000000002", 0, []string{
			"cookie=0x1234000000000002: installed, 2 entries\n",
			"table=5, priority=20,icmp,nw_dst=10.9.0.2 actions=drop\n    n_packets=1, n_bytes=98\n    cookie=0x1234000000000002\n",
			"table=5, priority=10,udp,nw_dst=10.9.0.2 actions=drop\n    n_packets=0, n_bytes=0\n",
		}},
		{"explain cookie=0x1234000000000000/0xffff000000000000", 0, []string{"3 entries\n", "actions=resubmit(,5)\n    n_packets=1,"}},
		{"explain 0x1234000000000001 -o json", 0, []string{`"object": "cookie=0x1234000000000001"`, `"packets": 1`}},
		{"explain table=5,priority=20,icmp,nw_dst=10.9.0.2", 0, []string{"    n_packets=1, n_bytes=98\n    cookie=0x1234000000000002\n"}},
		{"explain cookie=0x0,table=6,n_packets=0,priority=7,arp", 0, []string{"    n_packets=0, n_bytes=0\n"}},
		{"explain table=5,priority=21,icmp", exitFailed, []string{`table 5 has no entry "table=5,priority=21,icmp"`}},
		{"explain 0x77", exitFailed, []string{"no entry has cookie=0x77"}},
		{"explain 0x77/0x1ffffffffffffffff", exitFailed, []string{"have 64 bits"}},
		{"explain Pod/default/a", exitFailed, []string{"the entries have no objects", "explain COOKIE"}},
		{"drops", 0, []string{"cookie=0x1234000000000002", "icmp 10.9.0.1 > 10.9.0.2"}},
		{"drops -o json", 0, []string{`"cookie": "0x1234000000000002"`, `"object": "cookie=0x1234000000000002"`}},
		{"top --view rules --count 1 --every 10ms", 0, []string{"cookie=0x1234000000000002  2 entries in 1 tables"}},
		{"page", exitFailed, []string{"the switch at ", "antrail page --serve 127.0.0.1:8080 --socket "}},
		{"top --view drops --count 1 --every 10ms", 0, []string{"cookie=0x1234000000000002"}},
		{"trace --explain " + packet, 0, []string{"cookie=0x1234000000000001", "cookie=0x1234000000000002"}},
		{"dump-flows --explain --no-stats", 0, []string{"    # cookie=0x1234000000000002\n"}},
		{"why --icmp 10.9.0.1 10.9.0.2", exitFailed, []string{ // the dropped packet tells port and MAC addresses
			"denied: icmp from 10.9.0.1 at v0 to 10.9.0.2 ends in table 5 (entry): ",
			"entry:  cookie=0x1234000000000002, table=5, priority=20,icmp,nw_dst=10.9.0.2 actions=drop; 1 packet has met the entry",
			"so far: 0 such connections are tracked now, and of their packets 1 is kept as dropped",
			"next:   antrail explain 0x1234000000000002 lists",
			"note:   entries of another controller have cookies, not objects",
		}},
		{"why --icmp --walk 10.9.0.1 10.9.0.2", exitFailed, []string{"├─ 0: ip,in_port", "for cookie=0x1234000000000001", "└─ dropped in table 5"}},
		{"why 10.9.0.1@v0 10.9.0.2:80 -o json", exitFailed, []string{`"reason": "table_miss"`}},
		{"why default/a default/b:80", exitUsage, []string{"without objects an end is ADDRESS"}},
	} {
		got, code := printed(c.args, "--socket", r.sw.socket)
		for _, want := range c.want {
			if !strings.Contains(got, want) || code != c.code {
				t.Errorf("antrail %s: exit code %d, want %d and %q in\n%s", c.args, code, c.code, want, got)
			}
		}
	}
	out, notes := lines(t, r.sw.antrail("trace", "--live", "--count", "1", "--filter", "icmp", "-o", "tree"))
	if text, err := notes.ReadString('\n'); err != nil || !strings.HasPrefix(text, "watching ") {
		t.Fatalf("trace --live: %q, %v", text, err)
	}
	host.Command("ping", "-c1", "-W1", "10.9.0.2").Run()
	var walk strings.Builder
	if _, err := out.WriteTo(&walk); err != nil || !strings.Contains(walk.String(), "cookie=0x1234000000000002") {
		t.Errorf("trace --live: %v\n%s", err, walk.String())
	}
}

// TestForeignPage: antrail page serves what the page shows of a switch that another controller drives,
// with cookies in the place of objects.
func TestForeignPage(t *testing.T) {
	r, host := startForeign(t)
	client, err := answer.Connect(t.Context(), r.sw.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	invitations, ended := make(chan string, 2), make(chan error, 1)
	s := answer.PageServer{Agents: []*api.Client{client}, Address: "127.0.0.1:0", Invite: func(url string) error { invitations <- url; return nil }}
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	invitation, v := <-invitations, browsertest.Visitor(t)
	browsertest.Fetch(t, v, invitation)
	base, _, _ := strings.Cut(invitation, "/enter")
	for path, want := range map[string]string{
		"/":                               "<html",
		"/map.svg":                        `id="table-5"`,
		"/api/flows?table=5&format=json":  `"cookie": "0x1234000000000002"`,
		"/api/tables?format=json":         `"entries": 2`,
		"/api/ports?format=json":          `"name": "v0"`,
		"/api/drops?format=json":          `"reason": "entry"`,
		"/api/drops/last?n=5&format=json": `"object": "cookie=0x1234000000000002"`,
		"/api/conntrack?format=json":      "[]",
		"/api/cookies?format=json": `"object": "cookie=0x1234000000000002",
    "tables": 1,
    "entries": 2,
    "packets": 1,`,
		"/api/explain?what=cookie=0x1234000000000002&format=json":          `"bytes": 98`,
		"/api/explain?what=table%3D5,priority%3D20,icmp,nw_dst%3D10.9.0.2": "cookie=0x1234000000000002",
	} {
		if code, text := browsertest.Fetch(t, v, base+path); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d, want %s in\n%s", path, code, want, text)
		}
	}
	if code, text := browsertest.Fetch(t, v, base+"/api/policies"); code != http.StatusBadRequest || !strings.Contains(text, "they come from another controller") {
		t.Errorf("/api/policies: %d %s", code, text)
	}
	for path, request := range map[string]string{
		"/api/trace?format=json": `{"flow": "in_port=1,icmp,nw_dst=10.9.0.2"}`,
		"/api/trace/live":        `{"filter": "icmp", "count": 1}`,
	} {
		resp, err := v.Post(base+path, "application/json", strings.NewReader(request))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "live") { // it is armed when the answer begins
			host.Command("ping", "-c1", "-W1", "10.9.0.2").Run()
		}
		text, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); err != nil || !strings.Contains(string(text), "cookie=0x1234000000000001") {
			t.Errorf("%s: %v %s", path, err, text)
		}
	}
	events, err := v.Get(base + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	lines := bufio.NewScanner(events.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"pipeline"`) {
			return
		}
	}
	t.Errorf("the page's counters do not come: %v", lines.Err())
}
