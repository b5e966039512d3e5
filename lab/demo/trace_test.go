package demo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/trace"
)

// liveWatch is a live trace of agents, until it is closed.
type liveWatch struct {
	ways   chan trace.Joined
	ended  chan error
	cancel func()
	counts telemetry.LiveCounts // when it has ended
}

// watchLive begins a live trace at some Nodes, and returns once they watch.
func (w *world) watchLive(t *testing.T, r api.LiveTraceRequest, nodes ...string) *liveWatch {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &liveWatch{ways: make(chan trace.Joined, 100_000), ended: make(chan error, 1), cancel: cancel}
	armed := make(chan struct{}, len(nodes))
	watch := api.Watch{Request: r, Armed: func(*api.Armed) { armed <- struct{}{} }, Tell: func(way trace.Joined) error { l.ways <- way; return nil }}
	for _, n := range nodes {
		watch.Agents = append(watch.Agents, w.agent(n))
	}
	go func() {
		var err error
		l.counts, err = watch.Run(ctx)
		close(l.ways)
		l.ended <- err
	}()
	t.Cleanup(cancel)
	for range nodes {
		select {
		case <-armed:
		case err := <-l.ended:
			t.Fatal(err)
		}
	}
	return l
}

// end ends the trace and returns what it saw.
func (l *liveWatch) end(t *testing.T) (ways []trace.Joined) {
	t.Helper()
	for n := -1; len(l.ways) != n; time.Sleep(2 * api.HalfWait) { // halves that are under way
		n = len(l.ways)
	}
	l.cancel()
	for way := range l.ways {
		ways = append(ways, way)
	}
	if err := <-l.ended; err != nil {
		t.Fatal(err)
	}
	return ways
}

// TestLiveTraceAcrossNodes asks a Service, whose endpoint is on the other Node,
// while packets between both are watched: those of the connection there and back
// are one walk each, and nobody notices.
func TestLiveTraceAcrossNodes(t *testing.T) {
	w := plainLab(t).world(t)
	l := w.watchLive(t, api.LiveTraceRequest{Filter: "tcp and (host 10.10.1.6 or host 10.96.1.6)"}, "node-a", "node-b")
	if g, err := w.greet(t.Context(), "client-a", "10.96.1.6:80"); err != nil {
		t.Fatalf("%+v: %v", g, err)
	}
	there, back := 0, 0
	for _, way := range l.end(t) {
		if len(way) != 2 || way[0].Node == way[1].Node || !way[1].Followed || way[0].ID != way[1].ID {
			t.Errorf("%d walks of %s", len(way), way[0].Packet)
			continue
		}
		var tree strings.Builder
		if err := trace.WriteTree(&tree, way); err != nil {
			t.Fatal(err)
		}
		text := tree.String()
		switch way[0].Node {
		case "node-a":
			there++
			if there == 1 && (!strings.Contains(text, "NAT: destination 10.96.1.6:80 → 10.10.1.6:80") || !strings.Contains(text, "web-b (37, default/web-b)")) {
				t.Errorf("the first packet's walk is\n%s", text)
			}
		case "node-b":
			back++
			if !strings.Contains(text, "NAT: source 10.10.1.6:80 → 10.96.1.6:80") {
				t.Errorf("an answer's walk is\n%s", text)
			}
		}
	}
	if there < 3 || back < 2 || l.counts.Missed != 0 {
		t.Errorf("%d packets there and %d back, %+v", there, back, l.counts)
	}
}

// numbers sends numbered datagrams to an echo server until the test ends, with a pause
// after each. At most inFlight have not come back, so that none is lost: with a short pause
// the link is loaded.
func (w *world) numbers(t *testing.T, from, to string, pause time.Duration) (back *atomic.Uint64) {
	t.Helper()
	const inFlight = 64
	c, err := w.dialUDP(t.Context(), from, fmt.Sprintf("%s:%d", to, echoPort))
	if err != nil {
		t.Fatal(err)
	}
	back = new(atomic.Uint64)
	var ended atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		b := make([]byte, 8)
		for {
			if _, err := c.Read(b); errors.Is(err, net.ErrClosed) {
				return
			} else if err == nil {
				back.Add(1)
			}
		}
	})
	all.Go(func() {
		for n := uint64(0); !ended.Load(); {
			if n >= back.Load()+inFlight {
				runtime.Gosched()
				continue
			}
			if _, err := c.Write(binary.BigEndian.AppendUint64(nil, n)); err == nil {
				n++
			}
			if pause > 0 {
				time.Sleep(pause)
			}
		}
	})
	t.Cleanup(func() { ended.Store(true); c.Close(); all.Wait() })
	return back
}

