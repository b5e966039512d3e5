package answer

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// lastDrops is the last lost packet that a query finds, asked for over the socket.
func (n *watchedNode) lastDrops(t *testing.T, q api.DropQuery) *api.DroppedPacket {
	t.Helper()
	all, err := n.client.DroppedPackets(t.Context(), &q)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Packets) == 0 {
		t.Fatalf("%+v finds nothing", q)
	}
	return &all.Packets[len(all.Packets)-1]
}

// clientSYN is a SYN from client-a to a pod of its Node, changed.
func clientSYN(change func(*packettest.Options)) []byte {
	o := packettest.Options{
		EthSrc: [6]byte{0x5e, 0xb5, 0xe3, 0xa6, 0x90, 0xb7}, EthDst: [6]byte{0xba, 0x5e, 0xd1, 0x55, 0xaa, 0xc0},
		Src: packettest.Addr("10.10.0.26"), Dst: packettest.Addr("10.10.1.6"), SrcPort: 1000, DstPort: 80, TCPFlags: packet.TCPSyn, TTL: 64,
	}
	change(&o)
	return packettest.TCP4(o)
}

// TestDropsNames: the record of a dropped packet names the Pods, and the table, entry and
// policy that dropped it. It has the packet's first bytes.
func TestDropsNames(t *testing.T) {
	a, b := newWatchedNode(t, "node-a"), newWatchedNode(t, "node-b")
	before := time.Now()
	spoofed := clientSYN(func(o *packettest.Options) { o.Src = packettest.Addr("10.10.0.99") })
	a.send(t, nodeClient, spoofed, packet.Tunnel{}, nodeTunnel)
	p := a.lastDrops(t, api.DropQuery{Reason: "entry"})
	if p.Port.Pod != "default/client-a" || p.Table != "SpoofGuard" || p.Destination != "default/web-b" || p.Source != "" {
		t.Errorf("spoofed: %s", p.Line())
	}
	if string(p.Frame) != string(spoofed) || p.Length != len(spoofed) || p.Packet != "tcp 10.10.0.99:1000 > 10.10.1.6:80 syn" {
		t.Errorf("spoofed: %d bytes, %q: %x", p.Length, p.Packet, p.Frame)
	}
	if p.Forged != "10.10.0.99 is not the Pod's" || p.Summary() != p.Packet+" (default/web-b): "+p.Forged {
		t.Errorf("spoofed: %q, %q", p.Forged, p.Summary())
	}
	if p.Time.Before(before) || p.Time.After(time.Now()) {
		t.Errorf("lost at %v, was sent after %v", p.Time, before)
	}
	// The policy of a Pod's isolation, on its own Node.
	far := packet.Tunnel{Src: netip.MustParseAddr("192.168.77.101"), Dst: netip.MustParseAddr("192.168.77.103")}
	toDB := clientSYN(func(o *packettest.Options) {
		o.EthSrc, o.EthDst = [6]byte{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}, [6]byte{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
		o.Dst, o.DstPort = podAddress(t, b, "default/db-b"), 3306
	})
	b.send(t, nodeTunnel, toDB, far, nodeDB)
	p = b.lastDrops(t, api.DropQuery{Pod: "default/db-b"})
	if p.Table != "IngressDefaultRule" || p.Object() != "NetworkPolicy/default/db-from-web" || p.Source != "default/client-a" {
		t.Errorf("isolated: %s", p.Line())
	}
	if p.CT == nil || p.CT.State != "new|trk" || p.CT.Zone != 65520 || p.Tunnel == nil || p.Tunnel.Src != "192.168.77.101" {
		t.Errorf("isolated: %+v, %+v", p.CT, p.Tunnel)
	}
	for _, n := range []*watchedNode{a, b} {
		wantBalance(t, n)
	}
	if all := b.Drops.Query(&api.DropQuery{Pod: "default/client-b"}); len(all.Packets) != 0 {
		t.Errorf("another Pod's: %+v", all.Packets)
	}
}

// TestForgedMAC: a packet with another MAC address than the Pod's is reported with both. So is ARP,
// which has the address within.
func TestForgedMAC(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	own := [6]byte{0x5e, 0xb5, 0xe3, 0xa6, 0x90, 0xb7}
	arp := packettest.ARPRequest(packettest.Options{EthSrc: [6]byte{2, 9}, Src: packettest.Addr("10.10.0.26"), Dst: packettest.Addr("10.10.0.25")})
	copy(arp[6:], own[:])
	for _, s := range []struct {
		frame  []byte
		reason string
		want   string
	}{
		{clientSYN(func(o *packettest.Options) { o.EthSrc[5] = 9 }), "foreign_mac", "with MAC 5e:b5:e3:a6:90:09, not the Pod's 5e:b5:e3:a6:90:b7"},
		{arp, "entry", "with MAC 02:09:00:00:00:00, not the Pod's 5e:b5:e3:a6:90:b7"},
	} {
		n.send(t, nodeClient, s.frame, packet.Tunnel{}, nodeTunnel)
		if p := n.lastDrops(t, api.DropQuery{Reason: s.reason}); p.Forged != s.want {
			t.Errorf("%s: %q, want %q", p.Packet, p.Forged, s.want)
		}
	}
}

// wantBalance checks that the Node's sums agree, as the API tells them.
func wantBalance(t *testing.T, n *watchedNode) {
	t.Helper()
	var r api.PacketCountersRecord
	if err := n.client.JSON(t.Context(), "/sums", nil, &r); err != nil {
		t.Fatal(err)
	}
	if r.Fault != "" || r.Total.Received != 1 || r.Total.Dropped != 1 {
		t.Errorf("%s: %s: %+v", n.name, r.Fault, r.Total)
	}
	text, err := n.client.Get(t.Context(), "/sums", nil)
	for line := range strings.Lines(string(text)) {
		if head, _, _ := strings.Cut(string(text), "\n"); len(line) != len(head)+1 {
			t.Errorf("%q does not align with %q", line, head)
		}
	}
	if err != nil || !strings.Contains(string(text), "RECEIVED") || strings.Contains(string(text), "do not agree") || !strings.Contains(string(text), "(ports gone)") {
		t.Errorf("%v: %s", err, text)
	}
}

// podAddress is the first address of a Pod.
func podAddress(t *testing.T, n *watchedNode, pod string) netip.Addr {
	t.Helper()
	ends, err := n.podEnds(pod)
	if err != nil {
		t.Fatal(err)
	}
	return ends.IPs[0]
}

// TestDropsKeepsTheLast: of more packets than are kept the youngest stay, in order.
// A later query gets only the rest.
func TestDropsKeepsTheLast(t *testing.T) {
	n := loadWatched(t, "../../examples/web-app", "node-a", pipeline.Options{Keep: 10})
	lose := func(count int) {
		for i := range count {
			n.send(t, nodeClient, clientSYN(func(o *packettest.Options) { o.Src = packettest.Addr("10.10.0.99"); o.SrcPort = uint16(i) }), packet.Tunnel{}, nodeTunnel)
		}
	}
	lose(25)
	all := n.Drops.Query(&api.DropQuery{})
	if len(all.Packets) != 10 || all.Packets[0].No != 16 || all.Packets[9].No != 25 || all.Next != 25 {
		t.Errorf("%d packets, next %d", len(all.Packets), all.Next)
	}
	lose(3)
	if all = n.Drops.Query(&api.DropQuery{Since: all.Next}); len(all.Packets) != 3 || all.Packets[0].No != 26 {
		t.Errorf("since: %d packets", len(all.Packets))
	}
	if all = n.Drops.Query(&api.DropQuery{Last: 2}); len(all.Packets) != 2 || all.Packets[1].No != 28 {
		t.Errorf("last 2: %d packets", len(all.Packets))
	}
}

// TestDropsFollow: a follower gets the packets dropped before, and those dropped later.
func TestDropsFollow(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	spoof := func(port uint16) {
		n.send(t, nodeClient, clientSYN(func(o *packettest.Options) { o.Src = packettest.Addr("10.10.0.99"); o.SrcPort = port }), packet.Tunnel{}, nodeTunnel)
	}
	spoof(1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	enough := errors.New("enough")
	err := n.client.FollowDrops(ctx, &api.DropQuery{Pod: "default/client-a"}, func(p *api.DroppedPacket) error {
		got = append(got, p.Packet)
		if len(got) == 2 {
			return enough
		}
		spoof(2)
		return nil
	}, nil)
	if err != enough || len(got) != 2 || !strings.Contains(got[1], "10.10.0.99:2 ") {
		t.Errorf("%v: %q", err, got)
	}
}

// TestDropsRefuses: a query with a wrong field gets an error, and no packets.
func TestDropsRefuses(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	for _, q := range []api.DropQuery{{Pod: "client-a"}, {Reason: "bad luck"}, {Last: -1}} {
		if _, err := n.client.DroppedPackets(t.Context(), &q); err == nil {
			t.Errorf("%+v is answered", q)
		}
		if err := n.client.FollowDrops(t.Context(), &q, nil, nil); err == nil {
			t.Errorf("%+v is followed", q)
		}
	}
	if _, err := n.client.DroppedPackets(t.Context(), &api.DropQuery{Reason: "ct_ful"}); err == nil || !strings.Contains(err.Error(), `there is no reason "ct_ful" (did you mean ct_full?); there are entry, `) {
		t.Errorf("%v", err)
	}
	if _, err := n.client.Get(t.Context(), "/drops/last", map[string][]string{"since": {"x"}}); err == nil {
		t.Error("since=x is answered")
	}
	text, err := n.client.Get(t.Context(), "/drops/last", nil)
	if err != nil || !strings.HasPrefix(string(text), "TIME ") {
		t.Errorf("%v: %q", err, text)
	}
}

// TestDropsOfNoPod: for a Pod that does not exist the answer suggests others. For a Pod of
// another Node it names that Node.
func TestDropsOfNoPod(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	for pod, want := range map[string]string{
		"default/client":   "there is no Pod default/client with an address; there is default/client-a, default/client-b",
		"default/nobody":   "there is no Pod default/nobody with an address",
		"default/client-b": "Pod default/client-b is on Node node-b, whose agent has its dropped packets",
		"default/client-a": "",
	} {
		q := api.DropQuery{Pod: pod}
		all, err := n.client.DroppedPackets(t.Context(), &q)
		got := all.Note
		if err != nil {
			got = err.Error()
			if followed := n.client.FollowDrops(t.Context(), &q, nil, nil); followed == nil || followed.Error() != got {
				t.Errorf("%s: when followed: %v", pod, followed)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", pod, got, want)
		}
	}
}

// TestDropsText: a packet of another day has its day, and reasons that the table does not
// show have their meaning below it, once.
func TestDropsText(t *testing.T) {
	now := time.Now()
	full := api.DroppedPacket{Time: now, Reason: "ct_full", Meaning: "The connection table is full."}
	var b bytes.Buffer
	if err := api.WriteDrops(&b, []api.DroppedPacket{{Time: now.Add(-48 * time.Hour), Reason: "entry", Meaning: "no"}, full, full}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[1], now.Add(-48*time.Hour).Format("01-02 15:04:05.000000 ")) || !strings.HasPrefix(lines[2], now.Format("15:04:05.000000 ")) || lines[4] != "ct_full: The connection table is full." {
		t.Errorf("%s", b.String())
	}
}

// TestUnpluggedPod: drops and why report a Pod whose link is down, also if nothing was sent
// there yet. A follower learns when it is up again.
func TestUnpluggedPod(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	for port, want := range map[uint32]string{nodeDB: "Pod default/db-a: its link db-a is up again", 4711: ""} {
		if got := n.SeveredNews([]pipeline.Severed{{Who: "Pod default/db-a", Port: port}}, nil); got != want {
			t.Errorf("port %d: %q, want %q", port, got, want)
		}
	}
	if err := n.ports[nodeDB].Close(); err != nil {
		t.Fatal(err)
	}
	const down = "default/db-a, whose link db-a is down: packets to it are dropped (port_link_is_down)"
	for pod, want := range map[string]string{"": "Pod " + down, "default/db-a": "Pod " + down, "default/client-a": ""} {
		all, err := n.client.DroppedPackets(t.Context(), &api.DropQuery{Pod: pod})
		if err != nil || all.Note != want {
			t.Errorf("%q: %q, %v; want %q", pod, all.Note, err, want)
		}
	}
	a, err := api.Why(t.Context(), []*api.Client{n.client}, &api.WhyRequest{From: "default/web-a", To: "default/db-a:3306"})
	if err != nil || !strings.Contains(a.Sentence, "it reaches "+down) || !strings.HasPrefix(a.Ways[0].Advice, "set the link up in the Pod") {
		t.Errorf("%+v, %v", a, err)
	}
	if err := n.ports[nodeWeb].Close(); err != nil { // behind a TrafficControl
		t.Fatal(err)
	}
	a, err = api.Why(t.Context(), []*api.Client{n.client}, &api.WhyRequest{From: "default/client-a", To: "default/web-a:80"})
	if err != nil || !strings.HasPrefix(a.Ways[0].Advice, "set the link up in the Pod") {
		t.Errorf("%+v, %v", a, err)
	}
	if one := (&api.DroppedPacket{Packets: 1}).Summary(); one != "1 packet" {
		t.Errorf("%q", one)
	}
}
