package tap

import (
	"bytes"
	"testing"

	"github.com/antrail/antrail/internal/confinetest"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
)

func TestMain(m *testing.M) { confinetest.Main(m) }

var ofGateway = Options{Name: "gw0", MAC: [6]byte{2, 0, 0, 0, 0, 1}, MTU: 1400, Marks: true, Owner: "confined"}

// TestAdoptConfined: a process without any capability adopts a device, and frames pass
// it both ways.
func TestAdoptConfined(t *testing.T) {
	if confinetest.Inside() {
		insideAdopt(t)
		return
	}
	host := nstest.New(t)
	before := openIn(t, host, ofGateway)
	wire := nstest.OpenWire(t, host, "gw0")
	before.Rest()
	wire.Send(frameFrom([6]byte{2, 9, 9, 9, 9, 9}, 0).Bytes())
	child := confinetest.Start(t, host, "TestAdoptConfined", []int{copyOf(t, before.Descriptors()[0])})
	if got, want := sourceAtHost(t, wire), MarkMAC(5); !bytes.Equal(got, want[:]) {
		t.Errorf("the host got it from %x", got)
	}
	child.Wait(t)
}

// insideAdopt receives a frame from the host, and sends one.
func insideAdopt(t *testing.T) {
	t.Helper()
	p, err := Adopt(ofGateway, []int{3})
	if err != nil {
		t.Fatal(err)
	}
	packet.Release([]*packet.Frame{receiveFrom(t, p, 60)})
	if p.Transmit([]*packet.Frame{frameFrom([6]byte{2, 1, 1, 1, 1, 1}, 5)}) != 1 || !p.Info().Up {
		t.Errorf("not sent: %+v", p.Info())
	}
	t.Logf("%+v", p.Stats())
	t.Log("TUNSETPERSIST: ", p.persist(true))
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
