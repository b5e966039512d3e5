package uplink

import (
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/antrail/antrail/internal/confinetest"
	"github.com/antrail/antrail/internal/nstest"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/antrail/antrail/ports/porttest"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/tunnel"
)

func TestMain(m *testing.M) { confinetest.Main(m) }

// TestAdoptConfined: a process without any capability adopts the port that was opened for
// it, and packets pass both ways by the card.
func TestAdoptConfined(t *testing.T) {
	if confinetest.Inside() {
		insideAdopt(t)
		return
	}
	for family := range nodes {
		for _, kind := range kinds {
			t.Run(family+"/"+kind.String(), func(t *testing.T) { adoptConfined(t, family, kind) })
		}
	}
}

// innerOf is a frame that goes through the tunnel.
func innerOf() []byte { return pt.UDP4(pt.Options{Payload: []byte("inner")}) }

func (p *pair) givenConfig(kind tunnel.Kind) Config {
	return Config{Link: "eth0", Config: underlay.Config{
		Name: "tun0", Kind: kind, Local: p.aAddr, Peers: []underlay.Peer{{Address: p.bAddr}}, AnyNetwork: true, MTU: 1430, Given: true,
	}}
}

func adoptConfined(t *testing.T, family string, kind tunnel.Kind) {
	p := wired(t, family)
	p.openFar(t, kind)
	p.a.AddNeighbour(t, "eth0", p.bAddr.String(), nstest.MAC("eth1")) // which never goes stale
	memory := afxdp.NewMemory(256, 1)
	var given *Port
	var err error
	p.a.Do(t, func() { given, err = Open(memory, p.givenConfig(kind)) })
	if err != nil {
		t.Fatal(err)
	}
	fds := porttest.Copies(t, given.Descriptors())
	t.Setenv("UPLINK_TEST", fmt.Sprintf("%v %v %d %d", p.aAddr, p.bAddr, kind, len(fds)))
	child := confinetest.Start(t, p.a, "TestAdoptConfined", fds)
	if err := given.Close(); err != nil {
		t.Error(err)
	}
	if err := memory.Close(); err != nil {
		t.Error(err)
	}
	send(t, p.far, p.aAddr, frameOf(innerOf()))
	child.Wait(t)
	arrives(t, p.far, innerOf(), p.aAddr, p.bAddr)
	nstest.Until(t, "the program to go", func() bool {
		xdp := p.a.Link(t, "eth0").Attrs().Xdp
		return xdp == nil || !xdp.Attached
	})
}

// insideAdopt receives a frame, and sends one.
func insideAdopt(t *testing.T) {
	t.Helper()
	var own, far string
	var kind tunnel.Kind
	var n int
	if _, err := fmt.Sscan(os.Getenv("UPLINK_TEST"), &own, &far, &kind, &n); err != nil {
		t.Fatal(err)
	}
	var fds []int
	for fd := 3; fd < 3+n; fd++ {
		fds = append(fds, fd)
	}
	p := &pair{aAddr: netip.MustParseAddr(own), bAddr: netip.MustParseAddr(far)}
	memory := afxdp.NewMemory(64, 1)
	var err error
	if p.port, err = Adopt(memory, p.givenConfig(kind), fds); err != nil {
		t.Fatal(err)
	}
	if err := p.port.BeginTraffic(); err != nil {
		t.Fatal(err)
	}
	if err := p.port.SetEgresses(nil, nil); err != nil {
		t.Error(err)
	}
	arrives(t, p.port, innerOf(), p.bAddr, p.aAddr)
	p.await(t, nstest.MAC("eth1"))
	send(t, p.port, p.bAddr, frameOf(innerOf()))
	if sent, came := p.cardSent(), p.cardCame(); sent != 1 || came != 1 {
		t.Errorf("%d and %d packets went by the card, want 1 and 1", sent, came)
	}
	if err := p.port.Close(); err != nil {
		t.Error(err)
	}
	if memory.Sweep(); memory.Close() != nil {
		t.Error("a frame is missing")
	}
}
