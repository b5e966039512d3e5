package answer

import (
	"encoding/hex"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/trace"
)

// The packets of tracevpp_test.go through Antrea's own pipeline, made from objects.
// Where VPP routes between pods of one Node, with a hop and new Ethernet addresses,
// Antrea bridges: a packet between pods of a Node leaves as it came, and one that a
// pod sends to its gateway leaves by the gateway's port. Between Pods of two Nodes
// Antrea routes. So here the pods are on two Nodes, and the trace differs so:
//
//   - what VPP has in one walk is in two, joined: the first Node has the input, the
//     policies of the sender, the lookup, the rewrite and the packet as the second Node
//     gets it, which is VPP's but for Ethernet addresses and the port (the tunnel's);
//     the second one has the policies of the receiver and the pod's port;
//   - there are two hops: the pod gets the packet with a TTL of 62, VPP's with 63;
//   - VPP's pkt info, trace_bits, dpo-idx and flow hash are its own memory's, and where
//     it has a session index there is a ct_state here.

// routedBetweenNodes is the walks of both packets, each over both Nodes.
func routedBetweenNodes(t *testing.T) (ways []trace.Joined) {
	t.Helper()
	master, worker := loadWatched(t, "testdata/vpp-pods", "k8s-master", pipeline.Options{}), loadWatched(t, "testdata/vpp-pods", "k8s-worker", pipeline.Options{})
	w := watch(t, api.LiveTraceRequest{Text: true}, master, worker)
	const client, server = 7, 11
	at := map[*watchedNode]string{master: "192.168.16.1", worker: "192.168.16.2"}
	for _, s := range []struct {
		frame    string
		from, to *watchedNode
		in, out  uint32
	}{{routedSYN, master, worker, client, server}, {routedSYNACK, worker, master, server, client}} {
		b, err := hex.DecodeString(s.frame)
		if err != nil {
			t.Fatal(err)
		}
		sent := s.from.send(t, s.in, b, packet.Tunnel{}, nodeTunnel)
		if len(sent) != 1 {
			t.Fatalf("%d packets left %s: %s", len(sent), s.from.name, w.next(t)[0].Text)
		}
		tunnel := packet.Tunnel{Src: packettest.Addr(at[s.from]), Dst: packettest.Addr(at[s.to]), Trace: sent[0].Tunnel.Trace}
		if got := s.to.send(t, nodeTunnel, sent[0].Bytes(), tunnel, s.out); len(got) != 1 {
			t.Fatalf("%d packets came to the pod on %s", len(got), s.to.name)
		}
		ways = append(ways, w.next(t))
	}
	return ways
}

