package underlay

import (
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/antrail/antrail/internal/confinetest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/porttest"
	"github.com/antrail/antrail/tunnel"
)

func TestMain(m *testing.M) { confinetest.Main(m) }

// TestAdoptConfined: a process without any capability adopts the port with its UDP
// sockets, and frames pass it both ways.
func TestAdoptConfined(t *testing.T) {
	if confinetest.Inside() {
		insideAdopt(t)
		return
	}
	for name, nodes := range underlays {
		for _, kind := range []tunnel.Kind{tunnel.KindGeneve, tunnel.KindVXLAN} {
			t.Run(fmt.Sprint(name, " ", kind), func(t *testing.T) { adoptConfined(t, nodes, kind) })
		}
	}
}

func adoptConfined(t *testing.T, nodes [2]netip.Addr, kind tunnel.Kind) {
	ns := underlay(t, nodes)
	c := Config{Local: nodes[1], Peers: peersAt(nodes[0]), Kind: kind, AnyNetwork: true}
	a, before := open(t, ns, Config{Local: nodes[0], Peers: peersAt(nodes[1]), Kind: kind, AnyNetwork: true}), open(t, ns, c)
	if transmit(a, nodes[1], 7, pt.TCP4(pt.Options{})) != 1 {
		t.Fatal("not sent")
	}
	t.Setenv("UNDERLAY_TEST", fmt.Sprintf("%v %v %d", nodes[0], nodes[1], kind))
	child := confinetest.Start(t, ns, "TestAdoptConfined", porttest.Copies(t, before.Descriptors()))
	child.Wait(t)
	packet.Release(receive(t, a, 1))
}

// insideAdopt receives a frame, and sends one.
func insideAdopt(t *testing.T) {
	t.Helper()
	var from, to string
	var kind tunnel.Kind
	if _, err := fmt.Sscan(os.Getenv("UNDERLAY_TEST"), &from, &to, &kind); err != nil {
		t.Fatal(err)
	}
	peer, local := netip.MustParseAddr(from), netip.MustParseAddr(to)
	var fds []int
	for fd := 3; fd < 3+numReceivers; fd++ {
		fds = append(fds, fd)
	}
	p, err := Adopt(Config{Local: local, Peers: peersAt(peer), Kind: kind, AnyNetwork: true}, fds)
	if err != nil {
		t.Fatal(err)
	}
	packet.Release(receive(t, p, 1))
	if transmit(p, peer, 9, pt.TCP4(pt.Options{})) != 1 {
		t.Error("nothing can be sent")
	}
	t.Log("SetEgresses: ", p.SetEgresses([]netip.Addr{netip.MustParseAddr("127.0.0.12")}, nil))
	_, err = openSender(tunnel.KindGRE, local, true)
	t.Log("GRE sender: ", err)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
