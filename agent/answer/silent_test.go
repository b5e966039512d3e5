package answer

import (
	"context"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
)

// TestSilentNode: drops and why report a Node that does not answer, with the last packet that
// was dropped there.
func TestSilentNode(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	far := netip.MustParseAddr("192.168.77.103")
	n.Silent.Store(&[]netip.Addr{far})
	all, err := n.client.DroppedPackets(t.Context(), &api.DropQuery{})
	if want := "Node node-b at 192.168.77.103 does not answer ARP or NDP: packets to it are dropped"; err != nil || all.Note != want {
		t.Errorf("%v %q", err, all.Note)
	}
	if text, err := n.client.Get(t.Context(), "/nodes", nil); err != nil || !regexp.MustCompile(`(?m)^node-a .* this Node$`).Match(text) || !regexp.MustCompile(`(?m)^node-b .* 192\.168\.77\.103 does not answer ARP or NDP$`).Match(text) {
		t.Errorf("%v\n%s", err, text)
	}
	a, err := api.Why(t.Context(), []*api.Client{n.client}, &api.WhyRequest{From: "default/client-a", To: "default/db-b:22"})
	if err != nil || !strings.Contains(a.Sentence, "it goes to Node node-b through the tunnel, but 192.168.77.103 does not answer ARP or NDP, so packets to it are dropped") ||
		!strings.HasPrefix(a.Ways[0].Advice, "check that Node node-b is up, and on the same network as node-a:") {
		t.Errorf("%v: %+v", err, a)
	}
	other := newWatchedNode(t, "node-b")
	a, err = api.Why(t.Context(), []*api.Client{n.client, other.client}, &api.WhyRequest{From: "default/client-a", To: "default/client-b:22"})
	if err != nil || !a.Allowed || !strings.Contains(a.Sentence, "so packets to it are dropped; if it came there, it reaches default/client-b") {
		t.Errorf("%v: %+v", err, a)
	}
	lossy := &lossyPort{Port: memory.New("antrea-tun0", memory.Options{Tunnel: true}), node: far, head: clientSYN(func(o *packettest.Options) {})}
	s := telemetry.PortStats{No: nodeTunnel, Name: "antrea-tun0"}
	if err := n.Switch.RemovePort(nodeTunnel); err != nil {
		t.Fatal(err)
	}
	if err := n.Local.AddPort(s.No, lossy); err != nil {
		t.Fatal(err)
	}
	p := n.lastDrops(t, api.DropQuery{Pod: "default/client-a"})
	if p.From() != "to antrea-tun0" || p.Reason != "port_the_node_does_not_answer_arp_or_ndp" || p.Destination != "default/web-b" ||
		p.Summary() != "3 packets, the last one tcp 10.10.0.26:1000 > 10.10.1.6:80 syn (default/web-b) sent by default/client-a for the Node 192.168.77.103" {
		t.Errorf("%s %+v", p.Summary(), p)
	}
}

// TestSilentNodeFollowed: a follower of drops gets one note on a silent Node, on one that falls
// silent meanwhile, and on one that answers again.
func TestSilentNodeFollowed(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	one, two := netip.MustParseAddr("192.168.77.103"), netip.MustParseAddr("192.168.77.104")
	n.Silent.Store(&[]netip.Addr{one})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var notes []string
	err := n.client.FollowDrops(ctx, &api.DropQuery{}, func(*api.DroppedPacket) error { return nil }, func(note string) {
		notes = append(notes, note)
		switch len(notes) {
		case 1:
			n.Silent.Store(&[]netip.Addr{one, two})
		case 2:
			n.Silent.Store(&[]netip.Addr{two})
		default:
			cancel()
		}
	})
	want := []string{
		"Node node-b at 192.168.77.103 does not answer ARP or NDP: packets to it are dropped",
		"Node 192.168.77.104 does not answer ARP or NDP: packets to it are dropped",
		"Node node-b at 192.168.77.103 answers ARP or NDP again",
	}
	if err != nil || !slices.Equal(notes, want) {
		t.Errorf("%v %q", err, notes)
	}
}

// lossyPort has lost three frames for a silent Node.
type lossyPort struct {
	*memory.Port
	node netip.Addr
	head []byte
}

const silentReason = "the Node does not answer ARP or NDP"

func (p *lossyPort) Stats() ports.Stats {
	s := p.Port.Stats()
	s.TxDropped, s.Reasons = 3, map[string]uint64{silentReason: 3}
	return s
}

func (p *lossyPort) DropSample(reason string) ports.DropSample {
	return ports.DropSample{Source: p.node, Length: len(p.head), Head: p.head}
}
