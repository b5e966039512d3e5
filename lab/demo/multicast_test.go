package demo

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/lab"
	"golang.org/x/sys/unix"
)

// TestMulticast: pods that join a group by their kernels get what another pod sends to it,
// on its Node and on the other, and what a host outside sends, which gets what a pod sends. Others
// get nothing, nor does one that has left, or that a policy forbids to join.
func TestMulticast(t *testing.T) {
	change := strings.NewReplacer("AntreaProxy: true,", "AntreaProxy: true, Multicast: true,")
	manifests := exampleAnd(t, map[string]*strings.Replacer{"node-a.yaml": change, "node-b.yaml": change}, "")
	w := worldOf(t, lab.Options{Manifests: manifests})
	group := &net.UDPAddr{IP: net.IPv4(239, 1, 2, 3), Port: 5353}
	members := map[string]*net.UDPConn{}
	for _, pod := range []string{"web-a", "client-b"} {
		members[pod] = joinGroup(t, w, pod, group)
	}
	wantGroups(t, w, "node-a", "web-a", []netip.Addr{netip.MustParseAddr("239.1.2.3")})
	wantGroups(t, w, "node-b", "client-b", []netip.Addr{netip.MustParseAddr("239.1.2.3")})
	send := sendTo(t, w, "client-a", group)
	for pod, c := range members {
		comesTrue(t, pod+" gets what client-a sends", func() bool { return send(pod) == nil && got(c, pod) })
	}
	multicastOutside(t, w, group, members)
	multicastOutlives(t, w, group, members)
	multicastForbidden(t, w, group, members, manifests)
	members["web-a"].Close()
	wantGroups(t, w, "node-a", "web-a", nil)
	before := received(t, w, "node-a", "web-a")
	for range 5 {
		comesTrue(t, "client-b gets more", func() bool { return send("more") == nil && got(members["client-b"], "more") })
	}
	if n := received(t, w, "node-a", "web-a"); n != before {
		t.Errorf("web-a got %d packets after it had left", n-before)
	}
	for node, pod := range map[string]string{"node-a": "db-a", "node-b": "db-b"} {
		if n := received(t, w, node, pod); n != 0 {
			t.Errorf("%s, which has not joined, got %d packets", pod, n)
		}
	}
}

// multicastOutside has a host outside send to the pods that have joined, and get what a pod sends,
// by the Node's address. Each gets each packet once, by whichever way.
func multicastOutside(t *testing.T, w *world, group *net.UDPAddr, members map[string]*net.UDPConn) {
	t.Helper()
	outside := joinGroup(t, w, "outside", group)
	for from, hearers := range map[string]map[string]*net.UDPConn{
		"outside":  members,
		"client-a": {"outside": outside, "web-a": members["web-a"], "client-b": members["client-b"]},
	} {
		send := sendTo(t, w, from, group)
		for name, c := range hearers {
			comesTrue(t, name+" gets what "+from+" sends", func() bool { return send("first") == nil && got(c, "first") })
		}
		for i := range 5 {
			if err := send(fmt.Sprint(from, i)); err != nil {
				t.Fatal(err)
			}
		}
		for name, c := range hearers {
			var want []string
			for i := range 5 {
				want = append(want, fmt.Sprint(from, i))
			}
			if words, source := words(c, want[4]); fmt.Sprint(words) != fmt.Sprint(want) {
				t.Errorf("%s got %v of what %s sent, want %v", name, words, from, want)
			} else if name == "outside" && source != w.addresses["node-a"] {
				t.Errorf("the host outside saw %s, want node-a", source)
			}
		}
	}
}

// multicastOutlives kills the agent of a Node, starts the next one, and replaces agent and switch. Meanwhile no
// datagram is lost, from a pod or from the outside, to any member. If the switch is killed, the kernel
// keeps the same routes.
func multicastOutlives(t *testing.T, w *world, group *net.UDPAddr, members map[string]*net.UDPConn) {
	t.Helper()
	hearers := map[string]*net.UDPConn{"outside": joinGroup(t, w, "outside", group), "web-a": members["web-a"], "client-b": members["client-b"]}
	kept := strings.TrimSuffix(w.lab.Socket("node-a"), ".sock") + ".assignments.json"
	waitUntil(t, "members in "+kept, func() bool {
		b, err := os.ReadFile(kept)
		return err == nil && strings.Contains(string(b), group.IP.String())
	})
	s := &stream{sends: map[string]func(string) error{}, got: map[string]map[string]bool{}}
	for _, from := range []string{"outside", "client-a"} {
		s.sends[from] = sendTo(t, w, from, group)
	}
	s.begin(hearers)
	s.waitMore(t, 20)
	if err := w.lab.KillAgent("node-a"); err != nil {
		t.Fatal(err)
	}
	s.waitMore(t, 100)
	if err := w.lab.RestartAgent(t.Context(), "node-a", antrail); err != nil {
		t.Fatal(err)
	}
	s.waitMore(t, 300) // past the first look at members
	if err := w.lab.ReplaceAgent(t.Context(), "node-a", antrail, "--new-switch"); err != nil {
		t.Fatal(err)
	}
	s.waitMore(t, 300)
	s.end(t, w, hearers)
	before := routedPackets(t, w)
	if err := w.lab.KillSwitch(t.Context(), "node-a"); err != nil {
		t.Fatal(err)
	}
	if err := w.lab.WaitAgent(t.Context(), "node-a"); err != nil {
		t.Fatal(err)
	}
	again := sendTo(t, w, "outside", group)
	comesTrue(t, "web-a gets what comes by the next switch", func() bool { return again("next switch") == nil && got(members["web-a"], "next switch") })
	if after := routedPackets(t, w); after <= before {
		t.Errorf("the route had forwarded %d packets, and has %d: it was made again", before, after)
	}
}

