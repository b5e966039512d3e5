package afpacket

import (
	"bytes"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
)

// receiveAll receives so many frames.
func receiveAll(t *testing.T, p ports.Port, n int) (all []*packet.Frame) {
	t.Helper()
	batch := make([]*packet.Frame, 64)
	for end := time.Now().Add(time.Minute); len(all) < n; {
		if time.Now().After(end) {
			t.Fatalf("%d frames came, want %d: %+v", len(all), n, p.Stats())
		}
		all = append(all, batch[:p.Receive(batch)]...)
	}
	if len(all) > n {
		t.Fatalf("%d frames came, want %d", len(all), n)
	}
	return all
}

// TestDatagramsLeaveJoined sends 20 datagrams of one flow, 15 of another, and 20 without
// checksum: only the first leave as one frame, and none do if the kernel takes no segments of UDP.
func TestDatagramsLeaveJoined(t *testing.T) {
	_, pod, p := pair(t, Options{})
	joined := 0
	if p.Info().Carries&ports.CarriesUDP != 0 {
		joined = 1
	}
	far := openIn(t, pod, Options{Interface: "eth0"})
	payload := make([]byte, 19*48+7)
	for i := range payload {
		payload[i] = byte(i * i)
	}
	for name, build := range map[string]func(packettest.Options) []byte{"IPv4": packettest.UDP4, "IPv6": packettest.UDP6} {
		whole := packettest.Undone(build(packettest.Options{ID: 65530, Payload: payload}), 48)
		want := bytes.Clone(whole.Bytes())
		few := packettest.Cut(packettest.Undone(build(packettest.Options{DstPort: 9, Payload: payload[:15*48]}), 48))
		bare := packettest.Cut(packettest.Undone(packettest.UDP4(packettest.Options{Payload: payload}), 48))
		for _, f := range bare {
			packet.UDP(f.Bytes()[packet.EthernetLen+packet.IPv4Len:]).SetChecksum(0)
		}
		if n := p.Transmit(slices.Concat(packettest.Cut(whole), few, bare)); n != 55 {
			t.Fatalf("%s: %d datagrams sent of 55: %+v", name, n, p.Stats())
		}
		got := receiveAll(t, far, 55-19*joined)
		for i, f := range got[joined:] {
			if !f.Offload.None() {
				t.Errorf("%s: frame %d of %d bytes is joined", name, i+joined, f.Len())
			}
		}
		if joined == 1 && (!bytes.Equal(got[0].Bytes(), want) || got[0].Offload != whole.Offload) {
			t.Errorf("%s: %d bytes came, undone is %+v, want %d, %+v", name, got[0].Len(), got[0].Offload, len(want), whole.Offload)
		}
	}
}

