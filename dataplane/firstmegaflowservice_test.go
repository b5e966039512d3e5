package dataplane_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// services is a pipeline that does what Antrea's does to the first packets of Services:
// a group chooses an endpoint, and the commit translates. One endpoint is behind the
// tunnel, one is refused.
const services = `
	table=0,ip actions=ct(table=1,zone=5,nat)
	table=0,ipv6 actions=ct(table=1,zone=6,nat)
	table=1,priority=9,ct_state=+inv+trk actions=drop
	table=1,priority=8,ct_state=-new+trk,ip actions=goto_table:4
	table=1,priority=8,ct_state=-new+trk,ipv6 actions=goto_table:4
	table=1,priority=7,udp,nw_dst=10.96.0.1,tp_dst=53 actions=set_field:0x3->reg1,group:1
	table=1,priority=7,tcp,nw_dst=10.96.0.1,tp_dst=53 actions=set_field:0x4->reg1,group:1
	table=1,priority=7,udp,nw_dst=10.96.0.2 actions=group:1
	table=1,priority=7,udp6,ipv6_dst=fd00:96::1,tp_dst=53 actions=group:2
	table=1,priority=1 actions=goto_table:3
	table=2,priority=5,udp,reg3=0xa000009,reg4=0x35/0xffff actions=ct(commit,table=4,zone=5,nat(dst=10.0.0.9:53),exec(set_field:0x10/0x10->ct_mark,move:NXM_NX_REG1[0..3]->NXM_NX_CT_MARK[0..3]))
	table=2,priority=5,tcp,reg3=0xa000009,reg4=0x35/0xffff actions=ct(commit,table=4,zone=5,nat(dst=10.0.0.9:8053),exec(set_field:0x10/0x10->ct_mark))
	table=2,priority=5,ip,reg3=0xa000008,reg4=0x35/0xffff actions=ct(commit,table=4,zone=5,nat(dst=10.0.0.8:5353),exec(set_field:0x10/0x10->ct_mark,set_field:0x7->ct_label))
	table=2,priority=5,ip,reg3=0xa000007,reg4=0x35/0xffff actions=ct(commit,table=4,zone=5,nat(dst=10.0.0.7:53),exec(set_field:0x10/0x10->ct_mark))
	table=2,priority=5,udp6,xxreg3=0xfd000000000000000000000000000009 actions=ct(commit,table=4,zone=6,nat(dst=[fd00::9]:53),exec(set_field:0x10/0x10->ct_mark))
	table=2,priority=5,udp6,xxreg3=0xfd000000000000000000000000000008 actions=ct(commit,table=4,zone=6,nat(dst=[fd00::8]:5353))
	table=3,ip actions=ct(commit,table=4,zone=5)
	table=3,ipv6 actions=ct(commit,table=4,zone=6)
	table=4,priority=6,ct_mark=0x10/0x10,ip,nw_dst=10.0.0.7 actions=drop
	table=4,priority=5,ip,nw_dst=10.0.0.9 actions=dec_ttl,set_field:02:00:00:00:00:09->eth_dst,output:2
	table=4,priority=5,ip,nw_dst=10.0.0.8 actions=dec_ttl,set_field:192.168.0.9->tun_dst,output:9
	table=4,priority=5,ip,nw_dst=10.0.0.1 actions=output:1
	table=4,priority=5,ipv6,ipv6_dst=fd00::1 actions=output:1
	table=4,priority=4,ipv6 actions=dec_ttl,output:2`

const serviceGroups = `group_id=1,type=select,bucket=bucket_id=1,weight=10,actions=set_field:0xa000009->reg3,set_field:0x35/0xffff->reg4,resubmit(,2),bucket=bucket_id=2,weight=20,actions=set_field:0xa000008->reg3,set_field:0x35/0xffff->reg4,resubmit(,2),bucket=bucket_id=3,weight=10,actions=set_field:0xa000007->reg3,set_field:0x35/0xffff->reg4,resubmit(,2)
group_id=2,type=select,bucket=bucket_id=1,actions=set_field:0xfd000000000000000000000000000009->xxreg3,resubmit(,2),bucket=bucket_id=2,actions=set_field:0xfd000000000000000000000000000008->xxreg3,resubmit(,2)`

