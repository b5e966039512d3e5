package control

import (
	"net/netip"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/internal/walktest"
)

// realSwitch is the switch itself as an Installer. In other tests ledger.MemorySwitch is its model.
type realSwitch struct {
	*dataplane.Switch
	ct   *conntrack.Table
	now  int64
	took []time.Duration // of each Apply
	// packetIns are the packet-ins since the test last took them.
	packetIns []*telemetry.PacketIn
}

func newRealSwitch(tb testing.TB) *realSwitch {
	tb.Helper()
	s := &realSwitch{now: 1e18}
	clock := func() int64 { return s.now }
	s.ct = conntrack.NewTable(conntrack.Config{Now: clock})
	sw, err := dataplane.New(dataplane.Config{
		Conntrack: s.ct, Clock: clock, SelectSeed: 1, Cache: walktest.Cache(),
		PacketIn: func(pi *telemetry.PacketIn) { s.packetIns = append(s.packetIns, pi) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := sw.Close(); err != nil {
			tb.Error(err)
		}
	})
	s.Switch = sw
	return s
}

// Apply implements Installer.
func (s *realSwitch) Apply(b *flow.Bundle) error {
	start := time.Now()
	err := s.Switch.Apply(&flow.Bundle{
		Names: b.Names, First: b.First, Add: b.Add, Delete: b.Delete, Groups: b.Groups, Meters: b.Meters,
		DeleteGroups: b.DeleteGroups, DeleteMeters: b.DeleteMeters,
	})
	s.took = append(s.took, time.Since(start))
	return err
}

// Program returns the contents of the switch.
func (s *realSwitch) Program() *flow.Program {
	p := &flow.Program{Names: s.Names()}
	for _, e := range s.Flows() {
		p.Entries = append(p.Entries, e.Entry)
	}
	for _, g := range s.Groups() {
		p.Groups = append(p.Groups, g.Group)
	}
	for _, m := range s.Meters() {
		p.Meters = append(p.Meters, m.Meter)
	}
	return p
}

// Purge implements Installer. It removes the connections of an address, in either direction. The tests of package agent cover
// paths.
func (s *realSwitch) Purge(all []ledger.Purge) {
	gone := map[netip.Addr]bool{}
	for _, p := range all {
		if p.Addr.IsValid() {
			gone[p.Addr] = true
		}
	}
	s.ct.Purge(func(c *conntrack.Conn) bool {
		return gone[c.Orig.Src] || gone[c.Orig.Dst] || gone[c.Reply.Src] || gone[c.Reply.Dst]
	})
}
