package conntrack

import (
	"runtime"
	"sync/atomic"
)

// DefaultMax is how many connections a table holds by default: 32,768 per processor and at
// least 131,072. kube-proxy sets the same for Linux.
func DefaultMax() int { return max(131072, 32768*runtime.NumCPU()) }

// limits counts connections against their limits, in total and by zone. Room is reserved before a
// connection is made, so racing workers cannot exceed a limit together.
type limits struct {
	total, max atomic.Int64
	// byDefault limits each zone without a limit of its own. 0 means no limit.
	byDefault atomic.Uint32
	zones     paged[zoneLimit]
}

type zoneLimit struct {
	count atomic.Int64
	// own is the zone's own limit plus 1, or 0 if it has none.
	own atomic.Uint64
}

// zone is a zone's count and limit. A Scratch begins with those of its parent.
func (t *Table) zone(id uint16) *zoneLimit {
	if t.parent == nil {
		return t.limits.zones.at(id)
	}
	return t.limits.zones.over(id, &t.parent.limits.zones, func(z, from *zoneLimit) {
		z.count.Store(from.count.Load())
		z.own.Store(from.own.Load())
	})
}

// full says whether n connections exceed the zone's limit.
func (z *zoneLimit) full(n int64, byDefault uint32) bool {
	if own := z.own.Load(); own > 0 {
		return n > int64(own-1)
	}
	return byDefault > 0 && n > int64(byDefault)
}

// reserve counts one more connection of a zone and a port, or returns why it does not fit.
func (t *Table) reserve(zone uint16, from *portShare) DropReason {
	z := t.zone(zone)
	if z.full(z.count.Add(1), t.limits.byDefault.Load()) {
		z.count.Add(-1)
		return DropZoneFull
	}
	if t.limits.total.Add(1) > t.limits.max.Load() {
		t.limits.total.Add(-1)
		z.count.Add(-1)
		return DropTableFull
	}
	t.shares.countConnections(from, 1)
	return DropNone
}

// uncount subtracts one connection from the counts.
func (t *Table) uncount(zone uint16, from *portShare) {
	t.zone(zone).count.Add(-1)
	t.shares.countConnections(from, -1)
	t.limits.total.Add(-1)
}

// ZoneLimit is a zone, its limit and how many connections it holds.
type ZoneLimit struct {
	Zone  uint16 `json:"zone"`
	Limit uint32 `json:"limit"`
	Count int    `json:"count"`
}

// SetLimit lets at most n connections exist in a zone, as dpctl/ct-set-limits does. 0 allows
// none. Existing connections above the limit stay.
func (t *Table) SetLimit(zone uint16, n uint32) { t.zone(zone).own.Store(uint64(n) + 1) }

// DelLimit deletes a zone's own limit. The default applies again.
func (t *Table) DelLimit(zone uint16) { t.zone(zone).own.Store(0) }

// SetDefaultLimit limits every zone without a limit of its own. 0 means no limit.
func (t *Table) SetDefaultLimit(n uint32) { t.limits.byDefault.Store(n) }

// Limits is the default limit, which is 0 for none, and the zones with limits of their own,
// by number.
func (t *Table) Limits() (byDefault uint32, zones []ZoneLimit) {
	return t.limits.byDefault.Load(), t.zones(func(z *zoneLimit) bool { return z.own.Load() > 0 })
}

// ZoneCount is how many connections a zone holds. Expired ones count until they are swept.
func (t *Table) ZoneCount(zone uint16) int { return int(t.zone(zone).count.Load()) }

// Zones is every zone that holds connections or has a limit of its own, by number. Limit is
// the limit that applies, or 0 if none does.
func (t *Table) Zones() []ZoneLimit {
	return t.zones(func(z *zoneLimit) bool { return z.own.Load() > 0 || z.count.Load() > 0 })
}

// zones is the zones for which take is true, with the limits that apply.
func (t *Table) zones(take func(*zoneLimit) bool) (zones []ZoneLimit) {
	for no, z := range t.limits.zones.all() {
		if !take(z) {
			continue
		}
		limit := t.limits.byDefault.Load()
		if own := z.own.Load(); own > 0 {
			limit = uint32(own - 1)
		}
		zones = append(zones, ZoneLimit{no, limit, int(z.count.Load())})
	}
	return zones
}

// SetMax lets at most n connections exist in all zones together. Config.Capacity bounds n.
func (t *Table) SetMax(n int) { t.limits.max.Store(int64(min(n, t.arena.Capacity()))) }

// Max is how many connections may exist in all zones together.
func (t *Table) Max() int { return int(t.limits.max.Load()) }
