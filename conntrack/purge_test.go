package conntrack

import "testing"

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
