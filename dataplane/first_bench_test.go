package dataplane_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/antrail/antrail/packet"
)

// renewal turns the frame of a connection's first packet into that of another
// one's, by its source port.
func renewal(b []byte, n uint32) {
	l := packet.ParseLayers(b)
	binary.BigEndian.PutUint16(b[l.L4:], uint16(1024+n%60000))
	l.SetL4Checksum(b)
}

// BenchmarkFirst is first packets of connections between two pods, and of one to
// a Service; the figures are per packet.
func BenchmarkFirst(b *testing.B) {
	for _, kind := range []string{"udp", "syn", "service"} {
		for mode, cache := range map[string]int{"cache": 0, "walk": -1} {
			b.Run(fmt.Sprint(kind, "/", mode), func(b *testing.B) {
				l := newLoaded(b, 1, cache, false)
				frame := l.firstOf(kind)
				n := uint32(0)
				measure(b, func() {
					l.pool.Get(l.batch)
					for _, f := range l.batch {
						f.SetBytes(frame)
						renewal(f.Bytes(), n)
						n++
					}
					if n%50000 < 64 {
						b.StopTimer()
						l.conntrack.Flush()
						b.StartTimer()
					}
					l.from.Inject(l.batch...)
					l.sw.Poll()
					for _, p := range l.ports {
						packet.Release(l.batch[:p.Collect(l.batch)])
					}
				})

			})
		}
	}
}

// firstOf is the frame of a first packet.
func (l *loaded) firstOf(kind string) []byte {
	const eth = "dl_src=5e:b5:e3:a6:90:b7,nw_src=10.10.0.26,nw_ttl=64,"
	_, b := l.compose(map[string]string{
		"udp":     "udp," + eth + "dl_dst=fa:b7:53:74:21:a6,nw_dst=10.10.0.24,udp_src=1000,udp_dst=100",
		"syn":     "tcp," + eth + "dl_dst=fa:b7:53:74:21:a6,nw_dst=10.10.0.24,tcp_src=1000,tcp_dst=100,tcp_flags=+syn",
		"service": "tcp," + eth + "dl_dst=ba:5e:d1:55:aa:c0,nw_dst=10.105.31.235,tcp_src=1000,tcp_dst=80,tcp_flags=+syn",
	}[kind])
	return b
}
