package conntrack

import (
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
)

// Purge removes the live connections for which match is true, and counts them. No lock is held
// while match runs.
func (t *Table) Purge(match func(*Conn) bool) int {
	purged := 0
	var c Conn
	now := t.clock()
	t.each(func(e *store.Entry, h store.Handle) {
		if e.Expires <= now {
			return
		}
		if c.show(e, now); match(&c) && t.remove(h, whatever, now) {
			purged++
		}
	})
	t.settleOffload()
	return purged
}

// RemoveConnection removes the live connection of a zone with a direction d, and says whether
// there was one.
func (t *Table) RemoveConnection(zone uint16, d *Direction) bool {
	now := t.clock()
	k := d.key(zone)
	h, _, ok := t.find(&k, nil, now)
	return ok && t.remove(h, whatever, now)
}

// key is the key of the direction in a zone. It is the inverse of set.
func (d *Direction) key(zone uint16) tuple.Key {
	k := tuple.Key{
		Src: tuple.AddressOf(d.Src), Dst: tuple.AddressOf(d.Dst), SrcPort: d.SrcPort, DstPort: d.DstPort,
		Zone: zone, Proto: d.Proto, Family: tuple.FamilyOf(d.Src),
	}
	if k.ICMP() {
		k.SrcPort, k.DstPort = d.ID, d.SrcPort<<8|d.DstPort
	}
	return k
}

// After is the tuple of the original direction's packets after the connection's NAT. Later zones
// see these packets under this tuple.
func (c *Conn) After() Direction {
	k := c.Reply.key(c.Zone)
	k = k.Reversed()
	var d Direction
	d.set(&k)
	return d
}
