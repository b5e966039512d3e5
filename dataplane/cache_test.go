package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/examples"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/internal/testsize"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// twins are two switches that differ in one thing, the first remembers walks,
// megaflows of walks or both. They get the same packets and the same changes, and everything that can
// be seen of them must be the same.
type twins struct {
	testing.TB
	rnd     *rand.Rand
	rigs    [2]*rig
	now     int64
	program *flow.Program
	seen    []offer // frames worth sending: what came out and its answers
	hosts   []host
	steps   int
	history []string
	calm    bool // few changes
	fresh   bool // most packets begin a connection
	over6   bool // the tunnel goes over IPv6
	oneWay  bool // most packets are UDP, and few are answered
}

// offer is a frame to be sent into a port.
type offer struct {
	port    uint32
	frame   []byte
	tunnel  packet.Tunnel
	offload packet.Offload
	mark    uint32 // of a frame that comes from the Node's stack
}

// host is somebody who begins connections.
type host struct {
	port     uint32
	mac, via string
	ip       string
}

// twinSource is a program and its senders.
type twinSource struct {
	src   parse.Sources
	hosts []host
	to    []string // addresses that are called
	over6 bool     // the tunnel goes over IPv6
}

func newTwins(t testing.TB, seed uint64, s twinSource, kernel *trial) *twins {
	t.Helper()
	w := &twins{TB: t, rnd: rand.New(rand.NewPCG(seed, 7)), now: 1e12, hosts: s.hosts, over6: s.over6}
	remembers := [3][2]int{{512, 512}, {-1, 512}, {512, -1}}[seed%3] // walks, megaflows
	for i := range w.rigs {
		r := &rig{TB: t, ports: map[uint32]*memory.Port{}, now: &w.now}
		if i == 0 {
			r.kernel = kernel
		}
		r.conntrack = conntrack.NewTable(conntrack.Config{Now: func() int64 { return w.now }, Seed: [2]uint64{1, 2}, Max: 4096})
		sw, err := dataplane.New(dataplane.Config{
			Conntrack: r.conntrack, Clock: func() int64 { return w.now }, SelectSeed: 5,
			Cache: []int{remembers[0], -1}[i], Megaflows: []int{remembers[1], -1}[i],
			PacketIn: func(pi *telemetry.PacketIn) { r.packetIns = append(r.packetIns, pi) },
			Offload:  r.kernel.offloader(), OffloadAfter: 1,
		})
		r.check(err)
		t.Cleanup(func() { closeSwitch(t, sw) })
		r.sw = sw
		w.rigs[i] = r
		w.program = r.parse(s.src)
		r.check(sw.Apply(flow.BundleOf(w.program)))
		for no := range uint32(64) {
			if name := w.program.Names.Port(no); name != "" {
				w.plug(r, no, name)
			}
		}
	}
	return w
}

func (w *twins) plug(r *rig, no uint32, name string) {
	r.ports[no] = memory.New(name, memory.Options{Tunnel: name == "antrea-tun0"})
	r.check(r.sw.AddPort(no, linked(r.kernel, no, r.ports[no])))
}

// both does something to both.
func (w *twins) both(what string, do func(r *rig)) {
	w.history = append(w.history, what)
	for _, r := range w.rigs {
		do(r)
	}
}

