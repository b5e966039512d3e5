package answer

import (
	"encoding/hex"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/trace"
)

// A SYN and a SYN-ACK between two pods that VPP routes, as they came in the document that
// program vppl3 is made from. Of the last 14
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
	p, err := pipeline.Program{Name: "vppl3"}.Load(pipeline.Options{})
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

// stanza is a node of a trace in VPP's form, with its lines.
type stanza struct {
	node  string
	lines []string
}

// ours are lines that antrail adds to each node: its entry, what that is for, conntrack.
var ours = regexp.MustCompile(`^(table |actions: |conntrack: |for program |port: )`)

// vpps are lines about VPP's own memory and numbers.
var vpps = regexp.MustCompile(`^(virtio: |acl-plugin: |pkt info |NAT44_|fib \d)`)

// adjacency is what VPP says of the way out beside the port: its index, and the new header.
var adjacency = regexp.MustCompile(` dpo-idx \d+ : ipv4 via [0-9.]+ (tap\d+): [0-9a-f]+ flow hash: 0x00000000$`)

// stanzas cuts a trace into stanzas, one for each node, without the lines that match drop. The
// node at which a packet enters is called input, whatever its driver. A line that
// begins with "input sw_if_index" counts only at the first ACL.
func stanzas(text string, drop *regexp.Regexp) (all []stanza) {
	for line := range strings.Lines(text) {
		line = adjacency.ReplaceAllString(strings.TrimSpace(line), " : via $1")
		node := stamps.ReplaceAllString(line, "")
		switch {
		case line == "" || strings.HasPrefix(line, "Packet "):
		case node != line:
			if node == "virtio-input" || node == "memory-input" || node == "afpacket-input" {
				node = "input"
			}
			all = append(all, stanza{node: node})
		case drop.MatchString(line):
		case strings.HasPrefix(line, "input sw_if_index") && all[len(all)-1].node != "acl-plugin-in-ip4-fa":
		default:
			all[len(all)-1].lines = append(all[len(all)-1].lines, line)
		}
	}
	return all
}

// TestTraceIsTheDocuments has the trace of both packets equal the document's: nodes in order,
// and in each node its lines, but for those about VPP's own memory and numbers (V-20 to V-23).
func TestTraceIsTheDocuments(t *testing.T) {
	text, err := os.ReadFile("testdata/document.vpp")
	if err != nil {
		t.Fatal(err)
	}
	want, got := stanzas(string(text), vpps), stanzas(inForm(t, trace.FormVPP, routedWays(t)...), ours)
	if len(want) != 19 {
		t.Fatalf("the document has %d nodes", len(want))
	}
	for i := range max(len(want), len(got)) {
		if i >= len(got) || i >= len(want) || got[i].node != want[i].node || !slices.Equal(got[i].lines, want[i].lines) {
			t.Fatalf("node %d is\n%q\nthe document has\n%q", i, got[min(i, len(got)-1):], want[min(i, len(want)-1):])
		}
	}
}

// TestTraceHasTimes has each node of both packets bear its time: none before the node's before
// it, and the answer's after the question's (V-24).
func TestTraceHasTimes(t *testing.T) {
	text := inForm(t, trace.FormVPP, routedWays(t)...)
	var last time.Time
	nodes := 0
	for _, stamp := range regexp.MustCompile(`(?m)^(\d\d:\d\d:\d\d:\d{6}): \S+$`).FindAllStringSubmatch(text, -1) {
		at, err := time.Parse("15:04:05.000000", stamp[1][:8]+"."+stamp[1][9:])
		if err != nil {
			t.Fatal(err)
		}
		if at.Before(last) && last.Sub(at) < 23*time.Hour { // not midnight
			t.Errorf("%s comes after %v:\n%s", stamp[0], last, text)
		}
		last = at
		nodes++
	}
	if nodes != 19 {
		t.Errorf("%d nodes have a time, and the document has 19:\n%s", nodes, text)
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
