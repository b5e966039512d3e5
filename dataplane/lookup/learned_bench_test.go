package lookup

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// stickiness is the entries that session affinity makes for clients, one each.
func stickiness(tb testing.TB, from, n int) []*Entry {
	all := make([]*Entry, n)
	for i := range all {
		c := from + i
		e, err := parse.Entry(fmt.Sprintf("table=1,priority=192,idle_timeout=300,cookie=7,tcp,nw_src=10.%d.%d.%d,nw_dst=10.96.0.1,tp_dst=80 actions=set_field:5->reg3,set_field:80->reg4", c>>16&255, c>>8&255, c&255), nil)
		if err != nil {
			tb.Fatal(err)
		}
		all[i] = testEntry(e, 0)
	}
	return all
}

// sticky is a table with learned entries of n clients, and keys of packets of theirs.
func sticky(tb testing.TB, n int) (*Table, []flow.Key) {
	t := &Table{Static: newClassifier(nil), Live: new(TableState)}
	var keys []flow.Key
	for _, e := range stickiness(tb, 0, n) {
		t.Live.Learned.Add(e, 0)
		if len(keys) < 1024 {
			keys = append(keys, e.Match.Value())
		}
	}
	return t, keys
}

// BenchmarkLearn is what one more learned entry costs a table, and BenchmarkAffinity a
// lookup of a packet that meets one, by how many there are. With -cpu 1,2 the latter is
// done by so many workers at once.
func BenchmarkLearn(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint("entries=", n), func(b *testing.B) {
			t, _ := sticky(b, n)
			more := stickiness(b, n, b.N)
			b.ReportAllocs()
			b.ResetTimer()
			for _, e := range more {
				t.Live.Learned.Add(e, 0)
			}
		})
	}
}

func BenchmarkAffinity(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprint("entries=", n), func(b *testing.B) {
			t, keys := sticky(b, n)
			var missed atomic.Bool
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				var s Scratch
				k := new(flow.Key)
				for i := 0; pb.Next(); i++ {
					*k = keys[i%len(keys)]
					if s.Find(t, k) == nil {
						missed.Store(true)
					}
				}
			})
			if missed.Load() {
				b.Error("a packet met no learned entry")
			}
		})
	}
}