// routedPackets is how many packets the route of the group has forwarded, by the kernel of node-a.
func routedPackets(t *testing.T, w *world) (packets int) {
	t.Helper()
	err := w.lab.In("node-a", func() error {
		text, err := os.ReadFile("/proc/thread-self/net/ip_mr_cache")
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); f[0] == "030201EF" {
				packets, err = strconv.Atoi(f[3])
				return err
			}
		}
		return errors.Join(err, fmt.Errorf("no route of the group:\n%s", text))
	})
	if err != nil {
		t.Fatal(err)
	}
	return packets
}

// stream is numbered datagrams from some senders, and those that hearers got.
type stream struct {
	sends   map[string]func(string) error
	sent    atomic.Int64
	stopped atomic.Bool
	running sync.WaitGroup // senders
	hearing sync.WaitGroup
	failed  error
	mu      sync.Mutex
	got     map[string]map[string]bool // words by hearer
}

// begin sends a datagram of each sender every few milliseconds, and notes what hearers get.
func (s *stream) begin(hearers map[string]*net.UDPConn) {
	for name := range hearers {
		s.got[name] = map[string]bool{}
	}
	for name, c := range hearers {
		s.hearing.Go(func() { s.runHearer(name, c) })
	}
	s.running.Go(s.runSenders)
}

func (s *stream) runSenders() {
	for ; !s.stopped.Load(); time.Sleep(exchangePause) {
		n := s.sent.Add(1)
		for from, send := range s.sends {
			s.failed = errors.Join(s.failed, send(fmt.Sprint(from, " ", n)))
		}
	}
}

func (s *stream) runHearer(name string, c *net.UDPConn) {
	b := make([]byte, 100)
	for {
		c.SetReadDeadline(time.Now().Add(waitAtMost))
		n, _, err := c.ReadFrom(b)
		word := string(b[:n])
		if err != nil || word == "end" {
			return
		}
		s.mu.Lock()
		s.got[name][word] = true
		s.mu.Unlock()
	}
}

// waitMore waits until each sender has sent so many more.
func (s *stream) waitMore(t *testing.T, more int64) {
	t.Helper()
	want := s.sent.Load() + more
	waitUntil(t, "more datagrams", func() bool { return s.sent.Load() >= want })
}

// end stops the senders, and wants every hearer to have all words of others.
func (s *stream) end(t *testing.T, w *world, hearers map[string]*net.UDPConn) {
	t.Helper()
	s.stopped.Store(true)
	s.running.Wait()
	if s.failed != nil {
		t.Fatal(s.failed)
	}
	for name := range hearers {
		for from := range s.sends {
			if from == name {
				continue
			}
			lost := func() (n int64) {
				s.mu.Lock()
				defer s.mu.Unlock()
				for i := range s.sent.Load() {
					if !s.got[name][fmt.Sprint(from, " ", i+1)] {
						n++
					}
				}
				return n
			}
			if !comes(func() bool { return lost() == 0 }) {
				t.Errorf("%s lost %d of %d datagrams from %s", name, lost(), s.sent.Load(), from)
			}
		}
	}
	if err := errors.Join(s.sends["outside"]("end"), s.sends["client-a"]("end")); err != nil {
		t.Fatal(err)
	}
	s.hearing.Wait()
}

// words reads the words that come up to a last one, and a little longer, without those that say
// "first".
func words(c *net.UDPConn, last string) (all []string, source netip.Addr) {
	b := make([]byte, 100)
	wait := waitAtMost
	for {
		c.SetReadDeadline(time.Now().Add(wait))
		n, from, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			return all, source
		}
		if word := string(b[:n]); word != "first" {
			all, source = append(all, word), from.Addr().Unmap()
		}
		if string(b[:n]) == last {
			wait = 100 * time.Millisecond
		}
	}
}

