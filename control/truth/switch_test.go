package truth

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/internal/walktest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

const (
	tunnelPort  = 1
	gatewayPort = 2
	gatewayMAC  = "02:00:00:00:00:02"
	virtualMAC  = "aa:bb:cc:dd:ee:ff"
	elsewhere   = "02:00:00:00:00:99" // the sender behind the tunnel
)

// bench is a switch with memory ports under the control of a Reconciler.
type bench struct {
	t          *testing.T
	sw         *dataplane.Switch
	now        int64
	store      *store.Store
	reconciler *control.Reconciler
	ports      map[uint32]*memory.Port
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, now: 1e12, store: store.NewStore(store.DeriveEndpoints), ports: map[uint32]*memory.Port{}}
	clock := func() int64 { return b.now }
	sw, err := dataplane.New(dataplane.Config{Conntrack: conntrack.NewTable(conntrack.Config{Now: clock}), Clock: clock, Cache: walktest.Cache()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sw.Close(); err != nil {
			t.Error(err)
		}
	})
	b.sw = sw
	b.reconciler = control.NewReconciler(thisNode, b, func() time.Time { return time.Unix(0, b.now) })
	b.addPort(tunnelPort)
	b.addPort(gatewayPort)
	return b
}

func (b *bench) addPort(no uint32) {
	b.ports[no] = memory.New(fmt.Sprint("port", no), memory.Options{Tunnel: no == tunnelPort})
	if err := b.sw.AddPort(no, b.ports[no]); err != nil {
		b.t.Fatal(err)
	}
}

// Apply makes the bench a control.Installer.
func (b *bench) Apply(c *flow.Bundle) error {
	return b.sw.Apply(&flow.Bundle{
		Names: c.Names, First: c.First, Add: c.Add, Delete: c.Delete, Groups: c.Groups, Meters: c.Meters,
		DeleteGroups: c.DeleteGroups, DeleteMeters: c.DeleteMeters,
	})
}

// Purge does nothing: the connections of older probes have ended.
func (b *bench) Purge([]ledger.Purge) {}

// bring brings the switch to the state of a cluster.
func (b *bench) bring(c *testCluster) {
	b.t.Helper()
	b.now += int64(10 * time.Minute) // long enough for the last probes' connections to end
	b.sw.Expire()
	for _, e := range c.pods {
		if e.port != 0 && b.ports[e.port] == nil {
			b.addPort(e.port)
		}
	}
	u := c.apply(b.t, b.store)
	if err := b.reconciler.Update(u.New, u.Changed); err != nil {
		b.t.Fatal(err)
	}
	for _, s := range b.reconciler.Statuses() {
		if s.State != ledger.Installed {
			b.t.Fatalf("%s is %s: %s", s.Object, s.State, s.Reason)
		}
	}
}

// where is the port of this Node's switch that leads to an endpoint.
func where(e *endpoint) uint32 {
	switch {
	case e.port != 0:
		return e.port
	case e.name != "":
		return tunnelPort
	}
	return gatewayPort
}

// links returns the link addresses of a packet from an endpoint.
func links(from, to *endpoint) (src, dst string) {
	switch where(from) {
	case tunnelPort:
		return elsewhere, virtualMAC
	case gatewayPort:
		return gatewayMAC, to.mac()
	}
	if to.port != 0 {
		return from.mac(), to.mac()
	}
	return from.mac(), gatewayMAC
}

// probe sends the first packet of a connection and reports whether it left by the right port only. A reply must then always
// pass. UDP checks this, because its replies look like first packets.
func (b *bench) probe(from, to *endpoint, port int32, proto corev1.Protocol) bool {
	b.t.Helper()
	const anyPort = 20000
	what := map[corev1.Protocol]string{corev1.ProtocolTCP: "tcp,tcp_flags=+syn", corev1.ProtocolUDP: "udp", corev1.ProtocolSCTP: "sctp"}[proto]
	passed := b.send(from, to, fmt.Sprintf("%s,tp_src=%d,tp_dst=%d", what, anyPort, port))
	if passed && proto == corev1.ProtocolUDP && !b.send(to, from, fmt.Sprintf("udp,tp_src=%d,tp_dst=%d", port, anyPort)) {
		b.t.Errorf("%s to %s UDP/%d passes, but the reply does not", from, to, port)
	}
	return passed
}

func (b *bench) send(from, to *endpoint, what string) bool {
	b.t.Helper()
	src, dst := links(from, to)
	form := "%s,dl_src=%s,dl_dst=%s,nw_src=%s,nw_dst=%s,nw_ttl=64"
	if from.ip.Is6() {
		proto, rest, _ := strings.Cut(what, ",")
		what, form = proto+"6,"+rest, "%s,dl_src=%s,dl_dst=%s,ipv6_src=%s,ipv6_dst=%s,nw_ttl=64"
	}
	text := fmt.Sprintf(form, what, src, dst, from.ip, to.ip)
	m, err := parse.Match(text, b.sw.Names())
	if err != nil {
		b.t.Fatal(err)
	}
	b.inject(where(from), flow.Compose(&m.Value))
	b.sw.Poll()
	return b.left(where(to), text)
}

func (b *bench) inject(port uint32, frame []byte) {
	f := packet.FrameOf(frame)
	if port == tunnelPort {
		f.Tunnel = packet.Tunnel{Src: netip.MustParseAddr("192.168.77.102"), Dst: netip.MustParseAddr("192.168.77.101")}
	}
	if b.ports[port].Inject(f) != 1 {
		b.t.Fatalf("port %d accepts no frame", port)
	}
}

// left collects the packets that left by all ports.
func (b *bench) left(want uint32, text string) bool {
	b.t.Helper()
	passed, one := false, make([]*packet.Frame, 1)
	for no, p := range b.ports {
		for p.Collect(one) == 1 {
			packet.Release(one)
			if no != want || passed {
				b.t.Fatalf("%s left by port %d, want port %d, once", text, no, want)
			}
			passed = true
		}
	}
	return passed
}
