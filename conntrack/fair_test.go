package conntrack

import (
	"testing"
	"time"
)

// A pod that answers itself: the numbers are those of a pod that kept all others
// from connecting.
const (
	hogTable = 20_000
	hogFlows = 22_000
	victims  = 900 // connects of another pod, fewer than a port's share
)

// establish is a TCP handshake of a port's client, and whether the SYN was let in.
func (b *bench) establish(port uint32, sport uint16) DropReason {
	b.Helper()
	from := from(commit, port)
	b.want(tcpFrame(clientOf(port), server, sport, 80, tcpText{flags: "S", seq: 1}), from, "new|trk")
	if b.verdict.Drop != DropNone {
		return b.verdict.Drop
	}
	b.want(tcpFrame(server, clientOf(port), 80, sport, tcpText{flags: "SA", seq: 9, ack: 2}), lookup, "est|rpl|trk")
	b.want(tcpFrame(clientOf(port), server, sport, 80, tcpText{flags: "A", seq: 2, ack: 10}), lookup, "est|trk")
	return DropNone
}

// TestAnsweredFloodLeavesRoom: one port holds 22,000 answered UDP connections of a
// table of 20,000, and another port's connects all succeed (CT-47).
func TestAnsweredFloodLeavesRoom(t *testing.T) {
	b := newBench(t, Config{Max: hogTable, NewRate: -1})
	b.beginConnections(1, hogFlows, true)
	if b.held(1) != hogTable*95/100 {
		t.Errorf("the flood holds %d connections, want 95 %% of the table", b.held(1))
	}
	for i := range uint16(victims) {
		if drop := b.establish(2, 1+i); drop != DropNone {
			t.Fatalf("connect %d of the other port: %v", i, drop)
		}
	}
	b.beginConnections(1, 1000, false) // the flood goes on
	b.beginConnections(3, victims, true)
	all := b.Ports()
	if len(all) != 3 || all[1].Entries != victims || all[1].Evicted != 0 || all[2].Entries != victims || all[2].Evicted != 0 {
		t.Errorf("ports %+v", all)
	}
	if s := b.Stats(); s.Entries != hogTable*95/100 || all[0].Evicted != s.EarlyDropped || s.Drops != [numDropReasons]uint64{} {
		t.Errorf("stats %+v, ports %+v", s, all)
	}
	b.checkOrder()
}

// TestAnsweredFloodAndBegin: first packets that are begun without a walk find room
// likewise.
func TestAnsweredFloodAndBegin(t *testing.T) {
	b := newBench(t, Config{Max: hogTable, NewRate: -1})
	b.beginConnections(1, hogFlows, true)
	for i := range uint16(victims) {
		if !b.begins(udpFrame(clientOf(2), server, 1+i, 53), from(commit, 2)) {
			t.Fatalf("connect %d of the other port is not begun", i)
		}
	}
	if b.held(2) != victims || b.held(1) != hogTable*95/100-victims {
		t.Errorf("the ports hold %d and %d", b.held(1), b.held(2))
	}
	b.checkOrder()
}

// TestEstablishedFloodIsRefused: established TCP connections stay, and the port that
// fills the table with them is refused more; others have the rest.
func TestEstablishedFloodIsRefused(t *testing.T) {
	const most, fair = 1000, 950
	b := newBench(t, Config{Max: most, NewRate: -1})
	for i := range uint16(fair) {
		if drop := b.establish(1, 1+i); drop != DropNone {
			t.Fatalf("connection %d: %v", i, drop)
		}
	}
	b.warp(5 * time.Second)
	for i := range uint16(10) {
		if drop := b.establish(1, 2000+i); drop != DropPortShare {
			t.Fatalf("connection %d above the share: %v", i, drop)
		}
		if b.begins(udpFrame(clientOf(1), server, 3000+i, 53), from(commit, 1)) {
			t.Fatalf("connection %d above the share is begun", i)
		}
	}
	for i := range uint16(most - fair) {
		if drop := b.establish(2, 1+i); drop != DropNone {
			t.Fatalf("connect %d of the other port: %v", i, drop)
		}
	}
	if drop := b.establish(2, 9999); drop != DropTableFull { // within its share
		t.Errorf("the table is full: %v", drop)
	}
	if s := b.Stats(); s.EarlyDropped != 0 || s.Entries != most || s.Drops[DropPortShare] != 10 || b.Ports()[0].Refused != 10 {
		t.Errorf("stats %+v, ports %+v", s, b.Ports())
	}
	b.checkOrder()
}

