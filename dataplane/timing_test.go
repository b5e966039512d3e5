package dataplane_test

import (
	"fmt"
	"testing"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
)

// TestOneWalkInManyIsTimed: in each table that its packet passes, also where all
// others take megaflows; it is counted and sent like others.
func TestOneWalkInManyIsTimed(t *testing.T) {
	const timed, walks = 4, 4 * dataplane.TimeEvery
	for _, megaflows := range []int{0, 1 << 16} {
		r := newMegaflowed(t, megaflows, threeMegaflows+"\ntable=5,actions=drop")
		taken := r.counted(telemetry.MegaflowHit, func() {
			for i := range walks {
				r.wantPorts(r.send(fmt.Sprintf("udp,in_port=1,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64,udp_src=%d,udp_dst=53", 1000+i)), 4)
			}
		})
		if megaflows > 0 && (taken < 3*(walks-2*timed) || taken > 3*(walks-timed)) {
			t.Errorf("%d megaflows were taken by %d walks of which %d were timed", taken, walks, timed)
		}
		for _, tb := range r.sw.Tables() {
			want := uint64(walks)
			if tb.ID == 5 {
				want = 0
			}
			// Fewer were timed where the process had to wait for a processor.
			if n := tb.Times.Timed; tb.Lookups != want || n > timed || (n == 0) != (want == 0) {
				t.Errorf("table %d: %d lookups, %d of them timed; want %d and %d", tb.ID, tb.Lookups, n, want, timed)
			}
		}
	}
}
