package program

import (
	"testing"

	"github.com/antrail/antrail/flow"
)

// BenchmarkMeter is a packet at a meter that lets it pass, and at one that does not.
func BenchmarkMeter(b *testing.B) {
	for _, c := range []struct {
		name string
		rate uint32
	}{{"passes", 1 << 31}, {"drops", 1}} {
		b.Run(c.name, func(b *testing.B) {
			m := newMeter(&flow.Meter{ID: 1, PktPS: true, Bands: []flow.Band{{Rate: c.rate}}}, nil)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				t := new(BucketCounts)
				for now := int64(1); pb.Next(); now += 100 {
					m.Pass(t, 100, now)
				}
			})
		})
	}
}
