package dataplane_test

import (
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/internal/walktest"
	"github.com/antrail/antrail/ports/memory"
)

// newSwitch is a switch with a program and a memory port for every port that
// the program has a name for. Its clock stands still.
func newSwitch(t *testing.T, p *flow.Program) *dataplane.Switch {
	t.Helper()
	sw, _ := newClockedSwitch(t, p, nil)
	for no := range uint32(64) {
		if name := p.Names.Port(no); name != "" {
			if err := sw.AddPort(no, memory.New(name, memory.Options{})); err != nil {
				t.Fatal(err)
			}
		}
	}
	return sw
}

// newClockedSwitch is a switch without ports whose clock the test turns.
func newClockedSwitch(t testing.TB, p *flow.Program, onPacketIn func(*telemetry.PacketIn)) (*dataplane.Switch, *int64) {
	t.Helper()
	sw, now, _ := newTrackingSwitch(t, p, onPacketIn)
	return sw, now
}

// newTrackingSwitch is newClockedSwitch with its connection table.
func newTrackingSwitch(t testing.TB, p *flow.Program, onPacketIn func(*telemetry.PacketIn)) (*dataplane.Switch, *int64, *conntrack.Table) {
	t.Helper()
	now := new(int64)
	*now = 1e12
	clock := func() int64 { return *now }
	ct := conntrack.NewTable(conntrack.Config{Now: clock})
	sw, err := dataplane.New(dataplane.Config{Conntrack: ct, Clock: clock, PacketIn: onPacketIn, Cache: walktest.Cache()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSwitch(t, sw) })
	if p != nil {
		if err := sw.Apply(flow.BundleOf(p)); err != nil {
			t.Fatal(err)
		}
	}
	return sw, now, ct
}
