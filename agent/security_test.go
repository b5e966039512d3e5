package agent

import (
	"log/slog"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
)

// TestPodPortsAreSecured: a pod's port enters the switch with its MAC and the Node's
// choice of VLAN tags. Another MAC changes the port's security, and does not open it
// again. A port of no pod has none.
func TestPodPortsAreSecured(t *testing.T) {
	node, pod := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, node, "web-a-1", pod, "eth0")
	nstest.AddVeth(t, node, "tap-1", pod, "eth1")
	node.Do(t, func() {
		sw := recorder{make(chan string, 100)}
		web := Port{Name: "web-a", OFPort: 37, Link: "web-a-1", MAC: webA.mac}
		other := Port{Name: "tap", OFPort: 40, Link: "tap-1"}
		p := newPodPorts([]Port{web}, sw, memoryPort, slog.New(slog.DiscardHandler))
		p.tags = true
		p.reconcile()
		sw.wantEvent(t, "add 37 web-a-1 fa:b7:53:74:21:a6 enforced tags")
		p.set([]Port{web, other})
		p.reconcile()
		sw.wantEvent(t, "add 40 tap-1")
		web.MAC = clientA.mac
		p.set([]Port{web, other})
		for range 2 {
			p.reconcile()
		}
		sw.wantEvent(t, "secure 37 5e:b5:e3:a6:90:b7 enforced tags")
		sw.wantQuiet(t)
		if !p.has("web-a-1", 37) {
			t.Error("the port is not there any more")
		}
	})
}
