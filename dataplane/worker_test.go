package dataplane_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/internal/walktest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
	"golang.org/x/sys/unix"
)

// bell is a memory port with a descriptor that is readable while it has frames,
// as a port of the kernel's is.
type bell struct {
	*memory.Port
	fd    int
	polls atomic.Int64 // calls of Receive
}

func newBell(t testing.TB, name string) *bell {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return &bell{Port: memory.New(name, memory.Options{}), fd: fd}
}

func (b *bell) FD() int { return b.fd }

// ring announces what was injected.
func (b *bell) ring() { unix.Write(b.fd, binary.NativeEndian.AppendUint64(nil, 1)) }

func (b *bell) Receive(batch []*packet.Frame) int {
	b.polls.Add(1)
	if n := b.Port.Receive(batch); n > 0 {
		return n
	}
	var word [8]byte
	unix.Read(b.fd, word[:])
	return b.Port.Receive(batch)
}

// running is a switch that runs, with the machine's clock.
type running struct {
	testing.TB
	sw *dataplane.Switch
}

// run makes a switch with so many workers and runs it until the test ends.
func run(t testing.TB, workers int, flows string, has map[uint32]ports.Port) *running {
	t.Helper()
	begin := time.Now()
	clock := func() int64 { return int64(time.Since(begin)) + 1 }
	ct := conntrack.NewTable(conntrack.Config{Now: clock})
	sw, err := dataplane.New(dataplane.Config{Conntrack: ct, Clock: clock, Workers: workers, Cache: walktest.Cache()})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t, sw}
	p, err := parse.Program(parse.Sources{Flows: parse.Text("flows", flows)})
	r.check(err)
	r.check(sw.Apply(flow.BundleOf(p)))
	for no, p := range has {
		r.check(sw.AddPort(no, p))
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- sw.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := sw.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *running) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// until waits for something to become true.
func (r *running) until(what string, ok func() bool) {
	r.Helper()
	for end := time.Now().Add(waitAtMost); !ok(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			r.Fatalf("%s: not after %v", what, waitAtMost)
		}
	}
}

// udp is a frame from one host to another with a number in it.
func udp(from, to byte, number uint32) *packet.Frame {
	text := fmt.Sprintf("udp,dl_src=02:00:00:00:00:%02x,dl_dst=02:00:00:00:00:%02x,nw_src=10.0.0.%d,nw_dst=10.0.0.%d,nw_ttl=64,tp_src=%d,tp_dst=9", from, to, from, to, 1000+number%100)
	m, err := parse.Match(text, nil)
	if err != nil {
		panic(err)
	}
	b := flow.Compose(&m.Value)
	f := packet.NewFrame(make([]byte, packet.Headroom+len(b)+4), nil)
	f.SetBytes(binary.BigEndian.AppendUint32(b, number))
	return f
}

// serial is the number that udp wrote.
func serial(f *packet.Frame) uint32 {
	b := f.Bytes()
	return binary.BigEndian.Uint32(b[len(b)-4:])
}

// flood is a port that always has as many frames as it is asked for, and notes
// with the others in which order batches were taken.
type flood struct {
	*memory.Port
	pool  *packet.HeapPool
	frame []byte
	log   *[]string
}

func (f *flood) Receive(batch []*packet.Frame) int {
	n := f.pool.Get(batch)
	for _, one := range batch[:n] {
		one.SetBytes(f.frame)
	}
	*f.log = append(*f.log, fmt.Sprint(f.Name(), " ", n))
	return n
}

// quiet is a port that notes the batches it gives.
type quiet struct {
	*memory.Port
	log  *[]string
	done func()
}

func (q *quiet) Receive(batch []*packet.Frame) int {
	n := q.Port.Receive(batch)
	if n > 0 {
		*q.log = append(*q.log, fmt.Sprint(q.Name(), " ", n))
	} else {
		q.done()
	}
	return n
}

// TestFloodTakesItsTurn: as long as the other ports have frames, a port that
// floods has no more batches than each of them.
func TestFloodTakesItsTurn(t *testing.T) {
	var log []string // of the one worker
	over := make(chan struct{})
	var left atomic.Int32
	left.Store(3)
	ps := map[uint32]ports.Port{
		1: &flood{memory.New("flood", memory.Options{}), packet.NewPool(64, 2048), slices.Clone(udp(1, 9, 0).Bytes()), &log},
	}
	const each = 640 // ten full batches
	for no := uint32(2); no <= 4; no++ {
		q := &quiet{Port: memory.New(fmt.Sprint("p", no), memory.Options{}), log: &log}
		ended := false
		q.done = func() {
			if !ended && left.Add(-1) == 0 {
				close(over)
			}
			ended = true
		}
		for i := range uint32(each) {
			q.Inject(udp(byte(no), 9, i))
		}
		ps[no] = q
	}
	t.Run("", func(t *testing.T) {
		run(t, 1, "table=0 actions=drop", ps)
		select {
		case <-over:
		case <-time.After(waitAtMost):
			t.Fatal("the other ports starve")
		}
	}) // the worker has ended
	batches, frames := map[string]int{}, map[string]int{}
	for i, entry := range log {
		var name string
		var n int
		if _, err := fmt.Sscan(entry, &name, &n); err != nil {
			t.Fatal(err)
		}
		batches[name]++
		frames[name] += n
		for _, other := range []string{"p2", "p3", "p4"} {
			if frames[other] < each && batches["flood"] > batches[other]+2 {
				t.Fatalf("after %d batches: the flood had %d, and %s %d", i+1, batches["flood"], other, batches[other])
			}
		}
	}
	t.Logf("batches %v, frames %v", batches, frames)
	for _, name := range []string{"p2", "p3", "p4"} {
		if frames[name] != each {
			t.Errorf("%d of %d frames of %s", frames[name], each, name)
		}
	}
}