// TestTraceFromObjectsInVPPsForm prints both packets' ways over both Nodes.
func TestTraceFromObjectsInVPPsForm(t *testing.T) {
	want, err := os.ReadFile("testdata/vpp-pods.vpp")
	if err != nil {
		t.Fatal(err)
	}
	got := stamps.ReplaceAllString(inForm(t, trace.FormVPP, routedBetweenNodes(t)...), "")
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// vppSaid is the lines that VPP's trace of each packet has of the packet itself, in
// its order, as the first Node is to have them, and those of the second Node.
var vppSaid = [2][2]string{{`
	hdr: flags 0x00 gso_type 0x00 hdr_len 0 gso_size 0 csum_start 0 csum_offset 0 num_buffers 1
	IP4: 00:00:00:00:00:02 -> 02:fe:69:99:eb:9d
	TCP: 10.1.1.12 -> 10.1.1.9
	tos 0x00, ttl 64, length 60, checksum 0xf087
	fragment id 0x341e, flags DONT_FRAGMENT
	TCP: 39820 -> 8080
	seq. 0x8c66e434 ack 0x00000000
	flags 0x02 SYN, tcp header: 40 bytes
	window 29200, checksum 0xc3de
	input sw_if_index 7 (lsb16 7) l3 ip4 10.1.1.12 -> 10.1.1.9 l4 proto 6 l4_valid 1 port 39820 -> 8080 tcp flags (valid) 02 rsvd 0
	TCP: 10.1.1.12 -> 10.1.1.9
	tos 0x00, ttl 64, length 60, checksum 0xf087
	fragment id 0x341e, flags DONT_FRAGMENT
	TCP: 39820 -> 8080
	seq. 0x8c66e434 ack 0x00000000
	flags 0x02 SYN, tcp header: 40 bytes
	window 29200, checksum 0xc3de
	00000000: 00000000000202fe167939cb08004500003c341e40003f06f1870a01010c0a01
	00000020: 01099b8c1f908c66e43400000000a0027210c3de0000020405b40402
	IP4: 02:fe:16:79:39:cb -> 00:00:00:00:00:02
	TCP: 10.1.1.12 -> 10.1.1.9
	tos 0x00, ttl 63, length 60, checksum 0xf187
	fragment id 0x341e, flags DONT_FRAGMENT
	TCP: 39820 -> 8080
	seq. 0x8c66e434 ack 0x00000000
	flags 0x02 SYN, tcp header: 40 bytes
	window 29200, checksum 0xc3de`, `
	output sw_if_index 11 (lsb16 11) l3 ip4 10.1.1.12 -> 10.1.1.9 l4 proto 6 l4_valid 1 port 39820 -> 8080 tcp flags (valid) 02 rsvd 0
	tap8
	IP4: 02:fe:16:79:39:cb -> 00:00:00:00:00:02`}, {`
	hdr: flags 0x00 gso_type 0x00 hdr_len 0 gso_size 0 csum_start 0 csum_offset 0 num_buffers 1
	IP4: 00:00:00:00:00:02 -> 02:fe:16:79:39:cb
	TCP: 10.1.1.9 -> 10.1.1.12
	tos 0x00, ttl 64, length 60, checksum 0x24a6
	fragment id 0x0000, flags DONT_FRAGMENT
	TCP: 8080 -> 39820
	seq. 0x0db7e410 ack 0x8c66e435
	flags 0x12 SYN ACK, tcp header: 40 bytes
	window 28960, checksum 0x02b3
	input sw_if_index 11 (lsb16 11) l3 ip4 10.1.1.9 -> 10.1.1.12 l4 proto 6 l4_valid 1 port 8080 -> 39820 tcp flags (valid) 12 rsvd 0
	TCP: 10.1.1.9 -> 10.1.1.12
	tos 0x00, ttl 64, length 60, checksum 0x24a6
	fragment id 0x0000, flags DONT_FRAGMENT
	TCP: 8080 -> 39820
	seq. 0x0db7e410 ack 0x8c66e435
	flags 0x12 SYN ACK, tcp header: 40 bytes
	window 28960, checksum 0x02b3
	00000000: 00000000000202fe6999eb9d08004500003c000040003f0625a60a0101090a01
	00000020: 010c1f909b8c0db7e4108c66e435a012712002b30000020405b40402
	IP4: 02:fe:69:99:eb:9d -> 00:00:00:00:00:02
	TCP: 10.1.1.9 -> 10.1.1.12
	tos 0x00, ttl 63, length 60, checksum 0x25a6
	fragment id 0x0000, flags DONT_FRAGMENT
	TCP: 8080 -> 39820
	seq. 0x0db7e410 ack 0x8c66e435
	flags 0x12 SYN ACK, tcp header: 40 bytes
	window 28960, checksum 0x02b3`, `
	output sw_if_index 7 (lsb16 7) l3 ip4 10.1.1.9 -> 10.1.1.12 l4 proto 6 l4_valid 1 port 8080 -> 39820 tcp flags (valid) 12 rsvd 0
	tap11
	IP4: 02:fe:69:99:eb:9d -> 00:00:00:00:00:02`}}

// macs are Ethernet addresses: in lines, and as the beginning of a packet in
// hexadecimal.
var macs = regexp.MustCompile(`([0-9a-f]{2}:){5}[0-9a-f]{2}|^00000000: [0-9a-f]{24}`)

// linesOf are the lines of a text without what is before them, and without Ethernet
// addresses.
func linesOf(text string) (all []string) {
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		all = append(all, macs.ReplaceAllString(strings.TrimSpace(l), "…"))
	}
	return all
}

// TestTraceFromObjectsHasWhatVPPSays finds VPP's lines in the walks, in VPP's order,
// up to Ethernet addresses.
func TestTraceFromObjectsHasWhatVPPSays(t *testing.T) {
	for i, way := range routedBetweenNodes(t) {
		if len(way) != 2 {
			t.Fatalf("%d walks", len(way))
		}
		for node, walk := range way {
			text := inForm(t, trace.FormVPP, trace.Joined{walk})
			got := linesOf(stamps.ReplaceAllString(text, ""))
			for _, want := range linesOf(vppSaid[i][node]) {
				at := slices.Index(got, want)
				if at < 0 {
					t.Fatalf("packet %d on %s: there is no %q, or not behind what should precede it, in\n%s", i, walk.Node, want, text)
				}
				got = got[at+1:]
			}
		}
	}
}

// TestTraceFromObjectsInAllForms has the same packets in every form, with both Nodes.
func TestTraceFromObjectsInAllForms(t *testing.T) {
	ways := routedBetweenNodes(t)
	for _, form := range trace.Forms() {
		want := []string{"10.1.1.12", "tap8", "tap11"}
		if form == trace.FormPcapng {
			want = []string{"10.1.1.12", "default/server", "default/client"}
		}
		got := inForm(t, form, ways...)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("form %s has no %q:\n%s", form, w, got)
			}
		}
	}
}
