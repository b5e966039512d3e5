package demo

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/internal/testsize"
	"github.com/antrail/antrail/lab"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// far is on node-b.
const far = "client-b"

// TestOffloadBetweenNodes moves 100 MB between pods of two Nodes. Nearly all of it passes in
// the kernels of both, with each kind of tunnel over both families, whole segments and cut ones,
// and arrives as it was sent.
func TestOffloadBetweenNodes(t *testing.T) {
	var all []lab.Options // any three in a row are of all kinds, and so are every third ones
	for i := range 12 {
		kind := []string{"geneve", "vxlan", "gre"}[(i+i/3)%3]
		all = append(all, lab.Options{Tunnel: kind, UnderlayOffloads: i/3%2 == 1, IPv6Underlay: i >= 6})
	}
	for _, o := range testsize.Some(all) {
		t.Run(fmt.Sprintf("%s, whole %v, IPv6 %v", o.Tunnel, o.UnderlayOffloads, o.IPv6Underlay), func(t *testing.T) {
			var w *world
			if o.Tunnel == "geneve" && !o.UnderlayOffloads && !o.IPv6Underlay {
				w = offloadWorld(t)
			} else {
				w, _ = offloadLabWith(t, o)
			}
			for family, w := range map[string]*world{"IPv4": w, "IPv6": w.ipv6()} {
				w.sendFar(t, family)
			}
		})
	}
}

// sendFar transfers to the pod on the other Node, and checks what passed in the kernels.
func (w *world) sendFar(t *testing.T, family string) {
	t.Helper()
	before := w.inKernels(t)
	r, err := w.transfer(t.Context(), receiver, w.sink(far), 100*megabyte)
	if err != nil {
		t.Fatal(err)
	}
	after := w.inKernels(t)
	t.Logf("%s: %.2f Gbit/s; %+v", family, r.gbits(), after)
	for node := range after {
		if passed := after[node] - before[node]; passed < 100*megabyte*9/10 {
			t.Errorf("%s: %d bytes passed in the kernel of %s", family, passed, node)
		}
	}
}

// inKernels is the bytes from the one pod that the first Node's kernel forwarded, and those to
// the other pod that the second one's did.
func (w *world) inKernels(t *testing.T) map[string]uint64 {
	t.Helper()
	of := map[string]map[string]api.PortRecord{}
	for _, node := range []string{"node-a", "node-b"} {
		all, err := w.ports(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		of[node] = all
	}
	return map[string]uint64{"node-a": of["node-a"][receiver].Offload.Rx.Bytes, "node-b": of["node-b"][far].Offload.Tx.Bytes}
}

// TestOffloadBetweenNodesGoes changes what the kernels go by in the middle of a transfer. A
// route with a lower MTU takes the connection back, and the kernel gets it again. When the
// second Node's switch is killed, the program at its uplink goes with it, and nothing is
// delivered until a switch is there again.
func TestOffloadBetweenNodesGoes(t *testing.T) {
	w := offloadWorld(t)
	first := w.inKernels(t)["node-b"]
	end := w.stream(t, receiver, w.sink(far))
	waitUntil(t, "the transfer to be offloaded", func() bool { return w.inKernels(t)["node-b"] > first+50*megabyte })
	before := w.counter(t, "offload_withdrawn")
	w.lowerMTU(t)
	waitUntil(t, "the offload entries to be withdrawn", func() bool { return w.counter(t, "offload_withdrawn") > before })
	passed := w.inKernels(t)["node-a"]
	waitUntil(t, "the transfer to be offloaded again", func() bool { return w.inKernels(t)["node-a"] > passed+50*megabyte })
	if n := w.uplinkPrograms(t); n != 1 {
		t.Errorf("%d programs at the uplink, want 1", n)
	}
	killBoth(t, w.lab, "node-b")
	waitUntil(t, "the program at the uplink to go", func() bool { return w.uplinkPrograms(t) == 0 })
	if _, err := w.ping(receiver, far, 200*time.Millisecond); !errors.Is(err, errNoReply) {
		t.Errorf("an echo request without a switch: %v", err)
	}
	if err := w.lab.RestartAgent(t.Context(), "node-b", antrail); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the transfer to be offloaded by the next switch", func() bool { return w.inKernels(t)["node-b"] > 20*megabyte })
	if err := end(); err != nil {
		t.Error(err)
	}
}

// lowerMTU gives the first Node's route to the second one a lower MTU, until the test ends.
func (w *world) lowerMTU(t *testing.T) {
	t.Helper()
	change := func(do func(*netlink.Route) error) {
		err := w.lab.In("node-a", func() error {
			l, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			_, dst, _ := net.ParseCIDR("192.168.77.103/32")
			return do(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: dst, Scope: netlink.SCOPE_LINK, MTU: 1400})
		})
		if err != nil {
			t.Error(err)
		}
	}
	change(netlink.RouteAdd)
	t.Cleanup(func() { change(netlink.RouteDel) })
}

// uplinkPrograms counts programs at tc ingress of the second Node's uplink.
func (w *world) uplinkPrograms(t *testing.T) int {
	t.Helper()
	return w.programsAt(t, "node-b", "eth0", ebpf.AttachTCXIngress)
}

// programsAt counts programs at a link of a Node; none if the link is gone.
func (w *world) programsAt(t *testing.T, node, name string, where ebpf.AttachType) (n int) {
	t.Helper()
	err := w.lab.In(node, func() error {
		l, err := netlink.LinkByName(name)
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			return nil
		}
		if err != nil {
			return err
		}
		r, err := link.QueryPrograms(link.QueryOptions{Target: l.Attrs().Index, Attach: where})
		if err == nil {
			n = len(r.Programs)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