// TestQuietPortsAreLeft: ports without frames are not asked in each round, and
// are found when they have some while another port keeps the worker busy.
func TestQuietPortsAreLeft(t *testing.T) {
	const bells = 99
	ps, all := map[uint32]ports.Port{}, make([]*bell, bells)
	for i := range all {
		all[i] = newBell(t, fmt.Sprint("bell", i))
		ps[uint32(i+10)] = all[i]
	}
	var log []string
	stop := atomic.Bool{}
	busy := &flood{memory.New("flood", memory.Options{}), packet.NewPool(64, 2048), slices.Clone(udp(1, 9, 0).Bytes()), &log}
	ps[1] = &trimmed{busy, &stop}
	r := run(t, 1, "table=0 actions=drop", ps)
	rounds := func() uint64 { return r.sw.Workers()[0].Batches }
	r.until("the worker runs", func() bool { return rounds() > 500 })
	before, from := all[50].polls.Load(), rounds()
	r.until("it goes on", func() bool { return rounds() > from+1000 })
	if polls := all[50].polls.Load() - before; polls > 64 {
		t.Errorf("a quiet port was asked %d times in %d rounds", polls, rounds()-from)
	}
	for i, b := range all {
		b.Inject(udp(2, 9, uint32(i)))
		b.ring()
	}
	r.until("each port's frame is received", func() bool {
		return !slices.ContainsFunc(all, func(b *bell) bool { return b.Stats().RxPackets != 1 })
	})
	stop.Store(true)
}

// trimmed forgets the log, and stops.
type trimmed struct {
	*flood
	stop *atomic.Bool
}

func (p *trimmed) Receive(batch []*packet.Frame) int {
	if p.stop.Load() {
		return 0
	}
	*p.log = (*p.log)[:0]
	return p.flood.Receive(batch)
}

// TestIdleSwitch: with a hundred ports that the kernel announces frames of and
// no packet, nobody asks them, and each worker wakes up about every five seconds.
func TestIdleSwitch(t *testing.T) {
	ps, all := map[uint32]ports.Port{}, make([]*bell, 100)
	for i := range all {
		all[i] = newBell(t, fmt.Sprint("bell", i))
		ps[uint32(i+1)] = all[i]
	}
	r := run(t, 2, "table=0 actions=drop", ps)
	polls := func() (n int64) {
		for _, b := range all {
			n += b.polls.Load()
		}
		return n
	}
	r.until("both workers sleep", func() bool {
		return !slices.ContainsFunc(r.sw.Workers(), func(w telemetry.WorkerStats) bool { return w.Sleeps == 0 })
	})
	r.until("no port stays awake", func() bool { // each does for some rounds
		n := polls()
		time.Sleep(200 * time.Millisecond)
		return polls() == n
	})
	const watch = 3 * time.Second
	before, sleeps, used := polls(), r.sw.Sleeps(), cpuTime(t)
	time.Sleep(watch)
	t.Logf("100 ports, 2 workers, %v: %d calls of Receive, %d sleeps, %.2f %% of a core", watch, polls()-before,
		r.sw.Sleeps()-sleeps, 100*(cpuTime(t)-used).Seconds()/watch.Seconds())
	if n := r.sw.Sleeps() - sleeps; n > 10 {
		t.Errorf("%d sleeps in %v, want a few", n, watch)
	}
	if n := polls() - before; n > 100*100 {
		t.Errorf("idle ports were asked %d times", n)
	}
	var wakes uint64
	for _, w := range r.sw.Workers() {
		for _, n := range w.Wakes {
			wakes += n
		}
		if want := []int{100, 0}[w.No]; len(w.Ports) != want || w.Blind != 0 {
			t.Errorf("worker %d has %d ports, %d of them blind; want %d and none", w.No, len(w.Ports), w.Blind, want)
		}
	}
	if wakes == 0 {
		t.Error("no wake-up was measured")
	}
}