// TestShareOfWhatOthersLeave: a port above an even split is within its fair share while the
// others need less. It is never refused in favour of a port that holds more.
func TestShareOfWhatOthersLeave(t *testing.T) {
	b := newBench(t, Config{Max: 1000, NewRate: -1})
	for i := range uint16(800) {
		b.establish(1, 1+i)
	}
	for port := range uint32(4) {
		b.beginConnections(3+port, 1, true)
	}
	for i := range uint16(190) { // an even split is 158
		if drop := b.establish(2, 1+i); drop != DropNone {
			t.Fatalf("connect %d: %v", i, drop)
		}
	}
	if drop := b.establish(1, 9999); drop != DropPortShare {
		t.Errorf("the port that holds the most: %v", drop)
	}
}

// TestSharedPorts: thirty ports that want all connections leave a port that many senders
// share at least a third. New connections of the shared port evict its own old ones.
func TestSharedPorts(t *testing.T) {
	const tunnel, gateway, pods, most = 1, 2, 30, 3000
	b := newBench(t, Config{Max: most, NewRate: -1, SharedPorts: []uint32{tunnel, gateway}})
	for i := range uint16(300) {
		b.establish(gateway, 1+i)
		b.establish(tunnel, 1+i)
	}
	for i := range uint16(200) {
		for port := range uint32(pods) {
			b.want(udpFrame("10.1.1.1", server, 1+i, uint16(100+port)), from(commit, 10+port), "new|trk")
			b.want(udpFrame(server, "10.1.1.1", uint16(100+port), 1+i), lookup, "est|rpl|trk")
		}
	}
	for i := range uint16(600) {
		if drop := b.establish(tunnel, 1000+i); drop != DropNone {
			t.Fatalf("connect %d by the tunnel: %v", i, drop)
		}
	}
	if b.held(tunnel) != 900 || b.held(gateway) != 300 || b.held(10) < 50 || b.Ports()[0].Evicted != 0 {
		t.Errorf("ports %+v", b.Ports())
	}
	b.checkOrder()
}

// TestSharedPortRenewsItself: a flood by a shared port evicts connections of that port,
// and new connections of the port still begin.
func TestSharedPortRenewsItself(t *testing.T) {
	b := newBench(t, Config{Max: 1000, NewRate: -1, SharedPorts: []uint32{1}})
	b.beginConnections(2, 100, true)
	b.beginConnections(1, 2000, true)
	for i := range uint16(100) {
		if drop := b.establish(1, 1+i); drop != DropNone {
			t.Fatalf("connect %d by the shared port: %v", i, drop)
		}
	}
	if b.held(2) != 100 || b.Stats().Drops != [numDropReasons]uint64{} {
		t.Errorf("ports %+v, stats %+v", b.Ports(), b.Stats())
	}
}

