package ofserver

import (
	"testing"

	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// TestHold: while packets are held, entries come and go and no packet passes. Afterwards
// packets take the entries.
func TestHold(t *testing.T) {
	r := newRig(t)
	hold := func(on bool) {
		t.Helper()
		if err := r.server.Hold(on); err != nil {
			t.Fatal(err)
		}
	}
	passed := func() int {
		t.Helper()
		if err := r.ports[1].Send(packettest.UDP4(packettest.Options{SrcPort: 1000, DstPort: 53})); err != nil {
			t.Fatal(err)
		}
		r.sw.Poll()
		return len(r.ports[2].CollectAll())
	}
	hold(true) // the switch has no pipeline yet
	c := r.connect(t, openflow.V15)
	c.write(flowMod(t, 2, "priority=3,ip,actions=output:2"))
	c.barrier()
	if n := passed(); n != 0 {
		t.Errorf("%d packets passed while they are held", n)
	}
	hold(false)
	if n := passed(); n != 1 {
		t.Errorf("%d packets passed, want 1", n)
	}
	hold(true)
	if n := passed(); n != 0 {
		t.Errorf("%d packets passed by the flow cache", n)
	}
	hold(true)
	hold(false)
	if all := r.sw.Flows(); len(all) != 1 || all[0].Packets != 1 {
		t.Errorf("entries: %v", all)
	}
	if n := passed(); n != 1 {
		t.Errorf("%d packets passed at the end, want 1", n)
	}
}
