package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
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
func offloadLab(t *testing.T) *sharedLab {
	t.Helper()
	return sharedUp(t, "offload", func(objects string) lab.Options { return offloading(t, lab.Options{}, objects) })
}

// offloadWorld is a world of it, until the test ends.
func offloadWorld(t *testing.T) *world {
	t.Helper()
	return offloadLab(t).world(t)
}

// offloadLabWith is a lab as offloadLab, with other options of the underlay, of this test
// alone; and the directory of its objects.
func offloadLabWith(t *testing.T, o lab.Options) (w *world, dir string) {
	t.Helper()
	dir = t.TempDir()
	return worldOf(t, offloading(t, o, dir)), dir
}

// offloading are options with which agents offload, and with objects, which it writes.
func offloading(t *testing.T, o lab.Options, objects string) lab.Options {
	t.Helper()
	files, err := fs.Sub(examples.FS, "web-app")
	if err == nil {
		err = os.CopyFS(objects, files)
	}
	if err == nil {
		err = os.Remove(filepath.Join(objects, "egress-trafficcontrol.yaml"))
	}
	if err == nil && o.IPv6Underlay {
		err = reachOverIPv6(objects)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.Manifests, o.Driver, o.Offload = objects, config.DriverAFPacket, config.OffloadAuto
	o.TunnelDriver = cmp.Or(o.TunnelDriver, config.DriverKernel)
	return o
}

// sender and receiver of these tests, both on node-a.
const sender, receiver = "db-a", "client-a"

// TestOffload moves 200 MB between two pods of a Node. Nearly all of it passes in
// the kernel; the switch's counters are those of the kernel's own interfaces to
// the packet, and the connection ends as it should.
func TestOffload(t *testing.T) {
	for name, family := range map[string]func(*world) *world{"IPv4": func(w *world) *world { return w }, "IPv6": (*world).ipv6} {
		t.Run(name, func(t *testing.T) {
			testOffload(t, family(offloadWorld(t)))
		})
	}
}

func testOffload(t *testing.T, w *world) {
	t.Helper()
	before, links := w.exact(t)
	known, put := w.sunk(t), w.since(t, "offload_put")
	r, err := w.transfer(t.Context(), sender, w.sink(receiver), 200*megabyte)
	if err != nil {
		t.Fatal(err)
	}
	after, linksAfter := w.exact(t)
	from, to := inKernel(before, after, sender), inKernel(before, after, receiver)
	t.Logf("%.2f Gbit/s; %+v", r.gbits(), from)
	passed := from.Rx.Bytes
	if all := after[sender].Rx.Bytes - before[sender].Rx.Bytes; all < 200*megabyte || passed < all*9/10 || passed > all {
		t.Errorf("%d bytes came from %s, and %d of them passed in the kernel", all, sender, passed)
	}
	if from.Rx != to.Tx || from.Tx != to.Rx {
		t.Errorf("what came from one pod did not go to the other: %+v and %+v", from, to)
	}
	for _, pod := range []string{sender, receiver} {
		if got, want := after[pod].Rx.Packets-before[pod].Rx.Packets, linksAfter[pod]-links[pod]; got != want {
			t.Errorf("%s: the switch counted %d packets, the interface %d", pod, got, want)
		}
	}
	w.wantEnded(t, known, put)
}

// inKernel is what passed a pod's port in the kernel between two looks.
func inKernel(before, after map[string]api.PortRecord, pod string) (o api.PortOffload) {
	was, is := before[pod].Offload, after[pod].Offload
	o.Rx = api.Counts{Packets: is.Rx.Packets - was.Rx.Packets, Bytes: is.Rx.Bytes - was.Rx.Bytes}
	o.Tx = api.Counts{Packets: is.Tx.Packets - was.Tx.Packets, Bytes: is.Tx.Bytes - was.Tx.Bytes}
	return o
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
			err := w.lab.In("node-a", func() error {
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

// wantEnded checks that a connection was offloaded, and that all that are not known from
// before have ended by their FINs.
func (w *world) wantEnded(t *testing.T, known map[uint16]api.Connection, put func() uint64) {
	t.Helper()
	if put() == 0 {
		t.Error("nothing was offloaded")
	}
	waitUntil(t, "offloaded connections to end", func() bool { return w.counter(t, "offload_connections") == 0 })
	ended := 0
	for port, c := range w.sunk(t) {
		if _, old := known[port]; old {
			continue
		}
		if ended++; c.State != "TIME_WAIT" {
			t.Errorf("after both FINs: %s", c.Text)
		}
	}
	if ended == 0 {
		t.Error("there is no connection that has ended")
	}
}

// sunk are node-a's connections to sinks, by the port that they come from: a world uses each
// once.
func (w *world) sunk(t *testing.T) map[uint16]api.Connection {
	t.Helper()
	var all []api.Connection
	if err := w.agent("node-a").JSON(t.Context(), "/conntrack", nil, &all); err != nil {
		t.Fatal(err)
	}
	found := map[uint16]api.Connection{}
	for _, c := range all {
		if c.Orig.DstPort == sinkPort {
			found[c.Orig.SrcPort] = c
		}
	}
	return found
}

// stream sends bytes until end is called, which says whether all arrived.
func (w *world) stream(t *testing.T, from, to string) (end func() error) {
	t.Helper()
	s := &endless{Reader: rand.NewChaCha8([32]byte{})}
	done := make(chan error, 1)
	go func() {
		_, err := w.transferAll(t.Context(), from, to, s)
		done <- err
	}()
	t.Cleanup(func() { s.ended.Store(true) })
	return func() error {
		s.ended.Store(true)
		return <-done
	}
}

// endless is a reader until it is ended.
type endless struct {
	io.Reader
	ended atomic.Bool
}

func (e *endless) Read(b []byte) (int, error) {
	if e.ended.Load() {
		return 0, io.EOF
	}
	return e.Reader.Read(b)
}

// since counts from now on what counter counts.
func (w *world) since(t *testing.T, name string) func() uint64 {
	t.Helper()
	before := w.counter(t, name)
	return func() uint64 { return w.counter(t, name) - before }
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

// TestOffloadGoesWithAChange: a policy in the middle of a transfer takes the connection
// back from the kernel, and then the kernel gets it again.
func TestOffloadGoesWithAChange(t *testing.T) {
	l := offloadLab(t)
	w := l.world(t)
	packets, withdrawn := w.since(t, "offload_packets"), w.since(t, "offload_withdrawn")
	end := w.stream(t, sender, w.sink(receiver))
	waitUntil(t, "the transfer to be offloaded", func() bool { return packets() > 1000 })
	const policy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: another, namespace: default}
spec:
  podSelector: {matchLabels: {app: web}}
  ingress: [{from: [{podSelector: {matchLabels: {app: db}}}]}]
`
	l.put(t, "another.yaml", policy)
	waitUntil(t, "the offload entries to be withdrawn", func() bool { return withdrawn() > 0 })
	before := packets()
	waitUntil(t, "the transfer to be offloaded again", func() bool { return packets() > before+1000 })
	if err := end(); err != nil {
		t.Error(err)
	}
}

// TestOffloadGoesWithTheLink: a link that vanishes in the middle of a transfer
// takes its offload entries with it.
func TestOffloadGoesWithTheLink(t *testing.T) {
	l := offloadLab(t)
	w := l.world(t)
	packets := w.since(t, "offload_packets")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := w.transfer(ctx, sender, w.sink(receiver), 1<<50)
		ended <- err
	}()
	waitUntil(t, "the transfer to be offloaded", func() bool { return packets() > 1000 })
	all, err := w.ports(t.Context(), "node-a")
	if err != nil {
		t.Fatal(err)
	}
	err = w.lab.In("node-a", func() error {
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
	if err := errors.Join(l.DeletePod(receiver), l.AddPod(receiver)); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the pod to be reached again", func() bool { _, err := w.ping(sender, receiver, time.Second); return err == nil })
}

// TestOffloadGoesWithTheSwitch kills an agent in the middle of a transfer. When the kernel
// has closed its sockets, nothing passes: the programs stay and drop. The next agent
// installs its own programs, and the connection goes on.
func TestOffloadGoesWithTheSwitch(t *testing.T) {
	w := offloadWorld(t)
	packets, known := w.since(t, "offload_packets"), w.sunk(t)
	end := w.stream(t, sender, w.sink(receiver))
	waitUntil(t, "the transfer to be offloaded", func() bool { return packets() > 1000 })
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
	waitUntil(t, "the transfer to be offloaded by the next switch", func() bool { return w.counter(t, "offload_packets") > 1000 })
	if err := end(); err != nil {
		t.Error(err)
	}
	w.wantEnded(t, known, func() uint64 { return w.counter(t, "offload_put") })
}

// packetSockets counts those of node-a.
func (w *world) packetSockets(t *testing.T) (n int) {
	t.Helper()
	err := w.lab.In("node-a", func() error {
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
	err := w.lab.In("node-a", func() error {
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
