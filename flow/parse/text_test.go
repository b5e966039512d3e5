package parse_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// golden reads the fixture pipeline: 175 entries, 12 groups and 3 meters that
// Open vSwitch printed.
func golden(t testing.TB) (parse.Sources, *flow.Program) {
	t.Helper()
	var src parse.Sources
	for name, s := range map[string]*parse.Source{"flows": &src.Flows, "groups": &src.Groups, "meters": &src.Meters, "ports": &src.Ports} {
		var err error
		if *s, err = parse.File(filepath.Join("testdata", "golden", "pipeline."+name)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := parse.Program(src)
	if err != nil {
		t.Fatal(err)
	}
	return src, p
}

// Every line of the fixtures prints unchanged.
func TestGoldenRoundTrip(t *testing.T) {
	src, p := golden(t)
	var flows, groups, meters []string
	for _, e := range p.Entries {
		flows = append(flows, e.Text(flow.Format{Names: p.Names}))
	}
	for _, g := range p.Groups {
		groups = append(groups, g.Text(p.Names))
	}
	for _, m := range p.Meters {
		meters = append(meters, m.Text())
	}
	same(t, "flows", strings.Join(flows, "\n")+"\n", src.Flows.Text)
	same(t, "groups", strings.Join(groups, "\n")+"\n", src.Groups.Text)
	same(t, "meters", strings.Join(meters, "\n\n")+"\n", src.Meters.Text)
	if p.Names.Table(p.First) != "PipelineRootClassifier" {
		t.Errorf("packets enter at %q", p.Names.Table(p.First))
	}
}

// same compares texts line by line.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		switch {
		case i >= len(g) || i >= len(w):
			t.Fatalf("%s: %d lines, want %d", what, len(g), len(w))
		case g[i] != w[i]:
			t.Errorf("%s line %d:\n got %q\nwant %q", what, i+1, g[i], w[i])
		}
	}
}

