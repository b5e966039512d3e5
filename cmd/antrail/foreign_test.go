//go:build linux

package main

import (
	"net"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
)

// TestForeignController: entries that ovs-ofctl installs by antrail vswitchd have no objects, so
// explain takes their cookies, and drops, traces, dumps and top name them.
func TestForeignController(t *testing.T) {
	r, host := newVswitchdRig(t), nstest.New(t)
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
		{"explain Pod/default/a", exitFailed, []string{"no objects behind it", "explain COOKIE"}},
		{"drops", 0, []string{"cookie=0x1234000000000002", "icmp 10.9.0.1 > 10.9.0.2"}},
		{"drops -o json", 0, []string{`"cookie": "0x1234000000000002"`, `"object": "cookie=0x1234000000000002"`}},
		{"top --view drops --count 1 --every 10ms", 0, []string{"cookie=0x1234000000000002"}},
		{"trace --explain " + packet, 0, []string{"cookie=0x1234000000000001", "cookie=0x1234000000000002"}},
		{"dump-flows --explain --no-stats", 0, []string{"    # cookie=0x1234000000000002\n"}},
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
