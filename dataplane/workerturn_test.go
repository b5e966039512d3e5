package dataplane_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
)

// mostInTurn is dataplane's turnSegments.
const mostInTurn = 384

// order notes what a port is handed, in order, and takes it as a sink does.
type order struct {
	sink
	turns []turn   // one for each call
	from  []uint16 // source ports, one for each frame
}

// turn is what one call brought.
type turn struct {
	from             uint16 // source port of the last frame
	packets, payload int    // packets that its frames stand for, and bytes in them
}

func (o *order) Transmit(batch []*packet.Frame) int {
	var t turn
	for _, f := range batch {
		l := packet.ParseLayers(f.Bytes())
		b := f.Bytes()[l.L4:l.End]
		t.from = packet.UDP(b).SrcPort() // where TCP has it too
		t.packets += packet.SegmentCount(f)
		if l.Proto == packet.ProtoTCP {
			t.payload += len(packet.TCP(b).Payload())
		} else {
			t.payload += len(b) - packet.UDPLen
		}
		o.from = append(o.from, t.from)
	}
	o.turns = append(o.turns, t)
	return o.sink.Transmit(batch)
}

// turnRig is a rig whose ports 1 and 2 send to a port 7 that passes work on.
func turnRig(t *testing.T) (*rig, *order) {
	t.Helper()
	r := newRig(t, "table=0,in_port=1 actions=output:7\ntable=0,in_port=2 actions=output:7")
	out := &order{sink: sink{Port: memory.New("out", memory.Options{Carries: everything})}}
	r.check(r.sw.AddPort(7, out))
	return r, out
}

// gso is a frame of n bytes of payload from a port, to be cut by size.
func gso(build func(packettest.Options) []byte, port uint16, n, size int) *packet.Frame {
	return packettest.Undone(build(packettest.Options{SrcPort: port, Payload: make([]byte, n), TCPFlags: packet.TCPAck}), size)
}

// TestTurnsBySegments has a port send frames that stand for very many packets, and
// another one ten plain frames: however the packets of the first are packed, it has
// no more than turnSegments of them in a turn, and the other port's go between.
func TestTurnsBySegments(t *testing.T) {
	for name, c := range map[string]struct {
		build          func(packettest.Options) []byte
		frames, n, cut int
	}{
		"honest frames":         {packettest.TCP4, 20, 60_000, 1400},
		"datagrams":             {packettest.UDP4, 20, 12_800, 100},
		"small segments":        {packettest.TCP4, 3, 60_000, 48},
		"small segments, IPv6":  {packettest.TCP6, 3, 60_000, 48},
		"one more than a turn":  {packettest.TCP4, 5, 385 * 100, 100},
		"exactly a turn":        {packettest.TCP4, 5, 384 * 100, 100},
		"frames of two packets": {packettest.TCP4, 200, 200, 100},
	} {
		t.Run(name, func(t *testing.T) {
			r, out := turnRig(t)
			for range c.frames {
				r.ports[1].Inject(gso(c.build, 1111, c.n, c.cut))
			}
			for range 10 {
				r.ports[2].Inject(gso(packettest.UDP4, 2222, 100, 0))
			}
			r.sw.Poll()
			payload, other := 0, -1
			for i, tn := range out.turns {
				if tn.packets > mostInTurn {
					t.Errorf("turn %d stands for %d packets, want at most %d", i, tn.packets, mostInTurn)
				}
				if tn.from == 1111 {
					payload += tn.payload
				} else if other < 0 {
					other = i
				}
			}
			if want := c.frames * c.n; payload != want {
				t.Errorf("%d bytes of payload left, want %d; drops %v", payload, want, r.sw.Drops())
			}
			if other < 0 || other > 1 {
				t.Errorf("the other port's packets left in turn %d of %d, want the first or the second", other, len(out.turns))
			}
			if err := r.sw.PacketCounters().Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTurnsKeepOrder: frames of one port leave in the order in which they came,
// plain ones between such as are divided.
func TestTurnsKeepOrder(t *testing.T) {
	r, out := turnRig(t)
	var want []uint16
	for i := range uint16(40) {
		if i%4 == 0 {
			r.ports[1].Inject(gso(packettest.TCP4, 1000+i, 50_000, 60)) // three parts
		} else {
			r.ports[1].Inject(gso(packettest.UDP4, 1000+i, 100, 0))
		}
		want = append(want, 1000+i)
	}
	r.sw.Poll()
	if got := slices.Compact(out.from); !slices.Equal(got, want) {
		t.Errorf("left in the order %v", got)
	}
}

// TestRefusedSegments names a frame of more segments than honest senders leave
// undone, and sends nothing of it.
func TestRefusedSegments(t *testing.T) {
	r, out := turnRig(t)
	for _, build := range []func(packettest.Options) []byte{packettest.TCP4, packettest.TCP6, packettest.UDP4, packettest.UDP6} {
		r.ports[1].Inject(gso(build, 1111, 60_000, 8))
	}
	r.sw.Poll()
	if n := r.sw.Workers()[0].Batches; n != 1 {
		t.Errorf("frames that are refused took %d turns, want one together", n)
	}
	if n := r.sw.Drops()[telemetry.DropSegments]; n != 4 || len(out.turns) != 0 {
		t.Errorf("%d frames dropped for %v, and %d turns; want 4 and none", n, telemetry.DropSegments, len(out.turns))
	}
}

// TestMoveAndRemoveMidBatch takes a port from a worker, and out of the switch, while
// frames of it wait for their turns: none is lost, and sums agree.
func TestMoveAndRemoveMidBatch(t *testing.T) {
	for _, remove := range []bool{false, true} {
		t.Run(fmt.Sprint("remove ", remove), func(t *testing.T) {
			out := &sink{Port: memory.New("out", memory.Options{MTU: 1500, Carries: everything})}
			in := memory.New("in", memory.Options{})
			r := run(t, 2, "table=0,in_port=1 actions=output:7", map[uint32]ports.Port{1: in, 7: out})
			const frames = 60
			for range frames {
				in.Inject(gso(packettest.TCP4, 1111, 60_000, 1400))
			}
			r.until("a batch is received", func() bool { return in.Stats().RxPackets > 0 })
			r.check(r.sw.MovePort(1, 1))
			received := in.Stats().RxPackets
			if remove {
				r.check(r.sw.RemovePort(1))
				received = in.Stats().RxPackets
			} else {
				received = frames
			}
			r.until("all that was received is sent", func() bool { return r.sw.PacketCounters().Total.Sent >= received })
			counters := r.sw.PacketCounters()
			if err := counters.Check(); err != nil {
				t.Error(err)
			}
			if counters.Total.Sent != received {
				t.Errorf("%d frames were sent, want %d", counters.Total.Sent, received)
			}
		})
	}
}
