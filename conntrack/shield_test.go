package conntrack

import (
	"net/netip"
	"testing"
	"time"
)

// TestShield: CT-46. The server's packet does not make the connection; the
// client's does, and then the server's passes.
func TestShield(t *testing.T) {
	b := newBench(t, Config{})
	b.Shield([]netip.AddrPort{netip.MustParseAddrPort("10.0.0.2:8080"), netip.MustParseAddrPort("[fd00::2]:8080")}, b.now+int64(10*time.Second))
	answer := tcpFrame(server, client, 8080, 1234, tcpText{flags: "A", seq: 5001, ack: 1001})
	b.want(answer, lookup, "new|trk")
	b.refused(answer, commit, DropServerFirst)
	b.refused(tcpFrame("fd00::2", "fd00::1", 8080, 1234, tcpText{flags: "A", seq: 5001, ack: 1001}), commit, DropServerFirst)
	if n := b.Stats().Entries; n != 0 {
		t.Fatalf("%d connections", n)
	}
	for name, s := range map[string]struct {
		frame []byte
		want  string
	}{
		"another port":    {tcpFrame(server, client, 8081, 1234, tcpText{flags: "A", seq: 1, ack: 1}), "new|trk"},
		"another address": {tcpFrame("10.0.0.3", client, 8080, 1234, tcpText{flags: "A", seq: 1, ack: 1}), "new|trk"},
		"its own SYN":     {tcpFrame(server, client, 8080, 99, tcpText{flags: "S", seq: 1}), "new|trk"},
		"UDP":             {udpFrame(server, client, 8080, 1234), "new|trk"},
		"RST":             {tcpFrame(server, client, 8080, 98, tcpText{flags: "R", seq: 1}), "inv|trk"},
	} {
		t.Run(name, func(t *testing.T) {
			b.TB = t
			b.want(s.frame, commit, s.want)
		})
	}
	b.TB = t
	toService := tcpFrame(client, service, 1234, 80, tcpText{flags: "A", seq: 1001, ack: 5001})
	b.want(toService, commitNAT("dst=10.0.0.2:8080"), "new|trk|dnat")
	b.want(answer, unNAT, "est|rpl|trk|snat")
	b.wantTuple("src=10.96.0.10,dst=10.0.0.1,sport=80,dport=1234")
}

// TestShieldEnds: after its time, and in a trace as in the table.
func TestShieldEnds(t *testing.T) {
	b := newBench(t, Config{})
	b.Shield([]netip.AddrPort{netip.MustParseAddrPort("10.0.0.2:8080")}, b.now+int64(10*time.Second))
	answer := tcpFrame(server, client, 8080, 1234, tcpText{flags: "A", seq: 5001, ack: 1001})
	table := b.Table
	b.Table = table.Scratch()
	b.refused(answer, commit, DropServerFirst)
	b.Table = table
	b.now += int64(10 * time.Second)
	b.want(answer, commit, "new|trk")
}
