package afxdp

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/porttest"
	"golang.org/x/sys/unix"
)

// house is what one process has of a Node with pods a and b.
type house struct {
	memory *Memory
	ports  [2]*Port
}

// twoPods is a Node with two pods, and the wires at their ends.
type twoPods struct {
	node    *nstest.Namespace
	pods    [2]*nstest.Namespace
	wires   [2]*nstest.Wire
	options [2]Options
	ring    int
}

func newTwoPods(t *testing.T, mode Mode) *twoPods {
	t.Helper()
	p := &twoPods{node: nstest.New(t), ring: 256}
	for i, name := range []string{"a", "b"} {
		pod := nstest.New(t)
		nstest.AddVeth(t, p.node, name, pod, "eth0")
		p.pods[i] = pod
		p.wires[i] = nstest.OpenWire(t, pod, "eth0")
		p.options[i] = Options{Interface: name, Mode: mode}
	}
	return p
}

// open opens the ports, as the first process does.
func (p *twoPods) open(t *testing.T) *house {
	t.Helper()
	h := &house{memory: NewMemory(p.ring, 2)}
	p.node.Do(t, func() {
		for i := range h.ports {
			var err error
			if h.ports[i], err = h.memory.Open(p.options[i]); err != nil {
				t.Fatal(err)
			}
		}
	})
	return h
}

// adopt makes ports of another process's.
func (p *twoPods) adopt(t *testing.T, of *house) *house {
	t.Helper()
	h := &house{memory: NewMemory(p.ring, 2)}
	p.node.Do(t, func() {
		for i := range h.ports {
			var err error
			if h.ports[i], err = h.memory.Adopt(p.options[i], porttest.Copies(t, of.ports[i].Descriptors())); err != nil {
				t.Fatal(err)
			}
		}
	})
	return h
}

func (h *house) rest() {
	for _, p := range h.ports {
		p.Rest()
	}
}

func (h *house) beginTraffic(t *testing.T) {
	t.Helper()
	for _, p := range h.ports {
		if err := p.BeginTraffic(); err != nil {
			t.Fatal(err)
		}
	}
}

func (h *house) relink(t *testing.T) {
	t.Helper()
	for _, p := range h.ports {
		if err := p.Relink(); err != nil {
			t.Fatal(err)
		}
	}
}

// close ends what a process has; it fails when it has all, and a frame is missing.
func (h *house) close(t *testing.T) {
	t.Helper()
	for _, p := range h.ports {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := h.memory.Close(); err != nil {
		t.Error(err)
	}
}

// wantAll fails unless every frame is in one place, with so many at the worker.
func (h *house) wantAll(t *testing.T, atWorker int) {
	t.Helper()
	u := h.ports[0].umem
	all := newHeld(u.Frames())
	u.setOf(all)
	for _, p := range h.ports {
		if !all.join(p.rx.held) || !all.join(p.tx.held) {
			t.Fatal("a frame is in two places")
		}
	}
	if got := all.count() + atWorker; got != u.Frames() {
		t.Fatalf("%d frames of %d", got, u.Frames())
	}
}

// setOf adds the free frames to a set.
func (u *UMEM) setOf(all held) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range u.free {
		all.add(f)
	}
}

