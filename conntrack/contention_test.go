package conntrack

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/packet"
)

// contender is a worker that has one direction of established TCP connections.
type contender struct {
	*bench
	dir   int
	sides []Seen
	frame []byte
	slow  []time.Duration // batches, by how long each took
}

// BenchmarkContention has two workers advance the same TCP connections, each one direction,
// as two ports do. ns/op is the time in which each worker advances one connection. Every
// segment changes the sequence state, every 64th the time. slow-us is what the slowest batch
// of 64 in ten thousand took: it shows the worker that waits for another one.
func BenchmarkContention(b *testing.B) {
	for _, how := range []string{"pass", "track"} {
		for _, n := range []int{1, 64, 10_000} {
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/connections=%d/workers=%d", how, n, workers), func(b *testing.B) {
					t := newBench(b, Config{Max: 1 << 17, NewRate: -1})
					t.SetSequenceCheck(false) // one worker may fall behind the other's acknowledgements
					sides := t.open("tcp", n)
					var all [2]*contender
					for dir := range all {
						all[dir] = &contender{bench: benchOf(b, t.Table), dir: dir, sides: sides[dir]}
					}
					b.ResetTimer()
					var wait sync.WaitGroup
					for _, w := range all[:workers] {
						run := w.runPass
						if how == "track" {
							run = w.runTrack
						}
						wait.Go(func() { w.runBatches(b.N, run) })
					}
					wait.Wait()
					b.StopTimer()
					slow := slices.Concat(all[0].slow, all[1].slow)
					slices.Sort(slow)
					b.ReportMetric(float64(slow[len(slow)-1-len(slow)/10_000])/1000, "slow-us")
				})
			}
		}
	}
}

// runBatches runs batches of 64 segments, n segments in all.
func (w *contender) runBatches(n int, run func(from int)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w.now = 1
	for from := 0; from < n; from += 64 {
		w.now += int64(1 + w.dir)
		start := time.Now()
		run(from)
		w.slow = append(w.slow, time.Since(start))
	}
}

// runPass lets a batch of segments pass.
func (w *contender) runPass(from int) {
	var p Passing
	p.packet = packetOf(proto.Segment{Ack: 5001, Length: 100, Window: 8192, Flags: packet.TCPAck})
	for i := from; i < from+64; i++ {
		p.packet.Segment.Seq = uint32(1001+4000*w.dir) + uint32(i/len(w.sides))*100
		if !w.Pass(&w.sides[i%len(w.sides)], &p, w.now) {
			w.Error("a segment did not pass")
		}
	}
}

// runTrack tracks a batch of segments.
func (w *contender) runTrack(from int) {
	for i := from; i < from+64; i++ {
		if w.frame == nil || len(w.sides) > 1 {
			w.compose(i % len(w.sides))
		}
		packet.TCP(w.bench.frame.Bytes()[w.layers.L4:]).SetSeq(uint32(1001+4000*w.dir) + uint32(i/len(w.sides))*100)
		w.meta = Meta{sound: true}
		w.Track(w.bench.frame, &w.layers, &w.meta, &lookup, w.now)
		if w.meta.State&Established == 0 {
			w.Errorf("a segment is %+v", w.meta)
		}
	}
}

// compose puts the i-th connection's addresses and ports into the frame.
func (w *contender) compose(i int) {
	if w.frame == nil {
		w.frame = sideSegment(7, w.dir, 0, 0, 100)
		w.enter(w.frame)
	}
	words := w.arena.At(w.sides[i].at.Slot).KeyWords(w.dir)
	b := w.bench.frame.Bytes()
	ip, l4 := packet.IPv4(b[w.layers.L3:]), b[w.layers.L4:]
	for j, word := range [2]uint64{words[1], words[3]} {
		for k := range 4 {
			[2][]byte{ip.SrcBytes(), ip.DstBytes()}[j][k] = byte(word >> (24 - 8*k))
		}
	}
	for k := range 4 {
		l4[k] = byte(words[4] >> (56 - 8*k))
	}
}
