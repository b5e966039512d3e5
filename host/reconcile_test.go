package host

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// shell runs commands as another program on the Node would.
func shell(t *testing.T, commands ...string) {
	t.Helper()
	for _, c := range commands {
		if out, err := exec.Command("sh", "-c", c).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c, err, out)
		}
	}
}

// TestReconcile removes one thing after the other. Reconcile restores it and names it.
func TestReconcile(t *testing.T) {
	inNode(t, func(h *Host) {
		if err := h.Set(fullSide()); err != nil {
			t.Fatal(err)
		}
		want := state(t) + sideState(t)
		for _, s := range []struct{ take, back string }{
			{"nft flush ruleset", "nftables table antrail"},
			{"nft delete table inet antrail", "nftables table antrail"},
			{"nft delete table netdev antrail", "nftables table antrail"},
			{"nft flush chain inet antrail postrouting", "nftables table antrail"},
			{"nft delete element inet antrail node-ports { 192.168.77.102 . tcp . 30004 }", "nftables table antrail"},
			{"nft add rule inet antrail forward drop", "nftables table antrail"},
			{"ip route del 10.10.1.0/24", "route to 10.10.1.0/24"},
			{"ip route replace 10.10.1.0/24 via 10.10.0.9 dev antrea-gw0", "route to 10.10.1.0/24"},
			{"ip -6 route del fd96::/108", "route to fd96::/108"},
			{"ip route del 10.96.0.0/12", "route to 10.96.0.0/12"},
			{"ip neighbour del 169.254.0.253 dev antrea-gw0", "neighbour 169.254.0.253"},
			{"ip address del fd00:10:10::1/64 dev antrea-gw0", "address fd00:10:10::1/64 on antrea-gw0"},
			{"ip address del 192.168.77.112/32 dev eth0", "address 192.168.77.112"},
			{"echo 0 >/proc/sys/net/ipv4/ip_forward", "sysctl net/ipv4/ip_forward, which was 0"},
			{"echo 0 >/proc/sys/net/ipv4/conf/antrea-gw0/route_localnet", "sysctl net/ipv4/conf/antrea-gw0/route_localnet, which was 0"},
		} {
			shell(t, s.take)
			did, err := h.Reconcile()
			if err != nil || strings.Join(did, "; ") != s.back {
				t.Errorf("after %s: put back %q, error %v, want %q", s.take, did, err, s.back)
			}
			if now := state(t) + sideState(t); now != want {
				t.Errorf("after %s:\n%s\nwant:\n%s", s.take, now, want)
			}
		}
		if did, err := h.Reconcile(); err != nil || len(did) > 0 {
			t.Errorf("with nothing to do: put back %q, error %v", did, err)
		}
	})
}

// TestReconcileLinkDown: if the gateway's link goes down, its IPv6 addresses and all routes
// go.
func TestReconcileLinkDown(t *testing.T) {
	inNode(t, func(h *Host) {
		if err := h.Set(fullSide()); err != nil {
			t.Fatal(err)
		}
		want := state(t) + sideState(t)
		shell(t, "ip link set antrea-gw0 down")
		did, err := h.Reconcile()
		if err != nil || len(did) < 5 || did[0] != "link antrea-gw0 up" {
			t.Errorf("put back %q, error %v", did, err)
		}
		if now := state(t) + sideState(t); sorted(now) != sorted(want) {
			t.Errorf("now:\n%s\nwant:\n%s", now, want)
		}
	})
}

// TestReconcileLeavesOthers: Reconcile leaves other programs' tables, routes and addresses
// alone. A new nftables generation alone causes no write.
func TestReconcileLeavesOthers(t *testing.T) {
	inNode(t, func(h *Host) {
		if h.TableMoved() {
			t.Error("the tables moved before anybody touched them")
		}
		shell(t, "nft add table inet other", "ip route add 10.99.0.0/24 dev antrea-gw0", "ip address add 192.168.77.77/32 dev eth0")
		if !h.TableMoved() {
			t.Error("a new table is no change")
		}
		before := state(t)
		if did, err := h.Reconcile(); err != nil || len(did) > 0 {
			t.Errorf("put back %q, error %v", did, err)
		}
		if after := state(t); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
		if h.TableMoved() {
			t.Error("what was looked at has moved again")
		}
		shell(t, "nft delete table inet other")
	})
}

// TestReconcileTellsWhatFails: the rest is restored.
func TestReconcileTellsWhatFails(t *testing.T) {
	inNode(t, func(h *Host) {
		if err := h.Set(fullSide()); err != nil {
			t.Fatal(err)
		}
		shell(t, "ip link del antrea-gw0", "nft flush ruleset")
		did, err := h.Reconcile()
		if err == nil || !strings.Contains(err.Error(), "antrea-gw0") {
			t.Errorf("put back %q, error %v", did, err)
		}
	})
}

// TestReconcileAfterDown leaves the Node alone.
func TestReconcileAfterDown(t *testing.T) {
	node(t).Do(t, func() {
		h, err := Up(config())
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Down(); err != nil {
			t.Fatal(err)
		}
		before := state(t)
		if did, err := h.Reconcile(); err != nil || len(did) > 0 {
			t.Errorf("put back %q, error %v", did, err)
		}
		if after := state(t); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	})
}

func TestWatch(t *testing.T) {
	inNode(t, func(h *Host) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		changes, err := Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, take := range []string{
			"ip route del 10.10.1.0/24", "ip address del 10.10.0.1/24 dev antrea-gw0", "echo 0 >/proc/sys/net/ipv4/ip_forward",
		} {
			shell(t, take)
			if _, ok := <-changes; !ok {
				t.Fatalf("no notice of: %s", take)
			}
		}
		cancel()
		for range changes { // it ends
		}
		if _, err := h.Reconcile(); err != nil {
			t.Error(err)
		}
	})
}

// sorted sorts lines, because routes come in the order in which they were made.
func sorted(s string) string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
