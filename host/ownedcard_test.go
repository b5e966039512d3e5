package host

import (
	"bytes"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"golang.org/x/sys/unix"
)

const card, bridge = "eth0", "antrea-br0"

// ip runs ip(8) in the calling thread's namespace.
func ip(t *testing.T, words string) string {
	t.Helper()
	out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %s: %v: %s", words, err, out)
	}
	return string(out)
}

// ownedNode is a Node with a card that has many kinds of addresses and routes, another
// card, and a bridge. The configuration has a record.
func ownedNode(t *testing.T) (*nstest.Namespace, Config) {
	t.Helper()
	n, c, _ := underlayNode(t)
	far := nstest.New(t)
	for _, link := range []string{card, bridge, "eth1"} {
		nstest.AddVeth(t, n, link, far, "far-"+link)
		n.SetUp(t, link)
		far.SetUp(t, "far-"+link)
	}
	n.AddAddress(t, card, "2001:db8::10/64")
	n.Do(t, func() {
		for _, words := range []string{
			"addr add 192.0.2.10/24 brd + dev eth0",
			"addr add 192.0.2.11/24 dev eth0 label eth0:web", // a secondary one
			"addr add 203.0.113.9/32 dev eth0 noprefixroute",
			"addr add 198.18.0.1 peer 198.18.0.2/32 dev eth0",
			"addr add 10.9.0.1/24 dev eth1",
			"route add default via 192.0.2.1 metric 100",
			"route add 198.51.100.0/24 via 192.0.2.2 src 192.0.2.11 mtu 1400",
			"route add 198.51.101.0/24 dev eth0 table 77",
			"route add 198.51.102.0/24 nexthop via 192.0.2.3 weight 2 nexthop via 10.9.0.2",
			"route add 198.51.103.0/24 dev eth1 src 192.0.2.10", // by another card, with an address of this one
			"-6 route add default via 2001:db8::1",
			"-6 route add 2001:db8:1::/64 via fe80::1 dev eth0 metric 5",
		} {
			ip(t, words)
		}
	})
	c.Owned = &OwnedCard{
		Link: card, Bridge: bridge, MAC: [6]byte(n.Link(t, card).Attrs().HardwareAddr), Addr: netip.MustParseAddr("192.0.2.10"), First: 10000, Last: 20000,
	}
	return n, c
}

// timeLeft is the lifetime of an address or route, which the kernel counts down.
var timeLeft = regexp.MustCompile(`\b\d+sec\b`)

// network is all addresses and routes, as ip(8) writes them, without lifetimes.
func network(t *testing.T) string {
	t.Helper()
	return timeLeft.ReplaceAllString(ip(t, "-o addr")+ip(t, "-4 route show table all")+ip(t, "-6 route show table all"), "some time")
}

// wantMoved checks that the bridge has what the card had.
func wantMoved(t *testing.T) {
	t.Helper()
	for _, words := range []string{"-4 -o addr show dev eth0", "-4 route show table all dev eth0"} {
		if left := ip(t, words); left != "" {
			t.Errorf("ip %s: %s", words, left)
		}
	}
	for words, want := range map[string][]string{
		"-o addr show dev antrea-br0": {"192.0.2.10/24 brd 192.0.2.255", "192.0.2.11/24", "203.0.113.9/32", "198.18.0.1 peer 198.18.0.2/32", "2001:db8::10/64"},
		"-4 route": {
			"default via 192.0.2.1 dev antrea-br0 metric 100", "198.51.100.0/24 via 192.0.2.2 dev antrea-br0 src 192.0.2.11 mtu 1400",
			"nexthop via 192.0.2.3 dev antrea-br0 weight 2", "nexthop via 10.9.0.2 dev eth1 weight 1", "198.51.103.0/24 dev eth1 scope link src 192.0.2.10",
		},
		"-4 route show table 77": {"198.51.101.0/24 dev antrea-br0"},
		"-6 route":               {"default via 2001:db8::1 dev antrea-br0", "2001:db8:1::/64 via fe80::1 dev antrea-br0 metric 5"},
	} {
		for _, w := range want {
			if has := ip(t, words); !strings.Contains(has, w) {
				t.Errorf("ip %s lacks %q:\n%s", words, w, has)
			}
		}
	}
}

