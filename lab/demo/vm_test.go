//go:build vm

package demo

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/ports/afpacket"
	"github.com/antrail/antrail/tunnel"
	"github.com/vishvananda/netlink"
)

// These tests need a kernel with VLANs and bonds (hack/test-vm boots one). Translated
// by QEMU it is slow, so they make some of the demo's checks, those between Nodes.
var betweenNodes = []string{
	"ping across Nodes, both ways", "TCP across Nodes, both ways", "UDP of 8000 bytes, in fragments, across Nodes and outside",
	"pods to the outside host and back, masqueraded", "the underlay carries sound packets of pods",
	"policy on web: clients reach TCP 80", "policy on db: everything else is dropped", "the switches account for every packet",
}

// uplinkOf is an uplink with a tunnel over it: each uplink, tunnel and driver meets
// each other kind of at least one of them.
type uplinkOf struct {
	uplink       lab.Uplink
	tunnel       tunnel.Kind
	tunnelDriver string
}

var uplinkCases = []uplinkOf{
	{lab.UplinkVLAN, tunnel.KindGeneve, config.DriverKernel},
	{lab.UplinkVLAN, tunnel.KindVXLAN, config.DriverAFXDP},
	{lab.UplinkBond, tunnel.KindGRE, config.DriverKernel},
	{lab.UplinkBond, tunnel.KindGeneve, config.DriverAFXDP},
	{lab.UplinkLACP, tunnel.KindVXLAN, config.DriverKernel},
	{lab.UplinkLACP, tunnel.KindGRE, config.DriverAFXDP},
	{lab.UplinkTagged, tunnel.KindGRE, config.DriverKernel},
	{lab.UplinkTagged, tunnel.KindGeneve, config.DriverAFXDP},
}

// TestVMUplinks makes the checks between Nodes whose uplink is a VLAN, a bond or both.
// On AF_XDP the agent is killed, and the Node's own packets do not notice.
func TestVMUplinks(t *testing.T) {
	for _, c := range uplinkCases {
		t.Run(string(c.uplink)+"/"+c.tunnel.String()+"/"+c.tunnelDriver, func(t *testing.T) {
			l := upWith(t, lab.Options{Uplink: c.uplink, Tunnel: c.tunnel.String(), TunnelDriver: c.tunnelDriver})
			w, err := newWorld(l)
			if err != nil {
				t.Fatal(err)
			}
			defer w.close()
			defer tellCounters(t, w)
			idle := sentByIdle(t, w)
			some := slices.DeleteFunc(allChecks(t, w), func(k check) bool { return !slices.Contains(betweenNodes, k.name) })
			if len(some) != len(betweenNodes) {
				t.Errorf("%d checks of %d", len(some), len(betweenNodes))
			}
			runChecks(t, w, some)
			wantCarried(t, w, c.tunnelDriver)
			if c.tunnelDriver == config.DriverAFXDP {
				wantCard(t, w)
				killUnderPing(t, w)
			}
			if n := sentByIdle(t, w) - idle; n > 0 {
				t.Errorf("the bond's member that is not in use sent %d packets", n)
			}
		})
	}
}

// wantCarried transfers between the Nodes: both kernels forward most of it by themselves, and
// count it. Kernels without tcx, and a tunnel that XDP holds, forward nothing.
func wantCarried(t *testing.T, w *world, tunnelDriver string) {
	t.Helper()
	const size = 20 * megabyte
	before := w.inKernels(t)
	if _, err := w.transfer(t.Context(), receiver, w.sink(far), size); err != nil {
		t.Fatal(err)
	}
	may := afpacket.CanForward() == nil && tunnelDriver == config.DriverKernel
	for node, n := range w.inKernels(t) {
		n -= before[node]
		t.Logf("%d of %d bytes passed in the kernel of %s", n, size, node)
		if may && n < size/2 || !may && n != 0 {
			t.Errorf("%d of %d bytes passed in the kernel of %s, which may forward: %v", n, size, node, may)
		}
	}
}

// sentByIdle is the packets that port1 has sent in node-a: it is the second of a bond's
// members, and with one in use is not that. 0 for other uplinks.
func sentByIdle(t *testing.T, w *world) (n uint64) {
	t.Helper()
	if u := w.lab.State.Uplink; u != lab.UplinkBond && u != lab.UplinkTagged {
		return 0
	}
	err := w.lab.In("node-a", func() error {
		link, err := netlink.LinkByName("port1")
		if err == nil {
			n = link.Attrs().Statistics.TxPackets
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// tellCounters shows, when a test has failed, where a packet may have gone: what the
// switches and the kernels of the Nodes and of the outside host have counted.
func tellCounters(t *testing.T, w *world) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, n := range w.lab.Topology.Nodes {
		for _, of := range []string{"/sums", "/drops"} {
			text, err := w.agent(n.Name).Get(context.Background(), of, nil)
			t.Logf("%s of %s: %v\n%s", of, n.Name, err, text)
		}
	}
	for _, name := range []string{"node-a", "node-b", "outside", "client-a", "client-b"} {
		err := w.lab.In(name, func() error {
			text, err := os.ReadFile("/proc/thread-self/net/snmp")
			t.Logf("counters of %s:\n%s", name, text)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// wantCard checks that the tunnel's packets took the short cut.
func wantCard(t *testing.T, w *world) {
	t.Helper()
	var all []api.PortRecord
	if err := w.agent("node-a").JSON(t.Context(), "/ports", nil, &all); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Driver == "uplink" {
			t.Log(p.Mode)
			if !strings.Contains(p.Mode, "afxdp on eth0 (generic, copy)") {
				t.Errorf("mode %s", p.Mode)
			}
			return
		}
	}
	t.Error("node-a has no port on AF_XDP")
}

// killUnderPing kills node-a's agent while the Node talks to another: not one packet
// is lost, and the program is gone from the link until the next agent puts its own there.
func killUnderPing(t *testing.T, w *world) {
	t.Helper()
	ns, err := w.lab.Namespace("node-a")
	if err != nil {
		t.Fatal(err)
	}
	wantProgram(t, w.lab, true)
	ping := exec.Command("ping", "-q", "-i", "0.05", "-c", "60", "-W", "5", w.addresses["node-b"].String())
	var out strings.Builder
	ping.Stdout = &out
	if err := ns.Do(ping.Start); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	killBoth(t, w.lab, "node-a")
	if err := ping.Wait(); err != nil || !strings.Contains(out.String(), "60 received") {
		t.Errorf("%v:\n%s", err, out.String())
	}
	wantProgram(t, w.lab, false)
	if err := w.lab.RestartAgent(t.Context(), "node-a", antrail); err != nil {
		t.Fatal(err)
	}
	wantProgram(t, w.lab, true)
}
