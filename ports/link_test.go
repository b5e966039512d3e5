package ports_test

import (
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/ports"
	"github.com/safchain/ethtool"
)

func TestDisableTxChecksum(t *testing.T) {
	a, b := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, a, "left", b, "right")
	a.Do(t, func() {
		e, err := ethtool.NewEthtool()
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		checksum := func() bool {
			features, err := e.Features("left")
			if err != nil {
				t.Fatal(err)
			}
			return features["tx-checksum-ip-generic"]
		}
		if !checksum() {
			t.Fatal("a new veth has no checksum offload to turn off")
		}
		for range 2 { // the second time there is nothing to do
			if err := ports.DisableTxChecksum("left"); err != nil {
				t.Fatal(err)
			}
			if checksum() {
				t.Error("checksum offload is on")
			}
		}
		if err := ports.DisableTxChecksum("nosuch"); err == nil {
			t.Error("no error for a link that is not there")
		}
	})
}

func TestRxQueues(t *testing.T) {
	a, b := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, a, "left", b, "right")
	a.Do(t, func() {
		for link, want := range map[string]int{"left": 1, "lo": 1} {
			if n, err := ports.RxQueues(link); n != want || err != nil {
				t.Errorf("%s has %d queues, %v; want %d", link, n, err, want)
			}
		}
		if _, err := ports.RxQueues("nosuch"); err == nil {
			t.Error("no error for a link that is not there")
		}
	})
}

func TestLinkUp(t *testing.T) {
	a, b := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, a, "left", b, "right")
	var link *ports.Link
	index := a.Link(t, "left").Attrs().Index
	a.Do(t, func() {
		var err error
		if link, err = ports.WatchLink("left", index); err != nil {
			t.Fatal(err)
		}
	})
	defer link.Close()
	if !link.Up() { // asked from another namespace
		t.Error("down, though both ends are up")
	}
	if err := b.Links().LinkSetDown(b.Link(t, "right")); err != nil {
		t.Fatal(err)
	}
	if link.Down() {
		t.Error("nobody has asked, and it is down")
	}
	nstest.Until(t, "not up, as the peer is down", func() bool { return !link.Up() })
	if !link.Down() {
		t.Error("not down, though it was seen down")
	}
	b.SetUp(t, "right")
	nstest.Until(t, "not down, as the peer is up again", func() bool { return !link.Down() })
	nstest.Until(t, "up, as the peer is up again", link.Up)
	if err := a.Links().LinkDel(a.Link(t, "left")); err != nil {
		t.Fatal(err)
	}
	nstest.AddVeth(t, a, "left", b, "right") // another link of that name
	if link.Up() {
		t.Error("up, though that link is gone")
	}
}
