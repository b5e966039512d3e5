package afxdp

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// setMTU sets the MTU of both ends of a veth.
func setMTU(t *testing.T, mtu int, a *nstest.Namespace, aName string, b *nstest.Namespace, bName string) {
	t.Helper()
	if err := a.Links().LinkSetMTU(a.Link(t, aName), mtu); err != nil {
		t.Fatal(err)
	}
	if err := b.Links().LinkSetMTU(b.Link(t, bName), mtu); err != nil {
		t.Fatal(err)
	}
}

// received is a descriptor as a kernel would write it, for a buffer that the
// port has given it.
func received(p *Port, n int, more bool) unix.XDPDesc {
	var index [1]uint32
	p.umem.takeFree(index[:])
	p.rx.held.add(index[0])
	d := unix.XDPDesc{Addr: uint64(index[0])*FrameSize + kernelHeadroom, Len: uint32(n)}
	for i := range n {
		p.umem.memory[int(d.Addr)+i] = byte(index[0])
	}
	if more {
		d.Options = unix.XDP_PKT_CONTD
	}
	return d
}

// Chains come whole or not at all; each that is dropped is counted once, no buffer
// is, and what follows is received.
func TestMultiBuffer(t *testing.T) {
	const full = FrameSize - kernelHeadroom
	type buffer struct {
		n    int
		more bool
		bad  bool // the description is of no buffer that the kernel has
	}
	for name, c := range map[string]struct {
		buffers []buffer
		frames  []int // lengths of what is handed out
		lost    map[string]uint64
	}{
		"one buffer":      {[]buffer{{n: 60}}, []int{60}, nil},
		"two and one":     {[]buffer{{full, true, false}, {n: 1}, {n: 60}}, []int{full + 1, 60}, nil},
		"the longest":     {[]buffer{{full, true, false}, {full, true, false}, {n: 9018 - 2*full}}, []int{9018}, nil},
		"empty last":      {[]buffer{{full, true, false}, {n: 0}}, []int{full}, nil},
		"still to come":   {[]buffer{{n: 60}, {full, true, false}}, []int{60}, map[string]uint64{ports.RxClosed.String(): 1}},
		"too long at end": {[]buffer{{full, true, false}, {full, true, false}, {n: 9019 - 2*full}, {n: 60}}, []int{60}, map[string]uint64{ports.RxTooLong.String(): 1}},
		"far too long": {[]buffer{{full, true, false}, {full, true, false}, {full, true, false}, {full, true, false}, {n: 9}, {n: 60}},
			[]int{60}, map[string]uint64{ports.RxTooLong.String(): 1}},
		"no first":  {[]buffer{{full, true, true}, {full, true, false}, {n: 5}, {n: 60}}, []int{60}, map[string]uint64{ports.RxInvalid.String(): 1}},
		"no middle": {[]buffer{{full, true, false}, {full, true, true}, {n: 5}, {n: 60}}, []int{60}, map[string]uint64{ports.RxInvalid.String(): 1}},
		"no last":   {[]buffer{{full, true, false}, {n: 5, bad: true}, {n: 60}}, []int{60}, map[string]uint64{ports.RxInvalid.String(): 1}},
		"two bad":   {[]buffer{{full, true, true}, {full, true, true}, {n: 5}, {n: 60}}, []int{60}, map[string]uint64{ports.RxInvalid.String(): 1}},
		"bad alone": {[]buffer{{n: 5, bad: true}, {n: 60}}, []int{60}, map[string]uint64{ports.RxInvalid.String(): 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, Options{Mode: Native, Ring: 64})
			port := p.port
			port.info.MTU = 9000
			before := p.umem.Free()
			var got []*packet.Frame
			for _, b := range c.buffers {
				d := received(port, b.n, b.more)
				if b.bad {
					index := uint32(d.Addr / FrameSize)
					port.rx.held.remove(index)
					p.umem.give([]uint32{index})
				}
				if f := port.taken(d); f != nil {
					got = append(got, f)
				}
			}
			port.restock()
			wantLengths(t, got, c.frames)
			packet.Release(got)
			if n := p.umem.Free(); n != before {
				t.Errorf("%d buffers are free, %d were", n, before)
			}
			port.Close()
			if lost := port.Stats().Reasons; !maps.Equal(lost, c.lost) && len(lost)+len(c.lost) > 0 {
				t.Errorf("lost %v, want %v", lost, c.lost)
			}
			if n := p.umem.large.Free(); n != largeFrames {
				t.Errorf("%d large frames of %d are free", n, largeFrames)
			}
		})
	}
}

// wantLengths checks frames' lengths and that each buffer's bytes are in their
// place.
func wantLengths(t *testing.T, got []*packet.Frame, want []int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d frames, want %v", len(got), want)
	}
	for i, f := range got {
		if f.Len() != want[i] || f.Headroom() < packet.Headroom {
			t.Errorf("frame %d: %d bytes behind %d, want %d", i, f.Len(), f.Headroom(), want[i])
		}
		const full = FrameSize - kernelHeadroom
		for b := f.Bytes(); len(b) > 0; b = b[min(full, len(b)):] {
			if part := b[:min(full, len(b))]; !bytes.Equal(part, bytes.Repeat(part[:1], len(part))) {
				t.Errorf("frame %d: the bytes of a buffer are torn", i)
			}
		}
	}
}

// Without large frames a chain is lost as any frame without a buffer, and the
// next one is whole.
func TestMultiBufferWithoutFrame(t *testing.T) {
	p := newPair(t, Options{Mode: Native, Ring: 64})
	p.port.info.MTU = 9000
	all := make([]*packet.Frame, largeFrames)
	p.umem.large.Get(all)
	for _, more := range []bool{true, false} {
		if f := p.port.taken(received(p.port, 60, more)); f != nil {
			t.Fatal("a frame out of nothing")
		}
	}
	packet.Release(all)
	p.port.taken(received(p.port, 60, true))
	f := p.port.taken(received(p.port, 60, false))
	if f == nil || f.Len() != 120 {
		t.Fatalf("got %v, want 120 bytes", f)
	}
	packet.Release([]*packet.Frame{f})
	p.port.restock()
	if n := p.port.Stats().Reasons[ports.RxNoFrame.String()]; n != 1 {
		t.Errorf("%d frames counted as lost, want 1", n)
	}
}

// A kernel without chains has the port as it was: small frames, and a reason
// for nothing else.
func TestKernelWithoutMultiBuffer(t *testing.T) {
	a, b := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, a, "sw0", b, "eth0")
	u := umemFor(t, 256)
	u.multiBuffer = false
	p := openIn(t, a, u, Options{Interface: "sw0", Mode: Native, Ring: 64})
	if why := p.Info().Why; !strings.Contains(why, "frames of one buffer: more than one takes Linux 6.6") {
		t.Errorf("why %q", why)
	}
	p.Close()
	setMTU(t, 9000, a, "sw0", b, "eth0")
	a.Do(t, func() {
		_, err := Open(u, Options{Interface: "sw0"})
		wantError(t, err, "MTU 9000: one buffer holds frames of an MTU up to 3822, and more than one takes Linux 6.6")
	})
}
