package l2

import (
	"fmt"
	"sync/atomic"
	"testing"
)

// BenchmarkNormal is what NORMAL asks of its addresses for a packet between two
// stations that are known.
func BenchmarkNormal(b *testing.B) {
	for _, n := range []int{16, 4096} {
		b.Run(fmt.Sprint("stations=", n), func(b *testing.B) {
			var t MACTable
			for i := range n {
				t.Learn(MACKey{uint64(i), 0}, uint32(i%64), &t.Stray, 1)
			}
			var workers atomic.Uint32
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				i := int(workers.Add(1)) * n / 2
				for ; pb.Next(); i++ {
					t.Learn(MACKey{uint64(i % n), 0}, uint32(i%n%64), &t.Stray, 2)
					if _, ok := t.Port(MACKey{uint64((i + 1) % n), 0}, 2); !ok {
						b.Error("a station is not known")
						return
					}
				}
			})
		})
	}
}
