package conntrack

import (
	"testing"
	"time"
)

// awayBench is a bench with an established TCP connection that has gone away under
// number 3, and the words that it shares.
func awayBench(t *testing.T, c Config) (*bench, *Away, *int) {
	b := newBench(t, c)
	words, settled := sendAway(b)
	return b, words, settled
}

var inZone = Request{Zone: 5, Commit: true, NAT: &NAT{}}

func sendAway(b *bench) (*Away, *int) {
	b.Helper()
	all, settled := make([]Away, 8), 0
	b.ShareAway(all, func() { settled++ })
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "S", seq: 100, scale: 7}), inZone, "new|trk")
	b.want(tcpFrame(server, client, 80, 1, tcpText{flags: "SA", seq: 900, ack: 101, scale: 7, window: 65535}), inZone, "est|rpl|trk")
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "A", seq: 101, ack: 901, window: 512}), inZone, "est|trk")
	seen, ok := b.meta.Seen()
	if !ok || !seen.Settled() || !b.SendAway(&seen, 3, b.now) {
		b.Fatalf("the connection does not go away: %+v", seen)
	}
	if b.SendAway(&seen, 4, b.now) {
		b.Error("the connection went away twice")
	}
	return &all[3], &settled
}

// pass is what the kernel does to the shared words for a segment of a direction.
func pass(w *Away, dir int, next, ack uint32) {
	w[awayPeers+awayPeer*dir+awayNext].Store(next)
	w[awayPeers+awayPeer*(1-dir)+awayLimit].Store(ack + 1<<16)
}

// TestAwayFINIsExact lets three gigabytes pass in the kernel: the FIN behind them
// is judged by where they ended, and the connection comes back with it.
func TestAwayFINIsExact(t *testing.T) {
	b, w, _ := awayBench(t, Config{})
	const sent = 3 << 30
	pass(w, original, 101+sent, 901)
	pass(w, reply, 901, 101+sent)
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "FA", seq: 101 + sent, ack: 901}), inZone, "est|trk")
	if w[awayLive].Load() != 0 {
		t.Error("a FIN left the connection away")
	}
	b.want(tcpFrame(server, client, 80, 1, tcpText{flags: "FA", seq: 901, ack: uint32(102 + sent)}), inZone, "est|rpl|trk")
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "A", seq: 102 + sent, ack: 902}), inZone, "est|trk")
	if got := b.onlyState(); got != "TIME_WAIT 30" {
		t.Errorf("after both FINs the state is %s", got)
	}
	if b.Stats().OutOfWindow != 0 {
		t.Error("a segment was outside the window")
	}
}

// TestAwayPass: a segment passes by the windows that the kernel has moved, and moves them.
func TestAwayPass(t *testing.T) {
	b, w, _ := awayBench(t, Config{})
	seen, _ := b.meta.Seen()
	const sent = 3 << 30
	pass(w, original, 101+sent, 901)
	b.enter(tcpFrame(client, server, 1, 80, tcpText{flags: "A", seq: 101 + sent, ack: 901, length: 9}))
	var p Passing
	if !p.Read(b.frame, &b.layers) || !b.Pass(&seen, &p, b.now) {
		t.Error("a segment in the window does not pass")
	}
	if next := w[awayPeers+awayNext].Load(); next != 110+sent || w[awayLive].Load() != 1 {
		t.Errorf("the windows are at %d", next)
	}
}

// TestAwayResets: the exact RST ends the connection, one in the window passes
// and leaves it away, one outside is invalid (D4, CT-13).
func TestAwayResets(t *testing.T) {
	b, w, _ := awayBench(t, Config{})
	pass(w, original, 50101, 901)
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "R", seq: 101}), inZone, "est|trk")
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "R", seq: 1 << 31}), inZone, "inv|trk")
	if w[awayLive].Load() != 1 {
		t.Error("a RST without effect brought the connection back")
	}
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "R", seq: 50101}), inZone, "est|trk")
	if w[awayLive].Load() != 0 {
		t.Error("the exact RST left the connection away")
	}
}

// TestAwayComesBack lists what brings a connection back.
func TestAwayComesBack(t *testing.T) {
	ack := tcpFrame(client, server, 1, 80, tcpText{flags: "A", seq: 101, ack: 901})
	for name, test := range map[string]struct {
		do      func(b *bench)
		live    uint32
		settled int
	}{
		"the same again": {func(b *bench) { b.want(ack, inZone, "est|trk") }, 1, 0},
		"a mark": {func(b *bench) {
			b.want(ack, Request{Zone: 5, Commit: true, Mark: 1, MarkMask: 1}, "est|trk")
		}, 0, 0},
		"a label": {func(b *bench) {
			b.want(ack, Request{Zone: 5, Commit: true, Label: Label{Hi: 1}, LabelMask: Label{Hi: 1}}, "est|trk")
		}, 0, 0},
		"a flush": {func(b *bench) { b.Flush() }, 0, 1},
		"a purge": {func(b *bench) { b.Purge(func(*Conn) bool { return true }) }, 0, 1},
		"a purge of others": {func(b *bench) {
			b.want(udpFrame(client, server, 1, 53), inZone, "new|trk")
			b.Purge(func(c *Conn) bool { return c.State == "" })
		}, 1, 0},
		"its end": {func(b *bench) {
			b.warp(25 * time.Hour)
			for range 40 {
				b.warp(time.Second)
				b.Sweep(b.now)
			}
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b, w, settled := awayBench(t, Config{})
			if test.do(b); w[awayLive].Load() != test.live || *settled != test.settled {
				t.Errorf("live %d, settled %d times; want %d and %d", w[awayLive].Load(), *settled, test.live, test.settled)
			}
		})
	}
}