// send gives both a frame and compares what left, byte by byte.
func (w *twins) send(o offer) {
	w.Helper()
	w.steps++
	w.fromStack(&o)
	w.history = append(w.history, fmt.Sprintf("port %d %+v %+v %x", o.port, o.tunnel, o.offload, o.frame))
	var got [2][]offer
	var ins [2]string
	for i, r := range w.rigs {
		f := packet.NewFrame(make([]byte, packet.Headroom+len(o.frame)), nil)
		f.SetBytes(o.frame)
		f.Tunnel, f.Offload = o.tunnel, o.offload
		f.Mark = o.mark
		r.packetIns = nil
		if p := r.ports[o.port]; p == nil {
			return
		} else if out, ok := r.kernel.receive(w, o); ok {
			got[i] = append(got[i], out)
			continue
		} else if p.Inject(f) == 0 {
			return
		}
		r.sw.Poll()
		for _, s := range r.collect() {
			got[i] = append(got[i], offer(s))
		}
		for _, pi := range r.packetIns {
			ins[i] += pi.Entry.Text(flow.Format{})
			pi.Entry = nil // the switches have entries of their own
			ins[i] += fmt.Sprintf("%+v ", *pi)
		}
	}
	if a, b := fmt.Sprintf("%+v", got[0]), fmt.Sprintf("%+v", got[1]); a != b {
		w.fail("what left differs", a, b)
	}
	if ins[0] != ins[1] {
		w.fail("packet-ins differ", ins[0], ins[1])
	}
	for _, out := range got[0] {
		if answer, ok := answerTo(out); ok {
			if w.program.Names.Port(answer.port) != "antrea-tun0" {
				answer.tunnel = packet.Tunnel{} // frames of other ports have no tunnel fields
			}
			w.seen = append(w.seen, o)
			if !w.oneWay || w.rnd.IntN(16) == 0 {
				w.seen = append(w.seen, answer)
			}
		}
	}
}

// fail tells the last steps and what differs.
func (w *twins) fail(what, cached, plain string) {
	w.Helper()
	w.Fatalf("step %d: %s\nwith a cache    %s\nwithout a cache %s\nlast steps:\n%s", w.steps, what, cached, plain,
		strings.Join(w.history[max(0, len(w.history)-12):], "\n"))
}

// compare compares everything that dumps show.
func (w *twins) compare() {
	w.Helper()
	var lines [2][]string
	for i, r := range w.rigs {
		wantBalance(w, r.sw)
		for _, f := range r.sw.Flows() {
			lines[i] = append(lines[i], fmt.Sprintf("%s %d %d %v %v %v", f.Entry.Text(flow.Format{}), f.Packets, f.Bytes, f.Duration, f.Idle, f.Learned))
		}
		for _, g := range r.sw.Groups() {
			lines[i] = append(lines[i], fmt.Sprintf("group %d %d %d %v", g.ID, g.Packets, g.Bytes, g.Buckets))
		}
		for _, m := range r.sw.Meters() {
			lines[i] = append(lines[i], fmt.Sprintf("meter %d %d %d %v", m.ID, m.Packets, m.Bytes, m.Dropped))
		}
		for _, t := range r.sw.Tables() {
			lines[i] = append(lines[i], fmt.Sprintf("table %d %d %d %v", t.ID, t.Lookups, t.Hits, t.DropsByReason))
		}
		for _, p := range r.sw.Ports() {
			lines[i] = append(lines[i], fmt.Sprintf("port %d %+v", p.No, p.Stats))
		}
		if w.rigs[0].kernel == nil { // what it forwards is in no sum
			for _, p := range r.sw.PacketCounters().Ports {
				lines[i] = append(lines[i], fmt.Sprintf("sums %+v", p))
			}
		}
		lines[i] = append(lines[i], fmt.Sprintf("macs %v", r.sw.LearnedMACs()))
		lines[i] = append(lines[i], r.droppedPackets()...)
		connections := r.dump()
		slices.Sort(connections)
		lines[i] = append(lines[i], connections...)
		st := r.conntrack.Stats()
		lines[i] = append(lines[i], fmt.Sprintf("ct %d %v %d %d %d %d", st.Entries, st.Drops, st.OutOfWindow, st.Created, st.Expired, st.EarlyDropped))
	}
	for i := range min(len(lines[0]), len(lines[1])) {
		if lines[0][i] != lines[1][i] {
			w.fail("dumps differ", lines[0][i], lines[1][i])
		}
	}
	if len(lines[0]) != len(lines[1]) {
		w.fail("dumps differ in length", fmt.Sprint(len(lines[0])), fmt.Sprint(len(lines[1])))
	}
}

// dump is every connection with all that is known of it.
func (r *rig) dump() (rows []string) {
	for c := range r.conntrack.Dump(conntrack.Filter{}) {
		c.Offloaded = false
		rows = append(rows, fmt.Sprintf("%s %+v", c.String(), c))
	}
	return rows
}