// TestAdopt: ports go on with those of another process: what waits in the rings is
// received once and sent once, and the process before can be closed at any time.
func TestAdopt(t *testing.T) {
	for _, mode := range []Mode{Native, Generic, Auto} {
		t.Run(string(mode), func(t *testing.T) {
			pods := newTwoPods(t, mode)
			before := pods.open(t)
			send := func(mark byte) {
				if err := pods.wires[0].Send(testFrame(mark)); err != nil {
					t.Fatal(err)
				}
			}
			send(1)
			inTX := receiveMark(t, before.ports[0], 1)
			send(2)
			after := pods.adopt(t, before)
			if n := after.ports[0].Receive(make([]*packet.Frame, 4)); n != 0 {
				t.Errorf("%d frames before it is its turn", n)
			}
			foreign := packet.NewFrame(make([]byte, 512), nil)
			foreign.SetBytes(testFrame(3))
			if after.ports[1].Transmit([]*packet.Frame{foreign}) != 0 {
				t.Error("a frame was sent before it is its turn")
			}
			before.rest()
			if n := before.ports[0].Receive(make([]*packet.Frame, 4)); n != 0 {
				t.Errorf("%d frames of a port that rests", n)
			}
			if before.ports[1].Transmit(inTX) != 1 {
				t.Fatalf("not accepted: %+v", before.ports[1].Stats())
			}
			after.beginTraffic(t) // the frame was not flushed
			before.close(t)
			first := programOn(t, pods.node, "a")
			to := &pod{port: after.ports[1], wire: pods.wires[1]}
			wantFrame(t, to, 1)
			from := &pod{port: after.ports[0], wire: pods.wires[0]}
			second := receiveMark(t, from.port, 2)
			after.wantAll(t, 1)
			packet.Release(second)
			carry(t, from, to, 4)
			carry(t, to, from, 5)
			after.relink(t)
			carry(t, from, to, 6)
			if second := programOn(t, pods.node, "a"); first == 0 || second == 0 || second == first || !from.port.Info().Up {
				t.Errorf("%+v", from.port.Info())
			}
			if s := from.port.Stats(); s.RxDropped+s.RxErrors+s.TxDropped+s.TxErrors != 0 {
				t.Errorf("%+v", s)
			}
			after.close(t)
			if programOn(t, pods.node, "a") != 0 {
				t.Error("the program stays")
			}
		})
	}
}

// traffic is numbered frames from pod a to pod b.
type traffic struct {
	pods     *twoPods
	length   int
	sent     atomic.Uint32
	received atomic.Uint32
	stop     atomic.Bool
	stopped  atomic.Bool // nothing more is sent
	ended    chan string
}

// inFlight bounds the bytes under way: the rings, and the socket at pod b, hold more.
const inFlight = 80_000

func (tr *traffic) runSend() {
	defer tr.stopped.Store(true)
	for !tr.stop.Load() {
		n := tr.sent.Load()
		if int(n-tr.received.Load())*max(tr.length, 800) >= inFlight {
			time.Sleep(20 * time.Microsecond)
			continue
		}
		f := append(testFrame(0), make([]byte, tr.length-80)...)
		binary.BigEndian.PutUint32(f[60:], n)
		if tr.pods.wires[0].Send(f) == nil {
			tr.sent.Add(1)
		}
	}
}

// runReceive receives until all has come that was sent. Whether there is more is asked
// before each frame, for the sender may stop, or count, after the last one has come.
func (tr *traffic) runReceive() {
	const look, waitAtMost = 20 * time.Millisecond, time.Minute
	for last := time.Now(); !tr.stopped.Load() || tr.received.Load() != tr.sent.Load(); {
		f, err := tr.pods.wires[1].Receive(look)
		if err != nil || f == nil && time.Since(last) > waitAtMost {
			tr.ended <- fmt.Sprint("no frame came: ", err)
			return
		}
		if len(f) < 80 || string(f[6:12]) != "\x02mark\x88" {
			continue // none, or of the pod's own kernel
		}
		if len(f) != tr.length || binary.BigEndian.Uint32(f[60:]) != tr.received.Load() {
			tr.ended <- "a frame is missing, or came twice"
			return
		}
		last = time.Now()
		tr.received.Add(1)
	}
	tr.ended <- ""
}

// forward moves frames from a to b, as a worker does.
func (h *house) forward(batch []*packet.Frame) int {
	n := h.ports[0].Receive(batch)
	h.ports[1].Transmit(batch[:n])
	h.ports[1].Flush()
	if n == 0 {
		time.Sleep(20 * time.Microsecond)
	}
	return n
}

