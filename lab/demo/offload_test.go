package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/examples"
	"github.com/antrail/antrail/lab"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// offloadLab is a lab whose agents offload, with the objects of examples/web-app
// but for those that lead pods' packets past taps.
func offloadLab(t *testing.T) *world {
	t.Helper()
	w, _ := offloadLabOf(t)
	return w
}

// offloadLabOf is offloadLab, and the directory of its objects.
func offloadLabOf(t *testing.T) (w *world, dir string) {
	t.Helper()
	return offloadLabWith(t, lab.Options{})
}

// offloadLabWith is offloadLabOf with other options of the underlay.
func offloadLabWith(t *testing.T, o lab.Options) (w *world, dir string) {
	t.Helper()
	dir = t.TempDir()
	files, err := fs.Sub(examples.FS, "web-app")
	if err == nil {
		err = os.CopyFS(dir, files)
	}
	if err == nil {
		err = os.Remove(filepath.Join(dir, "egress-trafficcontrol.yaml"))
	}
	if err == nil && o.IPv6Underlay {
		err = reachOverIPv6(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.Manifests, o.Driver, o.Offload = dir, config.DriverAFPacket, config.OffloadAuto
	w, err = newWorld(upWith(t, o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w, dir
}

// sender and receiver of these tests, both on node-a.
const sender, receiver = "db-a", "client-a"

// TestOffload moves 200 MB between two pods of a Node. Nearly all of it passes in
// the kernel; the switch's counters are those of the kernel's own interfaces to
// the packet, and the connection ends as it should.
func TestOffload(t *testing.T) {
	for name, family := range map[string]func(*world) *world{"IPv4": func(w *world) *world { return w }, "IPv6": (*world).ipv6} {
		t.Run(name, func(t *testing.T) {
			testOffload(t, family(offloadLab(t)))
		})
	}
}

func testOffload(t *testing.T, w *world) {
	t.Helper()
	before, links := w.exact(t)
	r, err := w.transfer(t.Context(), sender, w.sink(receiver), 200*megabyte)
	if err != nil {
		t.Fatal(err)
	}
	after, linksAfter := w.exact(t)
	t.Logf("%.2f Gbit/s; %+v", r.gbits(), after[sender].Offload)
	passed := after[sender].Offload.Rx.Bytes
	if all := after[sender].Rx.Bytes - before[sender].Rx.Bytes; all < 200*megabyte || passed < all*9/10 || passed > all {
		t.Errorf("%d bytes came from %s, and %d of them passed in the kernel", all, sender, passed)
	}
	if after[sender].Offload.Rx != after[receiver].Offload.Tx || after[sender].Offload.Tx != after[receiver].Offload.Rx {
		t.Errorf("what came from one pod did not go to the other: %+v and %+v", after[sender].Offload, after[receiver].Offload)
	}
	for _, pod := range []string{sender, receiver} {
		if got, want := after[pod].Rx.Packets-before[pod].Rx.Packets, linksAfter[pod]-links[pod]; got != want {
			t.Errorf("%s: the switch counted %d packets, the interface %d", pod, got, want)
		}
	}
	w.wantEnded(t)
}

// exact is the counters of ports and, of packets received, of interfaces of node-a at one moment: it looks
// until nothing moved between two looks.
func (w *world) exact(t *testing.T) (map[string]api.PortRecord, map[string]uint64) {
	t.Helper()
	var last map[string]uint64
	for {
		now := map[string]uint64{}
		all, err := w.ports(t.Context(), "node-a")
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range []string{sender, receiver} {
			err := w.in("node-a", func() error {
				l, err := netlink.LinkByName(all[pod].Link)
				if err == nil {
					now[pod] = l.Attrs().Statistics.RxPackets
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if fmt.Sprint(now) == fmt.Sprint(last) {
			return all, now
		}
		last = now
		time.Sleep(100 * time.Millisecond)
	}
}

// wantEnded checks that a connection was offloaded, and that all have ended by
// their FINs.
func (w *world) wantEnded(t *testing.T) {
	t.Helper()
	put := w.counter(t, "offload_put")
	if put == 0 {
		t.Error("nothing was offloaded")
	}
	waitUntil(t, "offloaded connections to end", func() bool { return w.counter(t, "offload_connections") == 0 })
	var all []api.Connection
	if err := w.agent("node-a").JSON(t.Context(), "/conntrack", nil, &all); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Orig.DstPort == sinkPort && c.State != "TIME_WAIT" {
			t.Errorf("after both FINs: %s", c.Text)
		}
	}
}

// counter is a line of node-a's dump-cache.
func (w *world) counter(t *testing.T, name string) uint64 {
	t.Helper()
	var all []api.Counter
	if err := w.agent("node-a").JSON(t.Context(), "/cache", nil, &all); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(c api.Counter) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no counter %s in %+v", name, all)
	}
	return all[i].Value
}

// TestOffloadGoesWithAChange: a policy that comes in the middle of a transfer takes
// the connection back, and the kernel gets it anew.
func TestOffloadGoesWithAChange(t *testing.T) {
	w, dir := offloadLabOf(t)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := w.transfer(ctx, sender, w.sink(receiver), 1<<50)
		ended <- err
	}()
	waitUntil(t, "the transfer to be offloaded", func() bool { return w.counter(t, "offload_packets") > 1000 })
	const policy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: another, namespace: default}
spec:
  podSelector: {matchLabels: {app: web}}
  ingress: [{from: [{podSelector: {matchLabels: {app: db}}}]}]
`
	if err := os.WriteFile(filepath.Join(dir, "another.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the offload entries to be withdrawn", func() bool { return w.counter(t, "offload_withdrawn") > 0 })
	before := w.counter(t, "offload_packets")
	waitUntil(t, "the transfer to be offloaded again", func() bool { return w.counter(t, "offload_packets") > before+1000 })
	cancel()
	<-ended
}

// TestOffloadGoesWithTheLink: a link that vanishes in the middle of a transfer
// takes its offload entries with it.
func TestOffloadGoesWithTheLink(t *testing.T) {
	w := offloadLab(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := w.transfer(ctx, sender, w.sink(receiver), 1<<50)
		ended <- err
	}()
	waitUntil(t, "the transfer to be offloaded", func() bool { return w.counter(t, "offload_packets") > 1000 })
	all, err := w.ports(t.Context(), "node-a")
	if err != nil {
		t.Fatal(err)
	}
	err = w.in("node-a", func() error {
		l, err := netlink.LinkByName(all[receiver].Link)
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	})
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the offload entries to go", func() bool { return w.counter(t, "offload_connections") == 0 })
	cancel()
	if err := <-ended; err == nil {
		t.Error("the transfer went on without the link")
	}
}

// TestOffloadGoesWithTheSwitch kills an agent in the middle of a transfer: when the
// kernel has closed its sockets nothing passes, for the programs stay and drop. The
// agent that follows puts its own in their place, and goes on with the connection.
func TestOffloadGoesWithTheSwitch(t *testing.T) {
	w := offloadLab(t)
	ended := make(chan error, 1)
	go func() {
		_, err := w.transfer(t.Context(), sender, w.sink(receiver), 2000*megabyte)
		ended <- err
	}()
	waitUntil(t, "the transfer to be offloaded", func() bool { return w.counter(t, "offload_packets") > 1000 })
	programs := w.ingressPrograms(t)
	killBoth(t, w.lab, "node-a")
	waitUntil(t, "the sockets to go", func() bool { return w.packetSockets(t) == 0 })
	if _, err := w.ping(sender, receiver, 200*time.Millisecond); !errors.Is(err, errNoReply) {
		t.Errorf("an echo request without an agent: %v", err)
	}
	if n := w.ingressPrograms(t); n != programs || n == 0 {
		t.Errorf("%d programs are left of %d", n, programs)
	}
	if err := w.lab.RestartAgent(t.Context(), "node-a", antrail); err != nil {
		t.Fatal(err)
	}
	if n := w.ingressPrograms(t); n != programs {
		t.Errorf("%d programs after the restart, were %d", n, programs)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	w.wantEnded(t)
}

// packetSockets counts those of node-a.
func (w *world) packetSockets(t *testing.T) (n int) {
	t.Helper()
	err := w.in("node-a", func() error {
		list, err := os.ReadFile("/proc/thread-self/net/packet")
		n = strings.Count(string(list), "\n") - 1 // a headline
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ingressPrograms counts programs at tc ingress of node-a's interfaces to pods. That of the
// uplink goes with its switch.
func (w *world) ingressPrograms(t *testing.T) (n int) {
	t.Helper()
	err := w.in("node-a", func() error {
		all, err := netlink.LinkList()
		for _, l := range all {
			if l.Attrs().Name == "eth0" {
				continue
			}
			r, e := link.QueryPrograms(link.QueryOptions{Target: l.Attrs().Index, Attach: ebpf.AttachTCXIngress})
			if e == nil {
				n += len(r.Programs)
			} else if !errors.Is(e, unix.ENODEV) { // a tap goes with its agent
				err = errors.Join(err, e)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