// TestUsedAnsweredStay: of a port's answered connections one that is in use outlives
// younger ones that are not.
func TestUsedAnsweredStay(t *testing.T) {
	b := newBench(t, Config{Max: 100, NewRate: -1})
	b.beginConnections(1, 95, true)
	for i := range uint16(300) {
		b.warp(10 * time.Millisecond)
		b.want(udpFrame(server, clientOf(1), 53, 1), lookup, "est|rpl|trk")
		b.beginOne(1, 1000+i)
		b.want(udpFrame(server, clientOf(1), 53, 1000+i), lookup, "est|rpl|trk")
	}
	if !b.holdsConnection(1, 1) || b.holdsConnection(1, 2) || b.holdsConnection(1, 1000) || !b.holdsConnection(1, 1299) {
		t.Errorf("there are: used %v, idle %v, older %v, newest %v", b.holdsConnection(1, 1), b.holdsConnection(1, 2), b.holdsConnection(1, 1000), b.holdsConnection(1, 1299))
	}
	b.checkOrder()
}

// TestZoneTakesAnswered: when a zone is full, a port above its share of the table
// gives up an answered connection of that zone.
func TestZoneTakesAnswered(t *testing.T) {
	b := newBench(t, Config{Max: 100, NewRate: -1})
	b.SetLimit(100, 60)
	b.want(udpFrame(client, server, 1, 53), Request{Zone: 5, Commit: true, InPort: 1}, "new|trk")
	b.want(udpFrame(server, client, 53, 1), Request{Zone: 5}, "est|rpl|trk")
	b.beginConnections(3, 1, true)
	b.beginConnections(1, 59, true)
	if b.beginOne(2, 1); b.verdict.Drop != DropZoneFull {
		t.Errorf("no port is above its share: %v", b.verdict.Drop)
	}
	b.SetMax(62)
	if b.beginOne(2, 1); b.verdict.Drop != DropNone || b.ZoneCount(100) != 60 || b.ZoneCount(5) != 1 {
		t.Errorf("verdict %v, the zones hold %d and %d", b.verdict.Drop, b.ZoneCount(100), b.ZoneCount(5))
	}
	b.checkOrder()
}

// TestOffloadIsEvicted: a connection that the kernel forwards ends there when it is
// evicted.
func TestOffloadIsEvicted(t *testing.T) {
	b := newBench(t, Config{Max: 20, NewRate: -1})
	all := make([]OffloadWords, 8)
	b.ShareOffload(all, func() {})
	b.beginConnections(1, 1, true)
	seen, ok := b.meta.Seen()
	if !ok || !b.Offload(&seen, 3, b.now) || all[3][offloadLive].Load() != 1 {
		t.Fatal("the connection is not offloaded")
	}
	for i := range uint16(40) {
		b.beginOne(1, 100+i)
		b.want(udpFrame(server, clientOf(1), 53, 100+i), lookup, "est|rpl|trk")
	}
	if b.holdsConnection(1, 1) || all[3][offloadLive].Load() != 0 {
		t.Error("the kernel still forwards the connection")
	}
}

// TestSharesAfterRestart: after a restart, the lists of evictable connections are there
// again. A flood from before the restart leaves room for others.
func TestSharesAfterRestart(t *testing.T) {
	memory := pages(t, ArenaSize(1000))
	restored(t, memory, 5e9, Config{NewRate: -1}).beginConnections(1, 1100, true)
	b := restored(t, memory, 5e9, Config{NewRate: -1})
	b.checkOrder()
	if b.held(1) != 950 {
		t.Fatalf("port 1 holds %d connections", b.held(1))
	}
	b.beginConnections(2, 100, true)
	if b.held(2) != 100 || b.Ports()[0].Evicted != 100 {
		t.Errorf("ports %+v", b.Ports())
	}
	b.checkOrder()
}

// TestScratchKnowsShares: a trace says which port is refused and which passes, and
// changes nothing.
func TestScratchKnowsShares(t *testing.T) {
	b := newBench(t, Config{Max: 100, NewRate: -1})
	for i := range uint16(94) {
		b.establish(1, 1+i)
	}
	b.beginConnections(2, 1, true)
	before := b.Stats()
	for port, want := range map[uint32]DropReason{1: DropPortShare, 2: DropNone, 3: DropNone} {
		s := newBench(t, Config{})
		s.Table, s.now = b.Scratch(), b.now
		if s.beginOne(port, 1000); s.verdict.Drop != want {
			t.Errorf("port %d: %v, want %v", port, s.verdict.Drop, want)
		}
	}
	if got := b.Stats(); got != before {
		t.Errorf("stats %+v, want %+v", got, before)
	}
	b.checkOrder()
}

