package flow_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// keyOf is the key that a match describes. All bits outside the mask are 0.
func keyOf(t *testing.T, match string) *flow.Key {
	t.Helper()
	m, err := parse.Match(match, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &m.Value
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		match, packet string
		want          bool
	}{
		{"", "arp,in_port=3", true},
		{"ip", "tcp,in_port=3", true},
		{"tcp", "udp", false},
		{"ip", "arp", false},
		{"tcp,tp_dst=80", "tcp,tp_dst=80,tp_src=1000", true},
		{"tcp,tp_dst=80", "udp,tp_dst=80", false},
		{"tcp,tp_dst=0x50/0xfff0", "tcp,tp_dst=95", true},
		{"tcp,tp_dst=0x50/0xfff0", "tcp,tp_dst=96", false},
		{"ip,nw_dst=10.96.0.0/12", "ip,nw_dst=10.111.255.255", true},
		{"ip,nw_dst=10.96.0.0/12", "ip,nw_dst=10.112.0.0", false},
		{"reg4=0x10000/0x70000", "reg4=0xfff9ffff", true},
		{"reg4=0x10000/0x70000", "reg4=0x20000", false},
		{"reg4=0/0x100000", "reg4=0x200000", true},
		{"ct_state=+new-est", "ct_state=new|trk", true},
		{"ct_state=+new-est", "ct_state=new|est|trk", false},
		{"ct_label=0x700000000/0xffffffff00000000", "ct_label=0x700000005", true},
		{"dl_vlan=5", "dl_vlan=5,dl_vlan_pcp=7", true},
		{"vlan_tci=0x1000/0x1000", "dl_vlan=0", true},
		{"vlan_tci=0", "dl_vlan=0", false},
		{"dl_vlan=0", "vlan_tci=0", false},
		{"vlan_tci=0", "ip", true},
		{"ip,nw_tos=4", "ip,nw_tos=4,nw_ecn=3", true},
		{"icmp,icmp_type=8", "icmp,icmp_type=8,icmp_code=1", true},
		{"icmp6,icmp_type=135,nd_target=fd00::/16", "icmp6,icmp_type=135,nd_target=fd00::5", true},
		{"in_port=LOCAL", "in_port=65534", true},
		{"xxreg0=0x5/0xf", "reg3=0x25", true},
		{"arp,arp_spa=10.0.0.1,arp_op=1", "arp,arp_spa=10.0.0.1,arp_op=1,arp_tpa=10.0.0.2", true},
		{"ip,nw_frag=no", "ip,nw_frag=first", false},
		{"ip,nw_frag=not_later", "ip,nw_frag=first", true},
	} {
		m, err := parse.Match(c.match, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Matches(keyOf(t, c.packet)); got != c.want {
			t.Errorf("%q matches %q: %v", c.match, c.packet, got)
		}
	}
}

// A match built by code equals the match that is read.
func TestAdd(t *testing.T) {
	var m flow.Match
	m.AddExact(flow.EthType, flow.Value{Lo: 0x800})
	m.Add(flow.Reg0+4, flow.Value{Lo: 0xffff0002}, flow.Value{Lo: 0xf})
	m.Add(flow.IPDst, flow.ValueOfAddr(netip.MustParseAddr("10.1.2.3")), flow.Ones(24).Shl(8))
	m.AddExact(flow.EthSrc, flow.ValueOfMAC(net.HardwareAddr{2, 0, 0, 0, 0, 1}))
	if got, want := m.String(), "ip,reg4=0x2/0xf,dl_src=02:00:00:00:00:01,nw_dst=10.1.2.0/24"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	read, err := parse.Match(m.String(), nil)
	if err != nil || read != m {
		t.Errorf("%s reads back as %s, %v", &m, &read, err)
	}
	if v, mask := m.Get(flow.Reg0 + 4); v != (flow.Value{Lo: 2}) || mask != (flow.Value{Lo: 15}) {
		t.Errorf("reg4 is %x/%x", v, mask)
	}
	if m.IsAny() || !(&flow.Match{}).IsAny() {
		t.Error("IsAny")
	}
}

// Identity is table, priority and match, and nothing else.
func TestIdentity(t *testing.T) {
	read := func(line string) *flow.Entry {
		e, err := parse.Entry(line, nil)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	base := read("table=1,priority=5,ip,nw_dst=10.0.0.0/8 actions=drop").Identity()
	for line, same := range map[string]bool{
		"table=1,priority=5,cookie=7,ip,nw_dst=10.9.9.9/8,hard_timeout=3 actions=NORMAL": true,
		"table=2,priority=5,ip,nw_dst=10.0.0.0/8 actions=drop":                           false,
		"table=1,priority=6,ip,nw_dst=10.0.0.0/8 actions=drop":                           false,
		"table=1,priority=5,ip,nw_dst=10.0.0.0/9 actions=drop":                           false,
	} {
		if got := read(line).Identity() == base; got != same {
			t.Errorf("%s: the same entry %v", line, got)
		}
	}
}

// Entries that code makes pass the same checks as those of the parser.
func TestCheck(t *testing.T) {
	e := &flow.Entry{Table: 4, Actions: []flow.Action{flow.DecTTL{}, flow.GotoTable{5}}}
	if err := e.Check(); err == nil || err.Error() != "action 1 (dec_ttl): dec_ttl needs ip or ipv6 in the match" {
		t.Errorf("got %v", err)
	}
	var m flow.Match
	m.AddExact(flow.EthType, flow.Value{Lo: 0x800})
	e.Match = m.Mini()
	if err := e.Check(); err != nil {
		t.Error(err)
	}
	e.Table = 5
	if err := e.Check(); err == nil {
		t.Error("goto_table to its own table is taken")
	}
}

// A key is shown as the match on its contents.
func TestKeyText(t *testing.T) {
	k := keyOf(t, "tcp,in_port=1,reg0=0x3,ct_state=new|trk,dl_vlan=5,dl_src=00:00:00:00:00:01,nw_src=10.0.0.1,tp_dst=80,nw_ttl=64")
	want := "ct_state=new|trk,tcp,reg0=0x3,in_port=p1,dl_vlan=5,dl_vlan_pcp=0,dl_src=00:00:00:00:00:01,nw_src=10.0.0.1,nw_ttl=64,tp_dst=80"
	names := flow.NewNames()
	names.SetPort(1, "p1")
	if got := flow.KeyText(k, names); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
