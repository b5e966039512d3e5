package dataplane_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
)

// beginnings is a pipeline that treats the first packets between two ends as Antrea's does. It
// checks the sender, asks conntrack, refuses and commits, and routes.
const beginnings = `
	table=0,priority=5,in_port=1,dl_src=02:00:00:00:00:01 actions=set_field:0x7->reg1,goto_table:1
	table=0,priority=5,in_port=2 actions=set_field:0x2->reg1,goto_table:1
	table=0,priority=5,in_port=9 actions=set_field:0x9->reg1,goto_table:1
	table=0,priority=1 actions=drop
	table=1,ip actions=ct(table=2,zone=5,nat)
	table=1,ipv6 actions=ct(table=2,zone=6,nat)
	table=2,priority=9,ct_state=+inv+trk actions=drop
	table=2,priority=8,ct_state=-new+trk,ip actions=goto_table:4
	table=2,priority=8,ct_state=-new+trk,ipv6 actions=goto_table:4
	table=2,priority=7,tcp,tp_dst=81 actions=drop
	table=2,priority=1 actions=goto_table:3
	table=3,ip actions=ct(commit,table=4,zone=5,exec(move:NXM_NX_REG1[0..3]->NXM_NX_CT_MARK[0..3],set_field:0x30/0xf0->ct_mark,set_field:0x9/0xf->ct_label))
	table=3,ipv6 actions=ct(commit,table=4,zone=6,exec(set_field:0x40/0xf0->ct_mark))
	table=4,priority=5,ct_mark=0x37/0xff,ip,nw_dst=10.0.0.9 actions=dec_ttl,set_field:02:00:00:00:00:09->eth_dst,output:2
	table=4,priority=5,ip,nw_dst=10.0.0.8 actions=dec_ttl,set_field:192.168.0.9->tun_dst,set_field:0x7->tun_id,output:9
	table=4,priority=5,ip,nw_dst=10.0.0.7 actions=output:1
	table=4,priority=5,ip,nw_dst=10.0.0.6 actions=output:33
	table=4,priority=5,ip,nw_dst=10.0.0.1 actions=output:1
	table=4,priority=4,ipv6 actions=dec_ttl,output:2`

const (
	firstUDP = "udp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64,udp_src=%d,udp_dst=53"
	firstV6  = "udp6,in_port=1,dl_src=02:00:00:00:00:01,ipv6_src=fd00::1,ipv6_dst=fd00::9,nw_ttl=64,udp_src=%d,udp_dst=53"
	firstTCP = "tcp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64,tcp_src=%d,tcp_dst=80,tcp_flags="
)

// beginner sends first packets to two switches, of which the first remembers first-packet megaflows.
type beginner struct {
	*twins
	from int // port of the last client
}

func newBeginner(t *testing.T) *beginner { return newBeginnerOf(t, beginnings, "") }

func newBeginnerOf(t *testing.T, flows, groups string) *beginner {
	src := sourcesOf(flows, groups, "")
	src.Ports = parse.Text("ports", " 1(p1)\n 2(p2)\n 3(p3)\n 9(antrea-tun0)\n")
	return &beginner{newTwins(t, 0, twinSource{src: src, hosts: []host{{port: 1}}}, nil), 1000}
}

// one sends a packet in flow syntax, changed, and compares all that can be seen. It
// says whether it was a first-packet megaflow.
func (b *beginner) one(text string, change func(*offer)) bool {
	b.Helper()
	in, frame := b.rigs[0].compose(text)
	b.number(frame)
	o := offer{port: in, frame: frame}
	if in == 9 {
		o.tunnel = packet.Tunnel{Src: netip.MustParseAddr("192.168.0.9"), Dst: netip.MustParseAddr("192.168.0.1")}
	}
	if change != nil {
		change(&o)
	}
	n := b.rigs[0].counted(telemetry.CacheFirst, func() { b.send(o) })
	b.compare()
	return n == 1
}

// next is one from the next port of the client's.
func (b *beginner) next(text string, change func(*offer)) bool {
	b.Helper()
	b.from++
	return b.one(fmt.Sprintf(text, b.from), change)
}