// answerTo is the frame with which somebody behind the port would answer.
func answerTo(o offer) (offer, bool) {
	b := bytes.Clone(o.frame)
	l := packet.ParseLayers(b)
	if l.L4 == 0 || l.Frag != 0 || l.TCI != 0 {
		return o, false
	}
	mac := bytes.Clone(b[:6])
	copy(b, b[6:12])
	copy(b[6:], mac)
	swap := func(at, n int) {
		x := bytes.Clone(b[at : at+n])
		copy(b[at:], b[at+n:at+2*n])
		copy(b[at+n:], x)
	}
	if l.EtherType == packet.EtherTypeIPv4 {
		swap(l.L3+12, 4)
		b[l.L3+8] = 64
		packet.IPv4(b[l.L3:]).UpdateChecksum()
	} else {
		swap(l.L3+8, 16)
		b[l.L3+7] = 64
	}
	switch l.Proto {
	case packet.ProtoTCP:
		swap(l.L4, 2)
		answerTCP(packet.TCP(b[l.L4:l.End]))
	case packet.ProtoUDP:
		swap(l.L4, 2)
	case packet.ProtoICMP:
		b[l.L4] ^= 8
	case packet.ProtoICMPv6:
		b[l.L4] ^= 1
	default:
		return o, false
	}
	l.SetL4Checksum(b)
	answer := offer{port: o.port, frame: b, tunnel: packet.Tunnel{Src: o.tunnel.Dst, Dst: o.tunnel.Src, ID: o.tunnel.ID}}
	if o.tunnel.Dst.IsValid() && !o.tunnel.Src.IsValid() {
		answer.tunnel.Dst = fromNode[o.tunnel.Dst.Is6()].Dst
	}
	return answer, true
}

// answerTCP turns a segment with swapped ports into its answer.
func answerTCP(h packet.TCP) {
	seq, n := h.Seq(), uint32(len(h.Payload()))
	h.SetSeq(h.Ack())
	flags := h.Flags()
	if flags&packet.TCPSyn != 0 && flags&packet.TCPAck == 0 {
		h.SetSeq(5000)
		h.SetFlags(packet.TCPSyn | packet.TCPAck)
	} else {
		h.SetFlags(packet.TCPAck)
	}
	if flags&(packet.TCPSyn|packet.TCPFin) != 0 {
		n++
	}
	h.SetAck(seq + n)
	h.SetWindow(8192)
}

// firstPacket is the first packet of a connection from one of the hosts.
func (w *twins) firstPacket(to string) offer {
	h := w.hosts[w.rnd.IntN(len(w.hosts))]
	if w.rnd.IntN(10) == 0 {
		h.ip = "10.9.9.9" // not its own
	}
	a, src := netip.MustParseAddr(to), "nw"
	if a.Is6() {
		src = "ipv6"
	}
	if a.Is6() != netip.MustParseAddr(h.ip).Is6() {
		return w.firstPacket(w.hosts[w.rnd.IntN(len(w.hosts))].ip)
	}
	suffix := ""
	if src == "ipv6" {
		suffix = "6"
	}
	proto := []string{"tcp", "tcp", "udp", "icmp"}[w.rnd.IntN(4)]
	if w.oneWay && proto == "tcp" {
		proto = "udp"
	}
	text := fmt.Sprintf("%s%s,dl_src=%s,dl_dst=%s,%s_src=%s,%s_dst=%s,nw_ttl=%d", proto, suffix, h.mac, h.via, src, h.ip, src, to, 64-w.rnd.IntN(20)/19*63)
	port, client := []int{80, 443, 3306, 53}[w.rnd.IntN(4)], 1000+w.rnd.IntN(6)
	if w.fresh {
		client = 1000 + w.rnd.IntN(60000)
		if w.rnd.IntN(2) == 0 {
			port = 1 + w.rnd.IntN(65535)
		}
	}
	switch proto {
	case "tcp":
		text += fmt.Sprintf(",tcp_src=%d,tcp_dst=%d,tcp_flags=+syn", client, port)
	case "udp":
		text += fmt.Sprintf(",udp_src=%d,udp_dst=%d", client, port)
	case "icmp":
		text += fmt.Sprintf(",icmp%s_type=%s,icmp%s_code=0", map[string]string{"6": "v6"}[suffix], map[string]string{"": "8", "6": "128"}[suffix], map[string]string{"6": "v6"}[suffix])
	}
	_, frame := w.rigs[0].compose(text)
	w.number(frame)
	o := offer{port: h.port, frame: frame}
	if w.program.Names.Port(h.port) == "antrea-tun0" {
		o.tunnel = fromNode[w.over6]
	}
	return o
}

