package dataplane_test

import (
	"fmt"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/internal/walktest"
)

// newCached is a rig whose switch remembers few walks.
func newCached(t testing.TB, entries int, flows string) *rig {
	return newRemembering(t, flows, conntrack.Config{}, dataplane.Config{Cache: entries})
}

// sendMany sends packets of n connections from a port, one of each, and says
// how many were replayed.
func (r *rig) sendMany(port, n int) uint64 {
	before := r.sw.Cache().Events[telemetry.CacheHit]
	for i := range n {
		r.send(fmt.Sprintf("udp,in_port=%d,nw_src=10.0.0.%d,nw_dst=10.0.0.9,udp_src=%d,udp_dst=53", port, port, 1000+i))
	}
	return r.sw.Cache().Events[telemetry.CacheHit] - before
}

// TestCacheShares: a port with more connections than the cache has room for
// displaces its own only, and gives way to one that begins later.
func TestCacheShares(t *testing.T) {
	const quiet = 100
	r := newCached(t, 512, "table=0,ip actions=output:4")
	for range 4 { // once unknown, once remembered; more, since the cache grows meanwhile
		r.sendMany(1, quiet)
	}
	for range 3 {
		r.sendMany(3, 3000)
	}
	if n := r.sendMany(1, quiet); n != quiet {
		t.Errorf("another port's connections cost %d of %d their place", quiet-n, quiet)
	}
	st := r.sw.Cache()
	if st.Room != 512 || st.Events[telemetry.CacheDisplaced] == 0 {
		t.Errorf("the cache did not fill up: %+v", st)
	}
	for range 3 {
		r.sendMany(2, quiet)
	}
	if n := r.sendMany(2, quiet); n < quiet*9/10 {
		t.Errorf("%d of %d connections of a late port are remembered", n, quiet)
	}
	if r.sw.Cache().Events[telemetry.CacheOverShare] == 0 {
		t.Error("the busy port gave no place up")
	}
}

// TestCacheTakesNoFloods: packets that come once displace nothing.
func TestCacheTakesNoFloods(t *testing.T) {
	r := newCached(t, 512, "table=0,ip actions=output:4")
	r.sendMany(1, 3000)
	if st := r.sw.Cache(); st.Entries > 30 || st.Events[telemetry.CacheOnce] < 2900 {
		t.Errorf("a flood was remembered: %+v", st)
	}
}

// TestCacheRefusesToo: what a policy drops before it becomes a connection is
// dropped without a lookup, and counted as if there had been one.
func TestCacheRefusesToo(t *testing.T) {
	r := newCached(t, 0, "table=0,ip actions=ct(table=1,zone=5)\ntable=1,priority=5,ct_state=+new+trk,udp,tp_dst=53 actions=drop\ntable=1,priority=1,ip actions=ct(commit,zone=5),output:4")
	for range 5 {
		r.sendMany(1, 1)
	}
	if n := r.sw.Cache().Events[telemetry.CacheHit]; n != 3 {
		t.Errorf("%d of 5 refused packets were replayed, want 3", n)
	}
	if n := r.drops()["drop entry in 1"]; n != 5 {
		t.Errorf("%d drops counted, want 5", n)
	}
	if p := r.packets(1); p[5] != 5 {
		t.Errorf("the entry counts %v", p)
	}
}

// TestCacheOff: a negative size is none.
func TestCacheOff(t *testing.T) {
	r := newCached(t, -1, "table=0,ip actions=output:4")
	r.sendMany(1, 5)
	r.sendMany(1, 5)
	if st := r.sw.Cache(); st != (telemetry.CacheStats{}) {
		t.Errorf("a cache that is off counts %+v", st)
	}
}

// TestCacheAllocatesNothing: neither a packet that is replayed nor one that
// walks while the cache is full.
func TestCacheAllocatesNothing(t *testing.T) {
	e := newEstablished(t)
	hits := func() uint64 { return e.sw.Cache().Events[telemetry.CacheHit] }
	before := hits()
	if n := testing.AllocsPerRun(500, func() { e.pass(e.client, e.web, e.there) }); n != 0 {
		t.Errorf("%v allocations for a packet that is replayed", n)
	}
	if hits()-before < 500 && !*walktest.All {
		t.Errorf("%d packets were replayed", hits()-before)
	}
}