// forbidGroup lets web pods join nothing, and client pods send nothing to the group.
const forbidGroup = `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: no-group}
spec:
  priority: 1
  tier: securityops
  egress:
  - {action: Drop, appliedTo: [{podSelector: {matchLabels: {app: web}}}], protocols: [{igmp: {groupAddress: 239.1.2.3}}]}
  - {action: Drop, appliedTo: [{podSelector: {matchLabels: {app: client}}}], to: [{ipBlock: {cidr: 239.1.2.3/32}}]}
`

// multicastForbidden has a policy forbid a group: a member gets nothing more, from a pod or from the
// outside, until the policy is gone, and a pod that may not send is not heard.
func multicastForbidden(t *testing.T, w *world, group *net.UDPAddr, members map[string]*net.UDPConn, manifests string) {
	t.Helper()
	policy := filepath.Join(manifests, "no-group.yaml")
	if err := os.WriteFile(policy, []byte(forbidGroup), 0o600); err != nil {
		t.Fatal(err)
	}
	wantGroups(t, w, "node-a", "web-a", nil)
	fromOutside, fromClient := sendTo(t, w, "outside", group), sendTo(t, w, "client-a", group)
	before := received(t, w, "node-a", "web-a")
	comesTrue(t, "client-b is not heard", func() bool { return fromClient("forbidden") == nil && !got(members["client-b"], "forbidden") })
	for range 3 {
		comesTrue(t, "client-b hears the outside", func() bool { return fromOutside("second") == nil && got(members["client-b"], "second") })
	}
	if n := received(t, w, "node-a", "web-a"); n != before {
		t.Errorf("web-a got %d packets of a group that it may not join", n-before)
	}
	if err := os.Remove(policy); err != nil {
		t.Fatal(err)
	}
	comesTrue(t, "web-a is a member again", func() bool { return fromOutside("third") == nil && got(members["web-a"], "third") })
	comesTrue(t, "client-a is heard again", func() bool { return fromClient("fourth") == nil && got(members["client-b"], "fourth") })
}

// joinGroup has a pod's kernel join a group on eth0.
func joinGroup(t *testing.T, w *world, pod string, group *net.UDPAddr) (c *net.UDPConn) {
	t.Helper()
	err := w.lab.In(pod, func() error {
		link, err := net.InterfaceByName("eth0")
		if err == nil {
			c, err = net.ListenMulticastUDP("udp4", link, group)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// sendTo is how a pod sends words to a group, by eth0, so that they may be forwarded.
func sendTo(t *testing.T, w *world, pod string, group *net.UDPAddr) func(string) error {
	t.Helper()
	var c net.PacketConn
	err := w.lab.In(pod, func() error {
		link, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		by := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
			set := func(fd uintptr) {
				err = errors.Join(
					unix.SetsockoptIPMreqn(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(link.Index)}),
					unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, 8),
					unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 0))
			}
			return errors.Join(raw.Control(set), err)
		}}
		c, err = by.ListenPacket(t.Context(), "udp4", ":0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return func(word string) error {
		_, err := c.WriteTo([]byte(word), group)
		return err
	}
}

// got reads until a word comes, or nothing for a while.
func got(c *net.UDPConn, word string) bool {
	b := make([]byte, 100)
	for {
		c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		n, _, err := c.ReadFrom(b)
		if err != nil {
			return false
		}
		if string(b[:n]) == word {
			return true
		}
	}
}

// podRecord is what a Node's agent knows of a pod of its own.
func podRecord(t *testing.T, w *world, node, pod string) control.PodRow {
	t.Helper()
	r, known := findPod(t, w, node, pod)
	if !known {
		t.Fatalf("%s knows no pod %s", node, pod)
	}
	return r
}

// findPod is podRecord. An agent that has just started may not know its pods yet.
func findPod(t *testing.T, w *world, node, pod string) (r control.PodRow, known bool) {
	t.Helper()
	var all []control.PodRow
	if err := w.agent(node).JSON(t.Context(), "/pods", nil, &all); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(r control.PodRow) bool { return r.Text == "Pod/default/"+pod })
	if i < 0 {
		return r, false
	}
	return all[i], true
}

func received(t *testing.T, w *world, node, pod string) uint64 {
	t.Helper()
	return podRecord(t, w, node, pod).MulticastReceived
}

// wantGroups waits until a pod has joined these groups.
func wantGroups(t *testing.T, w *world, node, pod string, want []netip.Addr) {
	t.Helper()
	comesTrue(t, fmt.Sprintf("groups of %s are %v", pod, want), func() bool {
		r, known := findPod(t, w, node, pod)
		return known && fmt.Sprint(r.Groups) == fmt.Sprint(want)
	})
}

// comesTrue tries for ten seconds.
func comesTrue(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !comes(ok) {
		t.Fatalf("not so: %s", what)
	}
}

// comes tries for ten seconds.
func comes(ok func() bool) bool {
	for range 100 {
		if ok() {
			return true
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}
