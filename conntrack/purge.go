package conntrack

// Purge removes the live connections that match takes, and counts them. No lock
// is held while match runs.
func (t *Table) Purge(match func(*Conn) bool) int {
	purged := 0
	var c Conn
	now := t.clock()
	t.each(func(e *entry, h handle) {
		if e.expires <= now {
			return
		}
		if e.show(&c, now); match(&c) && t.remove(h, whatever, now) {
			purged++
		}
	})
	t.settleAway()
	return purged
}

// Forget removes the live connection of a zone that has a direction, and says
// whether there was one.
func (t *Table) Forget(zone uint16, d *Direction) bool {
	now := t.clock()
	k := d.key(zone)
	h, _, ok := t.find(&k, now)
	return ok && t.remove(h, whatever, now)
}

// key is the direction in a zone: showDirection the other way round.
func (d *Direction) key(zone uint16) key {
	k := key{
		src: addressOf(d.Src), dst: addressOf(d.Dst), srcPort: d.SrcPort, dstPort: d.DstPort,
		zone: zone, proto: d.Proto, family: ipv6,
	}
	if d.Src.Is4() {
		k.family = ipv4
	}
	if k.icmp() {
		k.srcPort, k.dstPort = d.ID, d.SrcPort<<8|d.DstPort
	}
	return k
}

// After is the direction as packets show it that the connection's NAT, if any,
// has translated on their way there: what zones that they come to later know
// them by.
func (c *Conn) After() Direction {
	k := c.Reply.key(c.Zone)
	k = k.reversed()
	var d Direction
	k.showDirection(&d)
	return d
}
