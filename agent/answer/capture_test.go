package answer

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/trace"
)

// seen is a packet of a capture as tshark reads it.
type seen struct{ at, about, id, src, dst, comment string }

// inTshark is a capture of ways as Wireshark's tshark reads it.
func inTshark(t *testing.T, ways ...trace.Joined) (all []seen) {
	t.Helper()
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Skip("tshark is not installed")
	}
	c := exec.Command("tshark", "-n", "-r", "-", "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a",
		"-e", "frame.interface_name", "-e", "frame.interface_description", "-e", "frame.packet_id", "-e", "ip.src", "-e", "ip.dst", "-e", "frame.comment")
	c.Stdin = strings.NewReader(inForm(t, trace.FormPcapng, ways...))
	var problems bytes.Buffer
	c.Stderr = &problems
	out, err := c.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, problems.String())
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 6 {
			t.Fatalf("tshark says %q", line)
		}
		all = append(all, seen{f[0], f[1], f[2], f[3], f[4], f[5]})
	}
	return all
}

// Ethernet addresses on node-b.
var (
	clientB  = [6]byte{0x5e, 0xb5, 0xe3, 0xa6, 0x91, 0xb7}
	webB     = [6]byte{0xfa, 0xb7, 0x53, 0x74, 0x22, 0xa6}
	gatewayB = [6]byte{0xba, 0x5e, 0xd1, 0x55, 0xab, 0xc0}
)

// fromClientB is the first packet of a connection that client-b begins.
func fromClientB(to [6]byte, dst string, sport uint16) []byte {
	return packettest.TCP4(packettest.Options{
		EthSrc: clientB, EthDst: to, Src: packettest.Addr("10.10.1.7"), Dst: packettest.Addr(dst), SrcPort: sport, DstPort: 80, TCPFlags: packet.TCPSyn, TTL: 64,
	})
}

// TestCapturePod captures what one Pod gets and sends, and nothing else; Wireshark
// names the ports after their Pods, and knows a packet where it left as the one that
// entered.
func TestCapturePod(t *testing.T) {
	n := newWatchedNode(t, "node-b")
	w := watch(t, api.LiveTraceRequest{Pod: "default/web-b"}, n)
	n.send(t, nodeClient, fromClientB(gatewayB, "10.10.0.24", 999), packet.Tunnel{}, nodeTunnel) // to another Pod
	there := n.send(t, nodeClient, fromClientB(webB, "10.10.1.6", 1000), packet.Tunnel{}, nodeWeb)
	if len(there) != 1 {
		t.Fatalf("%d frames came to web-b", len(there))
	}
	back := packettest.Answer(there[0].Bytes(), packet.TCPSyn|packet.TCPAck)
	copy(back, slices.Concat(clientB[:], webB[:]))
	n.send(t, nodeWeb, back, packet.Tunnel{}, nodeClient)
	n.send(t, nodeClient, fromClientB(gatewayB, "10.96.0.24", 998), packet.Tunnel{}, nodeTunnel) // to another Pod's Service
	n.send(t, nodeClient, fromClientB(gatewayB, "10.96.1.6", 1001), packet.Tunnel{}, nodeWeb)
	got := inTshark(t, w.next(t), w.next(t), w.next(t))
	const (
		client, aboutClient = "default/client-b", "client-b (36, default/client-b) on node-b"
		web, aboutWeb       = "default/web-b", "web-b (37, default/web-b) on node-b"
	)
	want := []struct{ at, about, src, dst, comment string }{
		{client, aboutClient, "10.10.1.7", "10.10.1.6", `output to port 37 ("web-b") (id `},
		{web, aboutWeb, "10.10.1.7", "10.10.1.6", "left in table Output"},
		{web, aboutWeb, "10.10.1.6", "10.10.1.7", `output to port 36 ("client-b") (id `},
		{client, aboutClient, "10.10.1.6", "10.10.1.7", "left in table Output"},
		{client, aboutClient, "10.10.1.7", "10.96.1.6", "→ ServiceLB [200 "},
		{web, aboutWeb, "10.10.1.7", "10.10.1.6", "left in table Output"},
	}
	if len(got) != len(want) {
		t.Fatalf("%d packets: %+v", len(got), got)
	}
	for i, p := range want {
		if g := got[i]; g.at != p.at || g.about != p.about || g.src != p.src || g.dst != p.dst || !strings.Contains(g.comment, p.comment) {
			t.Errorf("packet %d is %+v, want %+v", i, g, p)
		}
		if got[i].id == "" || got[i].id != got[i-i%2].id || i > 1 && got[i].id == got[i-2].id {
			t.Errorf("packet %d has id %s", i, got[i].id)
		}
	}
}