// number gives a composed frame what the text has no words for.
func (w *twins) number(b []byte) {
	l := packet.ParseLayers(b)
	w.label(b, &l)
	switch l.Proto {
	case packet.ProtoTCP:
		h := packet.TCP(b[l.L4:l.End])
		h.SetSeq(1000)
		h.SetWindow(8192)
	case packet.ProtoICMP, packet.ProtoICMPv6:
		packet.ICMP(b[l.L4:]).SetID(uint16(w.rnd.IntN(3) + 1))
	}
	l.SetL4Checksum(b)
}

// label gives an IPv6 packet a flow label, as Linux does.
func (w *twins) label(b []byte, l *packet.Layers) {
	if h := packet.IPv6(b[l.L3:]); l.EtherType == packet.EtherTypeIPv6 && h.Valid() {
		h.SetFirst(h.TrafficClass(), uint32(w.rnd.IntN(1<<20)))
	}
}

// next is a frame that was seen, seldom as it was.
func (w *twins) next() offer {
	o := w.seen[len(w.seen)-1-w.rnd.IntN(min(len(w.seen), 60))]
	o.frame = bytes.Clone(o.frame)
	l := packet.ParseLayers(o.frame)
	if l.Proto == packet.ProtoTCP && l.L4 != 0 {
		w.goOn(packet.TCP(o.frame[l.L4:l.End]))
	}
	if w.rnd.IntN(8) == 0 {
		w.damage(&o, &l)
	}
	l.SetL4Checksum(o.frame)
	if w.rnd.IntN(3) == 0 {
		w.label(o.frame, &l)
	}
	if w.rnd.IntN(12) == 0 {
		w.changeChecksums(&o, &l)
	}
	return o
}

// goOn makes a segment one of the middle of a connection, mostly.
func (w *twins) goOn(h packet.TCP) {
	flags := h.Flags()
	switch w.rnd.IntN(16) {
	case 0:
		h.SetFlags(flags | packet.TCPFin)
	case 1:
		h.SetFlags(packet.TCPRst | packet.TCPAck)
	case 2:
		h.SetFlags(packet.TCPSyn)
	case 3:
		h.SetSeq(h.Seq() + uint32(w.rnd.IntN(70000)))
	case 4:
		h.SetAck(h.Ack() - uint32(w.rnd.IntN(70000)))
	case 5:
		h.SetFlags(flags | packet.TCPPsh)
	case 6, 7, 8:
		if flags&packet.TCPSyn != 0 && flags&packet.TCPAck == 0 {
			h.SetFlags(packet.TCPAck)
			h.SetSeq(h.Seq() + 1)
			h.SetAck(5001)
		}
	}
}

// damage changes something that makes the packet another one.
func (w *twins) damage(o *offer, l *packet.Layers) {
	b := o.frame
	v4 := l.EtherType == packet.EtherTypeIPv4
	switch w.rnd.IntN(7) {
	case 0:
		b[w.rnd.IntN(14)] ^= 1 << w.rnd.IntN(8)
	case 1:
		if v4 {
			ip := packet.IPv4(b[l.L3:])
			b[l.L3+8] = byte(w.rnd.IntN(3))
			ip.UpdateChecksum()
		}
	case 2:
		b[l.L3+w.rnd.IntN(20)] ^= 1 << w.rnd.IntN(8)
	case 3:
		if v4 {
			ip := packet.IPv4(b[l.L3:])
			binary.BigEndian.PutUint16(b[l.L3+6:], []uint16{0x2000, 0x4000, 0x8000, 2}[w.rnd.IntN(4)])
			ip.UpdateChecksum()
		}
	case 4:
		o.frame = b[:l.L4+w.rnd.IntN(len(b)-l.L4)]
		*l = packet.ParseLayers(o.frame)
	case 5:
		o.port, o.mark = w.hosts[w.rnd.IntN(len(w.hosts))].port, 0 // only the Node's stack marks
	case 6:
		o.tunnel.ID = uint64(w.rnd.IntN(3))
	}
}

