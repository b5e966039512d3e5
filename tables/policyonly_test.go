package tables

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// policyOnlyConfig is a Node beside another CNI.
func policyOnlyConfig() Config {
	c := goldenConfig()
	c.Encap, c.Tunnel, c.NodePortAddresses, c.ServiceCIDRs = PolicyOnly, Port{}, nil, nil
	c.Features = Features{Proxy: true, AntreaPolicy: true}
	c.Gateway = Port{Name: "antrea-gw0", No: 2, MAC: mac("0a:00:00:00:00:01")}
	return c
}

// TestPolicyOnly makes the entries of such a Node with a Pod. It compares them with those of
// Antrea v1.15.2's code (testdata/golden/policyonly). Antrea's dump was taken before it reads
// DNS, whose entries are those of any Node.
func TestPolicyOnly(t *testing.T) {
	p := New(policyOnlyConfig())
	all := append(p.Static(), p.Pod(Pod{Port: Port{No: 100, MAC: mac("00:00:10:10:00:01")}, IPs: []netip.Addr{netip.MustParseAddr("10.10.0.66")}})...)
	got := slices.DeleteFunc(lines(t, all, p.Names()), func(l string) bool {
		return strings.Contains(l, "actions=conjunction(1,") || strings.Contains(l, "conj_id=1 ")
	})
	compareLines(t, goldenLines(t, "policyonly/*.flows"), got)
	if p.Reaches(Peer{NodeIPs: []netip.Addr{netip.MustParseAddr("192.168.77.101")}, PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.10.1.0/24")}}) {
		t.Error("it leads to the Pods of another Node")
	}
}
