package tap

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"golang.org/x/sys/unix"
)

// lowerUp says whether somebody has a device open.
func lowerUp(t *testing.T, n *nstest.Namespace, name string) bool {
	t.Helper()
	return n.Link(t, name).Attrs().RawFlags&unix.IFF_LOWER_UP != 0
}

// left is the port of a device that its owner has left, as one who was killed does: the
// descriptor is closed, and nothing else happens.
func left(t *testing.T, n *nstest.Namespace, o Options) {
	t.Helper()
	p := openIn(t, n, o)
	p.Keep(true)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOwnedDeviceStays: a device with an owner outlives who opened it, with its
// addresses and without a carrier; the owner opens the very same again, and nobody
// else does. Who closes it as usual deletes it.
func TestOwnedDeviceStays(t *testing.T) {
	host := nstest.New(t)
	o := Options{Name: "gw0", MAC: [6]byte{2, 0, 0, 0, 0, 1}, MTU: 1400, Owner: "antrail /run/a.sock"}
	left(t, host, o)
	host.AddAddress(t, "gw0", "10.9.0.1/24")
	index := host.Link(t, "gw0").Attrs().Index
	if lowerUp(t, host, "gw0") {
		t.Error("it has a carrier, and nobody has it open")
	}
	for _, owner := range []string{"", "antrail /run/b.sock"} {
		stranger := o
		stranger.Owner = owner
		host.Do(t, func() {
			if p, err := Open(stranger); err == nil || !strings.Contains(err.Error(), "a link of this name exists") {
				t.Errorf("%q opens it: %v, %v", owner, p, err)
			}
		})
	}

	nstest.OpenWire(t, host, "gw0").Send(frameFrom([6]byte{2, 9, 9, 9, 9, 9}, 0).Bytes())
	if n := host.Link(t, "gw0").Attrs().Statistics.TxDropped; n == 0 {
		t.Error("the device has dropped nothing while nobody had it open")
	}

	o.MTU, o.MAC = 1300, [6]byte{2, 0, 0, 0, 0, 2}
	p := openIn(t, host, o)
	a := host.Link(t, "gw0").Attrs()
	if a.Index != index || a.MTU != 1300 || !bytes.Equal(a.HardwareAddr, o.MAC[:]) || !lowerUp(t, host, "gw0") || !p.Info().Up || !p.Found() {
		t.Errorf("opened again it is %+v", a)
	}
	if s := p.Stats(); s.RxDropped != 0 {
		t.Errorf("what the device dropped before counts: %+v", s)
	}
	addresses, err := host.Links().AddrList(host.Link(t, "gw0"), unix.AF_INET)
	if err != nil || len(addresses) != 1 || addresses[0].IP.String() != "10.9.0.1" {
		t.Errorf("addresses %v, %v", addresses, err)
	}
	host.Do(t, func() {
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "a link of this name exists") {
			t.Errorf("it is opened twice: %v", err)
		}
	})
	wire := nstest.OpenWire(t, host, "gw0")
	sent := frameFrom([6]byte{2, 9, 9, 9, 9, 9}, 0)
	wire.Send(sent.Bytes())
	f := receiveFrom(t, p, 60)
	if !bytes.Equal(f.Bytes(), sent.Bytes()) {
		t.Errorf("%x came", f.Bytes())
	}
	packet.Release([]*packet.Frame{f})
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := host.Links().LinkByName("gw0"); err == nil {
		t.Error("the device is there after Close")
	}
}

// TestOwnedDeviceIsKept: an adopted port leaves the device when it is closed, until Keep makes
// the device its own. A port whose device was deleted returns no error.
func TestOwnedDeviceIsKept(t *testing.T) {
	host := nstest.New(t)
	o := Options{Name: "gw0", MTU: 1400, Owner: "antrail"}
	before := openIn(t, host, o)
	adopted := func() (p *Port) {
		host.Do(t, func() {
			var err error
			if p, err = Adopt(o, []int{copyOf(t, before.Descriptors()[0])}); err != nil {
				t.Fatal(err)
			}
		})
		return p
	}
	index := host.Link(t, "gw0").Attrs().Index
	gaveUp, after := adopted(), adopted()
	gaveUp.Close()
	before.Keep(true)
	before.Close()
	if now := host.Link(t, "gw0").Attrs().Index; now != index || !lowerUp(t, host, "gw0") {
		t.Errorf("link %d is %d", index, now)
	}
	after.Keep(false)
	after.Close()
	if _, err := host.Links().LinkByName("gw0"); err == nil {
		t.Error("the device is there after the last has closed it")
	}

	p := openIn(t, host, o)
	if err := host.Links().LinkDel(host.Link(t, "gw0")); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("closed after the device was deleted: %v", err)
	}
}

// TestSweep deletes what an owner has left and does not keep.
func TestSweep(t *testing.T) {
	host := nstest.New(t)
	for name, owner := range map[string]string{"a0": "me", "a1": "me", "b0": "you"} {
		left(t, host, Options{Name: name, Owner: owner})
	}
	nstest.AddVeth(t, host, "a2", nstest.New(t), "far")
	if err := host.Links().LinkSetAlias(host.Link(t, "a2"), "me"); err != nil {
		t.Fatal(err)
	}
	host.Do(t, func() {
		deleted, err := Sweep("me", func(name string) bool { return name == "a1" })
		if err != nil || !slices.Equal(deleted, []string{"a0"}) {
			t.Errorf("deleted %v, %v", deleted, err)
		}
	})
	for _, name := range []string{"a1", "a2", "b0"} {
		host.Link(t, name)
	}
}
