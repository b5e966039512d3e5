package offload

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// sameWindows is a connection in two tables. Of one of them the programs pass the
// segments, and of the other one the table itself does.
type sameWindows struct {
	*rand.Rand
	t      *testing.T
	k      *Kernel
	trial  *Trial
	words  []conntrack.OffloadWords // of the other table
	tables [2]*conntrack.Table
	taken  int
}

// TestWindows: the programs take a segment if conntrack accepts it, and move the same windows to
// the same places. Most segments lie at the edges of the windows. These are scaled, have
// different sizes, and are near the wrap of sequence numbers.
func TestWindows(t *testing.T) {
	k, trial := open(t)
	seed := rand.Uint64()
	x := sameWindows{Rand: rand.New(rand.NewPCG(seed, 0)), t: t, k: k, trial: trial, words: make([]conntrack.OffloadWords, 1)}
	for range 60 {
		seen := x.open()
		for range 50 {
			if x.step(&seen); t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
	if t.Logf("%d of %d segments were taken", x.taken, 60*50); x.taken < 500 {
		t.Error("hardly any segment was taken: this proves little")
	}
}

// open opens the connection in both tables and sends it away. It is what the other table
// says of its directions.
func (x *sameWindows) open() (seen [2]conntrack.Seen) {
	seq, ack := -x.Uint32N(200_000), -x.Uint32N(200_000)
	var opened [3][]byte
	for i, o := range []packettest.Options{
		{TCPFlags: packet.TCPSyn, Seq: seq, TCPOptions: []byte{packet.TCPOptionNop, packet.TCPOptionWindowScale, 3, byte(x.IntN(15))}},
		{TCPFlags: packet.TCPSyn | packet.TCPAck, Seq: ack, Ack: seq + 1, TCPOptions: []byte{packet.TCPOptionNop, packet.TCPOptionWindowScale, 3, byte(x.IntN(15))}},
		{TCPFlags: packet.TCPAck, Seq: seq + 1, Ack: ack + 1},
	} {
		opened[i] = x.segment(i%2, o, 1+uint16(x.Uint32N(1<<16-1)))
	}
	for i, words := range [][]conntrack.OffloadWords{x.k.Conns(), x.words} {
		x.tables[i] = conntrack.NewTable(conntrack.Config{Max: 2, Now: func() int64 { return 1 }})
		x.tables[i].ShareOffload(words, func() {})
		for n, frame := range opened {
			f := packet.NewFrame(make([]byte, packet.Headroom+2048), nil)
			f.SetBytes(frame)
			l := packet.ParseLayers(frame)
			var m conntrack.Meta
			x.tables[i].Track(f, &l, &m, &conntrack.Request{Commit: true}, 1)
			seen[n%2], _ = m.Seen()
		}
		if !x.tables[i].Offload(&seen[0], 0, 1) {
			x.t.Fatal("the connection does not go away")
		}
	}
	for dir := range 2 {
		s := x.k.OffloadEntry(uint32(dir))
		s.Conn, s.Dir, s.Out, s.MaxLen = 0, uint8(dir), out, 3000
		s.Generation.Store(1)
		x.k.Generation().Store(1)
		if err := x.k.Put(keyOf(x.segment(dir, packettest.Options{TCPFlags: packet.TCPAck}, 1)), uint32(dir)); err != nil {
			x.t.Fatal(err)
		}
	}
	return seen
}

// segment is a frame of a direction.
func (x *sameWindows) segment(dir int, o packettest.Options, window uint16) []byte {
	if dir == 1 {
		o.Src, o.Dst, o.SrcPort, o.DstPort = packettest.Addr("10.0.0.2"), packettest.Addr("10.0.0.1"), 80, 1000
	}
	b := packettest.TCP4(o)
	binary.BigEndian.PutUint16(b[48:], window)
	l := packet.ParseLayers(b)
	l.SetL4Checksum(b)
	return b
}

// step is one segment.
func (x *sameWindows) step(seen *[2]conntrack.Seen) {
	w := &x.k.Conns()[0]
	at := func(side, word int) uint32 { return w[2+4*side+word].Load() }
	of := func(all ...uint32) uint32 { return all[x.IntN(len(all))] }
	dir := x.IntN(2)
	next, limit, window, scale := at(dir, 0), at(dir, 1), at(1-dir, 2), at(dir, 3)
	length := of(0, 1, 1, 1000)
	seq := of(0, 1, 1<<32-1, x.Uint32N(1000)) + of(next, next, next, limit, limit-length, next-window)
	ack := of(0, 1, 1<<32-1, -x.Uint32N(1000)) + at(1-dir, 0) + of(0, 0, 0, farAck, -(farAck<<scale))
	if seq+length == 0 { // there the programs leave it to the next one
		return
	}
	frame := x.segment(dir, packettest.Options{TCPFlags: packet.TCPAck, Seq: seq, Ack: ack, Payload: make([]byte, length)}, uint16(x.Uint32N(1<<x.IntN(17))))
	f := packet.NewFrame(make([]byte, packet.Headroom+2048), nil)
	f.SetBytes(frame)
	l := packet.ParseLayers(frame)
	var p conntrack.Passing
	if !p.Read(f, &l) {
		x.t.Fatal("a segment that cannot pass")
	}
	_, _, taken, err := x.trial.Received(link, frame)
	if err != nil {
		x.t.Fatal(err)
	}
	if passed := x.tables[1].Pass(&seen[dir], &p, 1); passed != taken {
		x.t.Errorf("taken %v, passed %v", taken, passed)
	} else if taken {
		x.taken++
	}
	for i := range w {
		if one, other := w[i].Load(), x.words[0][i].Load(); one != other {
			x.t.Errorf("word %d is %x, want %x; seq %x, ack %x, length %d, direction %d", i, one, other, seq, ack, length, dir)
		}
	}
}