// learn sends first packets until such are first-packet megaflows.
func (b *beginner) learn(text string, change func(*offer)) {
	b.Helper()
	for range 8 {
		if b.next(text, change) {
			return
		}
	}
	b.Fatalf("%s: no first-packet megaflow", text)
}

// TestFirstMegaflowsOfAllKinds: a first packet that is a first-packet megaflow, of each kind of end,
// verdict and header, is treated as by a switch that remembers nothing: frames,
// counters, samples and connections.
func TestFirstMegaflowsOfAllKinds(t *testing.T) {
	partial := func(o *offer) { leaveChecksum(o, packet.ProtoUDP, 6) }
	for name, text := range map[string]string{
		"UDP":                  firstUDP,
		"SYN":                  firstTCP + "+syn",
		"picked up by an ACK":  firstTCP + "+ack",
		"FIN of nothing":       firstTCP + "+fin+ack",
		"RST of nothing":       firstTCP + "+rst",
		"SYN and ACK":          firstTCP + "+syn+ack",
		"refused":              "tcp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64,tcp_src=%d,tcp_dst=81,tcp_flags=+syn",
		"IPv6":                 firstV6,
		"into the tunnel":      "udp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.0.0.8,nw_ttl=64,udp_src=%d,udp_dst=53",
		"out of the tunnel":    "udp,in_port=9,nw_src=10.0.0.8,nw_dst=10.0.0.1,nw_ttl=64,udp_src=%d,udp_dst=53",
		"back to where it was": "udp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.0.0.7,nw_ttl=64,udp_src=%d,udp_dst=53",
		"to no port":           "udp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.0.0.6,nw_ttl=64,udp_src=%d,udp_dst=53",
		"to no entry":          "udp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.0.0.5,nw_ttl=64,udp_src=%d,udp_dst=53",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBeginner(t)
			b.learn(text, nil)
			for range 5 {
				if !b.next(text, nil) {
					t.Error("no first-packet megaflow")
				}
			}
			for _, x := range b.seen { // what came, again, and answers to it
				b.send(x)
				b.compare()
			}
		})
	}
	b := newBeginner(t)
	for n := range 20 {
		change := partial
		if n%2 == 0 {
			change = nil
		}
		b.next(firstUDP, change)
		b.next(firstV6, change)
	}
}

// leaveChecksum leaves a transport checksum to the next hop.
func leaveChecksum(o *offer, proto uint8, at int) {
	l := packet.ParseLayers(o.frame)
	if l.Proto != proto {
		return
	}
	binary.BigEndian.PutUint16(o.frame[l.L4+at:], l.PseudoSum(o.frame, l.End-l.L4))
	o.offload = packet.Offload{ChecksumPartial: true, ChecksumStart: uint16(l.L4), ChecksumOffset: uint16(at)}
}