// othersLines are the lines of a network that are not about the gateway, the bridge or
// addresses that the kernel makes.
func othersLines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc([]string{gateway, bridge, "inet6 fe80:", "fe80::/64", "local fe80:", "anycast"}, func(s string) bool { return strings.Contains(line, s) }) {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

// wantSame waits until the network is as before. The kernel makes local IPv6 routes a
// moment after the address.
func wantSame(t *testing.T, before string) {
	t.Helper()
	was := othersLines(before)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		is := othersLines(network(t))
		if slices.Equal(was, is) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the network was\n%s\nand is\n%s", strings.Join(was, ""), strings.Join(is, ""))
		}
	}
}

// TestOwnedCard is W-02: a card's addresses and routes move to the bridge, and back
// unchanged. They move back when the agent stops, when the agent after a kill stops, when
// the next agent does not own the card, and by Clean, also without the bridge.
func TestOwnedCard(t *testing.T) {
	without := func(c Config) Config { c.Owned = nil; return c }
	for name, back := range map[string]func(t *testing.T, h *Host, c Config){
		"stop": func(t *testing.T, h *Host, _ Config) { down(t, h) },
		"kill, next, stop": func(t *testing.T, _ *Host, c Config) {
			h := up(t, c)
			wantMoved(t)
			down(t, h)
		},
		"kill, next without the card": func(t *testing.T, _ *Host, c Config) { down(t, up(t, without(c))) },
		"kill, clean": func(t *testing.T, _ *Host, c Config) {
			if err := Clean(c.Record, func(string) {}); err != nil {
				t.Error(err)
			}
		},
		"kill, no bridge, clean": func(t *testing.T, _ *Host, c Config) {
			ip(t, "link del "+bridge)
			if err := Clean(c.Record, func(string) {}); err != nil {
				t.Error(err)
			}
		},
		"kill, no bridge, return": func(t *testing.T, _ *Host, c Config) {
			ip(t, "link del "+bridge)
			if _, err := ReturnCard(c.Record, func(string) {}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, c := ownedNode(t)
			n.Do(t, func() {
				before := network(t)
				h := up(t, c)
				wantMoved(t)
				back(t, h, c)
				wantSame(t, before)
			})
		})
	}
}

func down(t *testing.T, h *Host) {
	t.Helper()
	if err := h.Down(); err != nil {
		t.Error(err)
	}
}

// TestOwnedCardKilledInTheMiddle: after a kill at any point of a move, the next process
// completes the move, and Clean undoes it.
func TestOwnedCardKilledInTheMiddle(t *testing.T) {
	for _, next := range []string{"completes", "takes back"} {
		t.Run(next, func(t *testing.T) {
			n, c := ownedNode(t)
			n.Do(t, func() {
				before := network(t)
				r, err := loadRecord(c.Record)
				if err != nil {
					t.Fatal(err)
				}
				m, err := c.Owned.inspect()
				if err == nil {
					err = r.noteChange(func() { r.Card = m })
				}
				if err != nil {
					t.Fatal(err)
				}
				ip(t, "addr add 192.0.2.10/24 brd + dev antrea-br0") // and half of the rest
				ip(t, "route del default")
				ip(t, "addr del 203.0.113.9/32 dev eth0")
				if next == "completes" {
					h := up(t, c)
					wantMoved(t)
					down(t, h)
				} else if err := Clean(c.Record, func(string) {}); err != nil {
					t.Error(err)
				}
				wantSame(t, before)
			})
		})
	}
}

// TestOwnedCardFails: a failed move is undone, and so is a move before another part that
// fails.
func TestOwnedCardFails(t *testing.T) {
	for name, breaks := range map[string]func(t *testing.T, c *Config){
		"the bridge is down":  func(t *testing.T, _ *Config) { ip(t, "link set "+bridge+" down") },
		"there is no bridge":  func(t *testing.T, _ *Config) { ip(t, "link del "+bridge) },
		"a part after it":     func(t *testing.T, _ *Config) { t.Setenv("PATH", "") }, // no nft(8)
		"of an agent that is": func(t *testing.T, c *Config) { c.Theirs = true; ip(t, "link set "+bridge+" down") },
	} {
		t.Run(name, func(t *testing.T) {
			n, c := ownedNode(t)
			n.Do(t, func() {
				before, path := network(t), os.Getenv("PATH")
				breaks(t, &c)
				_, err := Up(c)
				if t.Setenv("PATH", path); err == nil {
					t.Fatal("no error")
				}
				wantSame(t, before)
			})
		})
	}
}

