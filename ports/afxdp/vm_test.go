//go:build vm

package afxdp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/ports/porttest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// These tests need cards on one wire, which hack/vm gives its machine (-cards).

// cards are their addresses.
var cards = []net.HardwareAddr{{0x52, 0x54, 0, 0, 0, 1}, {0x52, 0x54, 0, 0, 0, 2}}

// intoNamespace gives a namespace the card of an address, by a name. It comes back when
// the namespace goes.
func intoNamespace(t *testing.T, card net.HardwareAddr, n *nstest.Namespace, name string) {
	t.Helper()
	var link netlink.Link
	nstest.Until(t, "the card "+card.String()+" is there", func() bool {
		all, err := netlink.LinkList()
		if err != nil {
			return false // links came or went meanwhile
		}
		for _, l := range all {
			if bytes.Equal(l.Attrs().HardwareAddr, card) {
				link = l
			}
		}
		return link != nil
	})
	if err := netlink.LinkSetDown(link); err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetNsFd(link, n.FD()); err != nil {
		t.Fatal(err)
	}
	there, err := n.Links().LinkByName(link.Attrs().Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Links().LinkSetName(there, name); err != nil {
		t.Fatal(err)
	}
	n.SetUp(t, name)
	nstest.Until(t, name+" is up", func() bool { return n.Link(t, name).Attrs().OperState == netlink.OperUp })
}

// onCards are cards in namespaces of their own, of which the first is for the port.
func onCards(t *testing.T) *pair {
	t.Helper()
	p := &pair{node: nstest.New(t), pod: nstest.New(t)}
	intoNamespace(t, cards[0], p.node, "sw0")
	intoNamespace(t, cards[1], p.pod, "eth0")
	p.umem = umemFor(t, 2048)
	return p
}

// TestVMCards: a port on a card does what others do, whether the kernel copies its
// frames or the card moves them.
func TestVMCards(t *testing.T) {
	modes := map[Mode]string{Native: "native, copy", ZeroCopy: "native, zero-copy"}
	if !movesFrames(t) {
		delete(modes, ZeroCopy)
		t.Run("zero-copy is refused", testRefused)
	}
	for mode, name := range modes {
		t.Run(string(mode), func(t *testing.T) {
			porttest.Run(t, func(t *testing.T) *porttest.Rig {
				p := onCards(t)
				p.port = openIn(t, p.node, p.umem, Options{Interface: "sw0", Mode: mode, Ring: 256})
				p.wire = nstest.OpenWire(t, p.pod, "eth0")
				if got := p.port.Info().Mode; got != name {
					t.Fatalf("mode %q, want %q", got, name)
				}
				frames, free := p.umem.Frames(), p.umem.Free
				if p.umem.large != nil { // Linux 6.6 has chains
					frames, free = frames+largeFrames, func() int { return p.umem.Free() + p.umem.large.Free() }
				}
				return &porttest.Rig{
					Port: p.port, Get: p.umem.Get,
					Free:    free,
					Frames:  frames,
					Inject:  p.send,
					Observe: p.wire.Receive,
					Backlog: 600,
					Late:    100 * time.Millisecond,
					Keeps:   true, // QEMU does while the card has no buffer
				}
			})
		})
	}
}

// movesFrames says whether the kernel's driver of these cards does zero-copy: since 6.14.
func movesFrames(t *testing.T) bool {
	var u unix.Utsname
	var major, minor int
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	if n, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); n != 2 {
		t.Fatal(err)
	}
	return major > 6 || major == 6 && minor >= 14
}

// testRefused: the error names a driver without zero-copy, and nothing is left behind.
func testRefused(t *testing.T) {
	p := onCards(t)
	p.node.Do(t, func() {
		port, err := Open(p.umem, Options{Interface: "sw0", Mode: ZeroCopy, Ring: 256})
		if err == nil {
			port.Close()
		}
		if !errors.Is(err, unix.EOPNOTSUPP) || !strings.Contains(err.Error(), "sw0: zero-copy: ") {
			t.Errorf("%v", err)
		}
	})
}
