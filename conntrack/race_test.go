package conntrack

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/packet"
)

// Several workers on one table.

const workers = 4

// together runs f once for each worker, at the same time, each with a bench of
// its own over one table.
func together(t testing.TB, table *Table, f func(worker int, w *bench)) {
	t.Helper()
	var all sync.WaitGroup
	ready := make(chan struct{})
	for worker := range workers {
		w := &bench{TB: t, Table: table, frame: packet.NewFrame(make([]byte, 2048), nil)}
		all.Go(func() { <-ready; f(worker, w) })
	}
	close(ready)
	all.Wait()
}

// TestRaceForOneFlow: the packets of a new flow that several workers have at
// once become one connection with one translation (CT-30).
func TestRaceForOneFlow(t *testing.T) {
	b := newBench(t, Config{})
	const flows = 500
	var ports [workers][flows]uint16
	together(t, b.Table, func(worker int, w *bench) {
		for i := range ports[worker] {
			w.want(udpFrame(client, server, uint16(1+i), 53), commitNAT("src=10.9.9.9:20000-40000"), "new|trk|snat")
			ports[worker][i] = w.sport()
		}
	})
	for worker := range ports {
		if ports[worker] != ports[0] {
			t.Errorf("worker %d translated otherwise", worker)
		}
	}
	if s := b.Stats(); s.Entries != flows || s.Created != flows {
		t.Errorf("stats %+v", s)
	}
	b.checkShares()
}

// TestRaceForPorts: as many flows as ports, from all workers: each gets a port
// of its own, and none is left over (CT-30).
func TestRaceForPorts(t *testing.T) {
	for round := range 50 {
		b := newBench(t, Config{})
		const each = 16
		var taken [workers * each]atomic.Int32
		together(t, b.Table, func(worker int, w *bench) {
			for i := range each {
				w.want(udpFrame(fmt.Sprintf("10.1.%d.%d", worker, i), server, 7, 53), commitNAT("src=10.9.9.9:5000-5063"), "new|trk|snat")
				taken[(w.sport()-5000)%uint16(len(taken))].Add(1)
			}
		})
		for i := range taken {
			if n := taken[i].Load(); n != 1 {
				t.Fatalf("round %d: port %d was given to %d connections", round, 5000+i, n)
			}
		}
	}
}

// TestMarkAndLabelGoTogether: both directions change bits of mark and label;
// none is lost, and no packet sees one without the other (CT-22).
func TestMarkAndLabelGoTogether(t *testing.T) {
	b := newBench(t, Config{})
	b.want(udpFrame(client, server, 1234, 53), commit, "new|trk")
	together(t, b.Table, func(worker int, w *bench) {
		for bit := worker; bit < 32; bit += workers {
			for range 50 {
				f := udpFrame(client, server, 1234, 53)
				if worker%2 == 1 {
					f = udpFrame(server, client, 53, 1234)
				}
				w.enter(f)
				one := uint32(1) << bit
				w.ct(Request{Zone: 100, Mark: one, MarkMask: one, Label: Label{Hi: uint64(one), Lo: uint64(one)}, LabelMask: Label{Hi: uint64(one), Lo: uint64(one)}})
				if m := uint64(w.meta.Mark); w.meta.Label != (Label{m, m}) {
					t.Errorf("mark %x with label %v", m, w.meta.Label)
				}
			}
		}
	})
	b.want(udpFrame(client, server, 1234, 53), lookup, "est|trk")
	if b.meta.Mark != 1<<32-1 {
		t.Errorf("mark %x: bits were lost", b.meta.Mark)
	}
}

// TestEverythingAtOnce: two workers track and commit, in a table that is too small for
// them. Meanwhile the clock turns and connections are swept, purged, dumped and traced. In
// the end the table is in order.
func TestEverythingAtOnce(t *testing.T) {
	var clock atomic.Int64
	table := NewTable(Config{Max: 64, Now: clock.Load, NewRate: -1})
	table.SetLimit(2, 16)
	together(t, table, func(worker int, w *bench) {
		random := rand.New(rand.NewPCG(1, uint64(worker)))
		for i := range 4000 {
			switch {
			case worker < 2:
				w.now = clock.Load()
				w.enter(fuzzFrames[random.IntN(len(fuzzFrames))])
				r := fuzzActions[random.IntN(len(fuzzActions))]
				r.InPort = uint32(worker)
				w.ct(r)
				w.enter(udpFrame(client, server, uint16(1+random.IntN(200)), 53))
				w.ct(r)
			case i%8 == 0 && worker == 2:
				table.Sweep(clock.Add(int64(time.Second)))
			case i%8 == 0:
				w.disturb(random)
			}
		}
	})
	b := newBench(t, Config{})
	b.Table = table
	b.checkOrder()
	for range 100 {
		table.Sweep(clock.Add(int64(time.Hour)))
	}
	if s := table.Stats(); s.Entries != 0 {
		t.Errorf("%d connections never end", s.Entries)
	}
	b.checkOrder()
}

