package reassembly

import (
	"testing"

	"github.com/antrail/antrail/internal/wiretest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// collection is a store of fragments that wait with a number.
type collection struct {
	*testing.T
	*Fragments[int]
	lost map[Drop][]int
	now  int64
}

func newCollection(t *testing.T) *collection {
	c := &collection{T: t, lost: map[Drop][]int{}, now: 1}
	c.Fragments = NewFragments(func(p *Piece[int], why Drop) { c.lost[why] = append(c.lost[why], p.Then) })
	return c
}

// add brings a fragment from a port; number is what waits with it.
func (c *collection) add(port uint32, b []byte, number int) (*Datagram[int], Drop) {
	f := packet.FrameOf(b)
	return c.addFrame(port, f, number)
}

func (c *collection) addFrame(port uint32, f *packet.Frame, number int) (*Datagram[int], Drop) {
	l := packet.ParseLayers(f.Bytes())
	return c.Add(&Arrival{Frame: f, Layers: &l, Zone: 7, Port: port}, c.now, func(n *int) { *n = number })
}

// fragmentOf is a fragment of n bytes behind its IPv4 header, with the address
// 10.0.0.src.
func fragmentOf(src byte, id, offset, n int, more bool) []byte {
	flags := uint16(offset / 8)
	if more {
		flags |= packet.IPv4MoreFragments
	}
	addr := packettest.Addr("10.0.0.0").As4()
	o := packettest.Options{ID: uint16(id), FlagsOffset: flags, Payload: make([]byte, n-packet.UDPLen)}
	addr[3] = src
	o.Src = packettest.Addr("10.0.0.1")
	b := packettest.UDP4(o)
	h := packet.IPv4(b[packet.EthernetLen:])
	copy(h.SrcBytes(), addr[:])
	h.UpdateChecksum()
	return b
}

// wantEmpty fails unless nothing waits and every buffer is free again.
func (c *collection) wantEmpty() {
	c.Helper()
	if s := c.Stats(); s.Datagrams != 0 || s.Fragments != 0 || s.Bytes != 0 || len(c.shares) != 0 || c.oldest != nil {
		c.Errorf("left: %+v, shares %v", s, c.shares)
	}
	free := 0
	for i, frames := range c.memory.free {
		free += len(frames) * pieceSizes[i]
	}
	if free != c.memory.bytes {
		c.Errorf("%d of %d bytes of buffers are free", free, c.memory.bytes)
	}
}

// TestDatagramWaitsTwice takes a datagram through two ct() actions: the frames
// of the first wait at the second without a copy, and come back.
func TestDatagramWaitsTwice(t *testing.T) {
	c := newCollection(t)
	c.add(1, fragmentOf(1, 5, 400, 100, false), 2)
	d, drop := c.add(1, fragmentOf(1, 5, 0, 400, true), 1)
	if d == nil || drop != DropNone {
		t.Fatalf("not whole: %v", drop)
	}
	var again *Datagram[int]
	for i, p := range d.Pieces() {
		if p.Then != i+1 || !c.Owns(p.Frame) {
			t.Errorf("fragment %d waited with %d", i, p.Then)
		}
		again, _ = c.addFrame(1, p.Frame, 10*p.Then)
	}
	if again == nil || again.Pieces()[1].Then != 20 || again.Pieces()[1].Frame != d.Pieces()[1].Frame {
		t.Fatal("not whole the second time, or copied")
	}
	c.Release(d)
	for _, p := range again.Pieces() {
		packet.Release([]*packet.Frame{p.Frame})
	}
	c.Release(again)
	c.wantEmpty()
	if n := c.Stats().Completed; n != 2 {
		t.Errorf("%d datagrams completed, want 2", n)
	}
}

// TestLimitsOfAll fills the store from many ports: neither datagrams nor memory
// exceed their limits, and in time all comes back.
func TestLimitsOfAll(t *testing.T) {
	for _, tt := range []struct {
		name             string
		ports, each      int
		datagrams, bytes int
	}{
		{"datagrams", 20, 1, MaxDatagrams, MaxDatagrams * 2048},
		{"memory", 10, 20, MaxBytes / 2048 / 20, MaxBytes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, refused := newCollection(t), 0
			for id := range 150 {
				for port := range tt.ports {
					for i := range tt.each {
						if _, drop := c.add(uint32(port), fragmentOf(byte(port), id, 400*i, 400, true), 0); drop == DropFull {
							refused++
						}
					}
				}
				if s := c.Stats(); s.Datagrams > MaxDatagrams || s.Bytes > MaxBytes || s.Bytes != 2048*s.Fragments {
					t.Fatalf("%+v", s)
				}
			}
			if s := c.Stats(); s.Datagrams < tt.datagrams-tt.ports || s.Bytes < tt.bytes*3/4 || refused == 0 {
				t.Errorf("%+v and %d refused, want about %d datagrams and %d bytes", s, refused, tt.datagrams, tt.bytes)
			}
			c.now += int64(Timeout)
			c.Expire(c.now)
			c.wantEmpty()
		})
	}
}

