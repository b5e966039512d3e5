package dataplane_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
)

// segment is a TCP segment in flow syntax.
func segment(port int, src, dst, flags string) string {
	sip, sport, _ := strings.Cut(src, ":")
	dip, dport, _ := strings.Cut(dst, ":")
	return fmt.Sprintf("in_port=%d,tcp,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,nw_src=%s,nw_dst=%s,nw_ttl=64,tcp_src=%s,tcp_dst=%s,tcp_flags=%s",
		port, sip, dip, sport, dport, flags)
}

// ends is source and destination of a TCP packet that left.
func (s sent) ends() string {
	return fmt.Sprintf("%s:%s > %s:%s", s.field(flow.IPSrc), s.field(flow.TCPSrc), s.field(flow.IPDst), s.field(flow.TCPDst))
}

// TestDNAT sends a connection to another address and port, and its replies
// back, by ct() with a table and by one without that is looked up again.
func TestDNAT(t *testing.T) {
	for _, c := range []struct{ name, flows string }{
		{"with a table", `
			table=0,ip actions=ct(zone=5,nat,table=1)
			table=1,priority=2,ct_state=+new+trk,ip,in_port=1 actions=ct(commit,zone=5,nat(dst=10.0.0.9:8080),table=2)
			table=1,priority=1 actions=goto_table:2
			table=2,in_port=1,ip,nw_dst=10.0.0.9 actions=output:2
			table=2,in_port=2,ip,nw_src=10.96.0.1 actions=output:1`},
		{"without", `
			table=0,priority=2,ip,in_port=1 actions=ct(commit,zone=5,nat(dst=10.0.0.9:8080)),output:2
			table=0,priority=2,ip,in_port=2 actions=ct(zone=5,nat),output:1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.flows)
			for _, step := range []struct{ packet, want string }{
				{segment(1, "10.0.0.1:1000", "10.96.0.1:80", "+syn"), "2 10.0.0.1:1000 > 10.0.0.9:8080"},
				{segment(2, "10.0.0.9:8080", "10.0.0.1:1000", "+syn+ack"), "1 10.96.0.1:80 > 10.0.0.1:1000"},
				{segment(1, "10.0.0.1:1000", "10.96.0.1:80", "+ack"), "2 10.0.0.1:1000 > 10.0.0.9:8080"},
			} {
				out := r.send(step.packet)
				if len(out) != 1 {
					t.Fatalf("%s left %d times", step.packet, len(out))
				}
				wantSound(t, out[0].frame)
				if got := fmt.Sprint(out[0].port, " ", out[0].ends()); got != step.want {
					t.Errorf("%s\n got %s\nwant %s", step.packet, got, step.want)
				}
			}
			if n := r.conntrack.ZoneCount(5); n != 1 {
				t.Errorf("%d connections, want 1", n)
			}
		})
	}
}

// TestConntrackInTheMidst checks what the actions behind a ct() see: an
// untracked packet, in whose own branch the connection was known.
func TestConntrackInTheMidst(t *testing.T) {
	for _, c := range []struct{ name, flows, want string }{
		{"behind ct with a table", `
			table=0,ip actions=ct(commit,zone=5,table=1),resubmit(,2)
			table=1,ct_state=+trk,ip actions=output:2
			table=2,ct_state=-trk,ip actions=output:3`, "2 3"},
		{"behind ct without a table", `
			table=0,ip actions=ct(commit,zone=5,exec(set_field:7->ct_mark)),resubmit(,2)
			table=2,ct_state=-trk,ct_mark=0,ip actions=output:3`, "3"},
		{"behind a resubmit that tracks", `
			table=0,ip actions=resubmit(,1),resubmit(,2)
			table=1,ip actions=ct(commit,zone=5,table=3)
			table=2,ct_state=-trk,ip actions=output:3
			table=3,ct_state=+new+trk,ip actions=output:2`, "2 3"},
		{"clone then ct", `
			table=0,ip actions=clone(ct(commit,zone=5,nat(dst=1.2.3.4),table=1)),resubmit(,2)
			table=1,ct_state=+trk,ip,nw_dst=1.2.3.4 actions=output:2
			table=2,ct_state=-trk,ip,nw_dst=10.0.0.2 actions=output:3`, "2 3"},
		{"ct_clear", `
			table=0,ip actions=ct(commit,zone=5,exec(set_field:7->ct_mark),table=1)
			table=1,ct_state=+trk,ct_mark=7,ip actions=ct_clear,resubmit(,2)
			table=2,ct_state=-trk,ct_mark=0,ct_zone=0,ip actions=output:2`, "2"},
		{"zone from a register", `
			table=0,ip actions=set_field:0x1234->reg8,ct(commit,zone=NXM_NX_REG8[4..19],table=1)
			table=1,ct_zone=0x123,ct_state=+trk,ip actions=output:2`, "2"},
		{"zone from the zone", `
			table=0,ip actions=ct(zone=5,table=1)
			table=1,ct_state=+new+trk,ip actions=ct(commit,zone=NXM_NX_CT_ZONE[],table=2)
			table=2,ct_state=+new+trk,ct_zone=5,ip actions=output:2`, "2"},
		{"zone from the label", `
			table=0,ip actions=ct(commit,zone=5,exec(set_field:0xffff0006->ct_label),table=1)
			table=1,ip actions=ct(commit,zone=NXM_NX_CT_LABEL[0..15],table=2)
			table=2,ct_zone=6,ct_label=0,ip actions=output:2`, "2"},
		{"mark and label bit by bit", `
			table=0,ip actions=set_field:3->reg0,ct(commit,zone=5,exec(move:NXM_NX_REG0[0..3]->NXM_NX_CT_MARK[4..7],set_field:0x100/0x100->ct_mark,set_field:0x700000000/0xffffffff00000000->ct_label),table=1)
			table=1,ct_mark=0x130,ct_label=0x700000000,ip actions=output:2`, "2"},
		{"two zones", `
			table=0,ip actions=ct(commit,zone=5,exec(set_field:1->ct_mark),table=1)
			table=1,ip actions=ct(commit,zone=6,exec(set_field:2->ct_mark),table=2)
			table=2,ct_zone=6,ct_mark=2,ip actions=output:2`, "2"},
		{"original tuple behind NAT", `
			table=0,ip actions=ct(commit,zone=5,nat(dst=1.2.3.4:5),table=1)
			table=1,ct_state=+trk+new-inv,ip,ct_nw_dst=10.0.0.2,ct_nw_proto=6,ct_tp_dst=80,nw_dst=1.2.3.4 actions=output:2`, "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.flows)
			if got := r.outcome(anyTCP); got != c.want {
				t.Errorf("%q, want %q; connections: %v", got, c.want, r.connections())
			}
		})
	}
}

// connections lists what conntrack knows.
func (r *rig) connections() (rows []string) {
	for c := range r.conntrack.Dump(conntrack.Filter{}) {
		rows = append(rows, c.String())
	}
	return rows
}
