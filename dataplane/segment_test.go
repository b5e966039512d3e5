package dataplane_test

import (
	"bytes"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
)

// Ports of segmentRig: one that passes all undone work on, beside 1 to 4 that
// pass on none.
const wholePort = 5

const everything = ports.CarriesChecksum | ports.CarriesTCP | ports.CarriesUDP

func segmentRig(t testing.TB, flows string) *rig {
	t.Helper()
	r := newRig(t, flows)
	r.addPort(wholePort, memory.Options{MTU: 1500, Carries: everything})
	return r
}

// large is a TCP frame of 20,000 bytes of payload to be cut by 1,000.
func large(build func(packettest.Options) []byte) *packet.Frame {
	payload := make([]byte, 20_000)
	for i := range payload {
		payload[i] = byte(i * i)
	}
	return packettest.Undone(build(packettest.Options{Payload: payload, TCPFlags: packet.TCPAck}), 1000)
}

// natFlows change addresses, a port and the TTL of every packet, by conntrack
// and by an entry, before it goes out.
const natFlows = `
	table=0,tcp actions=ct(commit,zone=5,nat(dst=10.7.7.7:8080),table=1)
	table=0,udp actions=ct(commit,zone=5,nat(dst=10.7.7.7:8080),table=1)
	table=0,tcp6 actions=ct(commit,zone=5,nat(dst=[fd07::7]:8080),table=1)
	table=0,udp6 actions=ct(commit,zone=5,nat(dst=[fd07::7]:8080),table=1)
	table=1,ip actions=set_field:10.9.9.9->ip_src,dec_ttl,resubmit(,2)
	table=1,ipv6 actions=set_field:fd09::9->ipv6_src,dec_ttl,resubmit(,2)
	table=2 actions=output:5,output:2`

// TestLargeFrameWalksOnce sends 20 segments in one frame through NAT and
// rewrites: it leaves whole by a port that passes the work on, and as 20 sound
// packets by one that does not, both the same.
func TestLargeFrameWalksOnce(t *testing.T) {
	for name, build := range map[string]func(packettest.Options) []byte{
		"tcp": packettest.TCP4, "udp": packettest.UDP4, "tcp6": packettest.TCP6, "udp6": packettest.UDP6,
	} {
		t.Run(name, func(t *testing.T) {
			r := segmentRig(t, natFlows)
			out := r.sendWhole(1, large(build))
			if len(out) != 21 {
				t.Fatalf("%d frames left, want 20 and 1", len(out))
			}
			for _, s := range out[:20] {
				if s.port != 2 || s.offload != (packet.Offload{}) {
					t.Fatalf("port %d, %+v: want port 2 and nothing undone", s.port, s.offload)
				}
				wantSound(t, s.frame)
			}
			wantSegments(t, out[20], out[:20])
			if got := r.packets(2); got[32768] != 1 {
				t.Errorf("the last entry saw %v packets, want 1", got)
			}
		})
	}
}

// wantSegments cuts a frame that left whole and compares.
func wantSegments(t *testing.T, whole sent, want []sent) {
	t.Helper()
	f := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
	f.SetBytes(whole.frame)
	f.Offload = whole.offload
	l := packet.ParseLayers(f.Bytes())
	s, ok := packet.NewSegments(f, &l)
	if !ok {
		t.Fatalf("what left whole cannot be cut: %+v", f.Offload)
	}
	g := packet.NewFrame(make([]byte, 2048), nil)
	for i := 0; s.More(); i++ {
		if !s.Next(g) || !bytes.Equal(g.Bytes(), want[i].frame) {
			t.Fatalf("segment %d is\n%x, want\n%x", i, g.Bytes()[:60], want[i].frame[:60])
		}
	}
}

// TestTunnelledSegments keeps the outer header with each segment.
func TestTunnelledSegments(t *testing.T) {
	r := newRig(t, "table=0 actions=set_field:192.0.2.1->tun_dst,output:9")
	out := r.sendWhole(1, large(packettest.TCP4))
	if len(out) != 20 {
		t.Fatalf("%d frames left, want 20", len(out))
	}
	for _, s := range out {
		wantSound(t, s.frame)
		if s.tunnel.Dst != packettest.Addr("192.0.2.1") {
			t.Fatalf("segment to %v", s.tunnel.Dst)
		}
	}
}

// TestPacketInIsComplete gives the agent a packet whose checksum is right.
func TestPacketInIsComplete(t *testing.T) {
	r := segmentRig(t, "table=0 actions=controller,output:5")
	frame := packettest.TCP4(packettest.Options{Payload: []byte("payload")})
	out := r.sendWhole(1, packettest.Undone(frame, 0))
	if len(r.packetIns) != 1 || !bytes.Equal(r.packetIns[0].Frame, frame) {
		t.Errorf("the agent got %x, want %x", r.packetIns[0].Frame, frame)
	}
	r.wantPorts(out, 5)
	if !out[0].offload.ChecksumPartial {
		t.Error("the packet itself left with a complete checksum; the port would have done that")
	}
}

// sink takes what is transmitted and gives the frames back, as a port does that
// copies.
type sink struct {
	*memory.Port
	frames, calls int
}

func (s *sink) Transmit(batch []*packet.Frame) int {
	s.frames += len(batch)
	s.calls++
	packet.Release(batch)
	return len(batch)
}

// Stats counts what it took.
func (s *sink) Stats() ports.Stats {
	st := s.Port.Stats()
	st.TxPackets = uint64(s.frames)
	return st
}

// TestMoreSegmentsThanFrames sends a batch whose segments are more than the
// worker has frames for: they leave in several goes, all of them.
func TestMoreSegmentsThanFrames(t *testing.T) {
	r := newRig(t, "table=0 actions=output:6")
	out := &sink{Port: memory.New("p6", memory.Options{})}
	r.check(r.sw.AddPort(6, out))
	for range 60 {
		r.ports[1].Inject(large(packettest.TCP4))
	}
	r.sw.Poll()
	if out.frames != 1200 || out.calls < 2 {
		t.Errorf("%d segments in %d calls, want 1200 in two or more; drops %v", out.frames, out.calls, r.sw.Drops())
	}
}

// TestNoFrameForSegments counts what is lost when a port keeps its frames.
func TestNoFrameForSegments(t *testing.T) {
	r := newRig(t, "table=0 actions=output:2")
	for range 60 {
		r.ports[1].Inject(large(packettest.TCP4))
	}
	r.sw.Poll()
	if r.sw.Drops()[telemetry.DropNoFrame] == 0 {
		t.Error("no drop is counted, though 1024 frames cannot hold 1200 segments")
	}
}

// TestOffloadAllocatesNothing walks a large frame to a port that passes it on,
// and to one that has it cut.
func TestOffloadAllocatesNothing(t *testing.T) {
	for _, flows := range []string{"table=0 actions=output:5", "table=0 actions=output:6"} {
		r := segmentRig(t, flows)
		out := &sink{Port: memory.New("p6", memory.Options{})}
		r.check(r.sw.AddPort(6, out))
		f, one := large(packettest.TCP4), make([]*packet.Frame, 1)
		fresh := large(packettest.TCP4)
		if n := testing.AllocsPerRun(100, func() {
			f.CopyFrom(fresh)
			one[0] = f
			r.ports[1].Inject(one...)
			r.sw.Poll()
			r.ports[wholePort].Collect(one)
		}); n != 0 {
			t.Errorf("%s: %v allocations a frame", flows, n)
		}
	}
}