const (
	serviceUDP = "udp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.96.0.1,nw_ttl=64,udp_src=%d,udp_dst=53"
	serviceTCP = "tcp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.96.0.1,nw_ttl=64,tcp_src=%d,tcp_dst=53,tcp_flags=+syn"
	serviceV6  = "udp6,in_port=1,dl_src=02:00:00:00:00:01,ipv6_src=fd00::1,ipv6_dst=fd00:96::1,nw_ttl=64,udp_src=%d,udp_dst=53"
)

// newClient is a client of Services, whose first packets are first-packet megaflows by now.
func newClient(t *testing.T, text string) *beginner {
	t.Helper()
	b := newBeginnerOf(t, services, serviceGroups)
	for range 40 {
		b.next(text, nil)
	}
	return b
}

// TestFirstMegaflowsOfServices: the first packets of a Service that are first-packet megaflows go where the
// group has them go, with the port that they came from, and are treated as by a switch that
// remembers nothing, as are their answers.
func TestFirstMegaflowsOfServices(t *testing.T) {
	for name, text := range map[string]string{
		"UDP": serviceUDP, "SYN": serviceTCP, "IPv6": serviceV6,
		"of all ports":        strings.Replace(serviceUDP, "10.96.0.1", "10.96.0.2", 1),
		"picked up by an ACK": strings.Replace(serviceTCP, "+syn", "+ack", 1),
	} {
		t.Run(name, func(t *testing.T) {
			b := newClient(t, text)
			ends := map[string]bool{}
			for range 40 {
				if !b.next(text, nil) {
					t.Error("no first-packet megaflow")
				}
				for _, o := range b.seen[max(0, len(b.seen)-1):] {
					l := packet.ParseLayers(o.frame)
					ends[string(o.frame[l.L3+8:l.L4])] = true
				}
			}
			if len(ends) < 2 {
				t.Errorf("%d endpoints had packets: this proves little", len(ends))
			}
			for _, x := range b.seen { // what came, again, and answers to it
				b.send(x)
			}
			b.compare()
		})
	}
}

// TestFirstMegaflowsOfAnyPort: where no entry asks for the port that a translation changes, each
// packet's checksum changes by its own.
func TestFirstMegaflowsOfAnyPort(t *testing.T) {
	b := newBeginnerOf(t, services+`
	table=1,priority=7,udp,nw_dst=10.96.0.3 actions=ct(commit,table=4,zone=5,nat(dst=10.0.0.9:53))`, serviceGroups)
	const text = "udp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.96.0.3,nw_ttl=64,udp_src=%d,udp_dst="
	opened := 0
	for range 20 {
		for _, to := range []string{"443", "80", "53"} {
			if b.next(text+to, nil) {
				opened++
			}
		}
	}
	if opened == 0 {
		t.Error("no first-packet megaflow")
	}
}

