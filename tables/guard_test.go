package tables

import (
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// TestGuards puts packets of the Pod web through SpoofGuard and table IPv6, and
// ARP through ARPSpoofGuard. Of all matching entries of a table, the one of the
// highest priority decides.
func TestGuards(t *testing.T) {
	both := families{IPv4, IPv6}
	prog := both.program(both.config())
	const (
		own       = `in_port="web-7975-274540",dl_src=fa:b7:53:74:21:a6,`
		fromPod   = `reg0=3,` + own
		linkLocal = "fe80::f8b7:53ff:fe74:21a6"
		toUnSNAT  = "goto_table:UnSNAT"
	)
	for _, c := range []struct{ name, table, packet, want string }{
		{"own address", "SpoofGuard", own + "ip,nw_src=10.10.0.24", toUnSNAT},
		{"address of another", "SpoofGuard", own + "ip,nw_src=10.10.0.25", "drop"},
		{"MAC of another", "SpoofGuard", `in_port="web-7975-274540",dl_src=36:48:21:a2:9d:b4,ip,nw_src=10.10.0.24`, "drop"},
		{"own IPv6 address", "SpoofGuard", own + "ipv6,ipv6_src=fd00::a0a:18", "goto_table:IPv6"},
		{"IPv6 address of another", "SpoofGuard", own + "ipv6,ipv6_src=fd00::a0a:19", "drop"},
		{"link-local", "SpoofGuard", own + "ipv6,ipv6_src=" + linkLocal, "goto_table:IPv6"},
		{"link-local of another", "SpoofGuard", own + "ipv6,ipv6_src=fe80::1", "drop"},
		{"no address yet", "SpoofGuard", own + "ipv6,ipv6_src=::", "drop"},
		{"no address yet, detecting duplicates of its own", "SpoofGuard",
			own + "icmp6,ipv6_src=::,icmp_type=135,icmp_code=0,nd_target=fd00::a0a:18", "goto_table:IPv6"},
		{"the same of its link-local one", "SpoofGuard",
			own + "icmp6,ipv6_src=::,icmp_type=135,icmp_code=0,nd_target=" + linkLocal, "goto_table:IPv6"},
		{"detecting duplicates of another's address", "SpoofGuard",
			own + "icmp6,ipv6_src=::,icmp_type=135,icmp_code=0,nd_target=fd00::a0a:19", "drop"},
		{"detecting duplicates with an option", "SpoofGuard",
			own + "icmp6,ipv6_src=::,icmp_type=135,icmp_code=0,nd_target=fd00::a0a:18,nd_sll=fa:b7:53:74:21:a6", "drop"},
		{"detecting duplicates with another's MAC", "SpoofGuard",
			`in_port="web-7975-274540",dl_src=36:48:21:a2:9d:b4,icmp6,ipv6_src=::,icmp_type=135,icmp_code=0,nd_target=fd00::a0a:18`, "drop"},
		{"the gateway forwards", "SpoofGuard", `in_port="antrea-gw0",ipv6,ipv6_src=2001:db8::1`, "goto_table:IPv6"},

		{"own ARP", "ARPSpoofGuard", own + "arp,arp_spa=10.10.0.24,arp_sha=fa:b7:53:74:21:a6", "goto_table:ARPResponder"},
		{"ARP for the gateway", "ARPSpoofGuard", own + "arp,arp_spa=10.10.0.1,arp_sha=fa:b7:53:74:21:a6", "drop"},

		{"solicitation", "IPv6", fromPod + "icmp6,icmp_type=135,icmp_code=0,nd_target=fd00::a0a:1,nd_sll=fa:b7:53:74:21:a6", "NORMAL"},
		{"solicitation without option", "IPv6", fromPod + "icmp6,icmp_type=135,icmp_code=0,nd_target=fd00::a0a:1", "NORMAL"},
		{"solicitation with another's MAC", "IPv6",
			fromPod + "icmp6,icmp_type=135,icmp_code=0,nd_target=fd00::a0a:1,nd_sll=ba:5e:d1:55:aa:c0", "drop"},
		{"advertisement", "IPv6", fromPod + "icmp6,icmp_type=136,icmp_code=0,nd_target=fd00::a0a:18,nd_tll=fa:b7:53:74:21:a6", "NORMAL"},
		{"advertisement without option", "IPv6", fromPod + "icmp6,icmp_type=136,icmp_code=0,nd_target=fd00::a0a:18", "NORMAL"},
		{"advertisement of link-local", "IPv6", fromPod + "icmp6,icmp_type=136,icmp_code=0,nd_target=" + linkLocal, "NORMAL"},
		{"advertisement of the gateway's address", "IPv6",
			fromPod + "icmp6,icmp_type=136,icmp_code=0,nd_target=fd00::a0a:1,nd_tll=fa:b7:53:74:21:a6", "drop"},
		{"advertisement with another's MAC", "IPv6",
			fromPod + "icmp6,icmp_type=136,icmp_code=0,nd_target=fd00::a0a:18,nd_tll=ba:5e:d1:55:aa:c0", "drop"},
		{"router advertisement", "IPv6", fromPod + "icmp6,ipv6_src=" + linkLocal + ",ipv6_dst=ff02::1,icmp_type=134,icmp_code=0", "drop"},
		{"multicast", "IPv6", fromPod + "udp6,ipv6_src=" + linkLocal + ",ipv6_dst=ff02::1", "NORMAL"},
		{"from link-local past policies", "IPv6", fromPod + "tcp6,ipv6_src=" + linkLocal + ",ipv6_dst=fd00::a0a:19", "drop"},
		{"to link-local past policies", "IPv6", fromPod + "tcp6,ipv6_src=fd00::a0a:18,ipv6_dst=fe80::1", "drop"},
		{"all else", "IPv6", fromPod + "tcp6,ipv6_src=fd00::a0a:18,ipv6_dst=fd00::a0a:19", toUnSNAT},
		{"the Node's router advertisement", "IPv6",
			`reg0=2,in_port="antrea-gw0",icmp6,ipv6_dst=ff02::1,icmp_type=134,icmp_code=0`, "NORMAL"},
		{"the Node's advertisement", "IPv6",
			`reg0=2,in_port="antrea-gw0",icmp6,icmp_type=136,icmp_code=0,nd_target=fe80::1`, "NORMAL"},
	} {
		if got := lookUp(t, prog, c.table, c.packet); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// lookUp is what a table does with a packet that is described as a match.
func lookUp(t *testing.T, prog *flow.Program, name, packet string) string {
	t.Helper()
	m, err := parse.Match(packet, prog.Names)
	if err != nil {
		t.Fatalf("%s: %v", packet, err)
	}
	id, ok := prog.Names.TableID(name)
	if !ok {
		t.Fatalf("no table %s", name)
	}
	var best *flow.Entry
	for _, e := range prog.Entries {
		if e.Table == id && e.Match.Matches(&m.Value) && (best == nil || e.Priority > best.Priority) {
			best = e
		}
	}
	if best == nil {
		t.Fatalf("%s has no entry for %s, not even a table-miss", name, packet)
	}
	return flow.ActionsText(best.Actions, flow.Format{Names: prog.Names})
}
