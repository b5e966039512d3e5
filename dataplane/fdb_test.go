package dataplane

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// TestStationsWhileOthersCome has two workers learn and look up stations that stay,
// and one that moves, while others come by both of them and go with their port: those
// that stay are always known, at their port, and in the end the table has what it says.
func TestStationsWhileOthersCome(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const staying, coming, gone = 500, 9000, 7
	ofGone := func(s *station) bool { return s.port.Load() == gone }
	var table fdb
	for i := range uint64(staying) {
		table.learn(macKey{i, 0}, uint32(i), &table.stray, 1)
	}
	var workers sync.WaitGroup
	for w := range uint64(2) {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(seed, w))
			for i := range uint64(50_000) {
				mac := r.Uint64N(staying-10) + 10 // not a station of the port that goes
				if port, ok := table.port(macKey{mac, 0}, second); !ok || port != uint32(mac) {
					t.Errorf("station %d is at port %d (known: %v)", mac, port, ok)
					return
				}
				table.learn(macKey{mac, 0}, uint32(mac), &table.stray, int64(i)*second/10_000)
				table.learn(macKey{staying, 0}, uint32(1000+w), &table.stray, second)
				if port, ok := table.port(macKey{staying, 0}, second); !ok || port != 1000 && port != 1001 {
					t.Errorf("the station that moves is at port %d (known: %v)", port, ok)
					return
				}
				table.learn(macKey{1000 + r.Uint64N(coming), 0}, gone, &table.stray, second)
			}
		})
	}
	for range 200 {
		table.remove(ofGone)
		table.list(second)
	}
	workers.Wait()
	if n := len(table.list(second)); n != int(table.size.Load()) || n > fdbMax {
		t.Errorf("%d stations are listed, and counted %d", n, table.size.Load())
	}
	table.remove(ofGone) // of those that stay one was at that port; the one that moves makes up for it
	if n := len(table.list(second)); n != staying || table.size.Load() != staying {
		t.Errorf("%d stations are left, and counted %d, want %d", n, table.size.Load(), staying)
	}
	if table.expire(fdbAge + 10*second); table.size.Load() != 0 || len(table.list(0)) != 0 || table.stray.held.Load() != 0 {
		t.Errorf("%d stations are left when all are too old, and %d in the port's share", table.size.Load(), table.stray.held.Load())
	}
}

// TestStationsFull: two workers that learn at once do not make the table larger than
// it may be, and what it knows still moves.
func TestStationsFull(t *testing.T) {
	var table fdb
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for i := range uint64(2 * fdbMax) {
				table.learn(macKey{i, 0}, 1, &table.stray, 1)
			}
		})
	}
	workers.Wait()
	if n := len(table.list(1)); n != fdbMax/2 {
		t.Errorf("%d stations were learned, want %d", n, fdbMax/2)
	}
	if got, want := table.stray.stats(), (MACStats{Learned: fdbMax / 2, Full: 2 * (2*fdbMax - fdbMax/2)}); got != want {
		t.Errorf("the port has %+v, want %+v", got, want)
	}
	first := macKey{0, 0}
	table.learn(first, 2, &table.stray, 1)
	if port, ok := table.port(first, 1); !ok || port != 2 {
		t.Errorf("a station that moved is at port %d (known: %v)", port, ok)
	}
}
