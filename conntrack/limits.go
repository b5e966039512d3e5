package conntrack

import (
	"cmp"
	"runtime"
	"slices"
)

// DefaultMax is how many connections a table holds unless told otherwise:
// 32,768 per processor and at least 131,072, as kube-proxy sets for Linux.
func DefaultMax() int { return max(131072, 32768*runtime.NumCPU()) }

// limits counts connections, over all and by zone, against their limits. A
// connection over a limit is refused (D9).
type limits struct {
	total, max int
	zones      map[uint16]*zoneLimit
	// byDefault limits each zone without a limit of its own; 0 for no limit.
	byDefault uint32
}

type zoneLimit struct {
	count int
	limit uint32
	set   bool // limit was given for this zone
}

func newLimits(max int) limits { return limits{max: max, zones: map[uint16]*zoneLimit{}} }

// clone is a copy for a Scratch.
func (l *limits) clone() limits {
	c := *l
	c.zones = make(map[uint16]*zoneLimit, len(l.zones))
	for id, z := range l.zones {
		copied := *z
		c.zones[id] = &copied
	}
	return c
}

// zone is a zone's count, made at the zone's first use.
func (l *limits) zone(id uint16) *zoneLimit {
	z := l.zones[id]
	if z == nil {
		z = &zoneLimit{}
		l.zones[id] = z
	}
	return z
}

func (l *limits) add(zone uint16, n int) {
	l.total += n
	l.zone(zone).count += n
}

// refuses says why one more connection in a zone does not fit.
func (l *limits) refuses(zone uint16) DropReason {
	z := l.zone(zone)
	limit := l.byDefault
	if z.set {
		limit = z.limit
	}
	switch {
	case (z.set || limit > 0) && z.count >= int(limit):
		return DropZoneFull
	case l.total >= l.max:
		return DropTableFull
	}
	return DropNone
}

// refuses says why one more connection in a zone does not fit, after a look
// for connections whose time has passed.
func (t *Table) refuses(zone uint16, now int64) DropReason {
	reason := t.limits.refuses(zone)
	if reason == DropNone || t.parent != nil {
		return reason
	}
	t.sweepSlots(chunkSize, now)
	return t.limits.refuses(zone)
}

// ZoneLimit is a zone, its limit and how many connections it holds.
type ZoneLimit struct {
	Zone  uint16
	Limit uint32
	Count int
}

// SetLimit lets at most n connections exist in a zone; none at all when n is
// 0, as dpctl/ct-set-limits does. Those above it that exist already stay.
func (t *Table) SetLimit(zone uint16, n uint32) {
	t.guard.enter()
	defer t.guard.leave()
	z := t.limits.zone(zone)
	z.limit, z.set = n, true
}

// DelLimit takes a zone's own limit away; the default applies again.
func (t *Table) DelLimit(zone uint16) {
	t.guard.enter()
	defer t.guard.leave()
	z := t.limits.zone(zone)
	z.limit, z.set = 0, false
}

// SetDefaultLimit limits every zone without a limit of its own; 0 for no
// limit.
func (t *Table) SetDefaultLimit(n uint32) {
	t.guard.enter()
	defer t.guard.leave()
	t.limits.byDefault = n
}

// Limits is the default limit, 0 for none, and the zones with limits of their
// own, by number.
func (t *Table) Limits() (byDefault uint32, zones []ZoneLimit) {
	t.guard.enter()
	defer t.guard.leave()
	for id, z := range t.limits.zones {
		if z.set {
			zones = append(zones, ZoneLimit{id, z.limit, z.count})
		}
	}
	slices.SortFunc(zones, func(a, b ZoneLimit) int { return cmp.Compare(a.Zone, b.Zone) })
	return t.limits.byDefault, zones
}

// ZoneCount is how many connections a zone holds; some may have expired and
// not yet been swept.
func (t *Table) ZoneCount(zone uint16) int {
	t.guard.enter()
	defer t.guard.leave()
	if z := t.limits.zones[zone]; z != nil {
		return z.count
	}
	return 0
}

// Zones is every zone that holds connections or has a limit of its own, by
// number. Limit is the one that applies, 0 for none where none is set.
func (t *Table) Zones() []ZoneLimit {
	t.guard.enter()
	defer t.guard.leave()
	var zones []ZoneLimit
	for id, z := range t.limits.zones {
		limit := t.limits.byDefault
		if z.set {
			limit = z.limit
		}
		if z.set || z.count > 0 {
			zones = append(zones, ZoneLimit{id, limit, z.count})
		}
	}
	slices.SortFunc(zones, func(a, b ZoneLimit) int { return cmp.Compare(a.Zone, b.Zone) })
	return zones
}

// SetMax lets at most n connections exist in all zones together. When that is
// more than before, the index is built anew, during which the table is
// locked.
func (t *Table) SetMax(n int) {
	t.guard.enter()
	defer t.guard.leave()
	t.limits.max = n
	if 2*n > len(t.index.heads) {
		t.index = newIndex(n)
		for slot := uint32(1); slot < t.slab.top; slot++ {
			if t.slab.at(slot).live() {
				t.link(slot)
			}
		}
	}
}

// Max is what SetMax set.
func (t *Table) Max() int {
	t.guard.enter()
	defer t.guard.leave()
	return t.limits.max
}
