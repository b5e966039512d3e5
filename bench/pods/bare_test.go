package pods

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/vishvananda/netlink"
)

// TestBarePacketSockets checks that the bare forwarder carries streams and round trips, rests and goes on,
// and passes whole segments.
func TestBarePacketSockets(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	had := runtime.GOMAXPROCS(0)
	p, err := openBare()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := p.measureAwake(func() ([]rig.Reading, error) {
			if rate, _, err := p.measureStream(t.Context(), 2, true, 50*time.Millisecond); err != nil || rate <= 0 {
				t.Errorf("%v Gbit/s: %v", rate, err)
			}
			times, err := p.roundTrips(t.Context(), 10*time.Millisecond, nil)
			if err != nil || len(times) == 0 {
				t.Errorf("%d answers: %v", len(times), err)
			}
			return nil, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if got := runtime.GOMAXPROCS(0); got != had {
		t.Errorf("Go has %d processors after the forwarder's rest, had %d", got, had)
	}
	var eth0 netlink.Link
	if err := p.server(func() (err error) { eth0, err = netlink.LinkByName("eth0"); return err }); err != nil {
		t.Fatal(err)
	}
	if s := eth0.Attrs().Statistics; s.RxBytes < 2*testbed.PodMTU*s.RxPackets {
		t.Errorf("%d bytes came in %d frames: segments are not whole", s.RxBytes, s.RxPackets)
	}
	l, err := p.listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if c, err := p.dial(ctx); err == nil {
		c.Close()
		t.Error("a connection was made while the forwarder rests")
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
}
