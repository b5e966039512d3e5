package dataplane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/antrail/antrail/flow"
)

// TestNoFirstMegaflowsOfOtherTuples: where the addresses are rewritten between the ct() that found no
// connection and the commit, the connection is of the rewritten packet.
func TestNoFirstMegaflowsOfOtherTuples(t *testing.T) {
	for name, flows := range map[string]string{
		"destination": `
			table=0,ip actions=ct(table=1,zone=5)
			table=1,ip actions=set_field:10.0.0.7->nw_dst,ct(commit,table=2,zone=5)
			table=2,ip actions=output:2`,
		"in another table": `
			table=0,ip actions=ct(table=1,zone=5)
			table=1,ip actions=set_field:10.0.0.7->nw_src,goto_table:2
			table=2,ip actions=ct(commit,table=3,zone=5)
			table=3,ip actions=output:2`,
		"with nat": `
			table=0,ip actions=ct(table=1,zone=5)
			table=1,ip actions=set_field:10.0.0.7->nw_src,goto_table:2
			table=2,ip actions=ct(commit,table=3,zone=5,nat(dst=10.5.5.5:53))
			table=3,ip actions=output:2`,
		"behind a group": `
			table=0,ip actions=ct(table=1,zone=5)
			table=1,ip actions=group:1
			table=2,ip actions=ct(commit,table=3,zone=5,nat(dst=10.5.5.5:53))
			table=3,ip actions=output:2`,
	} {
		t.Run(name, func(t *testing.T) {
			const groups = "group_id=1,type=select,bucket=bucket_id=1,actions=set_field:10.0.0.7->nw_src,resubmit(,2),bucket=bucket_id=2,actions=resubmit(,2)"
			w := newTwins(t, 0, twinSource{src: plainSources(flows, groups), hosts: []host{{port: 1}}}, nil)
			for n := range 40 {
				_, frame := w.rigs[0].compose(fmt.Sprintf("udp,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64,udp_src=%d,udp_dst=53", 1990+n))
				w.number(frame)
				w.send(offer{port: 1, frame: frame})
				w.compare()
			}
		})
	}
}

// TestFirstMegaflowsEndWithALearnAction: the first entry that can make a table learn comes while megaflows
// through that table are remembered, which its own table is not part of.
func TestFirstMegaflowsEndWithALearnAction(t *testing.T) {
	for seed, what := range []string{"walks and megaflows", "megaflows alone"} {
		t.Run(what, func(t *testing.T) {
			src := plainSources(`
				table=0,priority=1,ip actions=resubmit(,7),ct(table=1,zone=5)
				table=1,priority=2,ip,nw_dst=10.0.0.8 actions=drop
				table=1,priority=1,ip actions=ct(commit,table=2,zone=5)
				table=2,priority=2,reg1=1 actions=output:3
				table=2,priority=1,ip actions=output:2
				table=7,priority=0 actions=set_field:0x2->reg2`, "")
			w := newTwins(t, uint64(seed), twinSource{src: src, hosts: []host{{port: 1}}}, nil)
			b := &beginner{w, 1000}
			call := func(to string) {
				b.next(fmt.Sprintf("udp,in_port=1,nw_src=10.0.0.1,nw_dst=%s,nw_ttl=64,udp_src=%%d,udp_dst=53", to), nil)
			}
			for range 12 {
				call("10.0.0.9")
				call("10.0.0.8")
			}
			add := w.rigs[0].program("table=1,priority=9,ip,nw_dst=10.0.0.8 actions=learn(table=7,hard_timeout=60,priority=5,eth_type=0x800,NXM_OF_IP_SRC[],load:0x1->NXM_NX_REG1[]),output:4").Entries
			w.both("learner", func(r *rig) { r.check(r.sw.Apply(&flow.Bundle{Add: add})) })
			for range 4 {
				call("10.0.0.9")
			}
			call("10.0.0.8")
			for range 12 {
				call("10.0.0.9")
			}
		})
	}
}

// TestFirstMegaflowsInACrowdedTable: the table is crowded, and the answer's tuple is of a connection whose
// time has passed.
func TestFirstMegaflowsInACrowdedTable(t *testing.T) {
	for name, text := range map[string]string{
		"Service": serviceUDP,
		"plain":   "udp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64,udp_src=%d,udp_dst=53",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBeginnerOf(t, services, serviceGroups)
			for range 40 {
				b.next(text, nil)
			}
			b.both("flush", func(r *rig) { r.conntrack.Flush() })
			// long lived and unanswered: SYN_SENT, 120 s
			for n := range 30 {
				b.one(fmt.Sprintf("tcp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64,tcp_src=%d,tcp_dst=99,tcp_flags=+syn", 3000+n), nil)
			}
			for n := range 20 {
				other := "udp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.0.0.%d,nw_ttl=64,udp_src=%d,udp_dst=%d"
				if name == "plain" { // another's whose answers show the same tuple
					b.one(fmt.Sprintf("udp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.96.0.1,nw_ttl=64,udp_src=%d,udp_dst=53", 7000+n), nil)
					continue
				}
				b.one(fmt.Sprintf(other, 9, 7000+n, 53), nil)
			}
			b.now += int64(40 * time.Second)
			b.both("max", func(r *rig) { r.conntrack.SetMax(51) })
			for n := range 20 {
				b.one(fmt.Sprintf(text, 7000+n), nil)
			}
		})
	}
}
