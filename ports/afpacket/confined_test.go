package afpacket

import (
	"testing"
	"time"

	"github.com/antrail/antrail/internal/confinetest"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/porttest"
)

func TestMain(m *testing.M) { confinetest.Main(m) }

// TestAdoptConfined: a process without any capability adopts a port, and frames pass
// it both ways. The programs stay with the process that opened the port.
func TestAdoptConfined(t *testing.T) {
	if confinetest.Inside() {
		insideAdopt(t)
		return
	}
	node, pod, before := pair(t, Options{})
	wire := nstest.OpenWire(t, pod, "eth0")
	before.Rest()
	child := confinetest.Start(t, node, "TestAdoptConfined", porttest.Copies(t, before.Descriptors()))
	frame := string(pt.UDP4(pt.Options{SrcPort: 7, Payload: make([]byte, 20)}))
	if err := wire.Send([]byte(frame)); err != nil {
		t.Fatal(err)
	}
	if got, err := wire.Receive(time.Minute); err != nil || string(got) != frame {
		t.Errorf("%x came back, error %v", got, err)
	}
	child.Wait(t)
}

// insideAdopt returns one frame to the pod.
func insideAdopt(t *testing.T) {
	t.Helper()
	if p, err := Adopt(Options{Interface: "sw0"}, porttest.Copies(t, []int{3})); err == nil {
		t.Logf("not Attached: Begin: %v; Close: %v", p.BeginTraffic(), p.Close())
	} else {
		t.Log("not Attached: ", err)
	}
	p, err := Adopt(Options{Interface: "sw0", Attached: true}, []int{3})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.BeginTraffic(); err != nil {
		t.Fatal(err)
	}
	f := taken(t, p)
	out := packet.NewFrame(make([]byte, 512), nil)
	out.SetBytes([]byte(f))
	if p.Transmit([]*packet.Frame{out}) != 1 {
		t.Error("not sent")
	}
	if !p.Info().Up {
		t.Error("the link is down")
	}
	t.Logf("%+v", p.Stats())
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
