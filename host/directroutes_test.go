package host

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
)

// TestDirectRoutes: pods of neighbours get a route by the underlay, those behind a router
// none. A killed agent's routes are taken over, also of Nodes that are gone, and Clean
// removes them.
func TestDirectRoutes(t *testing.T) {
	n := onUnderlay(t)
	n.Do(t, func() {
		c := config()
		c.Record = filepath.Join(t.TempDir(), "record")
		c.Files = []string{filepath.Join(t.TempDir(), "gone")}
		peer := func(cidr, nextHop string) Peer {
			p := netip.MustParsePrefix(cidr)
			return Peer{PodCIDR: p, Gateway: p.Addr().Next(), NextHop: netip.MustParseAddr(nextHop)}
		}
		c.Peers = []Peer{peer("10.10.1.0/24", "192.168.77.103"), peer("10.10.2.0/24", "192.168.77.104")}
		if _, err := Up(c); err != nil { // then a kill
			t.Fatal(err)
		}
		wantRoutes(t, "10.10.1.0/24 192.168.77.103", "10.10.2.0/24 192.168.77.104")
		c.Peers = c.Peers[:1]
		h, err := Up(c)
		if err != nil {
			t.Fatal(err)
		}
		third := peer("10.10.3.0/24", "192.168.77.105")
		for _, more := range [][]Peer{{third}, {third}, nil} { // as objects come and go
			if err := h.Set(&Side{Peers: more}); err != nil {
				t.Fatal(err)
			}
			want := []string{"10.10.1.0/24 192.168.77.103"}
			if more != nil {
				want = append(want, "10.10.3.0/24 192.168.77.105")
			}
			wantRoutes(t, want...)
		}
		if err := cleanDirect(func(string) {}); err != nil {
			t.Fatal(err)
		}
		did, err := h.Reconcile()
		if err != nil || !slices.Contains(did, "route to 10.10.1.0/24 via 192.168.77.103") {
			t.Errorf("put back %q, %v", did, err)
		}
		wantRoutes(t, "10.10.1.0/24 192.168.77.103")
		var told []string
		if err := Clean(c.Record, func(what string) { told = append(told, what) }); err != nil || !slices.Contains(told, "removed route to 10.10.1.0/24") {
			t.Errorf("told %q, %v", told, err)
		}
		wantRoutes(t)
		if strings.Contains(state(t), "10.10.1.0/24") {
			t.Errorf("something of another Node is left:\n%s", state(t))
		}
	})
}

// A Node behind a router is not a direct neighbour.
func TestNoDirectRouteBehindARouter(t *testing.T) {
	n := onUnderlay(t)
	if out, err := n.Command("ip", "route", "add", "default", "via", "192.168.77.1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n.Do(t, func() {
		c := config()
		c.Peers = []Peer{{PodCIDR: netip.MustParsePrefix("10.10.1.0/24"), NextHop: netip.MustParseAddr("192.168.78.103")}}
		h, err := Up(c)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Down()
		wantRoutes(t)
		if strings.Contains(state(t), "route 10.10.1.0/24") {
			t.Error("the pods are led to the gateway")
		}
	})
}

// onUnderlay is a Node with an uplink.
func onUnderlay(t *testing.T) *nstest.Namespace {
	n, others := node(t), nstest.New(t)
	nstest.AddVeth(t, n, "eth0", others, "eth1")
	n.AddAddress(t, "eth0", "192.168.77.102/24")
	return n
}

func wantRoutes(t *testing.T, want ...string) {
	t.Helper()
	have, err := directRoutes()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range have {
		got = append(got, r.Dst.String()+" "+r.Gw.String())
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("routes %q, want %q", got, want)
	}
}