// changeChecksums changes checksums: none, a special one, a wrong one, or one that is left
// undone.
func (w *twins) changeChecksums(o *offer, l *packet.Layers) {
	at := map[uint8]int{packet.ProtoTCP: 16, packet.ProtoUDP: 6, packet.ProtoICMP: 2, packet.ProtoICMPv6: 2}[l.Proto]
	if at == 0 || l.L4 == 0 || l.L4+at+2 > len(o.frame) {
		return
	}
	field := o.frame[l.L4+at:]
	switch w.rnd.IntN(4) {
	case 0:
		binary.BigEndian.PutUint16(field, 0)
	case 1:
		binary.BigEndian.PutUint16(field, 0xffff)
	case 2:
		field[0] ^= 0x10
	case 3:
		if l.Proto == packet.ProtoTCP || l.Proto == packet.ProtoUDP {
			binary.BigEndian.PutUint16(field, l.PseudoSum(o.frame, l.End-l.L4))
			o.offload = packet.Offload{ChecksumPartial: true, ChecksumStart: uint16(l.L4), ChecksumOffset: uint16(at)}
		}
	}
}

// change changes something else than packets.
func (w *twins) change() {
	entries := w.program.Entries
	e := entries[w.rnd.IntN(len(entries))]
	apply := func(what string, b flow.Bundle) {
		w.both(what+" "+e.Text(flow.Format{}), func(r *rig) {
			if err := r.sw.Apply(&b); err != nil {
				r.Fatal(err)
			}
		})
	}
	switch w.rnd.IntN(14) {
	case 0:
		apply("add", flow.Bundle{Add: []*flow.Entry{e}})
	case 1:
		apply("delete", flow.Bundle{Delete: []*flow.Entry{e}})
	case 2:
		dropped := *e
		dropped.Actions = nil
		apply("drop", flow.Bundle{Add: []*flow.Entry{&dropped}})
	case 3, 4:
		w.both("load", func(r *rig) { r.check(r.sw.Apply(flow.BundleOf(w.program))) })
	case 5:
		timed := *e
		timed.IdleTimeout = 5
		apply("idle", flow.Bundle{Add: []*flow.Entry{&timed}})
	case 6:
		w.both("flush", func(r *rig) { r.conntrack.Flush() })
	case 7:
		on := w.rnd.IntN(4) > 0
		w.both("sequence check", func(r *rig) { r.conntrack.SetSequenceCheck(on) })
	case 8:
		w.replug()
	case 9:
		if n := len(w.program.Groups); n > 0 {
			g := *w.program.Groups[w.rnd.IntN(n)]
			g.Buckets = g.Buckets[w.rnd.IntN(len(g.Buckets)+1):]
			w.both("group", func(r *rig) { r.check(r.sw.Apply(&flow.Bundle{Groups: []*flow.Group{&g}})) })
		}
	default:
		d := []time.Duration{time.Millisecond, time.Second, 7 * time.Second, 40 * time.Second, 2 * time.Minute, 20 * time.Minute}[w.rnd.IntN(6)]
		w.both("tend", func(r *rig) { r.sw.Tend() })
		w.now += int64(d)
		w.both("tend", func(r *rig) { r.sw.Tend() }) // no more than a second passes without
		if w.rnd.IntN(2) == 0 {
			w.both(fmt.Sprint("expire after ", d), func(r *rig) { r.sw.Expire() })
		}
	}
}

// replug takes a port out and puts it back, or another in its place.
func (w *twins) replug() {
	no := w.hosts[w.rnd.IntN(len(w.hosts))].port
	w.both(fmt.Sprint("replug ", no), func(r *rig) {
		if r.ports[no] != nil {
			r.check(r.sw.RemovePort(no))
			delete(r.ports, no)
		} else {
			w.plug(r, no, w.program.Names.Port(no))
		}
	})
}

