package host

import (
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

// TestTidy: with an agent of another configuration, a gateway that outlived its agent loses
// what the new agent has not made: addresses, routes and neighbours.
func TestTidy(t *testing.T) {
	for name, unasked := range map[string]bool{"with objects": false, "of flow files": true} {
		t.Run(name, func(t *testing.T) {
			node(t).Do(t, func() {
				c := config()
				c.Record = filepath.Join(t.TempDir(), "node.record")
				if TablesThere() {
					t.Error("tables are there before Up")
				}
				killed := up(t, c)
				side := fullSide()
				side.Egresses = nil
				set(t, killed, side)
				kept := gatewayState(t)
				if !TablesThere() {
					t.Error("the tables are not there")
				}

				again := c
				again.Side = side
				h := up(t, again)
				set(t, h, side)
				if now := gatewayState(t); now != kept {
					t.Errorf("the same agent has\n%s\nwant\n%s", now, kept)
				}

				c.Addresses = []netip.Prefix{netip.MustParsePrefix("10.10.5.1/24")}
				c.PodCIDRs = []netip.Prefix{netip.MustParsePrefix("10.10.5.0/24")}
				c.Peers = []Peer{{PodCIDR: netip.MustParsePrefix("10.10.6.0/24"), Gateway: netip.MustParseAddr("10.10.6.1")}}
				c.Virtual = c.Virtual[:1]
				if !unasked {
					c.Side = &Side{}
				}
				h = up(t, c)
				if !unasked {
					set(t, h, &Side{})
				}
				const want = "address 10.10.5.1/24\nroute 10.10.6.0/24\n"
				if now := gatewayState(t); now != want {
					t.Errorf("another agent has\n%s\nwant\n%s", now, want)
				}
				if err := h.Down(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// gatewayState is the gateway's state, except what the kernel makes.
func gatewayState(t *testing.T) string {
	t.Helper()
	link, err := netlink.LinkByName(gateway)
	if err != nil {
		t.Fatal(err)
	}
	k, err := readKernel(link)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, a := range k.addresses {
		if a.LinkIndex == link.Attrs().Index && a.Scope != int(netlink.SCOPE_LINK) {
			b.WriteString("address " + a.IPNet.String() + "\n")
		}
	}
	for _, r := range k.routes {
		if r.LinkIndex == link.Attrs().Index && r.Protocol != 2 {
			b.WriteString("route " + r.Dst.String() + "\n")
		}
	}
	for _, n := range k.neighbours {
		if n.State&netlink.NUD_PERMANENT != 0 {
			b.WriteString("neighbour " + n.IP.String() + "\n")
		}
	}
	return b.String()
}

// TestAskAgain removes only the neighbours that did not answer.
func TestAskAgain(t *testing.T) {
	n := node(t)
	n.Do(t, func() {
		link := n.Link(t, gateway)
		for ip, state := range map[string]int{"10.10.0.5": netlink.NUD_FAILED, "10.10.0.6": netlink.NUD_REACHABLE, "10.10.0.7": netlink.NUD_PERMANENT} {
			err := netlink.NeighSet(&netlink.Neigh{
				LinkIndex: link.Attrs().Index, IP: net.ParseIP(ip), HardwareAddr: virtualMAC, State: state,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := AskAgain(gateway); err != nil {
			t.Fatal(err)
		}
		all, err := netlink.NeighList(link.Attrs().Index, netlink.FAMILY_V4)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, have := range all {
			left = append(left, have.IP.String())
		}
		slices.Sort(left)
		if !slices.Equal(left, []string{"10.10.0.6", "10.10.0.7"}) {
			t.Errorf("left are %v", left)
		}
	})
}