// TestAdoptUnderTraffic: after a hundred hand-overs no frame was dropped or doubled on the
// wire, and none is missing in the memory, though every process keeps one for itself.
func TestAdoptUnderTraffic(t *testing.T) {
	t.Run("native", func(t *testing.T) { adoptUnderTraffic(t, newTwoPods(t, Native), 80, 100) })
	t.Run("generic", func(t *testing.T) { adoptUnderTraffic(t, newTwoPods(t, Generic), 80, 20) })
	t.Run("busy poll", func(t *testing.T) {
		pods := newTwoPods(t, Native)
		for i := range pods.options {
			pods.options[i].BusyPoll = BusyPoll{Time: 20 * time.Microsecond}
		}
		adoptUnderTraffic(t, pods, 80, 20)
	})
	t.Run("chains", func(t *testing.T) {
		pods := newTwoPods(t, Native)
		for i, link := range []string{"a", "b"} {
			setMTU(t, 9000, pods.node, link, pods.pods[i], "eth0")
		}
		adoptUnderTraffic(t, pods, 8000, 20)
	})
}

func adoptUnderTraffic(t *testing.T, pods *twoPods, length, times int) {
	now := pods.open(t)
	tr := &traffic{pods: pods, length: length, ended: make(chan string, 1)}
	go tr.runSend()
	go tr.runReceive()
	batch := make([]*packet.Frame, 64)
	carried := 0
	for n := range times {
		next := pods.adopt(t, now)
		for end := carried + 300; carried < end; {
			if carried += now.forward(batch[:7]); len(tr.ended) > 0 {
				t.Fatal(<-tr.ended)
			}
		}
		now.ports[0].umem.Get(batch[:1]) // waits for something, and is forgotten
		now.rest()
		next.beginTraffic(t)
		next.wantAll(t, 0)
		now.close(t)
		if now = next; n%10 == 0 {
			now.relink(t)
		}
	}
	tr.stop.Store(true)
	for len(tr.ended) == 0 {
		now.forward(batch)
	}
	if why := <-tr.ended; why != "" {
		t.Errorf("%s: %d sent, %d received; %+v, %+v", why, tr.sent.Load(), tr.received.Load(), now.ports[0].Stats(), now.ports[1].Stats())
	}
	t.Logf("%d frames", tr.received.Load())
	now.close(t)
}

// TestAdoptedAndLeft: a process that closes its ports before BeginTraffic changes nothing. A
// process that has only one port opens the other after the predecessor has closed it.
func TestAdoptedAndLeft(t *testing.T) {
	pods := newTwoPods(t, Native)
	before := pods.open(t)
	a, b := &pod{port: before.ports[0], wire: pods.wires[0]}, &pod{port: before.ports[1], wire: pods.wires[1]}
	pods.adopt(t, before).close(t)
	carry(t, a, b, 1)
	carry(t, b, a, 2)

	after := &house{memory: NewMemory(pods.ring, 2)}
	pods.node.Do(t, func() {
		var err error
		if after.ports[0], err = after.memory.Adopt(pods.options[0], porttest.Copies(t, a.port.Descriptors())); err != nil {
			t.Fatal(err)
		}
		carry(t, a, b, 3)
		if err := b.port.Close(); err != nil {
			t.Fatal(err)
		}
		a.port.Rest()
		if err := after.ports[0].BeginTraffic(); err != nil {
			t.Fatal(err)
		}
		before.close(t)
		if _, err := after.memory.Adopt(pods.options[0], porttest.Copies(t, after.ports[0].Descriptors())); err == nil || !strings.Contains(err.Error(), "have begun") {
			t.Errorf("%v", err)
		}
		if after.ports[1], err = after.memory.Open(pods.options[1]); err != nil {
			t.Fatal(err)
		}
	})
	a.port, b.port = after.ports[0], after.ports[1]
	carry(t, a, b, 4)
	carry(t, b, a, 5)
	after.wantAll(t, 0)
	after.close(t)
}