// TestFirstMegaflowsOfOthers: a packet that resembles first-packet megaflows but is none of them, or comes
// when something has changed, is treated by its own.
func TestFirstMegaflowsOfOthers(t *testing.T) {
	bytesOf := func(change func(b []byte, l *packet.Layers)) func(*offer) {
		return func(o *offer) {
			l := packet.ParseLayers(o.frame)
			change(o.frame, &l)
		}
	}
	clash := func(b *beginner) {
		b.commit(5, 0x31, &conntrack.NAT{Destination: true, AddrMin: netip.MustParseAddr("10.0.0.9"), AddrMax: netip.MustParseAddr("10.0.0.9")})
	}
	for name, c := range map[string]struct {
		text   string // of the packet; otherwise the first-packet megaflows'
		change func(*offer)
		before func(b *beginner)
	}{
		"wrong checksum":        {change: bytesOf(func(b []byte, l *packet.Layers) { b[l.L4+6] ^= 1 })},
		"wrong IP checksum":     {change: bytesOf(func(b []byte, l *packet.Layers) { b[l.L3+10] ^= 1 })},
		"checksum of 0xffff":    {change: bytesOf(func(b []byte, l *packet.Layers) { copy(b[l.L4+6:], "\xff\xff") })},
		"port 0":                {change: bytesOf(func(b []byte, l *packet.Layers) { copy(b[l.L4:], "\x00\x00"); l.SetL4Checksum(b) })},
		"UDP length too long":   {change: bytesOf(func(b []byte, l *packet.Layers) { b[l.L4+4] = 9; l.SetL4Checksum(b) })},
		"first fragment":        {change: bytesOf(func(b []byte, l *packet.Layers) { b[l.L3+6] = 0x20; packet.IPv4(b[l.L3:]).UpdateChecksum() })},
		"cut short":             {change: func(o *offer) { o.frame = o.frame[:30] }},
		"another's MAC":         {change: func(o *offer) { o.frame[11] = 3 }},
		"another's port":        {change: func(o *offer) { o.port = 2 }},
		"TTL of 1":              {text: "udp,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=1,udp_src=%d,udp_dst=53"},
		"another class":         {change: bytesOf(func(b []byte, l *packet.Layers) { b[l.L3+1] = 0x10; packet.IPv4(b[l.L3:]).UpdateChecksum() })},
		"another protocol":      {text: firstTCP + "+syn"},
		"a flow label":          {text: firstV6, change: func(o *offer) { o.frame[17] = 7 }},
		"out of a tunnel":       {change: func(o *offer) { o.tunnel.ID = 5 }},
		"policy before it":      {before: func(b *beginner) { b.entry("table=2,priority=20,udp actions=drop") }},
		"client's port refused": {before: func(b *beginner) { b.entry("table=2,priority=20,udp,tp_src=1100 actions=drop") }},
		"full zone":             {before: func(b *beginner) { b.both("limit", func(r *rig) { r.conntrack.SetLimit(5, 1) }) }},
		"a rate":                {before: func(b *beginner) { b.both("rate", func(r *rig) { r.conntrack.SetNewRate(1) }) }},
		"full table":            {before: func(b *beginner) { b.both("max", func(r *rig) { r.conntrack.SetMax(1) }) }},
		"lowered limit": {before: func(b *beginner) {
			b.now += int64(2 * time.Second)
			b.both("max", func(r *rig) { r.conntrack.SetMax(2) })
		}},
		"early drop": {before: func(b *beginner) {
			b.both("max", func(r *rig) { r.conntrack.SetMax(40) })
			for range 40 {
				b.next(firstUDP, nil)
			}
			b.now += int64(2 * time.Second)
			clash(b)
		}},
		"no port to leave by": {before: func(b *beginner) { b.both("unplug", func(r *rig) { r.check(r.sw.RemovePort(2)); delete(r.ports, 2) }) }},
		"connection of the answer": {before: func(b *beginner) {
			b.one("udp,in_port=2,nw_src=10.0.0.9,nw_dst=10.0.0.1,nw_ttl=64,udp_src=53,udp_dst=1100", nil)
		}},
		"connection of another switch's time": {before: func(b *beginner) { b.commit(5, 0, nil); b.now += int64(time.Hour) }},
		"connection with another mark":        {before: func(b *beginner) { b.commit(5, 0x31, nil) }},
		"connection in another zone":          {before: func(b *beginner) { b.commit(6, 0x31, nil) }},
		"clash":                               {before: clash},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBeginner(t)
			b.learn(firstUDP, nil)
			if c.before != nil {
				c.before(b)
			}
			if c.text == "" {
				c.text = firstUDP
			}
			for range 3 { // the second of them is of the connection, if the first began one
				b.one(fmt.Sprintf(c.text, 1100), c.change)
			}
			for range 12 {
				b.next(firstUDP, nil)
				b.next(c.text, c.change)
			}
		})
	}
}

// entry adds an entry to both.
func (b *beginner) entry(text string) {
	b.both(text, func(r *rig) { r.check(r.sw.Apply(&flow.Bundle{Add: r.program(text).Entries})) })
}

