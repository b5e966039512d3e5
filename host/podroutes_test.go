package host

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/vishvananda/netlink"
)

// TestPodRoutes: beside another CNI, a pod's packets go by the gateway despite its routes.
// After Down they go as before.
func TestPodRoutes(t *testing.T) {
	n, far := nstest.New(t), nstest.New(t)
	for _, name := range []string{"gw", "cni0"} {
		nstest.AddVeth(t, n, name, far, name)
		n.SetUp(t, name)
		far.SetUp(t, name)
	}
	n.Do(t, func() {
		theirs, _ := netlink.LinkByName("cni0")
		pod := netip.MustParseAddr("10.10.0.11")
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: theirs.Attrs().Index, Dst: ipNet(single(pod)), Scope: netlink.SCOPE_LINK}); err != nil {
			t.Fatal(err)
		}
		h, err := Up(Config{Gateway: "gw", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/32")}, PodRoutes: true, MarkMAC: func(uint32) [6]byte { return [6]byte{2} }})
		if err != nil {
			t.Fatal(err)
		}
		way := func(want string) {
			t.Helper()
			routes, err := netlink.RouteGet(pod.AsSlice())
			if err != nil {
				t.Fatal(err)
			}
			if link, err := netlink.LinkByIndex(routes[0].LinkIndex); err != nil || link.Attrs().Name != want {
				t.Errorf("the way to the pod is %v, want %s", link.Attrs().Name, want)
			}
		}
		way("cni0")
		if err := h.Set(&Side{Pods: []netip.Addr{pod}}); err != nil {
			t.Fatal(err)
		}
		way("gw")
		if did, err := h.Reconcile(); err != nil || len(did) > 0 {
			t.Errorf("put back %v: %v", did, err)
		}
		rule := netlink.NewRule()
		rule.Family, rule.Table, rule.Priority = netlink.FAMILY_V4, podTable, podPriority
		if err := netlink.RuleDel(rule); err != nil {
			t.Fatal(err)
		}
		if did, err := h.Reconcile(); err != nil || !strings.Contains(strings.Join(did, " "), "routing rule for table 142") {
			t.Errorf("put back %v: %v", did, err)
		}
		way("gw")
		again, err := Up(h.config) // after a killed agent
		if err != nil {
			t.Fatal(err)
		}
		h = again
		way("gw")
		if err := h.Set(&Side{}); err != nil {
			t.Fatal(err)
		}
		way("cni0")
		if err := h.Down(); err != nil {
			t.Error(err)
		}
		if left, err := replyRules(); err != nil || len(left) > 0 {
			t.Errorf("rules are left: %v, %v", left, err)
		}
	})
}

// TestNotBridged: a port of a bridge is refused.
func TestNotBridged(t *testing.T) {
	n, far := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, n, "pod", far, "eth0")
	n.Do(t, func() {
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "cni0"}}
		if err := netlink.LinkAdd(bridge); err != nil {
			t.Fatal(err)
		}
		if err := NotBridged("pod"); err != nil {
			t.Errorf("alone: %v", err)
		}
		if err := netlink.LinkSetMaster(n.Link(t, "pod"), bridge); err != nil {
			t.Fatal(err)
		}
		if err := NotBridged("pod"); err == nil || !strings.Contains(err.Error(), "is a port of a bridge") {
			t.Errorf("in a bridge: %v", err)
		}
	})
}
