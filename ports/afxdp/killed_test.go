package afxdp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/confinetest"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/porttest"
	"golang.org/x/sys/unix"
)

// killedPort is a port of pod a with memory of its own, whose process ends anywhere.
type killedPort struct {
	*twoPods
	t    *testing.T
	port *Port
}

func newKilledPort(t *testing.T) *killedPort {
	k := &killedPort{twoPods: newTwoPods(t, Native), t: t}
	k.node.Do(t, func() {
		p, err := NewMemory(k.ring, 1).OpenToGive(k.options[0])
		if err != nil {
			t.Fatal(err)
		}
		k.port = p
	})
	k.next(0)
	return k
}

// next has another process go on, which has lost the frames of so many that the worker had.
func (k *killedPort) next(free int) {
	k.t.Helper()
	o := k.options[0]
	o.Attached, o.Killed = true, true
	fds := porttest.Copies(k.t, k.port.Descriptors())
	k.node.Do(k.t, func() {
		p, err := NewMemory(k.ring, 1).Adopt(o, fds)
		if err == nil {
			err = p.BeginTraffic()
		}
		if err != nil {
			k.t.Fatal(err)
		}
		k.port = p
	})
	k.t.Cleanup(func(p *Port) func() { return func() { p.Rest(); p.Close() } }(k.port))
	(&house{ports: [2]*Port{k.port, {}}}).wantAll(k.t, free)
}

// send has pod a send numbered frames, and waits until they are in the RX ring.
func (k *killedPort) send(numbers ...uint16) {
	k.t.Helper()
	want := k.port.socket.rx.readable(k.ring) + len(numbers)
	for _, n := range numbers {
		if err := k.wires[0].Send(pt.UDP4(pt.Options{SrcPort: n, Payload: make([]byte, 20)})); err != nil {
			k.t.Fatal(err)
		}
	}
	nstest.Until(k.t, "frames in the ring", func() bool { return k.port.socket.rx.readable(k.ring) == want })
}

// wantFrames fails unless exactly these frames come next.
func (k *killedPort) wantFrames(numbers ...uint16) {
	k.t.Helper()
	batch := make([]*packet.Frame, 64)
	var got []uint16
	for _, f := range batch[:k.port.Receive(batch)] {
		got = append(got, numberOf(f.Bytes()))
		packet.Release([]*packet.Frame{f})
	}
	if fmt.Sprint(got) != fmt.Sprint(numbers) {
		k.t.Fatalf("frames %v have come, want %v", got, numbers)
	}
}

// numberOf is the source port of a frame.
func numberOf(b []byte) uint16 { return uint16(b[34])<<8 | uint16(b[35]) }

// TestKilledReceiving: what a killed process had read out of the RX ring, and not given back to
// the kernel, is received by the next one, once.
func TestKilledReceiving(t *testing.T) {
	k := newKilledPort(t)
	k.send(1, 2, 3)
	rx := &k.port.socket.rx
	for range rx.readable(2) {
		k.port.taken(rx.read())
	}
	k.next(0)
	k.wantFrames(1, 2, 3)
	k.send(4)
	k.port.unload(make([]*packet.Frame, 1)) // a worker has it
	k.next(0)
	k.wantFrames()
	k.send(5)
	k.wantFrames(5)
}

// TestKilledFilling: frames that were about to be given to the kernel are free.
func TestKilledFilling(t *testing.T) {
	for name, stop := range map[string]int{"slots": 0, "some in the ledger": 7, "all in the ledger": 20} {
		t.Run(name, func(t *testing.T) {
			k := newKilledPort(t)
			p := k.port
			var numbers []uint16 // which make room in the fill ring
			for i := range uint16(20) {
				numbers = append(numbers, i+1)
			}
			k.send(numbers...)
			k.wantFrames(numbers...)
			n := p.umem.takeFree(p.rx.scratch[:p.socket.fill.writable(20)])
			if n != 20 {
				t.Fatalf("room for %d frames", n)
			}
			for i, frame := range p.rx.scratch[:n] {
				p.socket.fill.write(uint64(frame) * FrameSize)
				p.ledger.journal[filled] = uint64(p.socket.fill.local)
				if i < stop {
					p.rx.held.add(frame)
				}
			}
			k.next(0)
			if has, given := k.port.rx.held.count(), int(k.port.socket.fill.pending()); has != given {
				t.Errorf("the ledger has %d frames, and the fill ring %d", has, given)
			}
			k.send(1)
			k.wantFrames(1)
		})
	}
}

