package dataplane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// labels is a pipeline that matches on flow labels, writes them, and copies them into
// registers and marks.
const labels = `
	table=0,priority=2,ipv6,ipv6_label=0x3/0x7 actions=set_field:0x5/0xf->ipv6_label,ct(table=1,zone=10,nat)
	table=0,priority=1,ipv6 actions=ct(table=1,zone=10,nat)
	table=1,priority=9,ct_state=+inv+trk actions=drop
	table=1,priority=8,ct_state=-new+trk actions=goto_table:2
	table=1,priority=7,ipv6,ipv6_dst=fd01::1 actions=ct(commit,table=2,zone=10,nat(dst=[fd00::2]:80),exec(set_field:0x1->ct_mark))
	table=1,priority=2,udp6 actions=ct(commit,table=2,zone=10,exec(move:NXM_NX_IPV6_LABEL[0..3]->NXM_NX_CT_MARK[4..7]))
	table=1,priority=1,ipv6 actions=ct(commit,table=2,zone=10)
	table=2,priority=5,ipv6,ipv6_label=0x8/0x8 actions=move:NXM_NX_IPV6_LABEL[0..3]->NXM_NX_REG5[0..3],dec_ttl,goto_table:3
	table=2,priority=1 actions=goto_table:3
	table=3,priority=9,reg5=0x9 actions=drop
	table=3,priority=5,ipv6,ipv6_dst=fd00::1 actions=output:1
	table=3,priority=5,ipv6,ipv6_dst=fd00::2 actions=set_field:32->nw_tos,output:2
	table=3,priority=5,ipv6,ipv6_dst=fd00::3 actions=load:0->NXM_NX_IPV6_LABEL[16..19],output:3`

// labelled gives a frame a flow label.
func labelled(label uint32) func(*offer) {
	return func(o *offer) {
		h := packet.IPv6(o.frame[packet.EthernetLen:])
		h.SetFirst(h.TrafficClass(), label)
	}
}

// answered sends a client's packet and its answer, both with a flow label, and
// says of how many of the two the cache knew the like.
func (b *beginner) answered(port int, label uint32) uint64 {
	b.Helper()
	return b.rigs[0].counted(telemetry.CacheHit, func() {
		b.one(fmt.Sprintf(firstV6, port), labelled(label))
		b.one(fmt.Sprintf("udp6,in_port=2,ipv6_src=fd00::9,ipv6_dst=fd00::1,nw_ttl=64,udp_src=53,udp_dst=%d", port), labelled(label))
	})
}

// TestFlowLabels: the cache has one entry for packets that differ only in their flow label, first
// packets or not. From the first entry that reads the label on, in whatever way, the cache
// distinguishes them.
func TestFlowLabels(t *testing.T) {
	for name, entries := range map[string]string{
		"none":               "",
		"matched":            "table=2,priority=20,ipv6,ipv6_label=0x7 actions=drop",
		"matched in part":    "table=4,priority=20,ipv6,ipv6_label=0x40000/0x40000 actions=drop",
		"copied":             "table=4,priority=9,ipv6 actions=move:NXM_NX_IPV6_LABEL[0..3]->NXM_NX_REG5[0..3],goto_table:5\ntable=5,priority=2,ipv6,reg5=0x7 actions=drop\ntable=5,priority=1,ipv6 actions=output:2",
		"copied to the mark": "table=3,priority=40000,ipv6 actions=ct(commit,table=4,zone=6,exec(move:NXM_NX_IPV6_LABEL[0..3]->NXM_NX_CT_MARK[0..3]))",
		"copied to a known one's mark": `table=4,priority=9,ct_state=-new+trk,ipv6 actions=ct(commit,table=5,zone=6,exec(move:NXM_NX_IPV6_LABEL[0..3]->NXM_NX_CT_MARK[0..3]))
			table=5 actions=output:3`,
		"a zone":            "table=1,priority=40000,ipv6 actions=ct(table=2,zone=NXM_NX_IPV6_LABEL[0..15])",
		"a port":            "table=4,priority=9,ipv6 actions=output:NXM_NX_IPV6_LABEL[0..3]",
		"written":           "table=4,priority=9,ipv6 actions=dec_ttl,set_field:0x5->ipv6_label,output:2",
		"written in part":   "table=4,priority=9,ipv6 actions=load:0xf->NXM_NX_IPV6_LABEL[14..17],output:2",
		"written on a copy": "table=4,priority=9,ipv6 actions=clone(set_field:0x5->ipv6_label,output:3),output:2",
		"in a bucket":       "table=4,priority=9,ipv6 actions=group:1",
		"learned": `table=0,priority=9,in_port=1,udp6,tp_src=1005 actions=learn(table=5,hard_timeout=1,priority=2,eth_type=0x86dd,NXM_NX_IPV6_LABEL[],load:0x1->NXM_NX_REG7[]),set_field:0x7->reg1,goto_table:1
			table=4,priority=9,ipv6 actions=resubmit(,5),goto_table:6
			table=5,priority=1 actions=set_field:0x2->reg7
			table=6,priority=2,reg7=0x1 actions=drop
			table=6,priority=1 actions=output:2`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBeginner(t)
			label := uint32(0x11111)
			next := func() func(*offer) {
				label += 0x10101
				return labelled(label)
			}
			for range 8 {
				b.next(firstV6, next())
			}
			for range 6 {
				if !b.next(firstV6, next()) {
					t.Error("a first packet met no first-packet megaflow")
				}
			}
			for n := range uint32(4) {
				if hits := b.answered(b.from, 0x20000*n); n > 1 && hits != 2 {
					t.Errorf("the cache knew %d of 2 packets of a connection", hits)
				}
			}
			var added flow.Bundle
			if name == "in a bucket" {
				actions := b.rigs[0].program("table=0,ipv6 actions=set_field:0x5->ipv6_label,output:2").Entries[0].Actions
				added.Groups = []*flow.Group{{ID: 1, Type: flow.GroupSelect, Buckets: []flow.Bucket{{ID: 1, Weight: 1, Actions: actions}}}}
			}
			if entries != "" {
				added.Add = b.rigs[0].program(entries).Entries
			}
			b.both(entries, func(r *rig) { r.check(r.sw.Apply(&added)) })
			rounds := func() {
				for n := range uint32(3) {
					for _, special := range []uint32{5, 5, 5, 7, 0x40000 + n, 0x10000 * n, 2} {
						b.next(firstV6, labelled(special))
						b.answered(b.from, special)
						b.answered(1005, special)
					}
				}
			}
			rounds()
			for i := range added.Add { // learned entries stay when the one goes that made them
				b.both("delete", func(r *rig) { r.check(r.sw.Apply(&flow.Bundle{Delete: added.Add[i : i+1]})) })
				rounds()
			}
			b.now += int64(2 * time.Second)
			b.both("expire", func(r *rig) { r.sw.Expire() })
			rounds()
		})
	}
}

