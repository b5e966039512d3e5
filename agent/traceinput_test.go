package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/trace"
)

// inputNode is a Node with a pod for each driver of a link.
const inputNode = `
nodeName: node-a
flows: %s
masquerade: false
gateway: {mac: "00:15:5d:0a:00:01", addresses: [10.10.0.1/24]}
tunnel: {localAddress: 192.0.2.10}
podCIDRs: [10.10.0.0/24]
ports:
- {name: by-socket, ofPort: 5, driver: afpacket}
- {name: by-xdp, ofPort: 6, driver: afxdp}
`

// TestInputNodesByDriver is A-V9: the first node of a packet's trace is named after the driver
// of its port, for packets of a packet socket, of AF_XDP and of a tap.
func TestInputNodesByDriver(t *testing.T) {
	node, pods := nstest.New(t), nstest.New(t)
	for _, link := range []string{"by-socket", "by-xdp"} {
		nstest.AddVeth(t, node, link, pods, link+"0")
		node.SetUp(t, link)
		pods.SetUp(t, link+"0")
	}
	node.SetUp(t, "lo")
	node.AddAddress(t, "lo", "192.0.2.10/32")
	flows := filepath.Join(t.TempDir(), "drop.flows")
	if err := os.WriteFile(flows, []byte("table=0,priority=0 actions=drop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(fmt.Appendf(nil, inputNode, flows))
	if err != nil {
		t.Fatal(err)
	}
	c.Socket = filepath.Join(t.TempDir(), "agent.sock")
	p := startProcess(t, node, c)
	wantReady(t, c)
	for _, s := range []struct {
		ns         *nstest.Namespace
		link, want string
	}{{pods, "by-socket0", "afpacket-input"}, {pods, "by-xdp0", "afxdp-input"}, {node, "antrea-gw0", "tap-input"}} {
		if got := inputOf(t, c, nstest.OpenWire(t, s.ns, s.link)); got != s.want {
			t.Errorf("what %s sends enters by %s, want %s", s.link, got, s.want)
		}
	}
	p.stop(t)
}

// errEnough ends a live trace.
var errEnough = errors.New("enough")

// inputOf sends a frame, and returns the first node of its trace in VPP's form.
func inputOf(t *testing.T, c *config.Config, wire *nstest.Wire) string {
	t.Helper()
	frame := packettest.UDP4(packettest.Options{SrcPort: 4321, DstPort: 1234})
	var text strings.Builder
	err := api.NewClient(c.Socket).TraceLive(t.Context(), &api.LiveTraceRequest{Filter: "udp port 1234"}, func(l *api.LiveLine) error {
		if l.Walk == nil {
			return wire.Send(frame) // armed, or a second without a packet
		}
		printer, err := trace.NewPrinter(trace.FormVPP, &text)
		if err == nil {
			err = printer.Print(trace.Joined{l.Walk})
		}
		return errors.Join(err, printer.End(), errEnough)
	})
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && strings.HasSuffix(name, "-input") {
			return name
		}
	}
	t.Fatalf("a trace without an input node:\n%s", &text)
	return ""
}
