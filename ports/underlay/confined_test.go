package underlay

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/antrail/antrail/internal/confinetest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/porttest"
	"github.com/antrail/antrail/tunnel"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { confinetest.Main(m) }

// TestAdoptConfined: a process without any capability adopts the port with all its
// sockets, whose buffers are as large as those of the process that opened them, and frames
// pass it both ways, also at the address of an Egress.
func TestAdoptConfined(t *testing.T) {
	if confinetest.Inside() {
		insideAdopt(t)
		return
	}
	for name, nodes := range underlays {
		for _, kind := range []tunnel.Kind{tunnel.KindGeneve, tunnel.KindVXLAN, tunnel.KindGRE} {
			t.Run(fmt.Sprint(name, " ", kind), func(t *testing.T) { adoptConfined(t, nodes, kind) })
		}
	}
}

func adoptConfined(t *testing.T, nodes [2]netip.Addr, kind tunnel.Kind) {
	ns := underlay(t, nodes)
	c := Config{Local: nodes[1], Peers: peersAt(nodes[0]), Kind: kind, AnyNetwork: true, Given: true}
	a, before := open(t, ns, Config{Local: nodes[0], Peers: peersAt(nodes[1]), Kind: kind, AnyNetwork: true}), open(t, ns, c)
	egress := nodes[1].Next()
	if egress.Is6() {
		addIPv6(t, ns, egress)
	}
	var ofEgress []int
	ns.Do(t, func() {
		err := a.SetEgresses(nil, []netip.Addr{egress})
		if err == nil {
			ofEgress, err = OpenReceivers(kind, []netip.Addr{egress})
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	for _, to := range []netip.Addr{nodes[1], egress} {
		if transmit(a, to, 7, pt.TCP4(pt.Options{})) != 1 {
			t.Fatal("not sent")
		}
	}
	fds := porttest.Copies(t, before.Descriptors())
	t.Setenv("UNDERLAY_TEST", fmt.Sprintf("%v %v %d %d", nodes[0], nodes[1], kind, len(fds)))
	child := confinetest.Start(t, ns, "TestAdoptConfined", append(fds, ofEgress...))
	child.Wait(t)
	packet.Release(receive(t, a, 1))
}

// insideAdopt receives two frames, and sends one.
func insideAdopt(t *testing.T) {
	t.Helper()
	var from, to string
	var kind tunnel.Kind
	var n int
	if _, err := fmt.Sscan(os.Getenv("UNDERLAY_TEST"), &from, &to, &kind, &n); err != nil {
		t.Fatal(err)
	}
	peer, local := netip.MustParseAddr(from), netip.MustParseAddr(to)
	var fds []int
	for fd := 3; fd < 3+n; fd++ {
		fds = append(fds, fd)
	}
	p, err := Adopt(Config{Local: local, Peers: peersAt(peer), Kind: kind, AnyNetwork: true, Given: true}, fds)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.Descriptors(), fds) {
		t.Errorf("%d descriptors of %d, or in another order", len(p.Descriptors()), len(fds))
	}
	here := []netip.Addr{local.Next()}
	if err := p.SetEgresses(here, nil); !errors.Is(err, ErrNotGiven) {
		t.Errorf("SetEgresses opens a socket: %v", err)
	}
	if err := errors.Join(p.AddReceivers([]int{3 + n}), p.SetEgresses(here, nil)); err != nil {
		t.Error(err)
	}
	wantBuffers(t, p)
	packet.Release(receive(t, p, 2))
	if transmit(p, peer, 9, pt.TCP4(pt.Options{})) != 1 {
		t.Error("nothing can be sent")
	}
	t.Log("path MTU: ", p.PathMTU(peer))
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// wantBuffers checks that sockets have buffers that a process without privilege does not
// get. The kernel tells twice what was asked for (socket(7)).
func wantBuffers(t *testing.T, p *Port) {
	t.Helper()
	check := func(fd, option int) {
		if got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, option); err != nil || got != 2*socketBuffer {
			t.Errorf("a buffer of %d bytes, want %d: %v", got, 2*socketBuffer, err)
		}
	}
	for _, r := range p.rxs {
		check(r.fd, unix.SO_RCVBUF)
	}
	for _, fd := range append(slices.Clone(p.senders), p.noDF, p.asker) {
		check(fd, unix.SO_SNDBUF)
	}
}
