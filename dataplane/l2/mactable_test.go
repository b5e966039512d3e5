package l2

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
)

// TestStationsWhileOthersCome has two workers learn and look up stations that stay,
// and one that moves, while others come by both of them and go with their port: those
// that stay are always known, at their port, and in the end the table has what it says.
func TestStationsWhileOthersCome(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const staying, coming, gone = 500, 9000, 7
	ofGone := func(s *Station) bool { return s.Port.Load() == gone }
	var table MACTable
	for i := range uint64(staying) {
		table.Learn(MACKey{i, 0}, uint32(i), &table.Stray, 1)
	}
	var workers sync.WaitGroup
	for w := range uint64(2) {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(seed, w))
			for i := range uint64(50_000) {
				mac := r.Uint64N(staying-10) + 10 // not a station of the port that goes
				if port, ok := table.Port(MACKey{mac, 0}, second); !ok || port != uint32(mac) {
					t.Errorf("station %d is at port %d (known: %v)", mac, port, ok)
					return
				}
				table.Learn(MACKey{mac, 0}, uint32(mac), &table.Stray, int64(i)*second/10_000)
				table.Learn(MACKey{staying, 0}, uint32(1000+w), &table.Stray, second)
				if port, ok := table.Port(MACKey{staying, 0}, second); !ok || port != 1000 && port != 1001 {
					t.Errorf("the station that moves is at port %d (known: %v)", port, ok)
					return
				}
				table.Learn(MACKey{1000 + r.Uint64N(coming), 0}, gone, &table.Stray, second)
			}
		})
	}
	for range 200 {
		table.Remove(ofGone)
		table.List(second)
	}
	workers.Wait()
	if n := len(table.List(second)); n != int(table.size.Load()) || n > fdbMax {
		t.Errorf("%d stations are listed, and counted %d", n, table.size.Load())
	}
	table.Remove(ofGone) // of those that stay one was at that port; the one that moves makes up for it
	if n := len(table.List(second)); n != staying || table.size.Load() != staying {
		t.Errorf("%d stations are left, and counted %d, want %d", n, table.size.Load(), staying)
	}
	if table.Expire(fdbAge + 10*second); table.size.Load() != 0 || len(table.List(0)) != 0 || table.Stray.held.Load() != 0 {
		t.Errorf("%d stations are left when all are too old, and %d in the port's share", table.size.Load(), table.Stray.held.Load())
	}
}

// TestStationsFull: two workers that learn at once do not make the table larger than
// it may be, and what it knows still moves.
func TestStationsFull(t *testing.T) {
	var table MACTable
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for i := range uint64(2 * fdbMax) {
				table.Learn(MACKey{i, 0}, 1, &table.Stray, 1)
			}
		})
	}
	workers.Wait()
	if n := len(table.List(1)); n != fdbMax/2 {
		t.Errorf("%d stations were learned, want %d", n, fdbMax/2)
	}
	if got, want := table.Stray.Stats(), (telemetry.MACStats{Learned: fdbMax / 2, Full: 2 * (2*fdbMax - fdbMax/2)}); got != want {
		t.Errorf("the port has %+v, want %+v", got, want)
	}
	first := MACKey{0, 0}
	before := table.Stats()
	table.Learn(first, 2, &table.Stray, 1)
	table.Expire(fdbAge + 1)
	want := telemetry.MACTableStats{Max: fdbMax, Learned: fdbMax / 2, Expired: fdbMax / 2, Moved: before.Moved + 1}
	if got := table.Stats(); before.Current != fdbMax/2 || before.Expired != 0 || got != want {
		t.Errorf("counted %+v, then %+v, want %+v", before, got, want)
	}
	table.Learn(first, 1, &table.Stray, 1)
	table.Learn(first, 2, &table.Stray, 1)
	if port, ok := table.Port(first, 1); !ok || port != 2 {
		t.Errorf("a station that moved is at port %d (known: %v)", port, ok)
	}
}