// TestRelearnedFlowLabel: an entry that another switch learned asks for the flow label,
// though none of the pipeline's does.
func TestRelearnedFlowLabel(t *testing.T) {
	b := newBeginner(t)
	for n := range uint32(12) {
		b.next(firstV6, labelled(n))
	}
	e := b.rigs[0].program("table=4,priority=50,ipv6,ipv6_label=0x7 actions=set_field:0x1->reg5").Entries[0]
	b.both("relearn", func(r *rig) { r.check(r.sw.Relearn([]telemetry.Learned{{Entry: e}})) })
	for range 3 {
		for n := range uint32(12) {
			b.next(firstV6, labelled(n))
			b.answered(1005, n)
		}
	}
}

// TestOffloadsAndFlowLabels: a connection's offload entry is of one flow label, which the
// kernel leaves as it is; packets with another one are replayed, and get one too.
func TestOffloadsAndFlowLabels(t *testing.T) {
	r, k := offloadRig(t)
	r.check(r.sw.Apply(&flow.Bundle{Add: r.program(`
		table=0,priority=1,udp6 actions=ct(table=1,zone=11)
		table=1,priority=2,ct_state=+new+trk,udp6 actions=ct(commit,table=3,zone=11)
		table=1,priority=1,ipv6 actions=goto_table:3
		table=3,priority=1,ipv6,in_port=1 actions=set_field:8->nw_tos,dec_ttl,output:2
		table=3,priority=1,in_port=2 actions=output:1`).Entries}))
	there := packettest.UDP6(packettest.Options{SrcPort: 1000, Payload: []byte("question")})
	back := packettest.UDP6(packettest.Options{Src: packettest.Addr("fd00::2"), Dst: packettest.Addr("fd00::1"), SrcPort: 80, DstPort: 1000, Payload: []byte("answer")})
	for _, label := range []uint32{0x12345, 0x6789a, 0} {
		walks, taken := uint64(0), false
		for n := 0; n < 8 && !taken; n++ {
			o := offer{port: 1, frame: append([]byte(nil), there...)}
			labelled(label)(&o)
			var out []byte
			walks += r.counted(telemetry.CacheMiss, func() {
				if left, ok := k.receive(r, o); ok {
					out, taken = left.frame, true
				} else if all := r.sendFrame(1, o.frame); len(all) == 1 {
					out = all[0].frame
				}
				r.sendFrame(2, back)
			})
			if h := packet.IPv6(out[packet.EthernetLen:]); h.FlowLabel() != label || h.TrafficClass() != 8 || h.HopLimit() != 63 {
				t.Fatalf("label %#x: left with %#x, class %d, hop limit %d", label, h.FlowLabel(), h.TrafficClass(), h.HopLimit())
			}
		}
		if !taken || label != 0x12345 && walks > 0 {
			t.Errorf("label %#x: taken by the kernel: %v; %d packets walked: %+v", label, taken, walks, r.sw.OffloadStats())
		}
	}
}
