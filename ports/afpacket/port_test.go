package afpacket

import (
	"bytes"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/porttest"
)

func openIn(t *testing.T, n *nstest.Namespace, o Options) *Port {
	t.Helper()
	var p *Port
	n.Do(t, func() {
		var err error
		if p, err = Open(o); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// pair is a port on one end of a veth, and the other end in a pod.
func pair(t *testing.T, o Options) (node, pod *nstest.Namespace, p *Port) {
	t.Helper()
	node, pod = nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, node, "sw0", pod, "eth0")
	o.Interface = "sw0"
	return node, pod, openIn(t, node, o)
}

func TestConformance(t *testing.T) { conforms(t, Options{}) }

// TestConformanceOfFilters: the same where the kernel has no tcx.
func TestConformanceOfFilters(t *testing.T) { conforms(t, Options{older: true}) }

func conforms(t *testing.T, o Options) {
	o.Buffer = 512 << 10
	porttest.Run(t, func(t *testing.T) *porttest.Rig {
		_, pod, p := pair(t, o)
		wire := nstest.OpenWire(t, pod, "eth0")
		pool := packet.NewPool(512, 2048)
		return &porttest.Rig{
			Port: p, Get: pool.Get,
			Free:   func() int { return pool.Free() + p.pool.Free() },
			Frames: 512 + DefaultFrames,
			Inject: wire.Send, Observe: wire.Receive,
			Backlog: 4000,
			Whole:   func() ports.Port { return openIn(t, pod, Options{Interface: "eth0"}) },
		}
	})
}

// An MTU of 65535 is what a veth can have at most.
func TestLargestMTU(t *testing.T) {
	node, pod := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, node, "sw0", pod, "eth0")
	for _, end := range []struct {
		ns   *nstest.Namespace
		name string
	}{{node, "sw0"}, {pod, "eth0"}} {
		if err := end.ns.Links().LinkSetMTU(end.ns.Link(t, end.name), 65535); err != nil {
			t.Fatal(err)
		}
	}
	a, b := openIn(t, node, Options{Interface: "sw0"}), openIn(t, pod, Options{Interface: "eth0"})
	f := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
	f.SetBytes(packettest.UDP4(packettest.Options{Payload: make([]byte, 65535-20-8)}))
	if got := receiveOne(t, a, b, f); got.Len() != 65535+packet.EthernetLen {
		t.Errorf("%d bytes arrived of %d", got.Len(), f.Len())
	}
}

// receiveOne sends f from a port to another and returns what arrives.
func receiveOne(t *testing.T, from, to ports.Port, f *packet.Frame) *packet.Frame {
	t.Helper()
	if from.Transmit([]*packet.Frame{f}) != 1 {
		t.Fatalf("refused: %+v", from.Stats())
	}
	one := make([]*packet.Frame, 1)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if to.Receive(one) == 1 {
			return one[0]
		}
		time.Sleep(100 * time.Microsecond)
	}
	t.Fatalf("nothing arrived: %+v", to.Stats())
	return nil
}

// A tag that the kernel has taken off is back in the frame, and what is undone
// still points behind it.
func TestVLANTag(t *testing.T) {
	_, pod, p := pair(t, Options{})
	wire := nstest.OpenWire(t, pod, "eth0")
	tagged := packettest.UDP4(packettest.Options{VLAN: 0x2007, Payload: []byte("tagged")})
	if err := wire.Send(tagged); err != nil {
		t.Fatal(err)
	}
	one := make([]*packet.Frame, 1)
	for end := time.Now().Add(time.Minute); p.Receive(one) == 0; {
		if time.Now().After(end) {
			t.Fatalf("nothing arrived: %+v", p.Stats())
		}
	}
	if string(one[0].Bytes()) != string(tagged) {
		t.Errorf("got %x, want %x", one[0].Bytes(), tagged)
	}
	packet.Release(one)

	far := openIn(t, pod, Options{Interface: "eth0"})
	want := packettest.Undone(packettest.TCP4(packettest.Options{VLAN: 0x2007, Payload: make([]byte, 9000)}), 1400)
	sent := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
	sent.CopyFrom(want)
	got := receiveOne(t, far, p, sent)
	if got.Offload != want.Offload || string(got.Bytes()) != string(want.Bytes()) {
		t.Errorf("got %d bytes, %+v; want %d, %+v", got.Len(), got.Offload, want.Len(), want.Offload)
	}
}

// The Node's own stack does not see what a port takes: its end of the veth has
// an address, and answers neither ARP nor echo.
func TestNodeDoesNotAnswer(t *testing.T) {
	for name, o := range map[string]Options{"tcx": {}, "filter": {older: true}} {
		t.Run(name, func(t *testing.T) { nodeDoesNotAnswer(t, o) })
	}
}