// TestFirstMegaflowsOfOtherServices: a packet that resembles a Service's first-packet megaflows but is none of
// them, or comes when something has changed, is treated by its own.
func TestFirstMegaflowsOfOtherServices(t *testing.T) {
	at := func(change func(b []byte, l *packet.Layers)) func(*offer) {
		return func(o *offer) {
			l := packet.ParseLayers(o.frame)
			change(o.frame, &l)
		}
	}
	bucket := func(id, weight, end int) string {
		return fmt.Sprintf(",bucket=bucket_id=%d,weight=%d,actions=set_field:%#x->reg3,set_field:0x35/0xffff->reg4,resubmit(,2)", id, weight, 0xa000000+end)
	}
	group := func(buckets ...string) func(b *beginner) {
		return func(b *beginner) {
			p := b.rigs[0].parse(sourcesOf("table=0 actions=drop", "group_id=1,type=select"+strings.Join(buckets, ""), ""))
			b.both("group", func(r *rig) { r.check(r.sw.Apply(&flow.Bundle{Groups: p.Groups})) })
		}
	}
	gone := func(text string) func(b *beginner) {
		return func(b *beginner) {
			b.both("delete", func(r *rig) { r.check(r.sw.Apply(&flow.Bundle{Delete: r.program(text).Entries})) })
		}
	}
	entry := func(text string) func(b *beginner) { return func(b *beginner) { b.entry(text) } }
	for name, c := range map[string]struct {
		text   string // of the packet; otherwise the first-packet megaflows'
		change func(*offer)
		before func(b *beginner)
	}{
		"wrong checksum":         {change: at(func(b []byte, l *packet.Layers) { b[l.L4+6] ^= 1 })},
		"no checksum":            {change: at(func(b []byte, l *packet.Layers) { copy(b[l.L4+6:], "\x00\x00") })},
		"checksum of 0xffff":     {change: at(func(b []byte, l *packet.Layers) { copy(b[l.L4+6:], "\xff\xff") })},
		"checksum left undone":   {change: func(o *offer) { leaveChecksum(o, packet.ProtoUDP, 6) }},
		"port 0":                 {change: at(func(b []byte, l *packet.Layers) { copy(b[l.L4:], "\x00\x00"); l.SetL4Checksum(b) })},
		"a Service's other port": {change: at(func(b []byte, l *packet.Layers) { binary.BigEndian.PutUint16(b[l.L4+2:], 54); l.SetL4Checksum(b) })},
		"another's port":         {change: func(o *offer) { o.port = 2 }},
		"TTL of 1":               {text: strings.Replace(serviceUDP, "ttl=64", "ttl=1", 1)},
		"another client":         {text: strings.Replace(serviceUDP, "10.0.0.1,", "10.0.0.2,", 1)},
		"another protocol":       {text: serviceTCP},
		"another family":         {text: serviceV6},
		"the endpoint itself":    {text: strings.Replace(serviceUDP, "10.96.0.1", "10.0.0.9", 1)},
		"endpoint gone":          {before: group(bucket(1, 10, 9), bucket(3, 10, 7))},
		"all but one gone":       {before: group(bucket(2, 20, 8))},
		"no endpoint":            {before: group()},
		"endpoint added":         {before: group(bucket(1, 10, 9), bucket(2, 20, 8), bucket(3, 10, 7), bucket(4, 40, 9))},
		"other weights":          {before: group(bucket(1, 90, 9), bucket(2, 1, 8), bucket(3, 0, 7))},
		"no weight":              {before: group(bucket(1, 0, 9), bucket(2, 0, 8))},
		"other order":            {before: group(bucket(3, 10, 7), bucket(2, 20, 8), bucket(1, 10, 9))},
		"other endpoints":        {before: group(bucket(1, 10, 7), bucket(2, 20, 9), bucket(3, 10, 8))},
		"endpoint unknown":       {before: group(bucket(1, 10, 6), bucket(2, 20, 5))},
		"translation gone":       {before: gone("table=2,priority=5,ip,reg3=0xa000008,reg4=0x35/0xffff actions=drop")},
		"another translation":    {before: entry("table=2,priority=5,ip,reg3=0xa000008,reg4=0x35/0xffff actions=ct(commit,table=4,zone=5,nat(dst=10.0.0.9:54))")},
		"ranges of ports":        {before: entry("table=2,priority=5,ip,reg3=0xa000008,reg4=0x35/0xffff actions=ct(commit,table=4,zone=5,nat(dst=10.0.0.9:54-60))")},
		"Service gone":           {before: gone("table=1,priority=7,udp,nw_dst=10.96.0.1,tp_dst=53 actions=drop")},
		"another group":          {before: entry("table=1,priority=7,udp,nw_dst=10.96.0.1,tp_dst=53 actions=group:2")},
		"policy at the end":      {before: entry("table=4,priority=20,udp,tp_dst=5353 actions=drop")},
		"client's port refused":  {before: entry("table=4,priority=20,udp,tp_src=1101 actions=drop")},
		"original refused":       {before: entry("table=4,priority=20,ct_state=+new+trk,ip,ct_nw_proto=17,ct_tp_src=1101 actions=drop")},
		"session affinity": {before: entry(`table=1,priority=7,udp,nw_dst=10.96.0.1,tp_dst=53 actions=set_field:0x3->reg1,learn(table=5,hard_timeout=1,priority=5,eth_type=0x800,nw_proto=17,NXM_OF_IP_SRC[],load:0xa000009->NXM_NX_REG3[]),group:1
			table=1,priority=6,udp,nw_dst=10.96.0.1 actions=drop
			table=2,priority=40000,udp,reg5=0 actions=set_field:1->reg5,resubmit(,5),resubmit(,2)`)},
		"full zone":  {before: func(b *beginner) { b.both("limit", func(r *rig) { r.conntrack.SetLimit(5, 1) }) }},
		"a rate":     {before: func(b *beginner) { b.both("rate", func(r *rig) { r.conntrack.SetNewRate(1) }) }},
		"full table": {before: func(b *beginner) { b.both("max", func(r *rig) { r.conntrack.SetMax(1) }) }},
		"crowded table": {before: func(b *beginner) {
			b.both("max", func(r *rig) { r.conntrack.SetMax(45) })
			b.now += int64(2 * time.Second)
		}},
		"clash with the client's own": {before: func(b *beginner) {
			for port := 1100; port < 1140; port += 3 {
				for _, end := range []string{"10.0.0.9,nw_ttl=64,udp_src=%d,udp_dst=53", "10.0.0.8,nw_ttl=64,udp_src=%d,udp_dst=5353"} {
					b.one(fmt.Sprintf("udp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst="+end, port), nil)
				}
			}
		}},
		"clash with the client's own of before": {before: func(b *beginner) {
			for port := 1100; port < 1140; port += 3 {
				b.one(fmt.Sprintf("udp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.0.0.8,nw_ttl=64,udp_src=%d,udp_dst=5353", port), nil)
			}
			b.now += int64(time.Hour)
		}},
		"connection of another switch's time": {before: func(b *beginner) { b.commit(5, 0, nil); b.now += int64(time.Hour) }},
		"a flush":                             {before: func(b *beginner) { b.both("flush", func(r *rig) { r.conntrack.Flush() }) }},
		"no port to leave by":                 {before: func(b *beginner) { b.both("unplug", func(r *rig) { r.check(r.sw.RemovePort(2)); delete(r.ports, 2) }) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newClient(t, serviceUDP)
			if c.before != nil {
				c.before(b)
			}
			if c.text == "" {
				c.text = serviceUDP
			}
			for n := range 16 {
				b.one(fmt.Sprintf(c.text, 1100+n), c.change)
				b.one(fmt.Sprintf(c.text, 1100+n), c.change) // of the connection, if the first began one
			}
			for range 20 {
				b.next(serviceUDP, nil)
				b.next(c.text, c.change)
			}
		})
	}
}

