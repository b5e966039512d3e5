package memory

import (
	"net/netip"
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/porttest"
)

const poolFrames = 512

// rig is a port that the test reaches by Inject and Collect.
func rig(t *testing.T) *porttest.Rig {
	pool := packet.NewPool(poolFrames, 2048)
	p := New("mem0", Options{Queue: 256})
	t.Cleanup(func() { p.Close() })
	return &porttest.Rig{
		Port: p, Get: pool.Get, Free: pool.Free, Frames: poolFrames, Backlog: 400,
		Inject: func(b []byte) error {
			p.Send(b) // what does not fit is dropped, as by a card
			return nil
		},
		Observe: func(time.Duration) ([]byte, error) { return collect(p), nil },
	}
}

// collect is the next transmitted frame; nil when there is none.
func collect(p *Port) []byte {
	var one [1]*packet.Frame
	if p.Collect(one[:]) == 0 {
		return nil
	}
	b := append([]byte(nil), one[0].Bytes()...)
	packet.Release(one[:])
	return b
}

// pairRig is the first port of a pair; the test holds the second.
func pairRig(t *testing.T) *porttest.Rig {
	pool := packet.NewPool(poolFrames, 2048)
	ab, ba := newQueue(256), newQueue(256)
	a, b := newPort("a", Options{MTU: 1500}, ba, ab), newPort("b", Options{MTU: 1500}, ab, ba)
	t.Cleanup(func() { a.Close(); b.Close() })
	return &porttest.Rig{
		Port: a, Get: pool.Get, Free: pool.Free, Frames: poolFrames, Backlog: 400,
		Outside: func() uint64 { return b.Stats().TxDropped },
		Inject: func(content []byte) error {
			f := packet.FrameOf(content)
			b.Transmit([]*packet.Frame{f})
			return nil
		},
		Observe: func(time.Duration) ([]byte, error) {
			var one [1]*packet.Frame
			if b.Receive(one[:]) == 0 {
				return nil, nil
			}
			content := append([]byte(nil), one[0].Bytes()...)
			packet.Release(one[:])
			return content, nil
		},
	}
}

func TestConformance(t *testing.T) {
	t.Run("alone", func(t *testing.T) { porttest.Run(t, rig) })
	t.Run("pair", func(t *testing.T) { porttest.Run(t, pairRig) })
}

// A full transmit queue drops the newest, counted, and goes on when the other
// side has collected.
func TestTransmitQueueFull(t *testing.T) {
	p := New("mem0", Options{Queue: 3})
	pool := packet.NewPool(8, 256)
	batch := make([]*packet.Frame, 5)
	pool.Get(batch)
	for i, f := range batch {
		f.SetBytes([]byte{byte(i), 13: 0})
	}
	if n := p.Transmit(batch); n != 3 {
		t.Errorf("%d frames accepted by a queue of 3", n)
	}
	s := p.Stats()
	if s.TxPackets != 3 || s.TxDropped != 2 || s.Reasons[ports.TxRingFull.String()] != 2 {
		t.Errorf("stats %+v: want 3 sent, 2 dropped", s)
	}
	for i := range 3 {
		if b := collect(p); b[0] != byte(i) {
			t.Errorf("collected frame %d, want %d", b[0], i)
		}
	}
	if pool.Free() != 8 {
		t.Errorf("%d frames of 8 are free", pool.Free())
	}
}

// Frames injected into a port that is closed are given back at once.
func TestInjectAfterClose(t *testing.T) {
	p := New("mem0", Options{})
	p.Close()
	if err := p.Send(make([]byte, 60)); err == nil {
		t.Error("a closed port took a frame")
	}
	if s := p.Stats(); s.Reasons[ports.RxClosed.String()] != 1 {
		t.Errorf("stats %+v: want one frame too late", s)
	}
}

// A tunnel port hands the outer header through, both ways.
func TestTunnelPortCarriesOuterHeader(t *testing.T) {
	p := New("tun0", Options{Tunnel: true})
	if !p.Info().Tunnel {
		t.Error("Info does not say that it is a tunnel port")
	}
	outer := packet.Tunnel{Src: netip.MustParseAddr("192.168.77.103"), Dst: netip.MustParseAddr("192.168.77.102"), ID: 7}
	f := packet.NewFrame(make([]byte, packet.Headroom+60), nil)
	f.SetBytes(make([]byte, 60))
	f.Tunnel = outer
	p.Inject(f)
	var one [1]*packet.Frame
	if p.Receive(one[:]) != 1 || one[0].Tunnel != outer {
		t.Fatalf("received %+v, want the outer header %+v", one[0], outer)
	}
	p.Transmit(one[:])
	if p.Collect(one[:]) != 1 || one[0].Tunnel != outer {
		t.Errorf("collected %+v, want the outer header %+v", one[0], outer)
	}
}

// TestCollectAll: all frames come, in order, whole, with what came along; theirs are
// given back.
func TestCollectAll(t *testing.T) {
	p := New("p", Options{})
	pool := packet.NewPool(100, 2048)
	sent := make([]*packet.Frame, 100)
	if n := pool.Get(sent); n != len(sent) {
		t.Fatalf("%d frames", n)
	}
	for i, f := range sent {
		f.SetBytes(append([]byte{byte(i)}, make([]byte, 59)...))
		f.Mark, f.Tunnel.ID = uint32(i), 7
	}
	if n := p.Transmit(sent); n != len(sent) {
		t.Fatalf("%d frames transmitted", n)
	}
	all := p.CollectAll()
	if len(all) != len(sent) || len(p.CollectAll()) != 0 {
		t.Fatalf("%d frames collected", len(all))
	}
	for i, f := range all {
		if b := f.Bytes(); len(b) != 60 || b[0] != byte(i) || f.Mark != uint32(i) || f.Tunnel.ID != 7 || f.Headroom() < packet.Headroom {
			t.Errorf("frame %d is %v, %+v", i, b, f)
		}
	}
	if pool.Free() != len(sent) {
		t.Errorf("%d frames were given back", pool.Free())
	}
}
