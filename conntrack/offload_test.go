package conntrack

import (
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// offloadBench is a bench with an established TCP connection that is offloaded at place 3,
// and the words that it shares.
func offloadBench(t *testing.T, c Config) (*bench, *OffloadWords, *int) {
	b := newBench(t, c)
	words, settled := offloadOne(b)
	return b, words, settled
}

var inZone = Request{Zone: 5, Commit: true, NAT: &NAT{}}

func offloadOne(b *bench) (*OffloadWords, *int) {
	b.Helper()
	all, settled := make([]OffloadWords, 8), 0
	b.ShareOffload(all, func() { settled++ })
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "S", seq: 100, scale: 7}), inZone, "new|trk")
	b.want(tcpFrame(server, client, 80, 1, tcpText{flags: "SA", seq: 900, ack: 101, scale: 7, window: 65535}), inZone, "est|rpl|trk")
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "A", seq: 101, ack: 901, window: 512}), inZone, "est|trk")
	seen, ok := b.meta.Seen()
	if !ok || !seen.Settled(packet.ProtoTCP) || !b.Offload(&seen, 3, b.now) {
		b.Fatalf("the connection is not offloaded: %+v", seen)
	}
	if b.Offload(&seen, 4, b.now) {
		b.Error("the connection was offloaded twice")
	}
	return &all[3], &settled
}

// pass is what the kernel does to the shared words for a segment of a direction.
func pass(w *OffloadWords, dir int, next, ack uint32) {
	w[offloadPeers+offloadPeer*dir+offloadNext].Store(next)
	w[offloadPeers+offloadPeer*(1-dir)+offloadLimit].Store(ack + 1<<16)
}

// TestOffloadFINIsExact lets three gigabytes pass in the kernel. The FIN behind them is
// checked against their end, and ends the offload.
func TestOffloadFINIsExact(t *testing.T) {
	b, w, _ := offloadBench(t, Config{})
	const sent = 3 << 30
	pass(w, tuple.Original, 101+sent, 901)
	pass(w, tuple.Reply, 901, 101+sent)
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "FA", seq: 101 + sent, ack: 901}), inZone, "est|trk")
	if w[offloadLive].Load() != 0 {
		t.Error("a FIN left the connection offloaded")
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

// TestOffloadPass: a segment passes by the windows that the kernel has advanced, and
// advances them.
func TestOffloadPass(t *testing.T) {
	b, w, _ := offloadBench(t, Config{})
	seen, _ := b.meta.Seen()
	const sent = 3 << 30
	pass(w, tuple.Original, 101+sent, 901)
	b.enter(tcpFrame(client, server, 1, 80, tcpText{flags: "A", seq: 101 + sent, ack: 901, length: 9}))
	var p Passing
	if !p.Read(b.frame, &b.layers) || !b.Pass(&seen, &p, b.now) {
		t.Error("a segment in the window does not pass")
	}
	if next := w[offloadPeers+offloadNext].Load(); next != 110+sent || w[offloadLive].Load() != 1 {
		t.Errorf("the windows are at %d", next)
	}
}

// TestOffloadResets: the exact RST ends the connection. One in the window passes and leaves
// the connection offloaded, one outside is invalid (D4, CT-13).
func TestOffloadResets(t *testing.T) {
	b, w, _ := offloadBench(t, Config{})
	pass(w, tuple.Original, 50101, 901)
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "R", seq: 101}), inZone, "est|trk")
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "R", seq: 1 << 31}), inZone, "inv|trk")
	if w[offloadLive].Load() != 1 {
		t.Error("a RST without effect brought the connection back")
	}
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "R", seq: 50101}), inZone, "est|trk")
	if w[offloadLive].Load() != 0 {
		t.Error("the exact RST left the connection offloaded")
	}
}

// TestOffloadComesBack lists what brings a connection back.
func TestOffloadComesBack(t *testing.T) {
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
			b, w, settled := offloadBench(t, Config{})
			if test.do(b); w[offloadLive].Load() != test.live || *settled != test.settled {
				t.Errorf("live %d, settled %d times; want %d and %d", w[offloadLive].Load(), *settled, test.live, test.settled)
			}
		})
	}
}

// TestOffloadIsKeptAlive: packets that passed elsewhere count as packets.
func TestOffloadIsKeptAlive(t *testing.T) {
	b, w, _ := offloadBench(t, Config{})
	seen, _ := b.meta.Seen()
	pass(w, tuple.Original, 7101, 901)
	b.warp(23 * time.Hour)
	if !b.TouchOffloaded(seen.ID(), 3, b.now) || b.TouchOffloaded(seen.ID(), 4, b.now) {
		t.Error("the connection is not the one that is offloaded at place 3")
	}
	b.warp(23 * time.Hour)
	b.Sweep(b.now)
	b.StopOffload(seen.ID(), 3)
	b.EndOffload(seen.ID(), 3)
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "R", seq: 7101}), inZone, "est|trk")
	if w[offloadLive].Load() != 0 || b.onlyState() != "TIME_WAIT 10" {
		t.Errorf("brought back: live %d, state %s", w[offloadLive].Load(), b.onlyState())
	}
}

