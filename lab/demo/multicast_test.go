package demo

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/lab"
)

// TestMulticast: pods that join a group by their kernels get what another pod sends to it,
// on its Node and on the other. Others get nothing, nor does one that has left.
func TestMulticast(t *testing.T) {
	change := strings.NewReplacer("AntreaProxy: true,", "AntreaProxy: true, Multicast: true,")
	w := worldOf(t, lab.Options{Manifests: exampleAnd(t, map[string]*strings.Replacer{"node-a.yaml": change, "node-b.yaml": change}, "")})
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

// joinGroup has a pod's kernel join a group on eth0.
func joinGroup(t *testing.T, w *world, pod string, group *net.UDPAddr) (c *net.UDPConn) {
	t.Helper()
	err := w.in(pod, func() error {
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

// sendTo is how a pod sends words to a group.
func sendTo(t *testing.T, w *world, pod string, group *net.UDPAddr) func(string) error {
	t.Helper()
	var c *net.UDPConn
	err := w.in(pod, func() (err error) {
		c, err = net.DialUDP("udp4", nil, group)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return func(word string) error {
		_, err := c.Write([]byte(word))
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

// podRecord is what a Node's agent says of a pod.
func podRecord(t *testing.T, w *world, node, pod string) api.PodRecord {
	t.Helper()
	var all []api.PodRecord
	if err := w.agent(node).JSON(t.Context(), "/pods", nil, &all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Object == "Pod/default/"+pod {
			return r
		}
	}
	t.Fatalf("%s knows no pod %s", node, pod)
	return api.PodRecord{}
}

func received(t *testing.T, w *world, node, pod string) uint64 {
	t.Helper()
	return podRecord(t, w, node, pod).MulticastReceived
}

// wantGroups waits until a pod has joined these groups.
func wantGroups(t *testing.T, w *world, node, pod string, want []netip.Addr) {
	t.Helper()
	comesTrue(t, fmt.Sprintf("groups of %s are %v", pod, want), func() bool {
		return fmt.Sprint(podRecord(t, w, node, pod).Groups) == fmt.Sprint(want)
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
