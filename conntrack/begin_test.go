package conntrack

import (
	"math"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// begins is Begin on a packet that enters.
func (b *bench) begins(frame []byte, r Request) bool {
	b.enter(frame)
	r.Near = &b.near
	began := b.BeginConnection(b.frame, &b.layers, &b.meta, &r, b.now)
	b.meta = Meta{}
	return began
}

// TestBegin: Begin leaves behind what a lookup and a commit do, and nothing where it
// refuses a packet.
func TestBegin(t *testing.T) {
	damaged := udpFrame(client, server, 7, 53)
	damaged[len(damaged)-1] ^= 1
	marking := Request{Commit: true, Zone: 100, Mark: 5, MarkMask: 7, Label: Label{1, 2}, LabelMask: Label{3, 6}, InPort: 9}
	one, two := newBench(t, Config{Max: 6}), newBench(t, Config{Max: 6})
	one.beginAs(two, []beginStep{
		{"UDP", udpFrame(client, server, 1, 53), marking, true},
		{"the same again", udpFrame(client, server, 1, 53), marking, false},
		{"its answer", udpFrame(server, client, 53, 1), commit, false},
		{"a SYN", tcpFrame(client, server, 1, 80, tcpText{flags: "S", seq: 100, scale: 7}), marking, true},
		{"a segment in mid-connection", tcpFrame(client, server, 2, 80, tcpText{flags: "A", seq: 100, ack: 9}), commit, true},
		{"a reset", tcpFrame(client, server, 3, 80, tcpText{flags: "R", seq: 100}), commit, false},
		{"a wrong checksum", damaged, commit, false},
		{"port 0", udpFrame(client, server, 0, 53), commit, false},
		{"IPv6", udpFrame("fd00::1", "fd00::2", 1, 53), commit, true},
		{"another zone", udpFrame(client, server, 1, 53), Request{Commit: true, Zone: 7}, true},
		{"the last that fits", udpFrame(client, server, 4, 53), commit, true},
		{"one too many, in place of the oldest", udpFrame(client, server, 5, 53), commit, false},
	})
}

// beginStep is a packet, and whether Begin makes a connection of it.
type beginStep struct {
	what  string
	frame []byte
	r     Request
	begin bool
}

// beginAs has one table begin connections where it can, and another look each packet up
// and commit it: they stay the same.
func (b *bench) beginAs(two *bench, steps []beginStep) {
	b.Helper()
	for _, step := range steps {
		if got := b.begins(step.frame, step.r); got != step.begin {
			b.Fatalf("%s: Begin says %v, want %v", step.what, got, step.begin)
		} else if !got {
			b.twice(step.frame, step.r)
		}
		two.twice(step.frame, step.r)
		if got, want := b.lines(), two.lines(); !slices.Equal(got, want) {
			b.Fatalf("%s\n got %q\nwant %q", step.what, got, want)
		}
		if got, want := b.Stats(), two.Stats(); got != want {
			b.Fatalf("%s\n got %+v\nwant %+v", step.what, got, want)
		}
		b.checkOrder()
		b.warp(2e9)
		two.warp(2e9)
	}
	b.checkShares()
}

// TestBeginTranslated: the same with a translated destination, as long as the answer's
// tuple is free. If it is not, the client's port would have to change, and the packet
// walks.
func TestBeginTranslated(t *testing.T) {
	const service, service6 = "10.7.7.7", "fd00::7"
	to, to6 := commitNAT("dst=10.0.0.2:80"), commitNAT("dst=[fd00::2]:80")
	one, two := newBench(t, Config{Max: 7}), newBench(t, Config{Max: 7})
	one.beginAs(two, []beginStep{
		{"UDP", udpFrame(client, service, 1, 53), to, true},
		{"the same again", udpFrame(client, service, 1, 53), to, false},
		{"its answer", udpFrame(server, client, 80, 1), commit, false},
		{"the same to the endpoint itself", udpFrame(client, server, 1, 80), commit, false},
		{"a SYN", tcpFrame(client, service, 1, 80, tcpText{flags: "S", seq: 100, scale: 7}), to, true},
		{"IPv6", udpFrame("fd00::1", service6, 1, 53), to6, true},
		{"the client's own", udpFrame(client, server, 2, 80), commit, true},
		{"one whose answer would be that's", udpFrame(client, service, 2, 53), to, false},
		{"where nothing changes", udpFrame(client, server, 7, 80), to, true},
		{"the last that fits", udpFrame(client, service, 4, 53), to, true},
		{"one too many, in place of the oldest", udpFrame(client, service, 5, 53), to, false},
	})
}

// TestBeginRefuses: what Begin refuses leaves nothing behind: no connection more, none
// less for one that did not come about, and nothing counted.
func TestBeginRefuses(t *testing.T) {
	ack := tcpFrame(client, server, 1, 80, tcpText{flags: "A", seq: 100, ack: 9})
	udp := udpFrame(client, server, 1, 53)
	clash := func(b *bench) { b.want(udpFrame(client, "10.7.7.7", 1, 53), commitNAT("dst=10.0.0.2"), "new|trk|dnat") }
	crowd := func(b *bench) {
		for port := range uint16(40) {
			b.want(udpFrame(client, server, 100+port, 53), commit, "new|trk")
		}
		b.warp(2e9)
		b.SetMax(42)
	}
	for name, c := range map[string]struct {
		before func(b *bench)
		frame  []byte
		to     string // nat() of the commit; none when empty
	}{
		"a Service's endpoint": {func(b *bench) {
			b.Shield([]netip.AddrPort{netip.MustParseAddrPort(client + ":1")}, math.MaxInt64)
		}, ack, ""},
		"a lowered limit":        {func(b *bench) { crowd(b); b.SetMax(1) }, udp, ""},
		"a zone's lowered limit": {func(b *bench) { crowd(b); b.SetLimit(100, 1) }, udp, ""},
		"a tuple clash":          {clash, udp, ""},
		"… in a crowded table":   {func(b *bench) { clash(b); crowd(b) }, udp, ""},
		"a FIN":                  {func(*bench) {}, tcpFrame(client, server, 1, 80, tcpText{flags: "FA", seq: 100, ack: 9}), ""},
		"a server's SYN":         {func(*bench) {}, tcpFrame(client, server, 1, 80, tcpText{flags: "SA", seq: 100, ack: 9}), ""},
		"a translated one's clash in a crowded table": {func(b *bench) { b.want(udp, commit, "new|trk"); crowd(b) }, udpFrame(client, "10.7.7.7", 1, 80), "dst=" + server + ":53"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Config{})
			c.before(b)
			lines, stats := b.lines(), b.Stats()
			r := commit
			if c.to != "" {
				r = commitNAT(c.to)
			}
			if b.begins(c.frame, r) {
				t.Fatal("a connection began")
			}
			if now := b.lines(); !slices.Equal(now, lines) {
				t.Errorf("connections are\n%q, were\n%q", now, lines)
			}
			if now := b.Stats(); now != stats {
				t.Errorf("stats are %+v, were %+v", now, stats)
			}
			b.checkShares()
		})
	}
}

