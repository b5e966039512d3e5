package conntrack

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
	"golang.org/x/sys/unix"
)

// TestChainsAreBounded: whoever knew the secret could put all connections into
// one chain; beyond maxChain it takes no more, and other chains do (CT-41).
func TestChainsAreBounded(t *testing.T) {
	b := newBench(t, Config{Max: 200})
	crowded := func(from uint32) *store.Entry {
		for src := from; ; src++ {
			k := tuple.Key{Src: tuple.Address{Lo: uint64(src)}, Dst: tuple.Address{Lo: 1}, SrcPort: 7, DstPort: 8, Proto: 17, Family: tuple.IPv4}
			if w := k.Words(); b.index.Bucket(b.chains.Hash(&w)) == 0 {
				return &store.Entry{Keys: [2]tuple.Key{k, k.Reversed()}, State: proto.State{Expires: 1 << 40}}
			}
		}
	}
	next := uint32(1)
	for i := range store.MaxChain {
		e := crowded(next)
		if _, made := b.insert(e, b.shares.ofPort(b.Table, e.Port), nil, 0); made != inserted {
			t.Fatalf("connection %d of the chain: %v", i, made)
		}
		next = uint32(e.Keys[tuple.Original].Src.Lo) + 1
	}
	e := crowded(next)
	if _, made := b.insert(e, b.shares.ofPort(b.Table, e.Port), nil, 0); made != chainFull {
		t.Errorf("one more than %d: %v", store.MaxChain, made)
	}
	if b.Stats().ProbeMax != store.MaxChain+1 {
		t.Errorf("the longest chain is %d", b.Stats().ProbeMax)
	}
	// The packet that would have begun it is dropped and counted.
	from := e.Keys[tuple.Original].Src.Addr(tuple.IPv4).String()
	b.want(udpFrame(from, "0.0.0.1", 7, 8), Request{Commit: true}, "new|trk")
	if b.verdict.Drop != DropChainFull || b.Stats().Drops[DropChainFull] != 1 {
		t.Errorf("verdict %+v", b.verdict)
	}
	b.want(udpFrame(client, server, 1, 53), commit, "new|trk")
	if b.verdict.Drop != DropNone {
		t.Errorf("in another chain: verdict %+v", b.verdict)
	}
}

// TestNATSearchEnds: a search ends after natTries lookups, however many
// addresses and ports there are (CT-26).
func TestNATSearchEnds(t *testing.T) {
	b := newBench(t, Config{Max: 1 << 16, NewRate: -1})
	b.exhaust()
	before := b.Stats().NATTries
	b.want(udpFrame("10.2.0.1", server, 7, 53), exhausted(), "new|trk")
	if b.verdict.Drop != DropNATExhausted {
		t.Errorf("verdict %+v", b.verdict)
	}
	for i, n := range b.Stats().NATTries {
		want := before[i]
		if i == natTryBuckets-1 {
			want++
		}
		if n != want {
			t.Errorf("%d searches below %d tries, want %d", n, 1<<i, want)
		}
	}
}

// exhausted is NAT to sixteen addresses of a thousand ports each.
func exhausted() Request {
	r := commitNAT("src=10.9.0.0:1000-1999")
	for range 15 {
		r.NAT.AddrMax = r.NAT.AddrMax.Next()
	}
	return r
}

// exhaust takes all ports of exhausted.
func (b *bench) exhaust() {
	b.Helper()
	for a := range 16 {
		r := commitNAT(fmt.Sprintf("src=10.9.0.%d:1000-1999", a))
		for port := range uint16(1000) {
			k := udpFrame(fmt.Sprintf("10.1.%d.1", a), server, 1+port, 53)
			r.NAT.PortMin, r.NAT.PortMax = 1000+port, 1000+port
			b.want(k, r, "new|trk|snat")
		}
	}
}

// BenchmarkNATExhausted is a packet for which no tuple is free.
func BenchmarkNATExhausted(b *testing.B) {
	w := newBench(b, Config{Max: 1 << 16, NewRate: -1})
	w.exhaust()
	w.enter(udpFrame("10.2.0.1", server, 7, 53))
	r := exhausted()
	b.ReportAllocs()
	for b.Loop() {
		w.meta = Meta{}
		if v := w.Track(w.frame, &w.layers, &w.meta, &r, w.now); v.Drop != DropNATExhausted {
			b.Fatalf("%+v", v)
		}
	}
}

// TestSweepRemovesTheExpired: one round removes what has expired and nothing
// else (CT-40).
func TestSweepRemovesTheExpired(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	b := newBench(t, Config{Max: 1 << 14, NewRate: -1})
	for i := range uint16(9000) {
		b.want(udpFrame(client, server, 1+i, 53), commit, "new|trk")
		if random.IntN(2) == 0 {
			b.want(udpFrame(server, client, 53, 1+i), lookup, "est|rpl|trk")
		}
		if i%64 == 0 {
			b.warp(time.Second)
		}
	}
	for range 4 {
		b.warp(20 * time.Second)
		live := b.lines()
		for i := range live {
			live[i] = live[i][:strings.Index(live[i], ",timeout=")]
		}
		for range int(sweepRound / time.Second) {
			b.Sweep(b.now)
		}
		n := 0
		b.each(func(e *store.Entry, _ store.Handle) {
			var c Conn
			c.show(e, b.now)
			if c.String() != live[n] {
				t.Fatalf("%s is there, want %s", c.String(), live[n])
			}
			n++
		})
		if n != len(live) {
			t.Fatalf("%d connections are left, want %d", n, len(live))
		}
	}
}

// TestCellsAreUsedAgain: what a cell held before is never seen again.
func TestCellsAreUsedAgain(t *testing.T) {
	b := newBench(t, Config{Max: 1})
	for round := range 3 {
		for _, f := range fuzzFrames {
			b.enter(f)
			r := commitNAT("src=10.9.9.9")
			r.Mark, r.MarkMask, r.Label, r.LabelMask = 1, 1, Label{1, 1}, Label{1, 1}
			if b.ct(r); b.meta.State&New == 0 {
				continue
			}
			if b.meta.Mark != 1 || b.meta.Label != (Label{1, 1}) {
				t.Fatalf("round %d: mark %x label %v", round, b.meta.Mark, b.meta.Label)
			}
			b.enter(f)
			r.Mark, r.MarkMask, r.Label, r.LabelMask = 2, 3, Label{}, Label{3, 3}
			b.ct(r)
			b.Flush()
			b.checkOrder()
		}
	}
}

// BenchmarkCreate is the first packets of connections of UDP, without their
// making (fillFrom), beside so many others. A table takes a million of them;
// then another, filled alike, goes on.
func BenchmarkCreate(b *testing.B) {
	const most = 1_000_000
	for _, n := range []int{1, 100_000, most} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			var taken time.Duration
			for left := b.N; left > 0; left -= most {
				b.StopTimer()
				w := newBench(b, Config{Max: 2 * most, NewRate: -1})
				w.fillUDP(n)
				b.StartTimer()
				before := processorTime(b)
				w.fillFrom(0x0b000000, min(left, most), &commit)
				taken += processorTime(b) - before
			}
			b.ReportMetric(float64(taken)/float64(b.N), "cpu-ns/op")
		})
	}
}

// processorTime is what the process has taken of the processors.
func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