// TestSocketGetsEachDatagram sends datagrams of one flow to a socket that asks for no joined
// ones: it gets each by itself.
func TestSocketGetsEachDatagram(t *testing.T) {
	_, pod, p := pair(t, Options{})
	pod.AddAddress(t, "eth0", "10.9.0.2/24")
	var c net.PacketConn
	var err error
	pod.Do(t, func() { c, err = net.ListenPacket("udp4", "10.9.0.2:9000") })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	payload := make([]byte, 19*48+7)
	for i := range payload {
		payload[i] = byte(i * i)
	}
	frames := packettest.Cut(packettest.Undone(packettest.UDP4(packettest.Options{
		EthDst: [6]byte(nstest.MAC("eth0")), Src: packettest.Addr("10.9.0.1"), Dst: packettest.Addr("10.9.0.2"), DstPort: 9000, Payload: payload,
	}), 48))
	if n := p.Transmit(frames); n != 20 {
		t.Fatalf("%d datagrams sent of 20: %+v", n, p.Stats())
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	b := make([]byte, len(payload))
	for i := range 20 {
		n, _, err := c.ReadFrom(b)
		if want := payload[48*i : min(48*i+48, len(payload))]; err != nil || !bytes.Equal(b[:n], want) {
			t.Fatalf("datagram %d is %x, want %x: %v", i, b[:n], want, err)
		}
	}
}

// TestSegmentsLeaveJoined sends the segments of two streams, with a datagram between those of
// the second: five frames reach the pod. The port counts what the switch sent.
func TestSegmentsLeaveJoined(t *testing.T) {
	_, pod, p := pair(t, Options{})
	far := openIn(t, pod, Options{Interface: "eth0"})
	payload := make([]byte, 20*48)
	for i := range payload {
		payload[i] = byte(i * i)
	}
	o := packettest.Options{Payload: payload, TCPFlags: packet.TCPAck | packet.TCPPsh}
	first, second := packettest.Undone(packettest.TCP4(o), 48), packettest.Undone(packettest.TCP6(o), 48)
	datagram := packet.NewFrame(make([]byte, 2048), nil)
	datagram.SetBytes(packettest.UDP4(packettest.Options{Payload: []byte("between")}))
	parts := packettest.Cut(second)
	alone := packet.NewFrame(make([]byte, 2048), nil)
	alone.CopyFrom(parts[19])
	want := [][]byte{bytes.Clone(first.Bytes()), nil, bytes.Clone(datagram.Bytes()), nil, bytes.Clone(alone.Bytes())}
	batch := slices.Concat(packettest.Cut(first), parts[:7], []*packet.Frame{datagram}, parts[7:], []*packet.Frame{alone})
	bytesOf := 0
	for _, f := range batch {
		bytesOf += f.Len()
	}
	if n := p.Transmit(batch); n != 42 {
		t.Fatalf("%d frames sent of 42: %+v", n, p.Stats())
	}
	got := receiveAll(t, far, len(want))
	for i, f := range got {
		if want[i] != nil && !bytes.Equal(f.Bytes(), want[i]) {
			t.Errorf("frame %d is %d bytes, want %d", i, f.Len(), len(want[i]))
		}
	}
	if got[0].Offload != first.Offload {
		t.Errorf("undone is %+v, want %+v", got[0].Offload, first.Offload)
	}
	again := slices.Concat(packettest.Cut(got[1]), packettest.Cut(got[3]))
	whole := packettest.Cut(second)
	if !slices.EqualFunc(again, whole, func(a, b *packet.Frame) bool { return bytes.Equal(a.Bytes(), b.Bytes()) }) {
		t.Errorf("the second stream came as %d segments, want the %d that were sent", len(again), len(whole))
	}
	if s := p.Stats(); s.TxPackets != 42 || s.TxBytes != uint64(bytesOf) {
		t.Errorf("counted %d frames of %d bytes, want 42 of %d", s.TxPackets, s.TxBytes, bytesOf)
	}
}

// TestFullBatchOfSegments sends more segments than one system call has messages, by runs of
// every length.
func TestFullBatchOfSegments(t *testing.T) {
	_, pod, p := pair(t, Options{})
	wire := nstest.OpenWire(t, pod, "eth0")
	for segments := 1; segments < 2*maxBatch; segments += 21 {
		whole := packettest.Undone(packettest.TCP4(packettest.Options{Payload: make([]byte, segments*48), TCPFlags: packet.TCPAck}), 48)
		frames := slices.Concat(packettest.Cut(whole), packettest.Cut(whole))
		if n := p.Transmit(frames); n != 2*segments {
			t.Fatalf("%d frames sent of %d: %+v", n, 2*segments, p.Stats())
		}
		for came := 0; came < 2*segments; {
			b, err := wire.Receive(time.Minute)
			if err != nil || b == nil {
				t.Fatalf("%d segments of %d came: %v", came, 2*segments, err)
			}
			l := packet.ParseLayers(b)
			came += (l.End - l.L4 - packet.TCPLen) / 48
		}
	}
}

// TestRefusedSegments counts each segment of a run that a link without carrier does not take.
func TestRefusedSegments(t *testing.T) {
	node, _, p := pair(t, Options{})
	whole := packettest.Undone(packettest.TCP4(packettest.Options{Payload: make([]byte, 10*48), TCPFlags: packet.TCPAck}), 48)
	if err := node.Links().LinkSetDown(node.Link(t, "sw0")); err != nil {
		t.Fatal(err)
	}
	if n := p.Transmit(packettest.Cut(whole)); n != 0 {
		t.Errorf("%d segments sent by a link that is down", n)
	}
	if s := p.Stats(); s.TxDropped+s.TxErrors != 10 {
		t.Errorf("%+v, want 10 segments dropped", s)
	}
}