// TestKilledSending: a frame that the kernel was not shown is free, and one that it has sent is
// free, too, wherever the process was.
func TestKilledSending(t *testing.T) {
	for name, at := range map[string]func(*Port){
		"not shown":    func(*Port) {},
		"shown":        func(p *Port) { p.socket.tx.submit() },
		"sent":         func(p *Port) { p.socket.tx.submit(); p.socket.kick() },
		"read":         func(p *Port) { p.socket.tx.submit(); p.socket.kick(); p.socket.done.readable(1) },
		"half reaped":  func(p *Port) { p.socket.tx.submit(); p.socket.kick(); reapOne(p) },
		"whole reaped": func(p *Port) { p.socket.tx.submit(); p.flush() },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKilledPort(t)
			var two [2]*packet.Frame
			k.port.umem.Get(two[:])
			for i, f := range two {
				f.SetBytes(pt.UDP4(pt.Options{SrcPort: uint16(i + 1), Payload: make([]byte, 20)}))
				k.port.post(f, 0)
			}
			at(k.port)
			k.next(0)
			var one [1]*packet.Frame
			k.port.umem.Get(one[:])
			one[0].SetBytes(pt.UDP4(pt.Options{SrcPort: 3, Payload: make([]byte, 20)}))
			if k.port.Transmit(one[:]) != 1 {
				t.Fatal("not sent")
			}
			nstest.Until(t, "all frames to be sent", func() bool { k.port.Flush(); return k.port.tx.outstanding == 0 })
			last := uint16(0)
			for last != 3 {
				b, err := k.wires[0].Receive(time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				if n := numberOf(b); n > last {
					last = n
				} else {
					t.Fatalf("frame %d has come after frame %d", n, last)
				}
			}
		})
	}
}

// reapOne reads the completion ring and does not give the slot back.
func reapOne(p *Port) {
	if p.socket.done.readable(1) == 1 {
		p.tx.held.remove(uint32(p.socket.done.read() / FrameSize))
	}
}

// TestCutPoint: before and after the slots are given back, the journal says whether a frame is
// open at the consumer's word.
func TestCutPoint(t *testing.T) {
	var c cutPoint
	at, open := uint32(1<<32-3), false
	c = c.next(at, open).next(at, open)
	for range 1000 {
		word, is := at+rand.Uint32N(5), rand.IntN(2) == 0
		if word == at {
			is = open
		}
		c = c.next(word, is)
		if word != at && c.open(at) != open || c.open(word) != is {
			t.Fatalf("%x: at %d %v, at %d %v", uint64(c), at, open, word, is)
		}
		at, open = word, is
	}
}

// TestKilledAnywhere kills processes that echo frames, one after the other. No frame of the
// memory is missing or in two places then, and the last process receives and sends all.
func TestKilledAnywhere(t *testing.T) {
	if confinetest.Inside() {
		insideEcho(t)
		return
	}
	k := newKilledPort(t)
	k.port.Rest()
	frame := pt.UDP4(pt.Options{SrcPort: 9, Payload: make([]byte, 20)})
	echoed := 0
	for range 10 {
		child := confinetest.Start(t, k.node, "TestKilledAnywhere", porttest.Copies(t, k.port.Descriptors()))
		had := echoed
		nstest.Until(t, "echoes", func() bool {
			if err := k.wires[0].Send(frame); err != nil && !errors.Is(err, unix.ENOBUFS) {
				t.Fatal(err)
			}
			for {
				if b, err := k.wires[0].Receive(0); b == nil || err != nil {
					return echoed > had+200+rand.IntN(200)
				}
				echoed++
			}
		})
		child.Kill(t)
	}
	k.next(0)
	nstest.Until(t, "all frames to be sent", func() bool { k.port.Flush(); return k.port.tx.outstanding == 0 })
	batch := make([]*packet.Frame, 64)
	for n := 1; n > 0; {
		n = k.port.Receive(batch)
		packet.Release(batch[:n])
	}
	k.send(1, 2, 3)
	k.wantFrames(1, 2, 3)
	t.Logf("%d echoes", echoed)
}

// insideEcho sends back what comes, until it is killed.
func insideEcho(t *testing.T) {
	t.Helper()
	p, err := NewMemory(64, 1).Adopt(Options{Interface: "a", Attached: true, Killed: true}, []int{3, 4, 5, 6, 7})
	if err == nil {
		err = p.BeginTraffic()
	}
	if err != nil {
		t.Fatal(err)
	}
	if p.umem.Free()+p.rx.held.count()+p.tx.held.count() != p.umem.Frames() {
		t.Error("a frame is missing")
	}
	fmt.Fprintln(os.Stderr, "echoing")
	batch := make([]*packet.Frame, 64)
	for {
		if n := p.Receive(batch); n > 0 {
			p.Transmit(batch[:n])
		}
		p.Flush()
	}
}
