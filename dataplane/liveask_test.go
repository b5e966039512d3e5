package dataplane_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/internal/walktest"
	"github.com/antrail/antrail/packet"
)

// The cost of a live trace for packets that it does not want.

// TestLiveAsksOnce asks about a connection that is replayed once for each set of
// traces, but for each packet when one wants to look deeper; and about another one.
func TestLiveAsksOnce(t *testing.T) {
	first, like := 1, 0 // of ten packets
	if *walktest.All {  // nothing is replayed: each is asked about
		first, like = 10, 10
	}
	e := newEstablished(t)
	for range 8 {
		e.pass(e.client, e.web, e.there)
		e.pass(e.web, e.client, e.back)
	}
	checks := 0
	none := func([]byte, uint32) bool { checks++; return false }
	want := func(n int, what string) {
		t.Helper()
		checks = 0
		for range 10 {
			e.pass(e.client, e.web, e.there)
		}
		if checks != n {
			t.Errorf("%s: asked %d times", what, checks)
		}
	}
	l := e.watch(dataplane.LiveRequest{Match: none})
	want(first, "first packets")
	want(like, "packets like those")
	checks = 0
	e.pass(e.web, e.client, e.back)
	if checks != 1 {
		t.Errorf("the other direction: asked %d times", checks)
	}
	deep := e.watch(dataplane.LiveRequest{Match: none, Deep: true})
	want(20, "with a trace that looks deeper")
	deep.Close()
	want(first, "without it")
	l.Close()
	want(0, "nobody")
}

// TestLiveNumbersComeAgain arms traces whose numbers were those of others: packets
// that those did not want are asked about.
func TestLiveNumbersComeAgain(t *testing.T) {
	e := newEstablished(t)
	e.watch(dataplane.LiveRequest{Match: func([]byte, uint32) bool { return false }}).Close()
	for range 4 {
		l := e.watch(dataplane.LiveRequest{Match: func([]byte, uint32) bool { return false }})
		for range 4 {
			e.pass(e.client, e.web, e.there)
		}
		l.Close()
		e.sw.SkipLiveNumbers()
		l = e.watch(dataplane.LiveRequest{Match: wantAll})
		e.pass(e.client, e.web, e.there)
		if n := len(taken(t, l)); n != 1 {
			t.Errorf("%d walks", n)
		}
		l.Close()
	}
}

// TestLiveAllocatesNothing for packets that an armed trace does not want.
func TestLiveAllocatesNothing(t *testing.T) {
	e := newEstablished(t)
	e.watch(dataplane.LiveRequest{Match: func(b []byte, _ uint32) bool { return b[12] == 1 }})
	if n := testing.AllocsPerRun(500, func() { e.pass(e.client, e.web, e.there) }); n != 0 {
		t.Errorf("%v allocations for a packet that nobody wants", n)
	}
}

// BenchmarkLive is one packet of an established connection, from port to port,
// while nobody watches, while a trace is armed that does not want it, and watched.
func BenchmarkLive(b *testing.B) {
	for name, match := range map[string]func([]byte, uint32) bool{
		"off": nil, "armed": func(f []byte, _ uint32) bool { return f[12] == 1 }, "watched": wantAll,
	} {
		b.Run(name, func(b *testing.B) {
			e := newEstablished(b)
			if match != nil {
				l := e.watch(dataplane.LiveRequest{Match: match})
				ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
				defer cancel()
				go func() {
					for {
						if _, err := l.Next(ctx); err != nil {
							return
						}
					}
				}()
			}
			b.ReportAllocs()
			for b.Loop() {
				e.pass(e.client, e.web, e.there)
			}
		})
	}
}

// BenchmarkLiveArmed is a packet of a known connection in batches of 64, in turn
// while nobody watches and while a trace is armed that does not want it: windows of
// a loaded machine are compared with their neighbours. Both figures are the first
// quartile of the windows.
func BenchmarkLiveArmed(b *testing.B) {
	const batches = 50
	e := newEstablished(b)
	frames := slices.Repeat([][]byte{e.there}, 64)
	udp := dataplane.LiveRequest{Match: func(f []byte, _ uint32) bool { return f[23] == packet.ProtoUDP }}
	var took [2][]float64 // nanoseconds a packet
	for i := range max(8, b.N/(batches*len(frames))) {
		var l *dataplane.LiveTrace
		if i%2 == 1 {
			l = e.arm(udp)
		}
		e.passBatch(frames) // asked about
		start := time.Now()
		for range batches {
			e.passBatch(frames)
		}
		took[i%2] = append(took[i%2], float64(time.Since(start).Nanoseconds())/float64(batches*len(frames)))
		if l != nil {
			l.Close()
		}
	}
	for i, name := range []string{"off-ns/packet", "armed-ns/packet"} {
		slices.Sort(took[i])
		b.ReportMetric(took[i][len(took[i])/4], name)
	}
}

// TestLiveWait: of a trace that waits, no walk begins for so long, and for twice as long
// none with a packet that came through the tunnel; what brings an id of the session is
// watched at once. When another switch has begun enough, none begins with what it sends.
func TestLiveWait(t *testing.T) {
	const session, wait = 7 << 32, 100 * time.Millisecond
	r := newRig(t, "table=0 actions=output:2")
	armed := time.Now() // the switch waits from some moment after it
	l := r.watch(dataplane.LiveRequest{Match: wantAll, Wait: wait, FirstID: session | 1, Begin: 5})
	tunnelled := func(id uint64) {
		f := packet.NewFrame(make([]byte, 2048), nil)
		_, b := r.compose(anyTCP)
		f.SetBytes(b)
		f.Tunnel = packet.Tunnel{Src: netip.MustParseAddr("192.168.77.103"), Trace: id}
		r.wantPorts(r.sendWhole(tunnelPort, f), 2)
	}
	seen := uint64(0)
	wantWalks := func(n uint64, when string) {
		t.Helper()
		told := l.Counts().Told
		if got := told - seen; got != n {
			t.Errorf("%s: %d walks, want %d", when, got, n)
		}
		seen = told
	}
	tunnelled(session | 1<<24 | 1)
	wantWalks(1, "a packet with an id")
	for l.Counts().Told == seen {
		r.send(anyTCP)
	}
	seen = l.Counts().Told
	if waited := time.Since(armed); waited < wait {
		t.Errorf("a walk begins after %v", waited)
	}
	time.Sleep(2*wait - time.Since(armed))
	tunnelled(0)
	wantWalks(1, "through the tunnel, when all have waited")
	tunnelled(session | 1<<24 | 5)
	tunnelled(0)
	wantWalks(1, "when the other switch has begun enough")
	r.send(anyTCP)
	wantWalks(1, "a packet of this switch's own")
}