// TestAwayIsKeptAlive: packets that passed elsewhere count as packets.
func TestAwayIsKeptAlive(t *testing.T) {
	b, w, _ := awayBench(t, Config{})
	seen, _ := b.meta.Seen()
	pass(w, original, 7101, 901)
	b.warp(23 * time.Hour)
	if !b.Moved(seen.ID(), 3, b.now) || b.Moved(seen.ID(), 4, b.now) {
		t.Error("the connection is not the one that is away under 3")
	}
	b.warp(23 * time.Hour)
	b.Sweep(b.now)
	b.StopAway(seen.ID(), 3)
	b.BringBack(seen.ID(), 3)
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "R", seq: 7101}), inZone, "est|trk")
	if w[awayLive].Load() != 0 || b.onlyState() != "TIME_WAIT 10" {
		t.Errorf("brought back: live %d, state %s", w[awayLive].Load(), b.onlyState())
	}
}

// TestAwayRefusals lists what may not go away.
func TestAwayRefusals(t *testing.T) {
	short := DefaultTimeouts()
	short.UDPReplied = awayTimeout - 1
	for name, test := range map[string]struct {
		c     Config
		ready func(b *bench)
		want  bool
	}{
		"answered UDP": {Config{}, func(b *bench) {
			b.want(udpFrame(client, server, 1, 53), inZone, "new|trk")
			b.want(udpFrame(server, client, 53, 1), inZone, "est|rpl|trk")
		}, true},
		"UDP without an answer": {Config{}, func(b *bench) { b.want(udpFrame(client, server, 1, 53), inZone, "new|trk") }, false},
		"a short timeout": {Config{Timeouts: short}, func(b *bench) {
			b.want(udpFrame(client, server, 1, 53), inZone, "new|trk")
			b.want(udpFrame(server, client, 53, 1), inZone, "est|rpl|trk")
		}, false},
		"half a handshake": {Config{}, func(b *bench) {
			b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "S", seq: 100}), inZone, "new|trk")
			b.want(tcpFrame(server, client, 80, 1, tcpText{flags: "SA", seq: 900, ack: 101}), inZone, "est|rpl|trk")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.c)
			b.ShareAway(make([]Away, 8), func() {})
			test.ready(b)
			if seen, ok := b.meta.Seen(); !ok || b.SendAway(&seen, 0, b.now) != test.want {
				t.Errorf("%+v went away: %v, want %v", seen, !test.want, test.want)
			}
		})
	}
}

// TestTraceLeavesAwayAlone: a Scratch sees the windows as they are, and changes
// nothing.
func TestTraceLeavesAwayAlone(t *testing.T) {
	b, w, _ := awayBench(t, Config{})
	pass(w, original, 1<<31, 901)
	s := b.Scratch()
	b.enter(tcpFrame(client, server, 1, 80, tcpText{flags: "R", seq: 1 << 31}))
	if s.Track(b.frame, &b.layers, &b.meta, &inZone, b.now); stateText(b.meta.State) != "est|trk" {
		t.Errorf("the trace's ct_state is %s", stateText(b.meta.State))
	}
	if w[awayLive].Load() != 1 || b.onlyState() != "ESTABLISHED 86400" {
		t.Error("a trace brought the connection back")
	}
}

// TestAwayWhenKilled: who takes the table over does not know where the windows
// were, and learns them from the next packets.
func TestAwayWhenKilled(t *testing.T) {
	memory := pages(t, ArenaSize(16))
	b := restored(t, memory, 1, Config{})
	sendAway(b)
	b = restored(t, memory, 2, Config{})
	if got := b.Stats().Restored; got.Entries != 1 || got.Torn != 0 {
		t.Fatalf("restored %+v", got)
	}
	const sent = 3 << 30
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "A", seq: 101 + sent, ack: 901, length: 10}), inZone, "est|trk")
	b.want(tcpFrame(server, client, 80, 1, tcpText{flags: "A", seq: 901, ack: uint32(111 + sent)}), inZone, "est|rpl|trk")
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "A", seq: 111 + sent, ack: 901, length: 10}), inZone, "est|trk")
	if got := b.onlyState(); got != "ESTABLISHED 86400" {
		t.Errorf("the state is %s", got)
	}
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "R", seq: 121 + sent}), inZone, "est|trk")
	if got := b.onlyState(); got != "TIME_WAIT 10" {
		t.Errorf("after the exact RST the state is %s", got)
	}
}