// TestBeginInPlaceOfOld: a connection whose time has passed is nothing in the way of
// another, neither of the same tuple nor of its answer's.
func TestBeginInPlaceOfOld(t *testing.T) {
	b := newBench(t, Config{})
	for _, frame := range [][]byte{udpFrame(client, server, 1, 53), udpFrame(server, client, 53, 1), udpFrame(client, server, 1, 53)} {
		if !b.begins(frame, commit) {
			t.Error("no connection began")
		}
		if n := b.Stats().Entries; n != 1 {
			t.Errorf("there are %d connections, want 1", n)
		}
		b.warp(time.Hour)
	}
	b.want(udpFrame(client, server, 1, 53), commit, "new|trk")
	b.warp(time.Hour)
	if !b.begins(udpFrame(client, "10.7.7.7", 1, 53), commitNAT("dst="+server+":53")) {
		t.Error("no translated connection began")
	}
	b.checkOrder()
	b.checkShares()
}

// twice is a lookup and then a commit.
func (b *bench) twice(frame []byte, r Request) {
	b.enter(frame)
	b.ct(Request{Zone: r.Zone, InPort: r.InPort})
	b.ct(r)
}

// TestBeginTakesNoToken: what a limit refuses costs the port nothing of its rate.
func TestBeginTakesNoToken(t *testing.T) {
	b := newBench(t, Config{NewRate: 10})
	b.SetLimit(100, 0)
	for range 100 {
		if b.begins(udpFrame(client, server, 1, 53), commit) {
			t.Fatal("a connection began in a full zone")
		}
	}
	b.DelLimit(100)
	begun := 0
	for port := range uint16(100) {
		if b.begins(udpFrame(client, server, 1+port, 53), commit) {
			begun++
		}
	}
	if begun != 20 {
		t.Errorf("%d connections began, want 20", begun)
	}
	b.refused(udpFrame(client, server, 200, 53), commit, DropNewRate)
}

// TestRaceToBegin: of the packets of a new flow that several workers have at once, one
// begins the connection, and the others belong to it (CT-30).
func TestRaceToBegin(t *testing.T) {
	b := newBench(t, Config{})
	const flows = 500
	var begun [flows]atomic.Int32
	together(t, b.Table, func(worker int, w *bench) {
		for i := range begun {
			frame := udpFrame(client, server, uint16(1+i), 53)
			if w.begins(frame, commit) {
				begun[i].Add(1)
			} else {
				w.want(frame, lookup, "new|trk")
			}
		}
	})
	for i := range begun {
		if n := begun[i].Load(); n != 1 {
			t.Errorf("flow %d was begun %d times", i, n)
		}
	}
	if s := b.Stats(); s.Entries != flows || s.Created != flows {
		t.Errorf("stats %+v", s)
	}
	b.checkOrder()
	b.checkShares()
}