// TestOwnedCardRefused: a card that cannot work on the bridge is refused, and nothing
// moves.
func TestOwnedCardRefused(t *testing.T) {
	for _, s := range []struct{ words, want string }{
		{"addr add 192.0.2.77/24 dev eth0 valid_lft 600 preferred_lft 600", "192.0.2.77/24 is a lease"},
		{"-6 route add 2001:db8:9::/64 via fe80::9 dev eth0 expires 600", "2001:db8:9::/64 via fe80::9 has a lifetime"},
		{"addr del 192.0.2.10/24 dev eth0", "does not have the Node's address 192.0.2.10"},
		{"link set eth0 address 02:00:00:00:00:99", "that of the uplink port"},
		{"link add br9 type bridge", ""},
		{"link add link eth0 name over0 type macvlan", "over0, a macvlan, is on eth0"},
		{"nexthop add id 9 via 192.0.2.9 dev eth0", "uses an object of `ip nexthop`"},
	} {
		n, c := ownedNode(t)
		n.Do(t, func() {
			ip(t, s.words)
			switch {
			case strings.Contains(s.words, "br9"):
				ip(t, "link set eth0 master br9")
				s.want = "a member of a bridge"
			case strings.Contains(s.words, "nexthop"):
				ip(t, "route add 198.51.109.0/24 nhid 9")
			}
			before := network(t)
			if _, err := Up(c); err == nil || !strings.Contains(err.Error(), s.want) {
				t.Errorf("%s: %v, want %q", s.words, err, s.want)
			}
			wantSame(t, before)
		})
	}
}

// TestOwnedCardPutBack: Reconcile restores what another program removed from the bridge or
// put back on the card.
func TestOwnedCardPutBack(t *testing.T) {
	n, c := ownedNode(t)
	n.Do(t, func() {
		before := network(t)
		h := up(t, c)
		for _, words := range []string{"route del 198.51.100.0/24", "addr del 203.0.113.9/32 dev antrea-br0", "addr add 192.0.2.10/24 dev eth0"} {
			ip(t, words)
			if did, err := h.Reconcile(); err != nil || len(did) != 1 || !strings.Contains(did[0], "addresses and routes of eth0") {
				t.Errorf("after %s: put back %q, %v", words, did, err)
			}
			wantMoved(t)
		}
		if did, err := h.Reconcile(); err != nil || len(did) != 0 {
			t.Errorf("put back %q, %v", did, err)
		}
		down(t, h)
		wantSame(t, before)
	})
}

// FuzzCardMessages: no bytes of a record break the program. A message that moves there and
// back is unchanged.
func FuzzCardMessages(f *testing.F) {
	f.Add([]byte{unix.AF_INET, 24, 128, 0, 3, 0, 0, 0, 8, 0, 2, 0, 192, 0, 2, 10, 8, 0, 8, 0, 128, 0, 0, 0})
	f.Add([]byte{unix.AF_INET, 0, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0, 8, 0, 4, 0, 3, 0, 0, 0, 8, 0, 5, 0, 192, 0, 2, 1})
	f.Add([]byte{unix.AF_INET, 24, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0, 20, 0, 9, 0, 16, 0, 0, 1, 3, 0, 0, 0, 8, 0, 5, 0, 192, 0, 2, 3})
	f.Fuzz(func(t *testing.T, body []byte) {
		m := movedCard{Link: card, Bridge: bridge, Index: 3, Addresses: []message{{"", body}}, Routes: []message{{"", body}}}
		head, all, err := split(body, unix.SizeofRtMsg)
		if err == nil {
			routeText(head, all)
		}
		m.prefixes()
		if m.check() != nil || uses(all, 70000) {
			return
		}
		routesInOrder(m.Routes)
		at, err := routeAt(body, 3, 70000)
		if err != nil {
			t.Fatal(err)
		}
		same, err := routeAt(body, 3, 3)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := routeAt(at, 70000, 3); err != nil || !bytes.Equal(back, same) {
			t.Errorf("%x became %x and %x, %v", same, at, back, err)
		}
		if _, err := addressAt(body, 9, true, true); err != nil {
			t.Error(err)
		}
	})
}
