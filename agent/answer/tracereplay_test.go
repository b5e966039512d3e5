package answer

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/trace"
)

// recordSome records a connection through a Service, an answer, a forged packet and
// one that a policy drops, and reads the recording again.
func recordSome(t *testing.T, n *watchedNode) (ways []trace.Joined) {
	t.Helper()
	w := watch(t, api.LiveTraceRequest{}, n)
	there := syn("10.96.1.6", 1000)
	out := n.send(t, nodeClient, there, packet.Tunnel{}, nodeTunnel)
	if len(out) != 1 {
		t.Fatalf("%d frames came to the Service", len(out))
	}
	back := packettest.Answer(out[0].Bytes(), packet.TCPSyn|packet.TCPAck)
	copy(back, []byte{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff})
	n.send(t, nodeTunnel, back, packet.Tunnel{Src: packettest.Addr("192.168.77.103"), Dst: packettest.Addr("192.168.77.102")}, nodeClient)
	forged := syn("10.10.0.24", 1001)
	forged[29]++
	n.send(t, nodeClient, forged, packet.Tunnel{}, 0)
	denied := syn("10.10.0.25", 1002)
	copy(denied, []byte{0x36, 0x48, 0x21, 0xa2, 0x9d, 0xb4})
	n.send(t, nodeClient, denied, packet.Tunnel{}, 0)
	var b bytes.Buffer
	for range 4 {
		if err := trace.WriteJSON(&b, w.next(t)); err != nil {
			t.Fatal(err)
		}
	}
	w.stop()
	if err := trace.Read(&b, func(way trace.Joined) error { ways = append(ways, way); return nil }); err != nil {
		t.Fatal(err)
	}
	return ways
}

// TestReplayWalks replays recorded walks, of which connections were established
// and translated: with the same entries nothing is different; without the Service
// and the policy the packets that met them go other ways.
func TestReplayWalks(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	ways := recordSome(t, n)
	for i, way := range ways {
		r, err := n.client.ReplayWalk(t.Context(), way[0])
		if err != nil {
			t.Fatal(err)
		}
		if !r.Same() {
			t.Errorf("walk %d: now %s\n%s\n%s\nwas %s", i, r.Now.Text, r.LeftThen, r.LeftNow, way[0].Verdict.Text)
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/web-app")); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"services.yaml", "policies.yaml"} {
		if err := os.Remove(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	changed, err := Offline(pipeline.Manifests{Path: dir, Node: "node-a"}, config.DefaultTunnel)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"- table=ServiceLB, priority=200,tcp", "", "", "+ table=IngressDefaultRule, priority=0 actions="} {
		r, err := changed.ReplayWalk(t.Context(), ways[i][0])
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if want != "" && !strings.Contains(b.String(), want) || i == 2 && !r.Same() {
			t.Errorf("walk %d, which ended so: %s\n%s", i, ways[i][0].Verdict.Text, b.String())
		}
	}
}