// walk sends and changes at random for a number of steps.
func (w *twins) walk(steps int, to []string) {
	for range steps {
		switch n := w.rnd.IntN(100); {
		case n < 8 || len(w.seen) == 0 || w.fresh && n < 60:
			w.send(w.firstPacket(to[w.rnd.IntN(len(to))]))
		case n < 98 || w.calm && w.rnd.IntN(8) > 0:
			w.send(w.next())
		default:
			w.change()
		}
		if w.rnd.IntN(50) == 0 {
			w.compare()
		}
	}
	w.compare()
}

// twinSources are the pipelines that the twins run.
func twinSources(t testing.TB) map[string]twinSource {
	read := func(name string) parse.Source {
		b, err := examples.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return parse.Text(name, string(b))
	}
	node := "two-nodes/node-a"
	const gw, virtual = "ba:5e:d1:55:aa:c0", "aa:bb:cc:dd:ee:ff"
	return map[string]twinSource{
		"antrea": {
			src: parse.Sources{Flows: read(node + ".flows"), Groups: read(node + ".groups"), Meters: read(node + ".meters"), Ports: read(node + ".ports")},
			hosts: []host{
				{1, "02:00:00:00:00:09", virtual, "10.10.1.6"},
				{2, gw, "fa:b7:53:74:21:a6", "10.10.0.1"}, {2, gw, "5e:b5:e3:a6:90:b7", "192.168.77.1"},
				{36, "5e:b5:e3:a6:90:b7", "fa:b7:53:74:21:a6", "10.10.0.26"}, {36, "5e:b5:e3:a6:90:b7", gw, "10.10.0.26"},
				{37, "fa:b7:53:74:21:a6", "36:48:21:a2:9d:b4", "10.10.0.24"}, {37, "fa:b7:53:74:21:a6", gw, "10.10.0.24"},
				{38, "36:48:21:a2:9d:b4", gw, "10.10.0.25"},
			},
			to: []string{"10.10.0.24", "10.10.0.25", "10.10.0.26", "10.10.0.1", "10.10.1.6", "10.105.31.235", "10.101.255.29", "10.96.76.15", "8.8.8.8"},
		},
		"all sorts": {
			src: allSortsSources(),
			hosts: []host{
				{1, "02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1"}, {2, "02:00:00:00:00:02", "02:00:00:00:00:01", "10.0.0.2"},
				{3, "02:00:00:00:00:03", "02:00:00:00:00:01", "10.0.0.3"},
				{1, "02:00:00:00:00:01", "02:00:00:00:00:02", "fd00::1"}, {2, "02:00:00:00:00:02", "02:00:00:00:00:01", "fd00::2"},
			},
			to: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.5", "fd00::1", "fd00::2", "fd01::1"},
		},
		"calls": callsSource(),
		"labels": {
			src: parse.Sources{Flows: parse.Text("labels", labels), Ports: allSortsSources().Ports},
			hosts: []host{
				{1, "02:00:00:00:00:01", "02:00:00:00:00:02", "fd00::1"}, {2, "02:00:00:00:00:02", "02:00:00:00:00:01", "fd00::2"},
				{3, "02:00:00:00:00:03", "02:00:00:00:00:01", "fd00::3"},
			},
			to: []string{"fd00::1", "fd00::2", "fd00::3", "fd01::1"},
		},
	}
}

