package ways

import (
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/vishvananda/netlink"
)

var here, there = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")

// node is a namespace with a link to others.
func node(t *testing.T) *nstest.Namespace {
	t.Helper()
	ns, far := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, ns, "eth0", far, "far")
	ns.AddAddress(t, "eth0", "192.0.2.1/24")
	ns.SetUp(t, "eth0")
	far.SetUp(t, "far")
	return ns
}

// TestWays: a way is there when a socket sees the MTU of the link. When it sees another one,
// the kernel does more with a packet than a program at tc would, as IPsec does.
func TestWays(t *testing.T) {
	ns := node(t)
	var seen, told atomic.Int32
	seen.Store(1500)
	var w *Ways
	var err error
	ns.Do(t, func() {
		w, err = Open(here, func(netip.Addr) (int, bool) { return int(seen.Load()), seen.Load() > 0 }, func() { told.Add(1) })
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	want := Way{Link: uint32(ns.Link(t, "eth0").Attrs().Index), Hop: there, MTU: 1500}
	if way, ok := w.To(there); !ok || way != want {
		t.Errorf("%v, %+v, want %+v", ok, way, want)
	}
	if _, ok := w.To(here); ok {
		t.Error("there is a way to this Node itself")
	}
	w.look()
	if told.Load() != 0 {
		t.Error("told without a change")
	}
	for _, mtu := range []int32{1450, 0} {
		before := told.Load()
		seen.Store(mtu)
		w.look()
		if _, ok := w.To(there); ok || told.Load() != before+1 {
			t.Errorf("a socket sees an MTU of %d: there is a way %v, told %d times", mtu, ok, told.Load()-before)
		}
		seen.Store(1500)
		if _, ok := w.To(there); !ok {
			t.Error("no way again")
		}
	}
	w.Keep(func(netip.Addr) bool { return false })
	if len(w.known) != 0 {
		t.Errorf("%v", w.known)
	}
	w.Close()
	if _, ok := w.To(there); ok {
		t.Error("a way after the end")
	}
	if _, ok := (*Ways)(nil).To(there); ok {
		t.Error("a way of nobody")
	}
}

// TestLinkWith: the link of an address is found, and its kind decides.
func TestLinkWith(t *testing.T) {
	ns := node(t)
	ns.Do(t, func() {
		l, err := LinkWith(here)
		if err != nil || l.Attrs().Name != "eth0" || !CarriesEthernet(l) {
			t.Errorf("%v, %v", l, err)
		}
		if _, err := LinkWith(there); err == nil {
			t.Error("a link has the address of another Node")
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil || CarriesEthernet(lo) {
			t.Errorf("lo leads to others; %v", err)
		}
	})
}