// TestLiveTraceWithoutAGap takes 100 datagrams out of thousands a second between two
// Pods or through the gateway: of one Node, where they pass in the kernel until then, and of
// two, where each is one walk over both. Their numbers follow one another.
func TestLiveTraceWithoutAGap(t *testing.T) {
	for to, nodes := range map[string][]string{receiver: {"node-a"}, "client-b": {"node-a", "node-b"}, "outside": {"node-a"}} {
		t.Run(to, func(t *testing.T) {
			w := offloadWorld(t)
			inKernel := w.since(t, "offload_packets")
			back := w.numbers(t, sender, to, 0)
			waitUntil(t, "thousands of datagrams", func() bool { return back.Load() > 5000 })
			if len(nodes) == 1 {
				waitUntil(t, "them to pass in the kernel", func() bool { return inKernel() > 5000 })
			}
			before, start := back.Load(), time.Now()
			l := w.watchLive(t, api.LiveTraceRequest{Source: "default/" + sender, Filter: "udp", Count: 100}, nodes...)
			var got []uint64
			for way := range l.ways {
				if len(way) != len(nodes) {
					t.Errorf("%d walks of one datagram", len(way))
				}
				if last := way[len(way)-1].Verdict; len(last.Outputs) != 1 || last.Outputs[0].Pod != podNamed(to) {
					t.Errorf("one ended as %+v", last)
				}
				got = append(got, binary.BigEndian.Uint64(way[0].Frame[42:50]))
			}
			t.Logf("%d datagrams came back in the %v of the trace", back.Load()-before, time.Since(start))
			if err := <-l.ended; err != nil || len(got) != 100 || l.counts.Missed != 0 {
				t.Fatalf("%d walks, %+v, %v", len(got), l.counts, err)
			}
			slices.Sort(got)
			for i, n := range got {
				if n != got[0]+uint64(i) {
					t.Fatalf("datagram %d follows %d", n, got[0]+uint64(i)-1)
				}
			}
			passed := back.Load()
			waitUntil(t, "thousands more", func() bool { return back.Load() > passed+5000 })
		})
	}
}

// podNamed is a pod as walks name it; "" for the host outside.
func podNamed(name string) string {
	if name == "outside" {
		return ""
	}
	return "default/" + name
}

// TestLiveTraceOfALoadedLink watches 100 packets of a stream that passes in the
// kernel: they come back to be seen, the stream is whole, and passes in the kernel
// again.
func TestLiveTraceOfALoadedLink(t *testing.T) {
	w := offloadWorld(t)
	inKernel, traced := w.since(t, "offload_packets"), w.since(t, "offload_traced")
	end := w.stream(t, sender, w.sink(receiver))
	waitUntil(t, "the stream to pass in the kernel", func() bool { return inKernel() > 1000 })
	l := w.watchLive(t, api.LiveTraceRequest{Source: "default/" + sender, Filter: "tcp", Count: 100}, "node-a")
	seen := 0
	for way := range l.ways {
		if seen++; len(way) != 1 || len(way[0].Verdict.Outputs) != 1 || way[0].Verdict.Outputs[0].Pod != "default/"+receiver {
			t.Errorf("%+v", way[0].Verdict)
		}
	}
	if err := <-l.ended; err != nil || seen != 100 || l.counts.Missed != 0 {
		t.Errorf("%d walks, %+v, %v", seen, l.counts, err)
	}
	passed := inKernel()
	waitUntil(t, "the stream to pass in the kernel again", func() bool { return inKernel() > passed+1000 })
	if err := end(); err != nil {
		t.Error(err)
	}
	if traced() == 0 {
		t.Error("nothing was taken back")
	}
}