// allSorts is a pipeline of few tables in which everything that the cache
// must not remember stands beside what it must: both kinds of NAT in two zones,
// marks that change, learned entries, groups, meters, copies, calls that return.
const allSorts = `
	table=0,priority=9,arp actions=NORMAL
	table=0,priority=8,udp,tp_dst=443 actions=meter:1,goto_table:1
	table=0,priority=7,udp,tp_dst=3306 actions=clone(output:4),goto_table:1
	table=0,priority=6,tcp,tp_dst=53 actions=NORMAL
	table=0,priority=5,nw_dst=10.1.0.4,ip actions=drop
	table=0,priority=5,udp,nw_dst=10.1.0.3 actions=dec_ttl,set_field:10.1.0.3->nw_dst,set_field:10.0.0.77->nw_src,output:4
	table=0,priority=4,icmp,nw_tos=0 actions=set_field:32->nw_tos,resubmit(,1)
	table=0,priority=1,ip actions=resubmit(,7),goto_table:1
	table=0,priority=1,ipv6 actions=goto_table:1
	table=1,priority=5,ip,nw_dst=10.9.0.1 actions=ct(table=2,zone=20,nat)
	table=1,priority=1 actions=goto_table:2
	table=2,priority=1,ip actions=ct(table=3,zone=10,nat)
	table=2,priority=1,ipv6 actions=ct(table=3,zone=10,nat)
	table=3,priority=9,ct_state=+inv+trk actions=drop
	table=3,priority=8,ct_state=-new+trk,ct_mark=0x10/0x10 actions=set_field:0x200/0x200->reg0,goto_table:4
	table=3,priority=7,ct_state=-new+trk actions=goto_table:4
	table=3,priority=6,ct_state=+new+trk,ip,nw_dst=10.1.0.1 actions=learn(table=7,idle_timeout=9,hard_timeout=60,priority=5,eth_type=0x800,NXM_OF_IP_SRC[],load:0x3->NXM_NX_REG3[]),group:1
	table=3,priority=6,ct_state=+new+trk,ip,nw_dst=10.1.0.2 actions=group:1
	table=3,priority=6,ct_state=+new+trk,tcp,nw_dst=10.1.0.5 actions=controller(userdata=01),goto_table:4
	table=3,priority=6,ct_state=+new+trk,ipv6,ipv6_dst=fd01::1 actions=ct(commit,table=4,zone=10,nat(dst=[fd00::2]:80),exec(set_field:0x10/0x10->ct_mark))
	table=3,priority=1 actions=goto_table:4
	table=4,priority=10,ct_state=-new+trk,tcp,tcp_flags=+psh-urg actions=ct(commit,table=5,zone=10,exec(set_field:0x100/0x100->ct_mark,set_field:0x9/0xf->ct_label))
	table=4,priority=9,tcp,tp_dst=3306,nw_dst=10.0.0.3 actions=set_field:0x77->reg3,goto_table:9
	table=4,priority=8,ct_state=+new+trk,ip,reg3=0x3 actions=ct(commit,table=5,zone=10,exec(set_field:0x5->ct_mark,set_field:0x7->ct_label))
	table=4,priority=7,ct_state=+new+trk,tcp actions=ct(commit,table=5,zone=10,exec(set_field:0x2/0xf->ct_mark))
	table=4,priority=7,ct_state=+new+trk,tcp6 actions=ct(commit,table=5,zone=10)
	table=4,priority=6,ct_state=+new+trk,ip actions=ct(commit,zone=10),goto_table:5
	table=4,priority=6,ct_state=+new+trk,ipv6 actions=ct(commit,zone=10),goto_table:5
	table=4,priority=1 actions=goto_table:5
	table=5,priority=10,ct_state=-new+trk,ct_mark=0x100/0x100,ip,nw_dst=10.0.0.0/24 actions=dec_ttl,dec_ttl,goto_table:6
	table=5,priority=9,ct_state=-rpl+trk,tcp,nw_dst=10.0.0.2 actions=ct(commit,table=6,zone=20,nat(src=10.9.0.1:2000-2003))
	table=5,priority=8,ip,nw_dst=10.0.0.0/24,ct_mark=0x10/0x10 actions=dec_ttl,move:NXM_OF_IN_PORT[]->NXM_NX_REG5[0..15],move:NXM_NX_REG0[4..15]->OXM_OF_VLAN_VID[],goto_table:6
	table=5,priority=7,ipv6,ct_mark=0x10/0x10 actions=dec_ttl,goto_table:6
	table=5,priority=1 actions=goto_table:6
	table=6,priority=6,ip,vlan_tci=0x0020/0x1fff,nw_dst=10.0.0.2 actions=set_field:02:00:00:00:00:22->eth_dst,output:2
	table=6,priority=5,ip,nw_dst=10.0.0.1 actions=set_field:02:00:00:00:00:01->eth_dst,output:1
	table=6,priority=5,ip,nw_dst=10.0.0.2 actions=set_field:02:00:00:00:00:02->eth_dst,load:0x2->NXM_NX_REG1[],output:NXM_NX_REG1[]
	table=6,priority=5,ip,nw_dst=10.0.0.3 actions=push_vlan:0x8100,set_field:4101->vlan_vid,output:3
	table=6,priority=5,ip,nw_dst=10.1.0.3 actions=set_field:192.168.0.9->tun_dst,set_field:0x7->tun_id,output:9
	table=6,priority=5,ipv6,ipv6_dst=fd00::1 actions=output:1
	table=6,priority=5,ipv6,ipv6_dst=fd00::2 actions=set_field:64->nw_ttl,output:2
	table=6,priority=4,icmp actions=IN_PORT
	table=7,priority=0 actions=set_field:0x1->reg4
	table=9,priority=1 actions=output:3,output:4`

