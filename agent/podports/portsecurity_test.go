package podports

import (
	"log/slog"
	"testing"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/nstest"
)

// TestPodPortsAreSecured: a pod's port enters the switch with its MAC. Another MAC changes the
// port's security, with the Node's choice of VLAN tags, and does not open the port again. A
// port of no pod has none.
func TestPodPortsAreSecured(t *testing.T) {
	node, pod := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, node, "web-a-1", pod, "eth0")
	nstest.AddVeth(t, node, "tap-1", pod, "eth1")
	node.Do(t, func() {
		sw := recorder{make(chan string, 100)}
		web := config.Port{Name: "web-a", OFPort: 37, Link: "web-a-1", MAC: config.MAC{0xfa, 0xb7, 0x53, 0x74, 0x21, 0xa6}}
		other := config.Port{Name: "tap", OFPort: 40, Link: "tap-1"}
		p := New([]config.Port{web}, sw, sw.opens(memoryPort), slog.New(slog.DiscardHandler))
		p.Tags = true
		p.Reconcile()
		sw.wantEvent(t, "add 37 web-a-1 fa:b7:53:74:21:a6 enforced")
		p.Set([]config.Port{web, other})
		p.Reconcile()
		sw.wantEvent(t, "add 40 tap-1")
		web.MAC = config.MAC{0x5e, 0xb5, 0xe3, 0xa6, 0x90, 0xb7}
		p.Set([]config.Port{web, other})
		for range 2 {
			p.Reconcile()
		}
		sw.wantEvent(t, "secure 37 5e:b5:e3:a6:90:b7 enforced tags")
		sw.wantQuiet(t)
		if !p.Has("web-a-1", 37) {
			t.Error("the port is not there any more")
		}
	})
}
