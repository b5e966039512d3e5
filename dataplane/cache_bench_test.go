package dataplane_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
	"golang.org/x/sys/unix"
)

// loaded is a switch with connections between two of its memory ports, and one
// frame of each.
type loaded struct {
	*rig
	from, to *memory.Port
	frames   [][]byte
	pool     *packet.HeapPool
	batch    []*packet.Frame
	taken    []*packet.Frame
	next     int
	scan     bool // first packets differ in their destination port
}

// newLoaded makes connections through two-nodes/node-a: UDP from client-a to
// web-a, which meets one zone of conntrack, or, with hairpin, TCP of web-a to
// itself by a Service, which meets both.
func newLoaded(b *testing.B, flows, cache int, hairpin bool) *loaded {
	src := twinSources(b)["antrea"].src
	r := &rig{TB: b, ports: map[uint32]*memory.Port{}, now: new(int64)}
	*r.now = 1e12
	clock := func() int64 { return *r.now }
	r.conntrack = conntrack.NewTable(conntrack.Config{Now: clock, Max: 500_000, NewRate: -1})
	sw, err := dataplane.New(dataplane.Config{Conntrack: r.conntrack, Clock: clock, Cache: cache, SelectSeed: 3})
	r.check(err)
	b.Cleanup(func() { closeSwitch(b, sw) })
	r.sw = sw
	p := r.parse(src)
	r.check(sw.Apply(flow.BundleOf(p)))
	for no := range uint32(64) {
		if name := p.Names.Port(no); name != "" {
			r.ports[no] = memory.New(name, memory.Options{Tunnel: name == "antrea-tun0"})
			r.check(sw.AddPort(no, r.ports[no]))
		}
	}
	l := &loaded{rig: r, from: r.ports[36], to: r.ports[37], pool: packet.NewPool(256, 2048), batch: make([]*packet.Frame, 64), taken: make([]*packet.Frame, 64)}
	if hairpin {
		l.from = r.ports[37]
	}
	for i := 0; len(l.frames) < flows; i++ {
		l.connect(i, hairpin)
	}
	return l
}

// connect makes the i-th connection, and keeps a frame of it if both ends of it
// are where they should be.
func (l *loaded) connect(i int, hairpin bool) {
	const udp = "udp,dl_src=5e:b5:e3:a6:90:b7,dl_dst=fa:b7:53:74:21:a6,nw_src=10.10.0.26,nw_dst=10.10.0.24,nw_ttl=64,udp_src=%d,udp_dst=%d"
	const tcp = "tcp,dl_src=fa:b7:53:74:21:a6,dl_dst=ba:5e:d1:55:aa:c0,nw_src=10.10.0.24,nw_dst=10.105.31.235,nw_ttl=64,tcp_src=%d,tcp_dst=80,tcp_flags=+syn"
	in, text := uint32(36), fmt.Sprintf(udp, 1000+i%60000, 100+i/60000)
	if hairpin {
		in, text = 37, fmt.Sprintf(tcp, 1000+i)
	}
	_, first := l.compose(text)
	if hairpin {
		numbered(first, 1000, 0)
	}
	out := l.sendFrame(in, first)
	if len(out) != 1 || out[0].port != 37 {
		return
	}
	answer, _ := answerTo(offer{port: 37, frame: out[0].frame})
	l.sendFrame(37, answer.frame)
	if hairpin {
		h := packet.TCP(first[34:])
		h.SetFlags(packet.TCPAck)
		numbered(first, 1001, 5001)
	}
	l.sendFrame(in, first)
	l.frames = append(l.frames, first)
}

// pass sends a batch, each packet of another connection, and takes it out.
func (l *loaded) pass() {
	l.inject()
	l.sw.Poll()
	if l.to.Collect(l.batch) != len(l.batch) {
		l.Fatal("a packet of an established connection did not arrive")
	}
	packet.Release(l.batch)
}

func (l *loaded) inject() {
	l.pool.Get(l.batch)
	for _, f := range l.batch {
		f.SetBytes(l.frames[l.next])
		if l.next++; l.next == len(l.frames) {
			l.next = 0
		}
	}
	l.from.Inject(l.batch...)
}

// threadTime is what this thread has used.
func threadTime() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkConnections is packets of established connections, each packet of
// another one, with the exact-match cache and without; the figures are per
// packet. cpu-ns leaves out what other processes take. ports is the same frames
// moved by the ports alone.
func BenchmarkConnections(b *testing.B) {
	for _, c := range []struct {
		name    string
		flows   int
		hairpin bool
	}{{"1", 1, false}, {"1000", 1000, false}, {"100000", 100_000, false}, {"hairpin/1", 1, true}, {"hairpin/10000", 10_000, true}} {
		for mode, cache := range map[string]int{"cache": 0, "walk": -1} {
			b.Run(mode+"/"+c.name, func(b *testing.B) {
				l := newLoaded(b, c.flows, cache, c.hairpin)
				for range c.flows/64 + 2 {
					l.pass()
				}
				before := l.sw.Cache().Events[telemetry.CacheHit]
				measure(b, l.pass)
				b.ReportMetric(float64(l.sw.Cache().Events[telemetry.CacheHit]-before)/float64(b.N), "hits/op")
			})
		}
	}
	for _, flows := range []int{1, 100_000} {
		b.Run(fmt.Sprint("ports/", flows), func(b *testing.B) {
			l := newLoaded(b, flows, -1, false)
			// The switch's own ports would count what it has not seen.
			l.from, l.to = memory.New("from", memory.Options{}), memory.New("to", memory.Options{})
			measure(b, func() {
				l.inject()
				l.from.Receive(l.batch)
				l.to.Transmit(l.batch)
				l.to.Flush()
				l.to.Collect(l.batch)
				packet.Release(l.batch)
			})
		})
	}
}

// measure returns the thread's time for a packet.
func measure(b *testing.B, pass func()) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.ReportAllocs()
	b.ResetTimer()
	start := threadTime()
	for n := 0; n < b.N; n += 64 {
		pass()
	}
	cpu := float64(threadTime()-start) / float64(max(b.N, 64))
	b.ReportMetric(cpu, "cpu-ns/op")
	return cpu
}
