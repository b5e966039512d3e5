package conntrack

import (
	"net/netip"
	"testing"

	"github.com/antrail/antrail/packet"
)

// TestPurge removes what is asked for, in every slice of the table, and leaves
// the rest.
func TestPurge(t *testing.T) {
	b := newBench(t, Config{})
	const n = 3000
	for port := range uint16(n) {
		b.want(udpFrame(client, server, 1+port, 53), commit, "new|trk")
	}
	purged := b.Purge(func(c *Conn) bool { return c.Orig.SrcPort%3 == 0 })
	if s := b.Stats(); purged != n/3 || s.Entries != n-n/3 {
		t.Errorf("purged %d, left %+v", purged, s)
	}
	b.want(udpFrame(server, client, 53, 2), lookup, "est|rpl|trk")
	b.want(udpFrame(server, client, 53, 3), lookup, "new|trk")
	if again := b.Purge(func(c *Conn) bool { return c.Orig.SrcPort%3 == 0 }); again != 0 {
		t.Errorf("purged %d again", again)
	}
}

// TestRemoveConnection removes a connection of every kind by the tuple in a dump, and finds
// it in a later zone by its tuple after NAT.
func TestRemoveConnection(t *testing.T) {
	b := newBench(t, Config{})
	from, other := netip.MustParseAddr(client), netip.MustParseAddr("10.0.0.9")
	to := NAT{Destination: true, AddrMin: other, AddrMax: other, PortMin: 8080, PortMax: 8080}
	b.want(udpFrame(client, server, 1, 80), Request{Zone: 1, Commit: true, NAT: &to}, "new|trk|dnat")
	for _, frame := range [][]byte{udpFrame(client, server, 1, 53), echoFrame(client, server, packet.ICMPEcho, 7)} {
		b.want(frame, Request{Zone: 2, Commit: true}, "new|trk")
	}
	var all []Conn
	for c := range b.Dump(Filter{}) {
		all = append(all, c)
	}
	for i, c := range all {
		if after := c.After(); c.Zone == 1 && (after.Src != from || after.Dst != other || after.DstPort != 8080) {
			t.Errorf("%v goes on as %v", &c, &after)
		}
		if b.RemoveConnection(c.Zone+1, &c.Orig) || !b.RemoveConnection(c.Zone, &c.Orig) || b.RemoveConnection(c.Zone, &c.Orig) {
			t.Errorf("%v was not forgotten in its zone, once", &c)
		}
		if n := b.Stats().Entries; n != len(all)-1-i {
			t.Errorf("%d connections are left of %d", n, len(all))
		}
	}
}
