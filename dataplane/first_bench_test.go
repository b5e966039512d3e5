package dataplane_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/antrail/antrail/packet"
)

// renewal turns the frame of a connection's first packet into that of another
// one's, by its source port, or, in a scan, by its destination port.
func renewal(b []byte, n uint32, scan bool) {
	l, at := packet.ParseLayers(b), 0
	if scan {
		at = 2
	}
	binary.BigEndian.PutUint16(b[l.L4+at:], uint16(1024+n%60000))
	l.SetL4Checksum(b)
}

// BenchmarkFirst is first packets of connections between two pods, of ones that a
// policy refuses, of ones to a Service and of a scan of all ports, by what the
// switch remembers; the figures are per packet. cpu-ns leaves out what other processes take.
func BenchmarkFirst(b *testing.B) {
	for _, kind := range []string{"udp", "syn", "service", "scan"} {
		for mode, cache := range map[string]int{"megaflows": 0, "walk": -1} {
			b.Run(fmt.Sprint(kind, "/", mode), func(b *testing.B) {
				l := newLoaded(b, 1, cache, false)
				l.frames, l.scan = [][]byte{l.firstOf(kind)}, kind == "scan"
				for n := range uint32(mostFirst / 64) { // the connection table's memory is there from now on
					l.sendFirstPackets(n * 64)
				}
				l.firsts(b)
			})
		}
	}
}

// mostFirst is how many connections are begun before all are forgotten.
const mostFirst = 50_000

// firsts measures first packets, without the time in which connections are
// forgotten.
func (l *loaded) firsts(b *testing.B) {
	n, forgetting := uint32(0), int64(0)
	cpu := measure(b, func() {
		if n%mostFirst < 64 {
			b.StopTimer()
			start := threadTime()
			l.conntrack.Flush()
			forgetting += threadTime() - start
			b.StartTimer()
		}
		l.sendFirstPackets(n)
		n += 64
	})
	b.ReportMetric(cpu-float64(forgetting)/float64(max(b.N, 64)), "cpu-ns/op")
}

// sendFirstPackets sends the first packets of a batch of connections.
func (l *loaded) sendFirstPackets(n uint32) {
	l.pool.Get(l.batch)
	for i, f := range l.batch {
		f.SetBytes(l.frames[0])
		renewal(f.Bytes(), n+uint32(i), l.scan)
	}
	l.from.Inject(l.batch...)
	l.sw.Poll()
	for _, p := range l.ports {
		packet.Release(l.taken[:p.Collect(l.taken)])
	}
}

// firstOf is the frame of a first packet.
func (l *loaded) firstOf(kind string) []byte {
	const eth = "dl_src=5e:b5:e3:a6:90:b7,nw_src=10.10.0.26,nw_ttl=64,"
	_, b := l.compose(map[string]string{
		"udp":     "udp," + eth + "dl_dst=fa:b7:53:74:21:a6,nw_dst=10.10.0.24,udp_src=1000,udp_dst=100",
		"syn":     "tcp," + eth + "dl_dst=fa:b7:53:74:21:a6,nw_dst=10.10.0.24,tcp_src=1000,tcp_dst=100,tcp_flags=+syn",
		"scan":    "tcp," + eth + "dl_dst=fa:b7:53:74:21:a6,nw_dst=10.10.0.24,tcp_src=1000,tcp_dst=100,tcp_flags=+syn",
		"service": "tcp," + eth + "dl_dst=ba:5e:d1:55:aa:c0,nw_dst=10.105.31.235,tcp_src=1000,tcp_dst=80,tcp_flags=+syn",
	}[kind])
	return b
}