// TestCaptureTables has a packet as it entered, as it came to tables before and
// behind the choice of an endpoint, and as it left: one id. Packets that did not come
// there are left out. A TrafficControl leads what goes to web-a past a tap.
func TestCaptureTables(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	w := watch(t, api.LiveTraceRequest{Tables: []string{"ServiceLB", "IngressMetric"}}, n)
	forged := syn("10.10.0.24", 1000)
	copy(forged[26:], []byte{10, 10, 0, 99})
	n.send(t, nodeClient, forged, packet.Tunnel{}, 0)
	n.send(t, nodeClient, syn("10.96.0.24", 1001), packet.Tunnel{}, nodeWeb)
	way := w.next(t)
	got := inTshark(t, way)
	var at, dst []string
	for _, p := range got {
		at, dst = append(at, p.at), append(dst, p.dst)
		if p.id != got[0].id {
			t.Errorf("at %s the id is %s, where it entered %s", p.at, p.id, got[0].id)
		}
	}
	if want := []string{"default/client-a", "node-a:table ServiceLB", "node-a:table IngressMetric", "node-a:antrea-tc-tap0"}; !slices.Equal(at, want) {
		t.Fatalf("seen at %q", at)
	}
	if want := []string{"10.96.0.24", "10.96.0.24", "10.10.0.24", "10.10.0.24"}; !slices.Equal(dst, want) {
		t.Errorf("sent to %q", dst)
	}
	if c := got[1].comment; !strings.Contains(c, "enters table ServiceLB (id "+way[0].ID+")") || !strings.Contains(c, "ct_state=new|trk") {
		t.Errorf("the comment is %q", c)
	}
	if about := got[2].about; !strings.HasPrefix(about, "what enters table IngressMetric (") || !strings.HasSuffix(about, ") on node-a") {
		t.Errorf("the table is %q", about)
	}
}

// TestCaptureThrough captures what enters or leaves by a port, which is named or
// numbered.
func TestCaptureThrough(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	for _, port := range []string{"antrea-tun0", "1"} {
		w := watch(t, api.LiveTraceRequest{Through: port, Filter: "tcp", Text: true}, n)
		n.send(t, nodeClient, syn("10.10.0.24", 1000), packet.Tunnel{}, nodeWeb)
		out := n.send(t, nodeClient, syn("10.10.1.6", 1001), packet.Tunnel{}, nodeTunnel)
		if len(out) != 1 {
			t.Fatalf("%d frames left", len(out))
		}
		back := packettest.Answer(out[0].Bytes(), packet.TCPSyn|packet.TCPAck)
		copy(back, []byte{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff})
		n.send(t, nodeTunnel, back, packet.Tunnel{Src: packettest.Addr("192.168.77.103"), Dst: packettest.Addr("192.168.77.102")}, nodeClient)
		left, entered := w.next(t), w.next(t)
		if v := left[0].Verdict; left[0].InPort.No != nodeClient || len(v.Outputs) != 1 || v.Outputs[0].No != nodeTunnel {
			t.Errorf("port %s, what leaves: %s", port, left[0].Text)
		}
		if entered[0].InPort.No != nodeTunnel {
			t.Errorf("port %s, what enters: %s", port, entered[0].Text)
		}
		w.stop()
		if c := <-w.counts; c.Matched != 3 || c.Told != 2 {
			t.Errorf("port %s: %+v", port, c)
		}
	}
}

// TestCaptureAtSeveralNodes captures a Pod of one Node at both: what it sends to the
// other Node is one way.
func TestCaptureAtSeveralNodes(t *testing.T) {
	a, b := newWatchedNode(t, "node-a"), newWatchedNode(t, "node-b")
	w := watch(t, api.LiveTraceRequest{Pod: "default/client-a"}, a, b)
	out := a.send(t, nodeClient, syn("10.10.1.6", 1000), packet.Tunnel{}, nodeTunnel)
	if len(out) != 1 {
		t.Fatalf("%d frames left", len(out))
	}
	far := packet.Tunnel{Src: packettest.Addr("192.168.77.101"), Dst: packettest.Addr("192.168.77.103"), Trace: out[0].Tunnel.Trace}
	b.send(t, nodeTunnel, out[0].Bytes(), far, nodeWeb)
	var at []string
	for _, p := range inTshark(t, w.next(t)) {
		at = append(at, p.at)
	}
	if want := []string{"default/client-a", "node-a:antrea-tun0", "node-b:antrea-tun0", "default/web-b"}; !slices.Equal(at, want) {
		t.Errorf("seen at %q", at)
	}
}

// TestCaptureRefuses says what is wrong with a request.
func TestCaptureRefuses(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	for want, r := range map[string]api.LiveTraceRequest{
		"there is no Pod default/nobody":                   {Pod: "default/nobody"},
		`there is no port "eth9"; antrail dump-ports`:      {Through: "eth9"},
		`there is no port "99"`:                            {Through: "99"},
		`there is no table "Nowhere"; antrail dump-tables`: {Tables: []string{"Output", "Nowhere"}},
		`there is no table "250"`:                          {Tables: []string{"250"}},
	} {
		if err := n.client.TraceLive(t.Context(), &r, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
}
