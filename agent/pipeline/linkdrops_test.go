package pipeline

import (
	"testing"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/ports"
)

// TestLinkDrops: what a link drops since it was first looked at counts as dropped at its
// port, if that is a packet socket.
func TestLinkDrops(t *testing.T) {
	const head = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
	drops := receiveDrops([]byte(head + "    lo:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0          0\nveth-a:    3595      31    0    7    0     0          0         0     3620      34    5    9    0     0       0          0\n"))
	if len(drops) != 2 || drops["veth-a"] != 7 || drops["lo"] != 0 {
		t.Fatalf("%v", drops)
	}
	var l linkDrops
	look := func(driver string, dropped uint64) (got, sum uint64) {
		all := []telemetry.PortStats{{Name: "veth-a", Stats: ports.Stats{Reasons: map[string]uint64{}}, Info: ports.Info{Driver: driver}}}
		l.addToStats(all, map[string]uint64{"veth-a": dropped, "other": 1000})
		return all[0].Reasons[linkDropped], all[0].RxDropped
	}
	for i, step := range []struct {
		driver        string
		dropped, want uint64
	}{
		{config.DriverAFPacket, 7, 0}, // before the port was there
		{config.DriverAFPacket, 9, 2},
		{config.DriverAFPacket, 12, 5},
		{config.DriverAFPacket, 3, 0}, // another link of that name
		{config.DriverAFPacket, 4, 1},
		{config.DriverAFXDP, 40, 0},
	} {
		if got, sum := look(step.driver, step.dropped); got != step.want || sum != step.want {
			t.Errorf("look %d: %d, in sum %d, want %d", i, got, sum, step.want)
		}
	}
	if r := portLoss(linkDropped); r != lossLink {
		t.Errorf("%+v", r)
	}
}