// TestRestsInAChain: of a port that rests a frame that has begun is read to its end.
func TestRestsInAChain(t *testing.T) {
	p := newPair(t, Options{Mode: Native, Ring: 64})
	p.port.info.MTU = 9000
	if p.port.taken(received(p.port, 1000, true)) != nil {
		t.Fatal("a frame has come whole")
	}
	p.port.Rest()
	for range 2 {
		if err := p.send(testFrame(1)); err != nil {
			t.Fatal(err)
		}
	}
	batch := make([]*packet.Frame, 4)
	n := 0
	for end := time.Now().Add(time.Minute); n == 0 && time.Now().Before(end); {
		n = p.port.Receive(batch)
	}
	if n != 1 || batch[0].Len() != 1080 {
		t.Fatalf("%d frames", n)
	}
	packet.Release(batch[:n])
	if n := p.port.Receive(batch); n != 0 {
		t.Errorf("%d frames more", n)
	}
}

// TestAdoptRefusals: descriptors that are not the requested port of the interface are refused and
// closed.
func TestAdoptRefusals(t *testing.T) {
	pods := newTwoPods(t, Native)
	h := pods.open(t)
	defer h.close(t)
	a, b := h.ports[0], h.ports[1]
	plain := func() []int { return porttest.Copies(t, a.Descriptors()) }
	with := func(place, fd int) func() []int {
		return func() []int {
			fds := a.Descriptors()
			fds[place] = fd
			return porttest.Copies(t, fds)
		}
	}
	ledgerOf := func(frames int, change func(*facts)) func() []int {
		l, err := newLedger(frames)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.close() })
		f := a.ledger.facts
		change(&f)
		if err := l.write(f); err != nil {
			t.Fatal(err)
		}
		return with(1, l.fd)
	}
	changed := func(change func(*facts)) func() []int { return ledgerOf(a.umem.Frames(), change) }
	for _, c := range []struct {
		want    string
		options Options
		ring    int
		fds     func() []int
	}{
		{"0 descriptors, want 5", Options{}, 256, func() []int { return nil }},
		{"of another interface", Options{}, 256, with(2, b.Descriptors()[2])},
		{"of another interface", Options{Interface: "b"}, 256, plain},
		{"Link not found", Options{Interface: "c"}, 256, plain},
		{"its rings have 256 slots", Options{}, 512, plain},
		{"it is native, and to be generic", Options{Mode: Generic}, 256, plain},
		{"it polls otherwise", Options{BusyPoll: BusyPoll{Time: time.Microsecond}}, 256, plain},
		{"ledger: the memory's size is not sealed", Options{}, 256, with(1, a.FD())},
		{"UMEM: the memory's size is not sealed", Options{}, 256, with(0, a.FD())},
		{"link of the program", Options{}, 256, with(2, a.FD())},
		{"ring offsets", Options{}, 256, with(3, a.umem.fd)},
		{"its layout is 2", Options{}, 256, changed(func(f *facts) { f.Layout = 2 })},
		{"frames have 2048 bytes", Options{}, 256, changed(func(f *facts) { f.FrameSize = 2048 })},
		{"bytes for 1 frames", Options{}, 256, changed(func(f *facts) { f.Frames = 1 })},
		{"mode 3", Options{}, 256, changed(func(f *facts) { f.Mode = 3 })},
		{"other frames than its memory", Options{}, 256, ledgerOf(64, func(f *facts) { f.Frames = 64 })},
		{"5 descriptors, want 6", Options{Attached: true, Filter: &Filter{}}, 256, plain},
		{"map of addresses", Options{Attached: true, Filter: &Filter{}}, 256, func() []int { return append(plain(), porttest.Copies(t, []int{a.FD()})...) }},
		{"rings of 3 slots", Options{Attached: true}, 256, changed(func(f *facts) { f.Ring = 3 })},
		{"of queue 1", Options{}, 256, changed(func(f *facts) { f.Queue = 1 })},
	} {
		memory, fds := NewMemory(c.ring, 2), c.fds()
		if c.options.Interface == "" {
			c.options.Interface = "a"
		}
		var err error
		pods.node.Do(t, func() { _, err = memory.Adopt(c.options, fds) })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
		for _, fd := range fds {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				t.Errorf("%s: a descriptor is open", c.want)
			}
		}
		if len(memory.umems) != 0 {
			t.Errorf("%s: memory is kept", c.want)
		}
	}
	carry(t, &pod{port: a, wire: pods.wires[0]}, &pod{port: b, wire: pods.wires[1]}, 1)
}
