package porttest

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// Run runs the suite; open makes a fresh rig.
func Run(t *testing.T, open func(t *testing.T) *Rig) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, r *Rig)
	}{
		{"describes itself", testInfo},
		{"receives in order", testReceiveOrder},
		{"transmits in order", testTransmitOrder},
		{"forwards what it received", testForward},
		{"takes frames of another pool", testForeignFrames},
		{"moves the largest frame", testLargest},
		{"refuses runts and frames beyond the MTU", testRefusals},
		{"refuses undone work that it does not carry", testOffload},
		{"carries undone work both ways", testCarries},
		{"drops and counts when its ring is full", testBacklog},
		{"keeps frames valid over close", testClose},
		{"flushes as often as you like", testFlush},
		{"transmits from many workers", testConcurrent},
		{"tells poll what it has", testPoll},
		{"allocates nothing per packet", testAllocations},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func testInfo(t *testing.T, r *Rig) {
	i := r.Port.Info()
	if r.Port.Name() == "" || i.Driver == "" || i.Mode == "" || i.Why == "" || i.MTU <= 0 {
		t.Errorf("name %q, info %+v: want all of name, driver, mode, why and MTU", r.Port.Name(), i)
	}
	if !i.Up {
		t.Error("an open port is not up")
	}
	r.allFree(t)
	if r.Port.Info().Up {
		t.Error("a closed port is up")
	}
}

func testReceiveOrder(t *testing.T, r *Rig) {
	const n = 300
	next, total := uint32(0), 0
	for _, batchSize := range []int{1, 7, 64} {
		for range 2 {
			r.inject(t, next, n/6)
			got := r.receive(t, n/6, batchSize)
			for _, f := range got {
				sameFrame(t, f.Bytes(), next, sizeOf(next))
				if f.Headroom() < packet.Headroom {
					t.Fatalf("headroom of %d bytes, want %d", f.Headroom(), packet.Headroom)
				}
				total += f.Len()
				next++
			}
			packet.Release(got)
		}
	}
	s := r.Port.Stats()
	if s.RxPackets < n || s.RxBytes < uint64(total) {
		t.Errorf("stats %+v: want %d packets, %d bytes", s, n, total)
	}
	r.allFree(t)
}

func testTransmitOrder(t *testing.T, r *Rig) {
	next := uint32(0)
	total := 0
	for _, batchSize := range []int{1, 7, 64} {
		for _, batch := range chunks(r.fill(t, next, 100), batchSize) {
			for _, f := range batch {
				total += f.Len()
			}
			r.transmit(t, batch)
		}
		for _, b := range r.observe(t, 100) {
			sameFrame(t, b, next, sizeOf(next))
			next++
		}
	}
	s := r.Port.Stats()
	if s.TxPackets != uint64(next) || s.TxBytes != uint64(total) || s.TxDropped+s.TxErrors != 0 {
		t.Errorf("stats %+v: want %d packets, %d bytes", s, next, total)
	}
	r.nothingMore(t)
	r.allFree(t)
}

// testForward sends received frames back with a VLAN tag written into the
// headroom, as a switch does.
func testForward(t *testing.T, r *Rig) {
	const n = 40
	r.inject(t, 0, n)
	got := r.receive(t, n, 32)
	for _, f := range got {
		if f.Prepend(4) == nil {
			t.Fatalf("no room for a tag in front of %d bytes", f.Len())
		}
		b := f.Bytes()
		copy(b[:12], b[4:16])
		copy(b[12:16], "\x81\x00\x00\x07")
	}
	r.transmit(t, got)
	for i, b := range r.observe(t, n) {
		sameFrame(t, b, uint32(i), sizeOf(uint32(i)))
	}
	r.allFree(t)
}

func testForeignFrames(t *testing.T, r *Rig) {
	pool := &countingPool{}
	batch := make([]*packet.Frame, 10)
	for i := range batch {
		batch[i] = packet.NewFrame(make([]byte, 2048), pool)
		batch[i].SetBytes(frame(uint32(i), sizeOf(uint32(i))))
	}
	r.transmit(t, batch)
	for i, b := range r.observe(t, len(batch)) {
		sameFrame(t, b, uint32(i), sizeOf(uint32(i)))
	}
	runt := packet.NewFrame(make([]byte, 256), pool)
	r.refused(t, []*packet.Frame{runt}, ports.TxRunt)
	batch = append(batch, runt)
	r.allFree(t)
	if pool.n != len(batch) {
		t.Errorf("%d frames of %d came back to their own pool", pool.n, len(batch))
	}
}

// countingPool counts what comes back.
type countingPool struct {
	mu sync.Mutex
	n  int
}

func (p *countingPool) Put(frames []*packet.Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n += len(frames)
}

// testLargest forwards frames as long as the MTU allows among small ones.
func testLargest(t *testing.T, r *Rig) {
	const n = 12
	size := func(serial uint32) int {
		if serial%3 == 0 {
			return sizeOf(serial)
		}
		return r.Port.Info().MTU + 14
	}
	for first, batchSize := range []int{1, 2, 64} {
		first := uint32(first * n)
		for serial := first; serial < first+n; serial++ {
			if err := r.Inject(frame(serial, size(serial))); err != nil {
				t.Fatalf("inject %d bytes: %v", size(serial), err)
			}
		}
		got := r.receive(t, n, batchSize)
		for i, f := range got {
			sameFrame(t, f.Bytes(), first+uint32(i), size(first+uint32(i)))
			if f.Headroom() < packet.Headroom {
				t.Fatalf("headroom of %d bytes, want %d", f.Headroom(), packet.Headroom)
			}
		}
		for _, batch := range chunks(got, batchSize) {
			r.transmit(t, batch)
		}
		for i, b := range r.observe(t, n) {
			sameFrame(t, b, first+uint32(i), size(first+uint32(i)))
		}
	}
	r.allFree(t)
}

// refused transmits a batch of which no frame may be accepted. It checks that all are counted,
// and that the last frame is kept.
func (r *Rig) refused(t *testing.T, batch []*packet.Frame, why ports.Reason) {
	t.Helper()
	before := r.Port.Stats()
	last := slices.Clone(batch[len(batch)-1].Bytes())
	if n := r.Port.Transmit(batch); n != 0 {
		t.Errorf("%d of %d frames accepted, want none: %s", n, len(batch), why)
	}
	s := r.Port.Stats()
	lost := s.TxDropped + s.TxErrors - before.TxDropped - before.TxErrors
	if lost != uint64(len(batch)) {
		t.Errorf("%d of %d frames counted: %+v", lost, len(batch), s)
	}
	if s.Reasons[why.String()] == before.Reasons[why.String()] {
		t.Errorf("no frame counted as %q: %+v", why, s)
	}
	x := r.Port.(ports.Collector).DropSample(why.String())
	if x.Length != len(last) || !bytes.Equal(x.Head, last[:min(len(last), ports.DropSampleLen)]) {
		t.Errorf("%s: the sample has %d bytes, %x, want %d, %x", why, x.Length, x.Head, len(last), last)
	}
	if got := droppedSum(s); got != s.TxDropped+s.TxErrors+s.RxDropped+s.RxErrors {
		t.Errorf("the reasons sum up to %d: %+v", got, s)
	}
}

func testRefusals(t *testing.T, r *Rig) {
	batch := r.fill(t, 0, 4)
	for i, n := range []int{0, 1, 6, 13} {
		batch[i].SetLen(n)
	}
	r.refused(t, batch, ports.TxRunt)

	long := r.fill(t, 0, 1)
	if !long[0].SetLen(ports.MaxFrame(r.Port.Info().MTU) + 1) {
		packet.Release(long)
	} else {
		r.refused(t, long, ports.TxTooLong)
	}
	// The good ones among bad ones pass.
	mixed := r.fill(t, 0, 3)
	mixed[1].SetLen(5)
	if n := r.Port.Transmit(mixed); n != 2 {
		t.Errorf("%d frames accepted of two good ones and a runt", n)
	}
	for i, b := range r.observe(t, 2) {
		sameFrame(t, b, uint32(2*i), sizeOf(uint32(2*i)))
	}
	r.allFree(t)
}

func testOffload(t *testing.T, r *Rig) {
	batch := r.fill(t, 0, 1)
	batch[0].Offload.SegmentSize = 1400
	carries := r.Port.Info().Carries
	for _, f := range undone() {
		if !carries.All(f) {
			batch = append(batch, f)
		}
	}
	r.refused(t, batch, ports.TxOffload)
	r.nothingMore(t)
	r.allFree(t)
}

// testBacklog sends more than the port keeps while nobody receives. Frames that the port does not
// return afterwards must count as dropped, and the port must still work.
func testBacklog(t *testing.T, r *Rig) {
	if r.Backlog == 0 {
		t.Fatal("the rig does not say what a backlog is")
	}
	r.inject(t, 0, r.Backlog)
	var got, lost uint64
	batch := make([]*packet.Frame, 64)
	next := uint32(0)
	await := func() bool { return false }
	if r.Keeps {
		end := time.Now().Add(waitAtMost)
		await = func() bool {
			time.Sleep(time.Millisecond)
			return got+r.Port.Stats().RxDropped < uint64(r.Backlog) && time.Now().Before(end)
		}
	}
	for k := r.Port.Receive(batch); k > 0 || await(); k = r.Port.Receive(batch) {
		for _, f := range batch[:k] {
			if ours(f.Bytes()) {
				if s := serialOf(f.Bytes()); s < next && !r.Keeps {
					t.Fatalf("frame %d after frame %d", s, next)
				} else {
					next = s + 1
				}
				got++
			}
		}
		packet.Release(batch[:k])
	}
	s := r.Port.Stats()
	lost = s.RxDropped + s.RxErrors
	if r.Outside != nil {
		lost += r.Outside()
	}
	if lost == 0 && !r.Keeps || got == 0 || got+lost < uint64(r.Backlog) {
		t.Errorf("%d frames sent: %d received and %d counted as lost: %+v", r.Backlog, got, lost, s)
	}
	r.inject(t, 7, 1)
	last := r.receive(t, 1, 1)
	sameFrame(t, last[0].Bytes(), 7, sizeOf(7))
	packet.Release(last)
	r.allFree(t)
}

func testClose(t *testing.T, r *Rig) {
	r.inject(t, 0, 20)
	held := r.receive(t, 10, 10) // ten are held, ten wait in the port
	queued := r.fill(t, 50, 3)
	r.Port.Transmit(queued) // and three are not flushed
	late := r.fill(t, 60, 2)
	if err := r.Port.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := r.Port.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	for i, f := range held {
		sameFrame(t, f.Bytes(), uint32(i), sizeOf(uint32(i)))
	}
	if n := r.Port.Receive(make([]*packet.Frame, 8)); n != 0 {
		t.Errorf("a closed port handed out %d frames", n)
	}
	r.refused(t, late, ports.TxClosed)
	r.Port.Flush()
	packet.Release(held)
	r.allFree(t)
}

func testFlush(t *testing.T, r *Rig) {
	for range 3 {
		r.Port.Flush()
	}
	if n := r.Port.Transmit(nil); n != 0 {
		t.Errorf("transmitted %d frames of none", n)
	}
	r.transmit(t, r.fill(t, 9, 1))
	r.Port.Flush()
	r.Port.Flush()
	sameFrame(t, r.observe(t, 1)[0], 9, sizeOf(9))
	r.nothingMore(t)
	r.allFree(t)
}

// testConcurrent lets four workers transmit while a fifth receives. Each worker's frames must
// come out in order and complete.
func testConcurrent(t *testing.T, r *Rig) {
	const workers, each = 4, 40
	var group sync.WaitGroup
	for w := range workers {
		batch := r.fill(t, uint32(w*each), each)
		group.Go(func() {
			for _, part := range chunks(batch, 8) {
				r.Port.Transmit(part)
				r.Port.Flush()
			}
		})
	}
	r.inject(t, 0, 10)
	packet.Release(r.receive(t, 10, 4))
	group.Wait()
	last := make([]int, workers)
	for _, b := range r.observe(t, workers*each) {
		serial := int(serialOf(b))
		w, i := serial/each, serial%each+1
		if i != last[w]+1 {
			t.Fatalf("worker %d: frame %d after %d", w, i, last[w])
		}
		last[w] = i
		sameFrame(t, b, uint32(serial), sizeOf(uint32(serial)))
	}
	r.allFree(t)
}

func testPoll(t *testing.T, r *Rig) {
	fd := r.Port.FD()
	if fd < 0 { // a port without a descriptor is asked every millisecond
		r.allFree(t)
		return
	}
	if readable(t, fd, 0) {
		t.Error("readable before a frame came")
	}
	r.inject(t, 0, 1)
	if !readable(t, fd, waitAtMost.Milliseconds()) {
		t.Error("not readable though a frame came")
	}
	packet.Release(r.receive(t, 1, 8))
	if readable(t, fd, 0) {
		t.Error("readable after the last frame was taken")
	}
	r.allFree(t)
	if fd := r.Port.FD(); fd != -1 {
		t.Errorf("a closed port has descriptor %d", fd)
	}
}

func readable(t *testing.T, fd int, wait int64) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, int(wait)); err != nil {
		t.Fatalf("poll: %v", err)
	}
	return fds[0].Revents&unix.POLLIN != 0
}

func testAllocations(t *testing.T, r *Rig) {
	const rounds, each = 20, 8
	r.inject(t, 0, (rounds+1)*each)
	batch := make([]*packet.Frame, each)
	moved := 0
	if n := testing.AllocsPerRun(rounds, func() {
		k := r.Port.Receive(batch)
		moved += k
		packet.Release(batch[:k])
	}); n != 0 {
		t.Errorf("Receive allocates %v times per batch", n)
	}
	if moved < rounds*each {
		t.Errorf("received only %d frames of %d", moved, rounds*each)
	}
	content := frame(1, 200)
	if n := testing.AllocsPerRun(rounds, func() {
		k := r.Get(batch)
		for _, f := range batch[:k] {
			f.SetBytes(content)
		}
		r.Port.Transmit(batch[:k])
		r.Port.Flush()
	}); n != 0 {
		t.Errorf("Transmit and Flush allocate %v times per batch", n)
	}
	r.allFree(t)
}