// TestServicesLeaveRoom: Services with more endpoints than there is room for take no more
// than half of it.
func TestServicesLeaveRoom(t *testing.T) {
	b := newBeginnerOf(t, services, serviceGroups)
	for id := range uint32(200) {
		g := *b.program.Groups[0]
		g.ID = 100 + id
		e := fmt.Sprintf("table=1,priority=7,udp,nw_dst=10.96.1.%d,tp_dst=53 actions=group:%d", id, g.ID)
		b.both("service", func(r *rig) {
			r.check(r.sw.Apply(&flow.Bundle{Groups: []*flow.Group{&g}, Add: r.program(e).Entries}))
		})
	}
	most := uint64(0)
	for n := range 200 * 8 {
		_, frame := b.rigs[0].compose(fmt.Sprintf(strings.Replace(serviceUDP, "10.96.0.1", fmt.Sprintf("10.96.1.%d", n%200), 1), 2000+n))
		b.number(frame)
		b.send(offer{port: 1, frame: frame})
		most = max(most, b.rigs[0].sw.Cache().Paths)
	}
	b.compare()
	if st := b.rigs[0].sw.Cache(); most > 512/4/2+1 || most < 512/4/2 || st.Events[telemetry.CacheFirst] == 0 {
		t.Errorf("%d paths at most: %+v", most, st)
	}
}