// TestDeadDatagram drops a datagram at an overlap. The fragments that wait are dropped
// once, later ones are refused. After the timeout, the same datagram may come again.
func TestDeadDatagram(t *testing.T) {
	c := newCollection(t)
	c.add(1, fragmentOf(1, 5, 0, 400, true), 1)
	c.add(1, fragmentOf(1, 5, 800, 400, true), 2)
	if _, drop := c.add(1, fragmentOf(1, 5, 392, 400, true), 3); drop != DropOverlap {
		t.Errorf("an overlap: %v", drop)
	}
	if _, drop := c.add(1, fragmentOf(1, 5, 400, 400, true), 4); drop != DropOverlap {
		t.Errorf("a fragment of a dead datagram: %v", drop)
	}
	if lost := c.lost[DropOverlap]; len(lost) != 2 || lost[0] != 1 || lost[1] != 2 {
		t.Errorf("lost %v", c.lost)
	}
	if s := c.Stats(); s.Datagrams != 1 || s.Bytes != 0 {
		t.Errorf("%+v", s)
	}
	c.now += int64(Timeout)
	c.add(1, fragmentOf(1, 5, 0, 400, true), 5)
	if d, drop := c.add(1, fragmentOf(1, 5, 400, 400, false), 6); d == nil {
		t.Errorf("after its time: %v", drop)
	}
}

// TestPlace tries fragments that fit nowhere beside those that wait.
func TestPlace(t *testing.T) {
	type part struct {
		offset, n int
		more      bool
	}
	for _, tt := range []struct {
		name  string
		waits []part
		comes part
		want  Drop
	}{
		{"the same", []part{{400, 400, true}}, part{400, 400, true}, DropDuplicate},
		{"its end before", []part{{400, 400, true}}, part{8, 400, true}, DropOverlap},
		{"its start before another's end", []part{{0, 400, true}}, part{392, 400, true}, DropOverlap},
		{"around another", []part{{400, 240, true}}, part{0, 1000, true}, DropOverlap},
		{"inside another", []part{{0, 1000, true}}, part{400, 240, true}, DropOverlap},
		{"the same place, longer", []part{{0, 400, true}}, part{0, 480, true}, DropOverlap},
		{"behind the last", []part{{400, 100, false}}, part{504, 400, true}, DropOverlap},
		{"a second last", []part{{400, 104, false}}, part{504, 100, false}, DropOverlap},
		{"the last, before others", []part{{800, 400, true}}, part{400, 400, false}, DropOverlap},
		{"the last is not the last", []part{{400, 400, false}}, part{400, 400, true}, DropOverlap},
		{"beyond any datagram", nil, part{65400, 120, false}, DropNone},
		{"beyond any datagram, with its header", []part{{0, 400, true}}, part{65400, 120, false}, DropTooLong},
		{"a header, after its end", []part{{65400, 120, false}}, part{0, 400, true}, DropTooLong},
		{"a touching end", []part{{0, 400, true}}, part{400, 400, true}, DropNone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCollection(t)
			for _, p := range tt.waits {
				if _, drop := c.add(1, fragmentOf(1, 5, p.offset, p.n, p.more), 0); drop != DropNone {
					t.Fatalf("%v: %v", p, drop)
				}
			}
			if _, drop := c.add(1, fragmentOf(1, 5, tt.comes.offset, tt.comes.n, tt.comes.more), 0); drop != tt.want {
				t.Errorf("%v, want %v", drop, tt.want)
			}
		})
	}
}

// TestKeysOfDatagrams: fragments belong together by zone, addresses, protocol
// and Identification; from which port they come does not matter.
func TestKeysOfDatagrams(t *testing.T) {
	c := newCollection(t)
	first, last := fragmentOf(1, 5, 0, 400, true), fragmentOf(1, 5, 400, 100, false)
	other := func(change func(packet.IPv4)) []byte {
		b := append([]byte(nil), last...)
		change(packet.IPv4(b[packet.EthernetLen:]))
		return b
	}
	c.add(1, first, 1)
	for _, b := range [][]byte{
		other(func(h packet.IPv4) { h.SetID(6) }),
		other(func(h packet.IPv4) { h.SetProto(packet.ProtoTCP) }),
		other(func(h packet.IPv4) { h.SetSrc(packettest.Addr("10.0.0.9")) }),
		other(func(h packet.IPv4) { h.SetDst(packettest.Addr("10.0.0.9")) }),
	} {
		if d, _ := c.add(1, b, 2); d != nil {
			t.Errorf("%x completes another datagram", b[:40])
		}
	}
	if d, _ := c.add(2, last, 3); d == nil {
		t.Error("a fragment from another port does not complete its datagram")
	}
}

// TestStatsCross: what waits arrives in another process as it was sent.
func TestStatsCross(t *testing.T) {
	f := wiretest.New(t, 41)
	for range 100 {
		wiretest.Same(t, wiretest.Value[Stats](f))
	}
}