// cpuTime is what this process has used of its processors.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestMovePort moves a port to and fro while its packets pass: none is lost,
// and they stay in order.
func TestMovePort(t *testing.T) {
	in, out := newBell(t, "in"), memory.New("out", memory.Options{})
	r := run(t, 2, "table=0,in_port=1 actions=output:2", map[uint32]ports.Port{1: in, 2: out, 3: newBell(t, "other")})
	const packets, moves = 20000, 200
	moving := make(chan error, 1)
	go func() {
		for i := range moves {
			if err := r.sw.MovePort(1, i%2); err != nil {
				moving <- err
				return
			}
			time.Sleep(100 * time.Microsecond)
		}
		close(moving)
	}()
	batch := make([]*packet.Frame, 64)
	var sent, got uint32
	r.until("all packets arrived", func() bool {
		for sent < packets && sent-got < 512 {
			in.Inject(udp(1, 2, sent))
			in.ring()
			sent++
		}
		n := out.Collect(batch)
		for _, f := range batch[:n] {
			if serial(f) != got {
				t.Fatalf("packet %d came in place of %d", serial(f), got)
			}
			got++
		}
		return got == packets
	})
	r.check(<-moving)
	var by []uint64
	for _, w := range r.sw.Workers() {
		by = append(by, w.Packets)
	}
	t.Logf("packets by worker: %v", by)
	if err := r.sw.MovePort(1, 2); err == nil {
		t.Error("a worker that is not there took a port")
	}
	if err := r.sw.MovePort(7, 0); err == nil {
		t.Error("a port that is not there was moved")
	}
}

// togetherFlows is a pipeline in which packets of different workers meet: in
// connections, NAT, learned entries and addresses, a meter's bucket, groups,
// packet-ins.
const togetherFlows = `
	table=0,priority=9,udp,tp_src=1000 actions=NORMAL
	table=0,priority=9,udp,tp_src=1001 actions=controller(max_len=64)
	table=0,priority=9,udp,tp_src=1002 actions=learn(table=3,idle_timeout=1,priority=5,eth_type=0x800,nw_proto=17,NXM_OF_IP_SRC[],load:7->NXM_NX_REG1[]),goto_table:3
	table=0,priority=1,ip actions=ct(table=1,zone=5,nat)
	table=1,priority=9,ct_state=+new+trk,ip actions=ct(commit,table=2,zone=5,nat(src=10.1.0.1-10.1.0.9),exec(set_field:3->ct_mark))
	table=1,priority=1 actions=goto_table:2
	table=2,priority=9,ip,nw_dst=10.0.0.1 actions=output:1
	table=2,priority=9,ip,nw_dst=10.0.0.2 actions=output:2
	table=2,priority=9,ip,nw_dst=10.0.0.3 actions=clone(output:1),output:3
	table=2,priority=1 actions=FLOOD
	table=3,priority=0 actions=output:4`

// TestWorkersTogether sends from four ports by two workers through everything that they share,
// while entries and ports come and go. Every packet that came in must have left or been dropped,
// and the race detector must report nothing.
func TestWorkersTogether(t *testing.T) {
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) { testTogether(t, workers) })
	}
}

func testTogether(t *testing.T, workers int) {
	ps, bells := map[uint32]ports.Port{}, map[uint32]*bell{}
	for no := uint32(1); no <= 4; no++ {
		bells[no] = newBell(t, fmt.Sprint("p", no))
		ps[no] = bells[no]
	}
	r := run(t, workers, togetherFlows, ps)
	for no := range ps {
		r.check(r.sw.MovePort(no, int(no)%workers))
	}
	p, err := parse.Program(parse.Sources{Flows: parse.Text("more", "table=2,priority=7,tcp actions=drop")})
	r.check(err)
	const each = 2000
	batch := make([]*packet.Frame, 64)
	for i := range uint32(each) {
		for no, b := range bells {
			b.Inject(udp(byte(no), byte(1+(no+i)%4), i))
			b.ring()
			packet.Release(batch[:b.Collect(batch)])
		}
		switch i % 50 {
		case 10:
			r.check(r.sw.Apply(&flow.Bundle{Add: p.Entries}))
		case 20:
			r.check(r.sw.Apply(&flow.Bundle{Delete: p.Entries}))
		case 30:
			r.check(r.sw.MovePort(1+i%4, int(i/50)%workers))
		case 40:
			r.check(r.sw.AddPort(8, memory.New("more", memory.Options{})))
			r.check(r.sw.RemovePort(8))
		case 45:
			r.sw.Flows()
			r.sw.Ports()
			r.sw.Workers()
		}
	}
	r.until("every frame is received", func() bool {
		for _, b := range bells {
			if s := b.Stats(); s.RxPackets+s.RxDropped != each {
				return false
			}
			packet.Release(batch[:b.Collect(batch)])
		}
		return true
	})
	var received, credited uint64
	for _, b := range bells {
		received += b.Stats().RxPackets
	}
	r.until("every packet is counted once in table 0", func() bool {
		credited = 0
		for _, f := range r.sw.Flows() {
			if f.Table == 0 {
				credited += f.Packets
			}
		}
		return credited >= received
	})
	if credited != received {
		t.Errorf("%d packets counted, %d received", credited, received)
	}
	for reason, n := range r.sw.Drops() {
		t.Logf("dropped: %d, %v", n, reason)
	}
}

// polling is how long these tests wait for what must come: a machine may be
// busy with something else.
const waitAtMost = 60 * time.Second