// Printed with numbers, the fixtures read back as the same entries. Open vSwitch
// accepts them and prints the same.
func TestGoldenByNumbers(t *testing.T) {
	_, p := golden(t)
	for _, e := range p.Entries {
		again, err := parse.Entry(e.String(), nil)
		if err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		if !reflect.DeepEqual(again, e) {
			t.Errorf("%s is read as %s", e, again)
		}
	}
	s := startOVS(t)
	askSwitch(t, s, "del-groups")
	for what, lines := range map[string][]string{"flows": numbers(p.Entries), "groups": numbers(p.Groups)} {
		if err := os.WriteFile(filepath.Join(s.Dir, what), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range p.Meters {
		askSwitch(t, s, "add-meter", strings.ReplaceAll(m.Text(), "\n", " "))
	}
	askSwitch(t, s, "add-groups", filepath.Join(s.Dir, "groups"))
	askSwitch(t, s, "add-flows", filepath.Join(s.Dir, "flows"))
	contains(t, askSwitch(t, s, "--no-names", "--no-stats", "dump-flows"), numbers(p.Entries))
	contains(t, askSwitch(t, s, "--no-names", "dump-groups"), numbers(p.Groups))
	meters := askSwitch(t, s, "dump-meters")
	for _, m := range p.Meters {
		if !strings.Contains(meters, m.Text()+"\n") {
			t.Errorf("Open vSwitch lacks %q in %q", m.Text(), meters)
		}
	}
}

func numbers[T interface{ String() string }](list []T) []string {
	var lines []string
	for _, x := range list {
		lines = append(lines, x.String())
	}
	return lines
}

func contains(t *testing.T, dump string, lines []string) {
	t.Helper()
	have := map[string]bool{}
	for _, l := range strings.Split(dump, "\n") {
		have[l] = true
	}
	for _, l := range lines {
		if !have[l] {
			t.Errorf("Open vSwitch does not print %q", l)
		}
	}
}

// Accepted spellings, and the printed one.
func TestSpellings(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"actions=", " actions=drop"},
		{" \t ip , \t actions=drop ", " ip actions=drop"},
		{"table=0, n_packets=5, n_bytes=320, idle_age=3, hard_age=9, duration=5.061s, priority=1 actions=drop", " priority=1 actions=drop"},
		{"dl_type=0x800,nw_proto=6,tcp_dst=0x50 actions=drop", " tcp,tp_dst=80 actions=drop"},
		{"tp_dst=53,udp,action=2", ` udp,tp_dst=53 actions=output:"antrea-gw0"`},
		{"eth_type=0x0806,nw_src=10.0.0.1,nw_proto=2 actions=drop", " arp,arp_spa=10.0.0.1,arp_op=2 actions=drop"},
		{"ip,ip_dst=10.1.2.3/255.255.0.0 actions=drop", " ip,nw_dst=10.1.0.0/16 actions=drop"},
		{"ip,nw_dst=10.1.2.3/0 actions=drop", " ip actions=drop"},
		{"ip,nw_tos=5 actions=drop", " ip,nw_tos=4 actions=drop"},
		{"ip,ip_dscp=5 actions=drop", " ip,nw_tos=20 actions=drop"},
		{"ct_state=0x21/0x21 actions=drop", " ct_state=+new+trk actions=drop"},
		{"ct_state=trk|new actions=drop", " ct_state=new|trk actions=drop"},
		{"ct_state=-new+est-rel-rpl-inv+trk-snat-dnat actions=drop", " ct_state=est|trk actions=drop"},
		{"ct_mark=0/0x10,reg0=0/0x200,reg1=0 actions=drop", " ct_mark=0/0x10,reg0=0/0x200,reg1=0 actions=drop"},
		{"xxreg0=0x1/0x1 actions=drop", " reg3=0x1/0x1 actions=drop"},
		{"vlan_vid=0x1005,vlan_pcp=3 actions=strip_vlan", " dl_vlan=5,dl_vlan_pcp=3 actions=pop_vlan"},
		{"tcp,tcp_flags=+syn-ack actions=drop", " tcp,tcp_flags=+syn-ack actions=drop"},
		{"icmp,tp_src=3,icmp_code=1 actions=drop", " icmp,icmp_type=3,icmp_code=1 actions=drop"},
		{"in_port=65534 actions=output:0xfffffffe,local", " in_port=LOCAL actions=LOCAL,LOCAL"},
		{"actions=load:0x2->NXM_NX_REG4[16..18]", " actions=set_field:0x20000/0x70000->reg4"},
		{"actions=mod_dl_dst:00:00:00:00:00:01,resubmit(,2)", " actions=set_field:00:00:00:00:00:01->eth_dst,resubmit(,SpoofGuard)"},
		{"actions=mod_vlan_vid:5", " actions=push_vlan:0x8100,set_field:4101->vlan_vid"},
		{"dl_vlan=4 actions=mod_vlan_vid:5", " dl_vlan=4 actions=set_field:4101->vlan_vid"},
		{"dl_vlan=4 actions=set_field:4101/0x100f->vlan_vid,mod_vlan_pcp:3", " dl_vlan=4 actions=set_field:4101/0x100f->vlan_vid,set_field:3->vlan_pcp"},
		{"dl_vlan=4 actions=load:3->OXM_OF_VLAN_PCP[]", " dl_vlan=4 actions=set_field:3/0x7->vlan_pcp"},
		{"actions=mod_vlan_pcp:3", " actions=push_vlan:0x8100,set_field:3->vlan_pcp"},
		{"tcp actions=set_field:80->tp_dst,dec_ttl()", " tcp actions=set_field:80->tcp_dst,dec_ttl"},
		{"ip actions=ct", " ip actions=ct()"},
		{"actions=controller(max_len=100)", " actions=CONTROLLER:100"},
		{"table=SpoofGuard actions=resubmit(1,with-dash)", ` table=SpoofGuard, actions=resubmit(p1,"with-dash")`},
		{`table="with-dash" actions=output:"3abc"`, ` table="with-dash", actions=output:"3abc"`},
		{"tcp actions=learn(table=2,dl_type=0x800,nw_proto=6,tcp_dst)", " tcp actions=learn(table=SpoofGuard,eth_type=0x800,nw_proto=6,NXM_OF_TCP_DST[])"},
	} {
		e, err := parse.Entry(c.in, ovsNames())
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := e.Text(flow.Format{Names: ovsNames()}); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}

// Counters and ages stand where dump-flows has them.
func TestStats(t *testing.T) {
	e, err := parse.Entry("table=3,cookie=4,idle_timeout=100,send_flow_rem,priority=5,ip actions=drop", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &flow.Stats{Packets: 7, Bytes: 420, Duration: 1218 * time.Millisecond, Idle: 1999 * time.Millisecond}
	want := " cookie=0x4, duration=1.218s, table=3, n_packets=7, n_bytes=420, idle_timeout=100, send_flow_rem idle_age=1, priority=5,ip actions=drop"
	if got := e.Text(flow.Format{Stats: s}); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	s.Duration, s.Hard = 90*time.Second, 30*time.Second
	want = " cookie=0x0, duration=90.000s, table=0, n_packets=7, n_bytes=420, idle_age=1, hard_age=30, actions=drop"
	if got := (&flow.Entry{Priority: flow.DefaultPriority}).Text(flow.Format{Stats: s}); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Groups in their spellings, and as Open vSwitch prints them.
func TestGroupsAsOVS(t *testing.T) {
	s := startOVS(t)
	n := ovsNames()
	for _, line := range []string{
		"group_id=10,type=select,bucket=weight:5,output:1,bucket=actions=output:2",
		"group_id=11,type=all,bucket=set_field:5->reg1,resubmit(,4),bucket=bucket_id:7,resubmit(,2)",
		"group_id=12,type=ff,bucket=watch_port:1,output:1",
		"group_id=13,type=indirect,bucket=actions=drop",
		"group_id=14,type=select",
		"group_id=15,type=fast_failover,bucket=watch_port=2,actions=output:LOCAL",
		"group_id=16,type=select,bucket=bucket_id:4,weight:0,actions=ct(table=1),bucket=bucket_id:9,weight:100,actions=set_field:0xa0a0018->reg3,resubmit(,3)",
		"group_id=4294967040,type=all,bucket=normal",
	} {
		g, err := parse.Group(line, n)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		askSwitch(t, s, "add-group", line)
		got := g.Text(n)
		contains(t, askSwitch(t, s, "--names", "dump-groups"), []string{got})
		again, err := parse.Group(got, n)
		if err != nil || !reflect.DeepEqual(again, g) {
			t.Errorf("%s reads back as %v, %v", got, again, err)
		}
	}
}

// Meters in their spellings, and as Open vSwitch prints them.
func TestMetersAsOVS(t *testing.T) {
	s := startOVS(t)
	for _, line := range []string{
		"meter=5,kbps,band=type=drop,rate=100",
		"meter=6 pktps burst stats bands= type=drop rate=100 burst_size=200",
		"meter=7 pktps burst bands=type=drop rate=500 burst_size=1",
	} {
		m, err := parse.Meter(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		askSwitch(t, s, "add-meter", line)
		if dump := askSwitch(t, s, "dump-meters"); !strings.Contains(dump, m.Text()+"\n") {
			t.Errorf("got  %q\nwant one of %q", m.Text(), dump)
		}
		again, err := parse.Meter(m.Text())
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%s reads back as %v, %v", m.Text(), again, err)
		}
	}
}

// Actions and matches can be read by themselves, with names that need quotes.
func TestParseParts(t *testing.T) {
	n := flow.NewNames()
	n.SetPort(7, `a"b\c`)
	n.SetPort(8, "x\ty")
	actions, err := parse.Actions(`output:"a\"b\\c",output:"x\u0009y",set_field:5->nw_ttl,clone()`, n)
	if err != nil {
		t.Fatal(err)
	}
	want := []flow.Action{flow.Output{Port: 7}, flow.Output{Port: 8}, flow.SetField{Field: flow.IPTTL, Value: flow.Value{Lo: 5}, Mask: flow.Ones(8)}, flow.Clone{}}
	if !reflect.DeepEqual(actions, want) {
		t.Errorf("got %#v", actions)
	}
	if got, want := flow.ActionsText(actions, flow.Format{Names: n}), `output:"a\"b\\c",output:"x\u0009y",set_field:5->nw_ttl,clone(drop)`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, bad := range []string{`output:"a\nb"`, `output:"a"b"`, "goto_table:3", "output:1,bogus", strings.Repeat(" ", 70000)} {
		if a, err := parse.Actions(bad, n); err == nil || a != nil {
			t.Errorf("%.30s: %v, %v", bad, a, err)
		}
	}
	for _, bad := range []string{"tcp,bogus=1", "ip(", "in_port(3)", "reg0=1)", strings.Repeat(" ", 70000)} {
		if m, err := parse.Match(bad, n); err == nil || !m.IsAny() {
			t.Errorf("%.30s: %v, %v", bad, &m, err)
		}
	}
}
