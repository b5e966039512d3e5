package pipeline

import (
	"errors"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/ports"
)

// TestTunnelDrops: packets that nftables drop behind the gateway count as dropped by the
// gateway's port only. The count goes on when the table is written again.
func TestTunnelDrops(t *testing.T) {
	var d tunnelDrops
	var count uint64
	var err error
	look := func(port string) (got, sum uint64) {
		all := []telemetry.PortStats{{Name: "veth-a"}, {Name: port, Stats: ports.Stats{TxDropped: 100, Reasons: map[string]uint64{"tx ring full": 100}}}}
		d.addTo(all)
		if n := len(all[0].Reasons); n > 0 || all[0].TxDropped > 0 {
			t.Errorf("the other port has lost %+v", all[0].Stats)
		}
		return all[1].Reasons[tunnelDropped], all[1].TxDropped
	}
	if got, sum := look("antrea-gw0"); got != 0 || sum != 100 {
		t.Errorf("without a tunnel: %d, in sum %d", got, sum)
	}
	d.Watch("antrea-gw0", func() (uint64, error) { return count, err })
	for i, step := range []struct {
		count uint64
		err   error
		want  uint64
	}{
		{0, nil, 0},
		{7, nil, 7},
		{9, nil, 9},
		{0, errors.New("no table"), 9},
		{2, nil, 11}, // a new table
		{3, nil, 12},
	} {
		count, err = step.count, step.err
		if got, sum := look("antrea-gw0"); got != step.want || sum != 100+step.want {
			t.Errorf("look %d: %d, in sum %d, want %d", i, got, sum, step.want)
		}
	}
	if r := portLoss(tunnelDropped); r != lossTunnel {
		t.Errorf("%+v", r)
	}
}
