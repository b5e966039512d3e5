package dataplane_test

import (
	"fmt"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow/parse"
)

// calls is a pipeline of tables that are called: from the midst of a list and
// from its end, within each other and in circles; what they do ends megaflows,
// drops without being the last to say so, learns, writes in_port.
const calls = `
	table=0,priority=9,arp actions=NORMAL
	table=0,priority=8,udp,tp_dst=443 actions=set_field:3->in_port,resubmit(,1),resubmit(,2),resubmit(,3)
	table=0,priority=7,tcp,tp_dst=53 actions=resubmit(3,1),resubmit(,2),resubmit(,3)
	table=0,priority=6,icmp,nw_dst=10.1.0.5 actions=resubmit(,11),output:4
	table=0,priority=1,ip actions=resubmit(,1),resubmit(,2),resubmit(,3)
	table=1,priority=6,tcp,in_port=3,tp_dst=53 actions=set_field:0x1->reg1,resubmit(,13),resubmit(2,13)
	table=1,priority=5,tcp actions=set_field:0x1->reg1,resubmit(,4)
	table=1,priority=4,udp,tp_dst=3306 actions=drop
	table=1,priority=3,icmp actions=resubmit(,4),set_field:0x3->reg1,resubmit(,5)
	table=2,priority=5,ip,nw_dst=10.0.0.1 actions=set_field:0x2->reg2,goto_table:4
	table=2,priority=5,ip,nw_dst=10.0.0.2 actions=ct(zone=10,table=7)
	table=2,priority=5,ip,nw_dst=10.0.0.3 actions=set_field:4->in_port,resubmit(,5)
	table=2,priority=5,ip,nw_dst=10.1.0.2 actions=learn(table=5,idle_timeout=9,priority=5,eth_type=0x800,NXM_OF_IP_SRC[],load:0x7->NXM_NX_REG3[])
	table=2,priority=4,ip,nw_dst=10.1.0.0/24 actions=dec_ttl,resubmit(,5)
	table=3,priority=5,ip,reg1=0x1,nw_dst=10.0.0.0/30 actions=set_field:0x9->reg4,resubmit(,8)
	table=3,priority=4,ip,nw_dst=10.1.0.3 actions=set_field:2->in_port,resubmit(,8)
	table=3,priority=3,ip,nw_dst=10.1.0.4 actions=set_field:0x1/0x1->reg6
	table=3,priority=1,ip actions=resubmit(,6)
	table=4,priority=5,ip,reg1=0x1,nw_dst=10.0.0.2 actions=set_field:2->in_port,goto_table:5
	table=4,priority=1,ip actions=dec_ttl,set_field:02:00:00:00:00:77->eth_src
	table=5,priority=1,ip,in_port=4 actions=set_field:0x1->reg5
	table=5,priority=1,ip,in_port=2 actions=set_field:0x2->reg5
	table=6,priority=1,ip actions=set_field:0x6->reg6,resubmit(,8)
	table=7,priority=1,ct_state=+est+trk actions=set_field:0x8->reg7
	table=8,priority=2,ip,in_port=2,reg6=0x6,udp actions=set_field:3->in_port,ct(zone=10,table=9)
	table=8,priority=1,ip actions=ct(zone=10,table=9)
	table=9,priority=5,ct_state=+new+trk,ip actions=ct(commit,zone=10,table=10)
	table=9,priority=1,ip actions=resubmit(,10)
	table=10,priority=9,ip,reg5=0x2 actions=output:4
	table=10,priority=8,ip,reg3=0x7,tcp actions=resubmit(,12),output:3
	table=10,priority=7,ip,in_port=3 actions=output:4
	table=10,priority=6,ip,reg6=0x6,nw_dst=10.0.0.1 actions=resubmit(,12),output:1
	table=10,priority=5,ip,nw_dst=10.0.0.2 actions=output:2
	table=10,priority=4,ip,nw_dst=10.0.0.3 actions=output:3
	table=10,priority=3,ip,nw_dst=10.1.0.0/24 actions=output:4
	table=11,priority=2,icmp,nw_tos=0 actions=resubmit(,11),output:2
	table=11,priority=1,icmp actions=set_field:0->nw_tos,resubmit(,11)
	table=12,priority=1,udp actions=drop
	table=13,priority=1,ip,in_port=1 actions=IN_PORT,resubmit(2,5)
	table=13,priority=1,ip,in_port=2 actions=ct(zone=10,table=7)
	table=13,priority=1,ip,in_port=3 actions=output:4,set_field:0x6->reg6`

// callsSource is calls with its ports and senders.
func callsSource() twinSource {
	src := sourcesOf(calls, "", "")
	src.Ports = parse.Text("ports", " 1(p1)\n 2(p2)\n 3(p3)\n 4(p4)\n")
	return twinSource{
		src: src,
		hosts: []host{
			{1, "02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1"}, {2, "02:00:00:00:00:02", "02:00:00:00:00:01", "10.0.0.2"},
			{3, "02:00:00:00:00:03", "02:00:00:00:00:01", "10.0.0.3"},
		},
		to: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.5"},
	}
}

