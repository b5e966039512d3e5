package dataplane_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/examples"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// newExample is a rig with a program of examples/ and a port for every one that
// it names; the one called antrea-tun0 carries tunnels.
func newExample(t testing.TB, set string) *rig {
	t.Helper()
	src := func(kind string) parse.Source {
		b, err := examples.FS.ReadFile(set + kind)
		if err != nil {
			t.Fatal(err)
		}
		return parse.Text(set+kind, string(b))
	}
	r := &rig{TB: t, ports: map[uint32]*memory.Port{}}
	p := r.parse(parse.Sources{Flows: src(".flows"), Groups: src(".groups"), Meters: src(".meters"), Ports: src(".ports")})
	r.sw, r.now, r.conntrack = newTrackingSwitch(t, p, func(pi *telemetry.PacketIn) { r.packetIns = append(r.packetIns, pi) })
	for no := range uint32(64) {
		name := p.Names.Port(no)
		if name == "" {
			continue
		}
		r.ports[no] = memory.New(name, memory.Options{})
		if name == "antrea-tun0" {
			r.check(r.sw.AddPort(no, tunnelled{r.ports[no]}))
		} else {
			r.check(r.sw.AddPort(no, r.ports[no]))
		}
	}
	return r
}

// TestEveryPacketHasOneVerdict sends random packets through the seed's pipeline:
// each was sent, handed to the agent or dropped, and the counters of ports,
// tables and entries agree.
func TestEveryPacketHasOneVerdict(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 3))
	r := newExample(t, "seed/seed")
	verdicts := map[string]int{}
	for i := range 2000 {
		text := randomFlow(rnd)
		if strings.HasPrefix(text, "tcp,") {
			text += ",tcp_flags=+syn"
		}
		before, ins := total(r.sw.Drops()), len(r.packetIns)
		out := r.send(text)
		dropped, toAgent := total(r.sw.Drops())-before, len(r.packetIns)-ins
		switch {
		case dropped == 1 && len(out) == 0 && toAgent == 0:
			verdicts["dropped"]++
		case dropped == 0 && len(out) > 0:
			verdicts["sent"]++
		case dropped == 0 && toAgent > 0:
			verdicts["agent"]++
		default:
			t.Fatalf("packet %d (%s): %d drops, %d sent, %d to the agent", i, text, dropped, len(out), toAgent)
		}
		for _, s := range out {
			wantSound(t, s.frame)
		}
	}
	if verdicts["dropped"] == 0 || verdicts["sent"] == 0 || verdicts["agent"] == 0 {
		t.Errorf("not every verdict came up: %v", verdicts)
	}
	wantPacketCounters(t, r.sw, 2000)
}

func total(drops map[telemetry.DropReason]uint64) (n uint64) {
	for _, d := range drops {
		n += d
	}
	return n
}

// wantPacketCounters checks that counters add up after n packets.
func wantPacketCounters(t testing.TB, sw *dataplane.Switch, n uint64) {
	t.Helper()
	hits, received := map[uint8]uint64{}, uint64(0)
	for _, f := range sw.Flows() {
		hits[f.Table] += f.Packets
	}
	drops := uint64(0)
	for _, tb := range sw.Tables() {
		if tb.Hits != hits[tb.ID] || tb.Lookups < tb.Hits {
			t.Errorf("table %d counts %d hits of %d lookups, its entries %d packets", tb.ID, tb.Hits, tb.Lookups, hits[tb.ID])
		}
		drops += total(tb.DropsByReason)
	}
	for _, p := range sw.Ports() {
		received += p.RxPackets
	}
	if all := total(sw.Drops()); received != n || drops != all {
		t.Errorf("%d packets received, want %d; tables account for %d of %d drops", received, n, drops, all)
	}
	for _, g := range sw.Groups() {
		sum := uint64(0)
		for _, b := range g.Buckets {
			sum += b.Packets
		}
		if want := g.Packets * buckets(g.Group); sum != want {
			t.Errorf("group %d counts %d packets, its buckets %d", g.ID, g.Packets, sum)
		}
	}
}

// buckets is how many buckets of a group run for a packet.
func buckets(g *flow.Group) uint64 {
	if g.Type == flow.GroupAll {
		return uint64(len(g.Buckets))
	}
	return 1
}

// established is a rig of two-nodes/node-a with a TCP connection from client-a
// to web-a:80, and what it takes to send further segments without allocating.
type established struct {
	*rig
	pool         *packet.HeapPool
	client, web  *memory.Port
	there, back  []byte
	batch, taken []*packet.Frame
	batches      [64]*packet.Frame
}

func newEstablished(t testing.TB) *established {
	t.Helper()
	r := newExample(t, "two-nodes/node-a")
	e := &established{rig: r, pool: packet.NewPool(256, 2048), batch: make([]*packet.Frame, 1), taken: make([]*packet.Frame, 1)}
	frame := func(text string) []byte { _, b := r.compose(text); return b }
	const (
		there = `in_port="client-a",tcp,dl_src=5e:b5:e3:a6:90:b7,dl_dst=fa:b7:53:74:21:a6,nw_src=10.10.0.26,nw_dst=10.10.0.24,nw_ttl=64,tcp_src=1000,tcp_dst=80,tcp_flags=`
		back  = `in_port="web-a",tcp,dl_src=fa:b7:53:74:21:a6,dl_dst=5e:b5:e3:a6:90:b7,nw_src=10.10.0.24,nw_dst=10.10.0.26,nw_ttl=64,tcp_src=80,tcp_dst=1000,tcp_flags=`
	)
	client, _ := r.sw.Names().PortID("client-a")
	web, _ := r.sw.Names().PortID("web-a")
	e.client, e.web = r.ports[client], r.ports[web]
	r.wantPorts(r.sendFrame(client, numbered(frame(there+"+syn"), 1000, 0)), web)
	r.wantPorts(r.sendFrame(web, numbered(frame(back+"+syn+ack"), 5000, 1001)), client)
	e.there, e.back = numbered(frame(there+"+ack"), 1001, 5001), numbered(frame(back+"+ack"), 5001, 1001)
	r.wantPorts(r.sendFrame(client, e.there), web)
	return e
}

