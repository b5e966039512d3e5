package tap

import (
	"bytes"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
)

// frameFrom is a frame of 60 bytes with a source address and a mark.
func frameFrom(src [6]byte, mark uint32) *packet.Frame {
	f := packet.NewFrame(make([]byte, 512), nil)
	b := make([]byte, 60)
	copy(b[6:], src[:])
	b[12], b[13] = 0x08, 0x00
	f.SetBytes(b)
	f.Mark = mark
	return f
}

func TestMarksCrossTheTap(t *testing.T) {
	pod, gateway := [6]byte{0x5e, 1, 2, 3, 4, 5}, [6]byte{0xba, 1, 1, 1, 1, 1}
	host := nstest.New(t)
	p := openIn(t, host, Options{Name: "gw0", MAC: gateway, Marks: true})
	wire := nstest.OpenWire(t, host, "gw0")
	for _, c := range []struct {
		name string
		src  [6]byte
		mark uint32
		want [6]byte // the source that the host sees
	}{
		{"no mark", pod, 0, pod},
		{"a mark", pod, 0xab, [6]byte{0x02, 0x61, 0, 0, 0, 0xab}},
		{"all bits", pod, 0x80000001, [6]byte{0x02, 0x61, 0x80, 0, 0, 1}},
		{"a mark that nobody set", MarkMAC(7), 0, MarkMAC(0)},
		{"a mark over one that nobody set", MarkMAC(7), 5, MarkMAC(5)},
	} {
		p.Transmit([]*packet.Frame{frameFrom(c.src, c.mark)})
		if got := sourceAtHost(t, wire); !bytes.Equal(got, c.want[:]) {
			t.Errorf("%s: the host got it from %x, want %x", c.name, got, c.want)
		}
	}
	for _, mark := range []uint32{0, 1, 0x80000000} {
		src := gateway
		if mark != 0 {
			src = MarkMAC(mark)
		}
		wire.Send(frameFrom(src, 0).Bytes())
		f := receiveFrom(t, p, 60)
		if f.Mark != mark || !bytes.Equal(f.Bytes()[6:12], gateway[:]) {
			t.Errorf("mark %#x came as %#x from %x", mark, f.Mark, f.Bytes()[6:12])
		}
		packet.Release([]*packet.Frame{f})
	}
}

// receiveFrom is the next frame of so many bytes; the host itself may send others.
func receiveFrom(t *testing.T, p *Port, size int) *packet.Frame {
	t.Helper()
	batch := make([]*packet.Frame, 1)
	for range 1000 {
		if n := p.Receive(batch); n == 0 {
			continue
		}
		if batch[0].Len() == size {
			return batch[0]
		}
		packet.Release(batch)
	}
	t.Fatal("no frame came")
	return nil
}

// A port that was not asked to leaves source addresses alone.
func TestNoMarksUnasked(t *testing.T) {
	host := nstest.New(t)
	p := openIn(t, host, Options{Name: "gw0"})
	wire := nstest.OpenWire(t, host, "gw0")
	src := [6]byte{0x5e, 1, 2, 3, 4, 5}
	p.Transmit([]*packet.Frame{frameFrom(src, 9)})
	if got := sourceAtHost(t, wire); !bytes.Equal(got, src[:]) {
		t.Errorf("the host got it from %x, want %x", got, src)
	}
}

// sourceAtHost is the source address of the next frame that the host gets.
func sourceAtHost(t *testing.T, wire *nstest.Wire) []byte {
	t.Helper()
	got, err := wire.Receive(time.Minute)
	if err != nil || len(got) < packet.EthernetLen {
		t.Fatalf("the host got %x, error %v", got, err)
	}
	return got[6:12]
}