// TestMegaflowsPassCalls: a megaflow goes on through tables that are called and
// ends before the call within which something else happens.
func TestMegaflowsPassCalls(t *testing.T) {
	for _, c := range []struct {
		name, flows string
		megaflows   uint64
		out         string
	}{
		{"from the end", "table=0,ip actions=resubmit(,1)\ntable=1,ip actions=set_field:0x1->reg1,resubmit(,2)\ntable=2,reg1=1 actions=output:2", 1, "2"},
		{"from the midst", "table=0,ip actions=resubmit(,1),resubmit(,2)\ntable=1,ip actions=set_field:0x1->reg1\ntable=2,reg1=1 actions=output:2", 1, "2"},
		{"a drop that is not the last word", "table=0,ip actions=resubmit(,1),resubmit(,2)\ntable=1,ip actions=drop\ntable=2 actions=output:2", 1, "2"},
		{"a drop that is", "table=0,ip actions=resubmit(,1),resubmit(,2)\ntable=1,ip actions=drop\ntable=2,ip actions=set_field:0x1->reg1", 1, ""},
		{"ct() in the midst", "table=0,ip actions=resubmit(,1),resubmit(,2)\ntable=1,ip actions=set_field:0x1->reg1,ct(commit,zone=1)\ntable=2,reg1=1 actions=output:2", 3, "2"},
		{"ct() at the end", "table=0,ip actions=resubmit(,1),resubmit(,2)\ntable=1,ip actions=set_field:0x1->reg1\ntable=2,ip,reg1=1 actions=ct(zone=1,table=3)\ntable=3 actions=output:2", 2, "2"},
		{"in_port", "table=0,ip actions=resubmit(,1),output:1\ntable=1,ip actions=set_field:2->in_port,resubmit(,2)\ntable=2,in_port=2 actions=set_field:0x1->reg1", 1, "1"},
		{"in_port at the end", "table=0,ip actions=resubmit(,1),resubmit(,3)\ntable=1,ip actions=resubmit(,2)\ntable=2,in_port=1 actions=set_field:2->in_port\ntable=3,in_port=2 actions=output:1", 1, "1"},
		{"another in_port for a lookup", "table=0,ip actions=resubmit(2,1)\ntable=1,in_port=2 actions=resubmit(,2)\ntable=2,in_port=1 actions=IN_PORT", 2, "1"},
		{"another in_port in the midst", "table=0,ip actions=resubmit(2,1),resubmit(,3)\ntable=1,in_port=2 actions=set_field:0x1->reg1,goto_table:2\n" +
			"table=2,in_port=1 actions=set_field:0x2->reg2\ntable=3,in_port=1,reg1=1,reg2=2 actions=output:2", 3, "2"},
		{"in circles", "table=0,ip actions=resubmit(,0)", 0, ""},
		{"as deep as can be", deepCalls(63), 1, "2"},
		{"too deep", deepCalls(64), 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newMegaflowed(t, 1<<16, c.flows)
			var out []sent
			send := func() {
				out = r.send("udp,in_port=1,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64,udp_src=1000,udp_dst=53")
			}
			for range 4 {
				send()
			}
			if n := r.counted(telemetry.MegaflowHit, send); n != c.megaflows {
				t.Errorf("%d megaflows were taken, want %d", n, c.megaflows)
			}
			if c.out == "" && len(out) != 0 || c.out != "" && (len(out) != 1 || fmt.Sprint(out[0].port) != c.out) {
				t.Errorf("%v left, want %q", out, c.out)
			}
		})
	}
}

// TestMegaflowsMindTheDepth: what takes a megaflow through calls may go as deep as
// a walk, and no deeper.
func TestMegaflowsMindTheDepth(t *testing.T) {
	const most = 64 // nested tables
	for calls, out := range map[int]int{most - 32: 1, most - 31: 0} {
		r := newMegaflowed(t, 1<<16, "table=0,tcp actions=ct(zone=1,table=70)\ntable=0,udp actions=resubmit(,20)\n"+
			chain(20, 30)+"table=50,ip actions=ct(zone=1,table=70)\n"+chain(70, calls)+fmt.Sprintf("table=%d actions=output:2", 70+calls))
		send := func(proto string) int {
			return len(r.send(proto + ",in_port=1,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64"))
		}
		for range 4 {
			if n := send("tcp"); n != 1 {
				t.Errorf("%d calls: %d packets left", calls, n)
			}
		}
		for range 4 {
			if n := send("udp"); n != out {
				t.Errorf("%d calls behind 31 others: %d packets left, want %d", calls, n, out)
			}
		}
	}
}

// deepCalls is so many calls, and an output.
func deepCalls(n int) string { return chain(0, n) + fmt.Sprintf("table=%d actions=output:2", n) }

// chain is so many tables of which each calls the next one.
func chain(from, n int) (text string) {
	for i := from; i < from+n; i++ {
		text += fmt.Sprintf("table=%d,ip actions=resubmit(,%d)\n", i, i+1)
	}
	return text
}