// TestHandshakesOutliveAnsweredFlood: a flood of answered connections by a shared port
// evicts its own kind. It does not evict the handshakes of another sender of that port.
func TestHandshakesOutliveAnsweredFlood(t *testing.T) {
	const tunnel, between = 1, 100
	b := newBench(t, Config{Max: 1000, NewRate: -1, SharedPorts: []uint32{tunnel}})
	b.beginConnections(2, 10, true)
	b.beginConnections(tunnel, 2000, true)
	flood := uint16(3000)
	flooded := func() {
		for range between {
			flood++
			b.beginOne(tunnel, flood)
			b.want(udpFrame(server, clientOf(tunnel), 53, flood), lookup, "est|rpl|trk")
		}
	}
	victim := "10.1.0.77"
	b.want(tcpFrame(victim, server, 7, 80, tcpText{flags: "S", seq: 1}), from(commit, tunnel), "new|trk")
	flooded()
	b.want(tcpFrame(server, victim, 80, 7, tcpText{flags: "SA", seq: 9, ack: 2}), lookup, "est|rpl|trk")
	flooded()
	b.warp(2 * time.Second) // the ACK was lost, the SYN/ACK comes again
	flooded()
	b.want(tcpFrame(server, victim, 80, 7, tcpText{flags: "SA", seq: 9, ack: 2}), lookup, "est|rpl|trk")
	b.want(tcpFrame(victim, server, 7, 80, tcpText{flags: "A", seq: 2, ack: 10}), lookup, "est|trk")
	b.checkOrder()
}

// TestHandshakesOutliveOneSidedFlood: the same where nobody answers the flood, and
// all of it is younger than a second.
func TestHandshakesOutliveOneSidedFlood(t *testing.T) {
	const tunnel = 1
	b := newBench(t, Config{Max: 1000, NewRate: -1, SharedPorts: []uint32{tunnel}})
	victim := "10.1.0.77"
	b.want(tcpFrame(victim, server, 7, 80, tcpText{flags: "S", seq: 1}), from(commit, tunnel), "new|trk")
	b.want(tcpFrame(server, victim, 80, 7, tcpText{flags: "SA", seq: 9, ack: 2}), lookup, "est|rpl|trk")
	b.beginConnections(tunnel, 5000, false)
	b.want(tcpFrame(victim, server, 7, 80, tcpText{flags: "A", seq: 2, ack: 10}), lookup, "est|trk")
	b.checkOrder()
}

// TestHandshakesMakeRoom: handshakes that nobody completes are not kept for others.
func TestHandshakesMakeRoom(t *testing.T) {
	b := newBench(t, Config{Max: 100, NewRate: -1})
	half := func(sport uint16) {
		b.want(tcpFrame(clientOf(1), server, sport, 80, tcpText{flags: "S", seq: 1}), from(commit, 1), "new|trk")
		b.want(tcpFrame(server, clientOf(1), 80, sport, tcpText{flags: "SA", seq: 9, ack: 2}), lookup, "est|rpl|trk")
	}
	for i := range uint16(300) {
		half(1 + i)
	}
	for i := range uint16(40) {
		if drop := b.establish(2, 1+i); drop != DropNone {
			t.Fatalf("connect %d of the other port: %v", i, drop)
		}
	}
	if b.held(1) != 55 || b.held(2) != 40 || b.Stats().Drops != [numDropReasons]uint64{} {
		t.Errorf("ports %+v, stats %+v", b.Ports(), b.Stats())
	}
	b.checkOrder()
}