func nodeDoesNotAnswer(t *testing.T, o Options) {
	node, pod, p := pair(t, o)
	node.AddAddress(t, "sw0", "10.9.0.1/24")
	pod.AddAddress(t, "eth0", "10.9.0.2/24")
	wire := nstest.OpenWire(t, pod, "eth0")
	ask := packettest.ARPRequest(packettest.Options{
		EthSrc: [6]byte(nstest.MAC("eth0")), EthDst: [6]byte{255, 255, 255, 255, 255, 255}, Src: packettest.Addr("10.9.0.2"), Dst: packettest.Addr("10.9.0.1"),
	})
	answered := func() bool {
		if err := wire.Send(ask); err != nil {
			t.Fatal(err)
		}
		for {
			b, err := wire.Receive(300 * time.Millisecond)
			if err != nil || b == nil {
				return false
			}
			if l := packet.ParseLayers(b); l.EtherType == packet.EtherTypeARP {
				return true
			}
		}
	}
	if answered() {
		t.Error("the Node answered a frame that belongs to the port")
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if !answered() {
		t.Error("the Node does not answer after the port is closed: its frames were not given back")
	}
}

// Frames that the kernel drops while nobody receives are counted once, also by Close.
func TestDropsAreCountedOnce(t *testing.T) {
	_, pod, p := pair(t, Options{Buffer: 64 << 10})
	wire := nstest.OpenWire(t, pod, "eth0")
	for range 1000 {
		if err := wire.Send(packettest.UDP4(packettest.Options{})); err != nil {
			t.Fatal(err)
		}
	}
	first := p.Stats().RxDropped
	if again := p.Stats().RxDropped; first == 0 || first >= 1000 || again != first {
		t.Errorf("%d drops, and %d when asked again", first, again)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if last := p.Stats().RxDropped; last != first {
		t.Errorf("%d drops after Close, were %d", last, first)
	}
}

func TestLinkGoes(t *testing.T) {
	for name, o := range map[string]Options{"tcx": {}, "filter": {older: true}} {
		t.Run(name, func(t *testing.T) { linkGoes(t, o) })
	}
}

func linkGoes(t *testing.T, o Options) {
	node, _, p := pair(t, o)
	frame := func() []*packet.Frame {
		f := packet.NewFrame(make([]byte, 512), nil)
		f.SetBytes(packettest.UDP4(packettest.Options{}))
		return []*packet.Frame{f}
	}
	if err := node.Links().LinkSetDown(node.Link(t, "sw0")); err != nil {
		t.Fatal(err)
	}
	if p.Info().Up || p.Transmit(frame()) != 0 || p.Stats().Reasons[ports.TxLinkDown.String()] != 1 {
		t.Errorf("link down: up %v, %+v", p.Info().Up, p.Stats())
	}
	if err := node.Links().LinkDel(node.Link(t, "sw0")); err != nil {
		t.Fatal(err)
	}
	if n := p.Receive(make([]*packet.Frame, 4)); n != 0 || p.Info().Up || p.Transmit(frame()) != 0 {
		t.Errorf("link gone: received %d, up %v", n, p.Info().Up)
	}
	if s := p.Stats(); s.Reasons[ports.TxLinkDown.String()] != 2 || s.RxErrors != 0 {
		t.Errorf("link gone: %+v", s)
	}
	if x := p.DropSample(ports.TxLinkDown.String()); x.Length != len(packettest.UDP4(packettest.Options{})) {
		t.Errorf("the sample has %d bytes", x.Length)
	}
}

// TestPodsEndDown: the kernel takes what is sent to a pod whose end is down, and loses
// it. The port counts it as dropped, once it was seen, and sends when the end is up again.
func TestPodsEndDown(t *testing.T) {
	_, pod, p := pair(t, Options{})
	send := func() int {
		f := packet.NewFrame(make([]byte, 512), nil)
		f.SetBytes(packettest.UDP4(packettest.Options{}))
		return p.Transmit([]*packet.Frame{f})
	}
	if err := pod.Links().LinkSetDown(pod.Link(t, "eth0")); err != nil {
		t.Fatal(err)
	}
	nstest.Until(t, "the port sees it", func() bool { return !p.Info().Up })
	if n := send(); n != 0 || p.Stats().Reasons[ports.TxLinkDown.String()] != 1 {
		t.Errorf("%d sent: %+v", n, p.Stats())
	}
	if x := p.DropSample(ports.TxLinkDown.String()); !bytes.Equal(x.Head, packettest.UDP4(packettest.Options{})) {
		t.Errorf("the sample is %x", x.Head)
	}
	pod.SetUp(t, "eth0")
	nstest.Until(t, "it sends again, though nobody asks for its link", func() bool { return send() == 1 })
}

func TestOpenRefusals(t *testing.T) {
	n := nstest.New(t)
	n.Do(t, func() {
		for _, name := range []string{"", "nosuch"} {
			if p, err := Open(Options{Interface: name}); err == nil {
				p.Close()
				t.Errorf("%q was opened", name)
			}
		}
	})
}