const allSortsGroups = `group_id=1,type=select,bucket=bucket_id=1,weight=10,actions=ct(commit,table=4,zone=10,nat(dst=10.0.0.2:80),exec(set_field:0x10/0x10->ct_mark)),bucket=bucket_id=2,weight=30,actions=ct(commit,table=4,zone=10,nat(dst=10.0.0.1:443),exec(set_field:0x10/0x10->ct_mark))`

// TestCacheChangesNothing sends random packets, with changes in between, through
// a switch with a exact-match cache and one without: what leaves, what is
// counted and what is tracked is the same.
func TestCacheChangesNothing(t *testing.T) {
	for name, s := range twinSources(t) {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			var hits, packets, taken, walked uint64
			little := func() bool { return taken < walked || hits < packets/10 }
			for i := range rounds(8, little) {
				w := newTwins(t, seed+i, s, nil)
				w.walk(3000, s.to)
				st := w.rigs[0].sw.Cache()
				e := st.Events
				hits += e[telemetry.CacheHit]
				packets += e[telemetry.CacheHit] + e[telemetry.CacheFirst] + e[telemetry.CacheMiss] + e[telemetry.CacheChanged] + e[telemetry.CacheLearned] + e[telemetry.CacheUnfit]
				taken, walked = taken+e[telemetry.MegaflowHit], walked+e[telemetry.MegaflowMiss]
				t.Logf("%+v", st)
			}
			if little() {
				t.Errorf("%d megaflows were taken and %d walked, %d of %d packets were replayed: this proves little", taken, walked, hits, packets)
			}
		})
	}
}

// rounds counts n rounds, with -short a quarter, and up to mostRounds while little says
// that the rounds so far proved little: a random conversation may have hardly a packet of
// the kind that a test is about.
func rounds(n uint64, little func() bool) iter.Seq[uint64] {
	const mostRounds = 64
	n = testsize.Rounds(n)
	return func(yield func(uint64) bool) {
		for i := uint64(0); i < n || i < mostRounds && little(); i++ {
			if !yield(i) {
				return
			}
		}
	}
}

// allSortsSources is allSorts with its groups, meter and ports.
func allSortsSources() parse.Sources {
	src := sourcesOf(allSorts, allSortsGroups, "meter=1 pktps bands=\ntype=drop rate=5")
	src.Ports = parse.Text("ports", " 1(p1)\n 2(p2)\n 3(p3)\n 4(p4)\n 9(antrea-tun0)\n")
	return src
}

// FuzzCache is TestCacheChangesNothing from seeds that the fuzzer chooses.
func FuzzCache(f *testing.F) {
	f.Add(uint64(1), true)
	f.Add(uint64(2), false)
	f.Add(uint64(9), false)
	sources := twinSources(f)
	f.Fuzz(func(t *testing.T, seed uint64, antrea bool) {
		s := sources["all sorts"]
		if antrea {
			s = sources["antrea"]
		}
		w := newTwins(t, seed, s, nil)
		if w.fresh = seed&8 != 0; w.fresh { // few pairs of ends, for first-packet megaflows
			n := int(seed>>4) % (len(s.hosts) - 1)
			w.hosts, w.calm = s.hosts[n:n+2], true
		}
		w.walk(300, s.to)
	})
}
