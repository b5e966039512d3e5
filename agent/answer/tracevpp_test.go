package answer

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/trace"
)

// A SYN and a SYN-ACK between two pods that VPP routes, as they came. Of the last 14
// bytes, TCP's timestamps and window scale, VPP's trace shows none; they are such
// that its checksums hold.
const (
	routedSYN    = "02fe6999eb9d00000000000208004500003c341e40004006f0870a01010c0a0101099b8c1f908c66e43400000000a0027210c3de0000020405b40402080a0063cfdf0000000001030307"
	routedSYNACK = "02fe167939cb00000000000208004500003c00004000400624a60a0101090a01010c1f909b8c0db7e4108c66e435a012712002b30000020405b40402080a0063cfdf0063cfdf01030307"
)

// stamps are times and ids.
var stamps = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d:\d{6}: |^Packet [0-9a-f]{16}`)

// inForm is ways in a form.
func inForm(t *testing.T, form string, ways ...trace.Joined) string {
	t.Helper()
	var b strings.Builder
	p, err := trace.NewPrinter(form, &b)
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range ways {
		if err := p.Print(way); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// routedWays is the walks of both packets.
func routedWays(t *testing.T) (ways []trace.Joined) {
	t.Helper()
	p, err := pipeline.Files{Flows: "testdata/routed-pods.flows"}.Beside().Load(pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	n := &watchedNode{Answers: New(p)}
	if n.ports, err = n.addMemoryPorts(nil); err != nil {
		t.Fatal(err)
	}
	n.client = serveLive(t, n.Answers, "")
	w := watch(t, api.LiveTraceRequest{Text: true}, n)
	for _, s := range []struct {
		frame   string
		in, out uint32
	}{{routedSYN, 7, 11}, {routedSYNACK, 11, 7}} {
		b, err := hex.DecodeString(s.frame)
		if err != nil {
			t.Fatal(err)
		}
		if out := n.send(t, s.in, b, packet.Tunnel{}, s.out); len(out) != 1 {
			t.Fatalf("%d packets left by port %d", len(out), s.out)
		}
		ways = append(ways, w.next(t))
	}
	return ways
}

// TestTraceInVPPsForm has both packets pass nodes, headers and bytes as VPP's trace
// of them does.
func TestTraceInVPPsForm(t *testing.T) {
	want, err := os.ReadFile("testdata/routed-pods.vpp")
	if err != nil {
		t.Fatal(err)
	}
	got := stamps.ReplaceAllString(inForm(t, trace.FormVPP, routedWays(t)...), "")
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTraceOfRoutedPodsInAllForms has the same packets in every form.
func TestTraceOfRoutedPodsInAllForms(t *testing.T) {
	ways := routedWays(t)
	for _, form := range trace.Forms() {
		if got := inForm(t, form, ways...); !strings.Contains(got, "10.1.1.12") {
			t.Errorf("form %s does not name the packet:\n%s", form, got)
		}
	}
}
