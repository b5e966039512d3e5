package dataplane_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
)

// stamp is a port that notes when a frame left by it.
type stamp struct {
	*memory.Port
	at atomic.Int64 // nanoseconds since begin
}

var begin = time.Now()

func (s *stamp) Transmit(batch []*packet.Frame) int {
	s.at.Store(int64(time.Since(begin)))
	packet.Release(batch)
	return len(batch)
}

// BenchmarkWakeUp is the way of one packet from the moment a port is readable
// until it is sent, from a thread of its own, by how long after the packet
// before it came: after 2 ms the worker sleeps, after 20 us it still spins.
func BenchmarkWakeUp(b *testing.B) {
	for _, gap := range []time.Duration{20 * time.Microsecond, 2 * time.Millisecond} {
		b.Run(gap.String(), func(b *testing.B) { benchmarkWakeUp(b, gap) })
	}
}

func benchmarkWakeUp(b *testing.B, gap time.Duration) {
	in, out := newBell(b, "in"), &stamp{Port: memory.New("out", memory.Options{})}
	has := map[uint32]ports.Port{1: in, 2: &deaf{out, newBell(b, "out").fd}}
	for no := uint32(10); no < 109; no++ {
		has[no] = newBell(b, "idle")
	}
	r := run(b, 1, "table=0 actions=output:2", has)
	f, took := udp(1, 2, 0), make([]time.Duration, 0, b.N)
	used := cpuTime(b)
	started := time.Now()
	for b.Loop() {
		for wait := time.Now(); time.Since(wait) < gap; {
			if gap > time.Millisecond {
				time.Sleep(gap)
			}
		}
		out.at.Store(0)
		sent := time.Since(begin)
		in.Inject(f)
		in.ring()
		for out.at.Load() == 0 {
		}
		took = append(took, time.Duration(out.at.Load())-sent)
	}
	cpu := float64(cpuTime(b)-used) / float64(time.Since(started))
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
	b.ReportMetric(cpu, "cores")
	b.ReportMetric(float64(r.sw.Sleeps())/float64(len(took)), "sleeps/op")
	b.ReportMetric(0, "ns/op")
}

// deaf is a port that never receives, with a descriptor to sleep on.
type deaf struct {
	*stamp
	fd int
}

func (d deaf) FD() int { return d.fd }

func (deaf) Receive([]*packet.Frame) int { return 0 }

// stoppedSwitch is a switch of two workers without a pipeline, whose clock stands still.
func stoppedSwitch(t *testing.T) *dataplane.Switch {
	t.Helper()
	clock := func() int64 { return 1 }
	sw, err := dataplane.New(dataplane.Config{Conntrack: conntrack.NewTable(conntrack.Config{Now: clock}), Clock: clock, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sw.Close() })
	return sw
}

// TestUpkeepCallsSeldom: each sleeping worker is called in every fifth second, from the first on. Each
// second has a value for the goroutine that waits for it.
func TestUpkeepCallsSeldom(t *testing.T) {
	sw := stoppedSwitch(t)
	var called []int
	for second := range 11 {
		called = append(called, sw.Upkeep(second))
		select {
		case <-sw.Seconds():
		default:
			t.Errorf("second %d has no value", second)
		}
	}
	if want := []int{2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2}; !slices.Equal(called, want) {
		t.Errorf("workers called: %v, want %v", called, want)
	}
}

// TestPortsMark: the mark changes when a port comes, drops a frame or goes, and not by packets.
func TestPortsMark(t *testing.T) {
	sw := stoppedSwitch(t)
	last := sw.PortsMark()
	step := func(what string, changes bool) {
		t.Helper()
		now := sw.PortsMark()
		if (now != last) != changes {
			t.Errorf("%s: the mark was %x and is %x", what, last, now)
		}
		last = now
	}
	step("nothing", false)
	p := memory.New("p", memory.Options{})
	if err := sw.AddPort(1, p); err != nil {
		t.Fatal(err)
	}
	step("a port", true)
	p.Inject(udp(1, 2, 0))
	sw.Poll()
	step("a packet", false)
	p.Close()
	p.Transmit([]*packet.Frame{udp(1, 2, 0)})
	step("a drop", true)
	if err := sw.RemovePort(1); err != nil {
		t.Fatal(err)
	}
	step("no port", true)
}