// commit has both know a connection from port 1100, as another worker's packet would.
// One that is translated is of a client that calls another address.
func (b *beginner) commit(zone uint16, mark uint32, nat *conntrack.NAT) {
	text := fmt.Sprintf(firstUDP, 1100)
	if nat != nil {
		text = "udp,in_port=1,nw_src=10.0.0.1,nw_dst=10.7.7.7,nw_ttl=64,udp_src=1100,udp_dst=53"
	}
	_, frame := b.rigs[0].compose(text)
	b.number(frame)
	b.both("commit", func(r *rig) {
		f := packet.FrameOf(frame)
		l := packet.ParseLayers(f.Bytes())
		var m conntrack.Meta
		r.conntrack.Track(f, &l, &m, &conntrack.Request{Zone: zone, Commit: true, NAT: nat, Mark: mark, MarkMask: math.MaxUint32, InPort: 3}, b.now)
	})
}

// TestFirstMegaflowsAndShield: a segment that would pick a connection up from a Service's
// endpoint is dropped, though those of the same Pod's other ports are first-packet megaflows.
func TestFirstMegaflowsAndShield(t *testing.T) {
	b := newBeginner(t)
	b.learn(firstTCP+"+ack", nil)
	b.both("shield", func(r *rig) {
		r.conntrack.Shield([]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1100")}, math.MaxInt64)
	})
	if b.one(fmt.Sprintf(firstTCP+"+ack", 1100), nil) {
		t.Error("the endpoint's segment met a first-packet megaflow")
	}
	if !b.next(firstTCP+"+ack", nil) {
		t.Error("another port's segment was none")
	}
}

// TestFirstMegaflowsAndLiveTraces: a live trace sees a first packet walk, whatever is
// remembered of its like.
func TestFirstMegaflowsAndLiveTraces(t *testing.T) {
	b := newBeginner(t)
	b.learn(firstUDP, nil)
	l := b.rigs[0].arm(dataplane.LiveRequest{Match: wantAll})
	if b.next(firstUDP, nil) {
		t.Error("the packet met a first-packet megaflow")
	}
	if all := taken(t, l); len(all) != 1 || len(all[0].Steps) < 5 {
		t.Errorf("%d walks were told", len(all))
	}
	l.Close()
	if !b.next(firstUDP, nil) {
		t.Error("without the trace it was none")
	}
}

// TestFirstMegaflowsGetOffloads: a connection that began without a walk becomes the
// kernel's as others do.
func TestFirstMegaflowsGetOffloads(t *testing.T) {
	r, _ := offloadRig(t)
	for n := range 8 {
		r.talk(1000+n, 1)
	}
	taken := false
	if n := r.counted(telemetry.CacheFirst, func() { taken = r.talk(2000, 8) }); n != 1 || !taken {
		t.Errorf("%d first-packet megaflows; taken: %v, %+v", n, taken, r.sw.OffloadStats())
	}
}

// TestFirstMegaflowsOfMasks: megaflows distinguish the ports that entries match, whether their
// bytes are 0 or not, while entries between other ends match fewer bits.
func TestFirstMegaflowsOfMasks(t *testing.T) {
	src := plainSources(`
		table=0,ip actions=ct(table=1,zone=5)
		table=1,priority=5,udp,nw_dst=10.0.0.9,tp_dst=256 actions=ct(commit,table=2,zone=5)
		table=1,priority=5,udp,nw_dst=10.0.0.9,tp_dst=0x200/0xff00 actions=ct(commit,table=2,zone=5)
		table=1,priority=5,udp,nw_dst=10.0.0.8 actions=ct(commit,table=2,zone=5)
		table=1,priority=1 actions=drop
		table=2 actions=output:2`, "")
	b := &beginner{newTwins(t, 0, twinSource{src: src, hosts: []host{{port: 1}}}, nil), 1000}
	call := func(to string, dst int) bool {
		return b.next(fmt.Sprintf("udp,in_port=1,nw_src=10.0.0.1,nw_dst=%s,nw_ttl=64,udp_src=%%d,udp_dst=%d", to, dst), nil)
	}
	known := map[int]bool{80: true, 256: true, 0x3500: true} // 80 by its first byte, 0
	for range 8 {
		call("10.0.0.8", 1000)
		for dst := range known {
			known[dst] = call("10.0.0.9", dst)
		}
	}
	for dst, opened := range known {
		if !opened {
			t.Errorf("a packet to port %d met no first-packet megaflow", dst)
		}
	}
	for _, dst := range []int{512, 300, 513, 443, 0x3501, 81, 257} {
		call("10.0.0.9", dst)
	}
}
