package underlay

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/porttest"
	"github.com/antrail/antrail/tunnel"
	"golang.org/x/sys/unix"
)

// TestAdopt: the port goes on with another one's receiving sockets, of the Node and
// of its Egresses, and with what waits there.
func TestAdopt(t *testing.T) {
	for name, nodes := range underlays {
		for _, kind := range []tunnel.Kind{tunnel.KindGeneve, tunnel.KindVXLAN, tunnel.KindGRE} {
			t.Run(fmt.Sprint(name, " ", kind), func(t *testing.T) { adoptBetween(t, nodes, kind) })
		}
	}
}

func adoptBetween(t *testing.T, nodes [2]netip.Addr, kind tunnel.Kind) {
	ns := underlay(t, nodes)
	c := Config{Local: nodes[1], Peers: peersAt(nodes[0]), Kind: kind, AnyNetwork: true}
	a, before := open(t, ns, Config{Local: nodes[0], Peers: peersAt(nodes[1]), Kind: kind}), open(t, ns, c)
	inner := pt.TCP4(pt.Options{})
	if transmit(a, nodes[1], 7, inner) != 1 {
		t.Fatal("not sent")
	}
	fds := porttest.Copies(t, before.Descriptors())
	var after *Port
	var err error
	ns.Do(t, func() { after, err = Adopt(c, fds) })
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if err := before.Close(); err != nil || before.Descriptors() != nil {
		t.Fatal(err)
	}
	packet.Release(receive(t, after, 1))
	if transmit(a, nodes[1], 7, inner) != 1 || !readable(t, after.FD()) {
		t.Error("what is sent afterwards wakes nobody")
	}
	packet.Release(receive(t, after, 1))
	if transmit(after, nodes[0], 9, inner) != 1 {
		t.Error("nothing can be sent")
	}
	packet.Release(receive(t, a, 1))
}

// TestAdoptEgresses: sockets of Egresses' addresses are taken over, and go when their
// Egress does.
func TestAdoptEgresses(t *testing.T) {
	ns := nstest.New(t)
	egress := netip.MustParseAddr("127.0.0.12")
	c := Config{Local: peer, Peers: peersAt(local), AnyNetwork: true}
	before := open(t, ns, c)
	var after *Port
	ns.Do(t, func() {
		if err := before.SetEgresses([]netip.Addr{egress}, nil); err != nil {
			t.Fatal(err)
		}
		var err error
		if after, err = Adopt(c, porttest.Copies(t, before.Descriptors())); err != nil {
			t.Fatal(err)
		}
		defer after.Close()
		before.Close()
		fds := after.Descriptors()
		if len(fds) != numReceivers+1 {
			t.Errorf("%d sockets, want %d and one of the Egress", len(fds), numReceivers)
		}
		if err := after.SetEgresses([]netip.Addr{egress}, nil); err != nil || !slices.Equal(after.Descriptors(), fds) {
			t.Errorf("%v, %v: another socket was opened, error %v", fds, after.Descriptors(), err)
		}
		if err := after.SetEgresses(nil, nil); err != nil || !slices.Equal(after.Descriptors(), fds[:numReceivers]) {
			t.Errorf("%v, %v", after.Descriptors(), err)
		}
	})
}

// TestRest: what was read with the first datagram is handed out, and nothing more is
// read.
func TestRest(t *testing.T) {
	ns := nstest.New(t)
	p := open(t, ns, Config{Local: local, Peers: peersAt(peer)})
	from := node(t, ns, peer)
	datagram := wrap(7, pt.TCP4(pt.Options{}))
	sendTo(t, from, local, datagram)
	sendTo(t, from, local, wrap(8, pt.UDP4(pt.Options{})))
	packet.Release(receive(t, p, 1))
	p.Rest()
	sendTo(t, from, local, datagram)
	batch := make([]*packet.Frame, 4)
	if n := p.Receive(batch); n != 1 || batch[0].Tunnel.ID != 8 {
		t.Fatalf("%d frames", n)
	}
	packet.Release(batch[:1])
	if n := p.Receive(batch); n != 0 || !readable(t, p.FD()) {
		t.Errorf("%d frames more", n)
	}
}

// TestAdoptRefusals: sockets that are not receiving sockets of this Node are refused.
func TestAdoptRefusals(t *testing.T) {
	ns := nstest.New(t)
	p := open(t, ns, Config{Local: local})
	for want, c := range map[string]struct {
		local netip.Addr
		fds   []int
	}{
		"receiving socket 1: it receives at": {peer, porttest.Copies(t, p.Descriptors())},
		"it is no socket of IP":              {local, porttest.Copies(t, []int{p.epoll})},
		"there is no receiving socket":       {local, []int{}},
		"no address to receive":              {netip.Addr{}, porttest.Copies(t, p.Descriptors())},
	} {
		var err error
		ns.Do(t, func() { _, err = Adopt(Config{Local: c.local}, c.fds) })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		for _, fd := range c.fds {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				t.Errorf("%s: a descriptor is open", want)
			}
		}
	}
}