// numbered gives a composed segment its sequence numbers and a window.
func numbered(b []byte, seq, ack uint32) []byte {
	l := packet.ParseLayers(b)
	h := packet.TCP(b[l.L4:l.End])
	h.SetSeq(seq)
	h.SetAck(ack)
	h.SetWindow(0xffff)
	l.SetL4Checksum(b)
	return b
}

// pass sends one segment and takes it at the other end.
func (e *established) pass(from, to *memory.Port, b []byte) {
	e.pool.Get(e.batch)
	e.batch[0].SetBytes(b)
	from.Inject(e.batch...)
	e.sw.Poll()
	if to.Collect(e.taken) != 1 {
		e.Fatal("a segment of an established connection did not arrive")
	}
	packet.Release(e.taken)
}

// TestEstablishedAllocatesNothing asserts zero allocations for a packet of an
// established connection, in both directions.
func TestEstablishedAllocatesNothing(t *testing.T) {
	e := newEstablished(t)
	if n := testing.AllocsPerRun(500, func() { e.pass(e.client, e.web, e.there) }); n != 0 {
		t.Errorf("%v allocations for a packet of the original direction", n)
	}
	if n := testing.AllocsPerRun(500, func() { e.pass(e.web, e.client, e.back) }); n != 0 {
		t.Errorf("%v allocations for a packet of the reply direction", n)
	}
	if e.pool.Free() != 256 {
		t.Errorf("%d of 256 frames came back", e.pool.Free())
	}
}

// TestCopiesAllocateNothing asserts zero allocations for a packet that is
// copied: a clone, a group of all, several outputs.
func TestCopiesAllocateNothing(t *testing.T) {
	r := newRigOf(t, parse.Sources{
		Flows:  parse.Text("flows", "table=0,ip actions=clone(set_field:1.2.3.4->nw_src,output:2),output:3,output:4,group:1"),
		Groups: parse.Text("groups", "group_id=1,type=all,bucket=actions=output:2,bucket=actions=output:3"),
	})
	pool, one, taken := packet.NewPool(4, 2048), make([]*packet.Frame, 1), make([]*packet.Frame, 4)
	_, frame := r.compose(anyTCP)
	pass := func() {
		pool.Get(one)
		one[0].SetBytes(frame)
		r.ports[1].Inject(one...)
		r.sw.Poll()
		for no := uint32(2); no <= 4; no++ {
			packet.Release(taken[:r.ports[no].Collect(taken)])
		}
	}
	if n := testing.AllocsPerRun(500, pass); n != 0 {
		t.Errorf("%v allocations for a packet that leaves five times", n)
	}
}

// BenchmarkWalkEstablished is one packet of an established connection between
// two pods of a Node, from port to port.
func BenchmarkWalkEstablished(b *testing.B) {
	e := newEstablished(b)
	b.ReportAllocs()
	for b.Loop() {
		e.pass(e.client, e.web, e.there)
	}
}

// BenchmarkWalkNew is the first packet of a connection, in batches of 64: the
// walk of all tables and two commits. The figure is per packet.
func BenchmarkWalkNew(b *testing.B) {
	e := newEstablished(b)
	e.conntrack.SetNewRate(-1)
	var syns [][]byte
	for port := range 64 * 64 {
		_, syn := e.compose(fmt.Sprintf(`tcp,dl_src=5e:b5:e3:a6:90:b7,dl_dst=fa:b7:53:74:21:a6,nw_src=10.10.0.26,nw_dst=10.10.0.24,nw_ttl=64,tcp_src=%d,tcp_dst=80,tcp_flags=+syn`, 2000+port))
		syns = append(syns, syn)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += 64 {
		if i := n % len(syns); i == 0 {
			e.conntrack.Flush()
		}
		e.passBatch(syns[n%len(syns):][:64])
	}
}

// BenchmarkWalkBatch is BenchmarkWalkEstablished with a batch of 64 at once, as
// a loaded worker has them; the figure is per packet.
func BenchmarkWalkBatch(b *testing.B) {
	e := newEstablished(b)
	frames := slices.Repeat([][]byte{e.there}, 64)
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(frames) {
		e.passBatch(frames)
	}
}

// passBatch sends up to 64 frames at once from the client to the web pod.
func (e *established) passBatch(frames [][]byte) {
	batch := e.batches[:len(frames)]
	e.pool.Get(batch)
	for i, f := range batch {
		f.SetBytes(frames[i])
	}
	e.client.Inject(batch...)
	e.sw.Poll()
	if e.web.Collect(batch) != len(frames) {
		e.Fatal("a segment did not arrive")
	}
	packet.Release(batch)
}
