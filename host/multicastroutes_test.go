package host

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"golang.org/x/sys/unix"
)

// multicastWorld is a Node whose gateway leads to pods and whose card leads outside.
type multicastWorld struct{ node, pods, outside *nstest.Namespace }

func newMulticastWorld(t *testing.T) multicastWorld {
	t.Helper()
	w := multicastWorld{nstest.New(t), nstest.New(t), nstest.New(t)}
	nstest.AddVeth(t, w.node, "gw0", w.pods, "eth0")
	nstest.AddVeth(t, w.node, "card", w.outside, "eth0")
	for ns, links := range map[*nstest.Namespace]map[string]string{
		w.node: {"gw0": "10.10.0.1/24", "card": "192.0.2.10/24"}, w.pods: {"eth0": "10.10.0.4/24"}, w.outside: {"eth0": "192.0.2.1/24"},
	} {
		for link, address := range links {
			ns.SetUp(t, link)
			ns.AddAddress(t, link, address)
		}
	}
	return w
}

// listenGroup has eth0 join a group. The function that it returns waits for the next word:
// "" if none comes in time.
func listenGroup(t *testing.T, ns *nstest.Namespace, group string) (next func(time.Duration) string) {
	t.Helper()
	var c *net.UDPConn
	var err error
	ns.Do(t, func() {
		var link *net.Interface
		if link, err = net.InterfaceByName("eth0"); err == nil {
			c, err = net.ListenMulticastUDP("udp4", link, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(group)))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return func(wait time.Duration) string {
		b := make([]byte, 100)
		c.SetReadDeadline(time.Now().Add(wait))
		n, from, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			return ""
		}
		return fmt.Sprintf("%s from %s", b[:n], from.Addr().Unmap())
	}
}

// sendGroup sends a word to a group by eth0, with a TTL.
func sendGroup(t *testing.T, ns *nstest.Namespace, group, word string, ttl int) {
	t.Helper()
	ns.Do(t, func() {
		link, err := net.InterfaceByName("eth0")
		if err != nil {
			t.Fatal(err)
		}
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(s)
		to := netip.MustParseAddrPort(group)
		for _, err := range []error{
			unix.SetsockoptIPMreqn(s, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(link.Index)}),
			unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, ttl),
			unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 0),
			unix.Sendto(s, []byte(word), 0, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestMulticastRoutes: pods reach every group outside. From the outside they get only
// groups with a route. A TTL of 1 ends at the Node. Close ends all of it.
func TestMulticastRoutes(t *testing.T) {
	w := newMulticastWorld(t)
	const first, second = "239.1.1.1:5000", "239.1.1.2:5001"
	m := NewMulticastRoutes("gw0", netip.MustParseAddr("192.0.2.10"), nil)
	set := func(group string) {
		t.Helper()
		w.node.Do(t, func() {
			if err := m.Set([]netip.Addr{netip.MustParseAddrPort(group).Addr()}); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Cleanup(m.Close)
	set(first)
	fromPods := map[string]func(time.Duration) string{first: listenGroup(t, w.outside, first), second: listenGroup(t, w.outside, second)}
	fromOutside := map[string]func(time.Duration) string{first: listenGroup(t, w.pods, first), second: listenGroup(t, w.pods, second)}
	passes := func(from *nstest.Namespace, to map[string]func(time.Duration) string, group, want string) {
		t.Helper()
		sendGroup(t, from, group, group, 2)
		if got := to[group](10 * time.Second); got != group+" from "+want {
			t.Errorf("got %q, want %s from %s", got, group, want)
		}
	}
	// A packet that must not pass is sent before one that must.
	ends := func(from *nstest.Namespace, to map[string]func(time.Duration) string, group string, ttl int, then, want string) {
		t.Helper()
		sendGroup(t, from, group, "nobody's", ttl)
		passes(from, to, then, want)
		if got := to[group](time.Millisecond); got != "" {
			t.Errorf("got %q", got)
		}
	}
	passes(w.pods, fromPods, first, "10.10.0.4")
	passes(w.pods, fromPods, second, "10.10.0.4")
	ends(w.pods, fromPods, second, 1, first, "10.10.0.4")
	passes(w.outside, fromOutside, first, "192.0.2.1")
	ends(w.outside, fromOutside, second, 2, first, "192.0.2.1")
	set(second)
	ends(w.outside, fromOutside, first, 2, second, "192.0.2.1")

	beside := NewMulticastRoutes("gw0", netip.MustParseAddr("192.0.2.10"), nil)
	w.node.Do(t, func() {
		if err := beside.Set(nil); err == nil || !strings.Contains(err.Error(), "another program, such as pimd or smcroute, has this Node's") {
			t.Errorf("beside another: %v", err)
		}
	})
	m.Close()
	w.node.Do(t, func() {
		if vifs, err := os.ReadFile("/proc/thread-self/net/ip_mr_vif"); err != nil || strings.Contains(string(vifs), "gw0") {
			t.Errorf("after Close: %s, %v", vifs, err)
		}
	})
	set(first)
	passes(w.outside, fromOutside, first, "192.0.2.1")
}

// TestMulticastManyGroups: more groups than one socket may join.
func TestMulticastManyGroups(t *testing.T) {
	w := newMulticastWorld(t)
	m := NewMulticastRoutes("gw0", netip.MustParseAddr("192.0.2.10"), nil)
	var all []netip.Addr
	for i := range 100 {
		all = append(all, netip.AddrFrom4([4]byte{239, 2, 2, byte(i)}))
	}
	w.node.Do(t, func() {
		if err := m.Set(all); err != nil {
			t.Error(err)
		}
	})
	m.Close()
}

// routeKeeper keeps copies of sockets.
type routeKeeper struct {
	kept    KeptRoutes
	sockets []int
}

func (k *routeKeeper) Keep(kept KeptRoutes, sockets []int) error {
	for _, s := range k.sockets {
		unix.Close(s)
	}
	k.kept, k.sockets = kept, copies(sockets)
	return nil
}

func (k *routeKeeper) Kept() (KeptRoutes, []int, error) { return k.kept, copies(k.sockets), nil }

func copies(sockets []int) (all []int) {
	for _, s := range sockets {
		fd, _ := unix.Dup(s)
		all = append(all, fd)
	}
	return all
}

// TestMulticastRoutesOutliveTheirProcess: with a keeper, routes stay after Close, and the
// next process takes them over. A group that stays always has its route; an unwanted one
// loses it. After Remove no route is left, also none of an earlier gateway link.
func TestMulticastRoutesOutliveTheirProcess(t *testing.T) {
	w := newMulticastWorld(t)
	const first, second = "239.1.1.1:5000", "239.1.1.2:5001"
	keeper := &routeKeeper{}
	begin := func(groups ...string) *MulticastRoutes {
		t.Helper()
		m := NewMulticastRoutes("gw0", netip.MustParseAddr("192.0.2.10"), keeper)
		t.Cleanup(m.Close)
		var all []netip.Addr
		for _, g := range groups {
			all = append(all, netip.MustParseAddrPort(g).Addr())
		}
		w.node.Do(t, func() {
			if err := m.Set(all); err != nil {
				t.Fatal(err)
			}
		})
		return m
	}
	hears := map[string]func(time.Duration) string{first: listenGroup(t, w.pods, first), second: listenGroup(t, w.pods, second)}
	passes := func(group string) {
		t.Helper()
		sendGroup(t, w.outside, group, group, 2)
		if got := hears[group](10 * time.Second); got != group+" from 192.0.2.1" {
			t.Errorf("got %q, want %s", got, group)
		}
	}
	routes := func() string {
		var text []byte
		w.node.Do(t, func() { text, _ = os.ReadFile("/proc/thread-self/net/ip_mr_cache") })
		return string(text)
	}
	m := begin(first, second)
	m.Close()
	passes(first)
	passes(second)
	m = begin(second)
	passes(second)
	if text := routes(); strings.Contains(text, "010101EF") || !strings.Contains(text, "020101EF") {
		t.Errorf("routes of a group that nobody wants:\n%s", text)
	}
	m.Close()
	if err := w.node.Links().LinkDel(w.node.Link(t, "gw0")); err != nil {
		t.Fatal(err)
	}
	nstest.AddVeth(t, w.node, "gw0", w.pods, "eth0")
	w.node.SetUp(t, "gw0")
	w.pods.SetUp(t, "eth0")
	m = begin(first)
	if text := routes(); !strings.Contains(text, "010101EF") || strings.Contains(text, "020101EF") {
		t.Errorf("routes by another gateway:\n%s", text)
	}
	if err := m.Remove(); err != nil || len(keeper.sockets) > 0 || strings.Contains(routes(), "0101EF") {
		t.Errorf("after Remove: %v, %d sockets kept\n%s", err, len(keeper.sockets), routes())
	}
}
