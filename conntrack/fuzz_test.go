package conntrack

import (
	"testing"

	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// FuzzTrack feeds a table a sequence of ct() actions on frames: real ones with
// bytes changed, and noise. After each it checks what must hold whatever the
// packet was.
//
// The input is read as a program. Each step takes one byte for the frame that it begins from,
// one for the action, and one for the number of changes. Each change takes two bytes, offset
// and value. A step whose first byte is above 0xf0 turns the clock instead.
func FuzzTrack(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 0, 2, 2, 0})
	f.Add([]byte{0, 5, 0, 1, 3, 0, 0, 5, 0, 4, 3, 0, 5, 3, 0})
	f.Add([]byte{3, 4, 0, 6, 4, 0, 0xff, 0xff, 0, 7, 2, 1, 34, 9, 8, 1, 0})
	f.Add([]byte{9, 6, 0, 10, 3, 0, 11, 3, 2, 40, 1, 42, 200, 12, 6, 0})
	f.Fuzz(func(t *testing.T, program []byte) {
		b := newBench(t, Config{Max: 16})
		b.SetLimit(2, 4)
		for len(program) >= 3 {
			program = b.fuzzStep(program)
			b.checkTable()
		}
	})
}

// fuzzFrames is what fuzzing starts from: both directions of connections that
// the actions below make, and errors about them.
var fuzzFrames = [][]byte{
	tcpFrame(client, service, 1234, 80, tcpText{flags: "S", seq: 1000, scale: 7}),
	tcpFrame(server, client, 8080, 1234, tcpText{flags: "SA", seq: 5000, ack: 1001, scale: 7}),
	tcpFrame(client, service, 1234, 80, tcpText{flags: "A", seq: 1001, ack: 5001, length: 3}),
	udpFrame(client, server, 1234, 53),
	udpFrame(server, "10.9.9.9", 53, 1234),
	udpFrame("10.0.0.3", server, 1234, 53),
	echoFrame(client, server, packet.ICMPEcho, 7),
	echoFrame(server, "10.9.9.9", packet.ICMPEchoReply, 7),
	errorFrame(server, client, 3, 3, tcpFrame(client, server, 1234, 8080, tcpText{flags: "S", seq: 1000}), 0),
	udpFrame("fd00::1", "fd00::2", 1234, 53),
	udpFrame("fd00::2", "fd00::1", 53, 1234),
	errorFrame("fd00::2", "fd00::1", 1, 3, udpFrame("fd00::1", "fd00::2", 1234, 53), 0),
	sctpFrame(client, service, 1000, 2000, 0, chunk{typ: packet.SCTPInit, announce: 7}),
	sctpFrame(server, client, 8080, 1000, 7, chunk{typ: packet.SCTPInitAck, announce: 9}, chunk{typ: packet.SCTPData}),
	tcpFrame(server, client, 8080, 1234, tcpText{flags: "R", seq: 5001}),
	frame(client, server, 47, make([]byte, 4)),
}

var fuzzActions = []Request{
	lookup, commit, {Zone: 2, Commit: true, Mark: 5, MarkMask: 7}, unNAT,
	commitNAT("src=10.9.9.9"), commitNAT("dst=10.0.0.2:8080"), commitNAT("src=10.9.9.9:5000-5003"),
	{Zone: 100, Commit: true, Force: true}, {Zone: 2, NAT: &NAT{}},
}

// fuzzStep runs one step and returns what is left of the program.
func (b *bench) fuzzStep(p []byte) []byte {
	start, action, changes := p[0], p[1], int(p[2]%8)
	p = p[3:]
	if start > 0xf0 {
		b.now += int64(action) << 27
		b.Sweep(b.now)
		return p
	}
	frame := append([]byte(nil), fuzzFrames[int(start)%len(fuzzFrames)]...)
	for ; changes > 0 && len(p) >= 2; changes-- {
		frame[int(p[0])%len(frame)] = p[1]
		p = p[2:]
	}
	b.enter(frame)
	if start&0x80 == 0 { // most changes are meant to get past the checksums
		b.repair()
	}
	b.fuzzTrack(fuzzActions[int(action)%len(fuzzActions)])
	b.fuzzTrack(fuzzActions[int(action>>4)%len(fuzzActions)])
	return p
}

// repair makes the packet's checksums right.
func (b *bench) repair() {
	if b.layers.EtherType == packet.EtherTypeIPv4 && b.layers.End != 0 {
		packet.IPv4(b.frame.Bytes()[b.layers.L3:]).UpdateChecksum()
	}
	b.layers.SetL4Checksum(b.frame.Bytes())
}