// TestOffloadEndedByAnError: an ICMP error that changes the mark ends the offload, but restarts
// no timeout. Packets that the kernel forwarded before the error restart it.
func TestOffloadEndedByAnError(t *testing.T) {
	b := newBench(t, Config{})
	words, there := make([]OffloadWords, 8), udpFrame(client, server, 1, 53)
	b.ShareOffload(words, func() {})
	b.want(there, inZone, "new|trk")
	seen, _ := b.meta.Seen()
	if !b.Offload(&seen, 3, b.now) {
		t.Fatal("the connection is not offloaded")
	}
	b.warp(20 * time.Second) // the kernel forwards a packet
	marked := Request{Zone: 5, Commit: true, Mark: 1, MarkMask: 1}
	b.want(errorFrame(server, client, 3, 3, there, 0), marked, "rel|rpl|trk")
	if words[3][offloadLive].Load() != 0 {
		t.Error("the mark left the connection offloaded")
	}
	if !b.TouchOffloaded(seen.ID(), 3, b.now) {
		t.Error("the kernel's packet restarts no timeout")
	}
	b.EndOffload(seen.ID(), 3)
	b.warp(20 * time.Second)
	b.want(there, inZone, "new|trk")
	if b.Stats().Created != 1 {
		t.Error("the connection expired 20 seconds after its last packet")
	}
	if seen, _ = b.meta.Seen(); !b.Offload(&seen, 4, b.now) {
		t.Error("the connection cannot be offloaded again")
	}
}

// TestOffloadOfOneWay: UDP without an answer is offloaded, and lives on by the timeout of such a
// connection. The first reply ends the offload, because from then on packets are established.
// An offer from before the reply is refused.
func TestOffloadOfOneWay(t *testing.T) {
	b := newBench(t, Config{})
	words, there := make([]OffloadWords, 8), udpFrame(client, server, 1, 53)
	b.ShareOffload(words, func() {})
	b.want(there, inZone, "new|trk")
	before, _ := b.meta.Seen()
	if !before.Settled(packet.ProtoUDP) || before.Settled(packet.ProtoTCP) || !b.Offload(&before, 3, b.now) {
		t.Fatalf("the connection is not offloaded: %+v", before)
	}
	b.want(there, inZone, "new|trk")
	for range 4 {
		b.warp(20 * time.Second)
		if !b.TouchOffloaded(before.ID(), 3, b.now) {
			t.Fatal("the connection has expired")
		}
	}
	if words[3][offloadLive].Load() != 1 {
		t.Error("a packet of the same direction ended the offload")
	}
	b.want(udpFrame(server, client, 53, 1), inZone, "est|rpl|trk")
	if words[3][offloadLive].Load() != 0 || b.Offloaded(&before) {
		t.Error("a reply left the connection offloaded")
	}
	if b.Offload(&before, 4, b.now) {
		t.Error("the connection was offloaded as it was before the reply")
	}
	b.want(there, inZone, "est|trk")
	if after, _ := b.meta.Seen(); !b.Offload(&after, 4, b.now) {
		t.Error("the answered connection is not offloaded")
	}
	b.want(udpFrame(server, client, 53, 1), inZone, "est|rpl|trk")
	if words[4][offloadLive].Load() != 1 {
		t.Error("the second reply ended the offload")
	}
}

// TestOffloadRefusals lists connections that may not be offloaded.
func TestOffloadRefusals(t *testing.T) {
	short := proto.DefaultTimeouts()
	short.UDPReplied = minOffloadTimeout - 1
	for name, test := range map[string]struct {
		c     Config
		ready func(b *bench)
		want  bool
	}{
		"answered UDP": {Config{}, func(b *bench) {
			b.want(udpFrame(client, server, 1, 53), inZone, "new|trk")
			b.want(udpFrame(server, client, 53, 1), inZone, "est|rpl|trk")
		}, true},
		"UDP without an answer": {Config{}, func(b *bench) { b.want(udpFrame(client, server, 1, 53), inZone, "new|trk") }, true},
		"a SYN": {Config{}, func(b *bench) {
			b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "S", seq: 100}), inZone, "new|trk")
		}, false},
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
			b.ShareOffload(make([]OffloadWords, 8), func() {})
			test.ready(b)
			if seen, ok := b.meta.Seen(); !ok || b.Offload(&seen, 0, b.now) != test.want {
				t.Errorf("%+v was offloaded: %v, want %v", seen, !test.want, test.want)
			}
		})
	}
}

// TestTraceLeavesOffloadAlone: a Scratch sees the windows as they are, and changes
// nothing.
func TestTraceLeavesOffloadAlone(t *testing.T) {
	b, w, _ := offloadBench(t, Config{})
	pass(w, tuple.Original, 1<<31, 901)
	s := b.Scratch()
	b.enter(tcpFrame(client, server, 1, 80, tcpText{flags: "R", seq: 1 << 31}))
	if s.Track(b.frame, &b.layers, &b.meta, &inZone, b.now); stateText(b.meta.State) != "est|trk" {
		t.Errorf("the trace's ct_state is %s", stateText(b.meta.State))
	}
	if w[offloadLive].Load() != 1 || b.onlyState() != "ESTABLISHED 86400" {
		t.Error("a trace brought the connection back")
	}
}

// TestOffloadWhenKilled: a process that restores the table does not know how far an
// offloaded connection has come. The first segment of each side sets its windows.
func TestOffloadWhenKilled(t *testing.T) {
	memory := pages(t, ArenaSize(16))
	b := restored(t, memory, 1, Config{})
	offloadOne(b)
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