// disturb does what others than workers do with a table.
func (b *bench) disturb(random *rand.Rand) {
	b.Helper()
	switch random.IntN(5) {
	case 0:
		b.Purge(func(c *Conn) bool { return c.Orig.SrcPort%3 == 0 })
	case 1:
		b.Flush()
	case 2:
		s := &bench{TB: b.TB, Table: b.Scratch(), frame: b.frame, now: b.clock()}
		s.enter(udpFrame(client, server, 3, 53))
		s.ct(commitNAT("src=10.9.9.9"))
	case 3:
		b.Stats()
		b.Zones()
	default:
		for c := range b.Dump(Filter{}) {
			if !c.Orig.Src.IsValid() || c.Timeout <= 0 {
				b.Errorf("dumped %v", &c)
			}
		}
	}
}

// TestKilledWriter kills a process that makes connections, at a random moment,
// and finds them again: all but the one that was being made (CT-43). The
// process writes a byte after each, and ends the one before the last hundred.
func TestKilledWriter(t *testing.T) {
	const capacity, kept = 1000, 100
	if path := os.Getenv("CT_ARENA"); path != "" {
		makeForever(t, restored(t, mapFile(t, path, ArenaSize(capacity)), 1, Config{NewRate: -1}), kept)
	}
	for range 5 {
		path := filepath.Join(t.TempDir(), "ct.arena")
		made := killedAfter(t, path, time.Duration(5+rand.IntN(40))*time.Millisecond)
		b := restored(t, mapFile(t, path, ArenaSize(capacity)), 1, Config{})
		s := b.Stats().Restored
		if s.Torn > 1 || s.Entries < min(made, kept)-1 || s.Entries > kept+1 {
			t.Errorf("after %d connections: restored %+v", made, s)
		}
		for i := max(0, made-kept+1); i < made; i++ {
			b.want(udpFrame(server, "10.9.9.9", 53, 1+uint16(i%60000)), unNAT, "est|rpl|trk|dnat")
			if b.meta.Mark != uint32(i) {
				t.Errorf("connection %d of %d has mark %d", i, made, b.meta.Mark)
			}
		}
		b.checkOrder()
	}
}

// killedAfter runs this test as a process that makes connections in a file. It kills the
// process a time after the first connection, and returns how many there were.
func killedAfter(t *testing.T, path string, d time.Duration) (made int) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestKilledWriter$")
	c.Env = append(os.Environ(), "CT_ARENA="+path)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1<<16)
	for {
		n, err := out.Read(b)
		if made == 0 && n > 0 {
			time.AfterFunc(d, func() { c.Process.Kill() })
		}
		made += n
		if err != nil {
			break
		}
	}
	if err := c.Wait(); err == nil || made == 0 {
		t.Fatalf("the process ended by itself after %d connections: %v", made, err)
	}
	return made
}

// makeForever makes connections, answers each, and ends that of kept before.
func makeForever(t *testing.T, b *bench, kept int) {
	var handles []store.Handle
	for i := 0; ; i++ {
		r := commitNAT("src=10.9.9.9")
		r.Mark, r.MarkMask = uint32(i), 1<<32-1
		b.enter(udpFrame(client, server, 1+uint16(i%60000), 53))
		if b.ct(r); b.verdict.Drop != DropNone {
			t.Fatalf("connection %d: %+v", i, b.verdict)
		}
		handles = append(handles, b.meta.at)
		b.enter(udpFrame(server, "10.9.9.9", 53, 1+uint16(i%60000)))
		b.ct(unNAT)
		if i >= kept {
			b.remove(handles[i-kept], whatever, b.now)
		}
		if _, err := os.Stdout.Write([]byte{'.'}); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkTrackParallel is established packets of a connection for each
// worker.
func BenchmarkTrackParallel(b *testing.B) {
	table := newBench(b, Config{}).Table
	var next atomic.Uint32
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		w := &bench{TB: b, Table: table, frame: packet.NewFrame(make([]byte, 2048), nil)}
		port := uint16(1 + next.Add(1))
		w.want(udpFrame(client, server, port, 53), commit, "new|trk")
		w.want(udpFrame(server, client, 53, port), lookup, "est|rpl|trk")
		w.enter(udpFrame(client, server, port, 53))
		for pb.Next() {
			w.meta = Meta{}
			w.Track(w.frame, &w.layers, &w.meta, &lookup, w.now)
		}
	})
}