// fuzzTrack runs an action and checks its answer.
func (b *bench) fuzzTrack(r Request) {
	valid := b.layers.L4 != 0 && b.layers.EtherType != packet.EtherTypeARP && tuple.ChecksumsValid(b.frame, &b.layers)
	before := string(b.frame.Bytes())
	b.ct(r)
	s := b.meta.State
	exclusive := 0
	for _, bit := range []State{New, Established, Related, Invalid} {
		if s&bit != 0 {
			exclusive++
		}
	}
	switch {
	case s&Tracked == 0 || exclusive != 1:
		b.Fatalf("ct_state %s", stateText(s))
	case s&Reply != 0 && s&(New|Invalid) != 0:
		b.Fatalf("ct_state %s", stateText(s))
	case b.meta.Zone != r.Zone:
		b.Fatalf("zone %d, want %d", b.meta.Zone, r.Zone)
	case b.verdict.Rewritten != (before != string(b.frame.Bytes())):
		b.Fatalf("verdict %+v, and the bytes say otherwise", b.verdict)
	case valid && !tuple.ChecksumsValid(b.frame, &b.layers):
		b.Fatalf("%s left with a bad checksum", b.tuple())
	case b.layers != packet.ParseLayers(b.frame.Bytes()):
		b.Fatal("the headers have moved")
	}
}

// checkTable is checkOrder of a table of at most 16 connections, 4 in zone 2.
func (b *bench) checkTable() {
	b.Helper()
	b.checkOrder()
	if total, zone := b.Stats().Entries, b.ZoneCount(2); total > 16 || zone > 4 {
		b.Fatalf("%d entries, %d in zone 2", total, zone)
	}
}

// checkOrder checks the table's own order: every key of every live entry leads
// to it, no key is there twice, and the counts are right.
func (b *bench) checkOrder() {
	b.Helper()
	seen := map[tuple.Words]bool{}
	entries, zones := 0, map[uint16]int64{}
	b.each(func(e *store.Entry, h store.Handle) {
		entries++
		zones[e.Keys[tuple.Original].Zone]++
		for dir := range e.Keys {
			w := e.Keys[dir].Words()
			if seen[w] && e.Keys[tuple.Original] != e.Keys[tuple.Reply] {
				b.Fatalf("a key is there twice: %+v", e.Keys[dir])
			}
			seen[w] = true
			if got, _, _ := b.index.Find(b.arena, b.chain(&w, nil), &w); got != h {
				b.Fatalf("key %+v of %v leads to %v", e.Keys[dir], h, got)
			}
		}
	})
	if total := b.Stats().Entries; entries != total {
		b.Fatalf("%d entries, counted %d", entries, total)
	}
	for id, n := range zones {
		if count := b.zone(id).count.Load(); count != n {
			b.Fatalf("zone %d: %d entries, counted %d", id, n, count)
		}
	}
	b.checkShares()
}

// checkShares checks the ports' counts, and that each connection that may be
// evicted stands in its list, and in no other.
func (b *bench) checkShares() {
	held, in := int64(0), [evictable]map[uint32]bool{{}, {}}
	active := map[bool]int64{}
	for _, s := range b.shares.pages.all() {
		held += s.count.Load()
		if s.count.Load() > 0 {
			active[s.many]++
		}
		for l := range s.lists {
			b.checkList(&s.lists[l], in[l])
		}
	}
	if pods, shared := b.shares.pods.Load(), b.shares.shared.Load(); pods != active[false] || shared != active[true] {
		b.Fatalf("%d ports and %d shared ones hold connections, counted %d and %d", active[false], active[true], pods, shared)
	}
	if held != b.limits.total.Load() {
		b.Fatalf("the ports hold %d connections, the table %d", held, b.limits.total.Load())
	}
	b.each(func(e *store.Entry, h store.Handle) {
		if expendable := e.Flags&store.Expendable != 0; expendable == e.Missed(e.Keys[tuple.Original].Proto) {
			b.Fatalf("slot %d: flags %b, missed %v", h.Slot, e.Flags, e.Missed(e.Keys[tuple.Original].Proto))
		}
		for l := range in {
			if in[l][h.Slot] != (listOf(e) == listed(l)) {
				b.Fatalf("slot %d has to stand in list %d, stands in list %d: %v", h.Slot, listOf(e), l, in[l][h.Slot])
			}
		}
	})
}

// checkList checks the order of a list, and notes which slots stand in it.
func (b *bench) checkList(l *store.List, in map[uint32]bool) {
	length := uint32(0)
	for slot := l.Oldest(); slot != 0; slot = b.arena.At(slot).Next() {
		if in[slot] {
			b.Fatalf("slot %d stands in its list twice", slot)
		}
		in[slot] = true
		length++
	}
	if got := l.Len(); got != length {
		b.Fatalf("a list of %d connections says that it has %d", length, got)
	}
}
