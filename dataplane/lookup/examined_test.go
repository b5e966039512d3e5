package lookup

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// TestExaminedBits: whatever the bits are that a lookup has not asked for, it gives
// the same entry.
func TestExaminedBits(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	free, changed := 0, 0
	for range 300 {
		all := randomEntries(r, 1+r.IntN(60))
		tb := &Table{Static: newClassifier(all), Live: new(TableState)}
		for range 30 {
			k := randomKey(r)
			var a Examined
			s := Scratch{Examined: &a}
			want := s.Find(tb, k)
			s.Examined = nil
			for i := range 8 {
				other := randomKey(r)
				for w := range flow.KeyWords * (i % 2) {
					other.SetWord(w, r.Uint64(), ^uint64(0))
				}
				other = disguise(k, other, &a)
				if *other != *k {
					changed++
				}
				if got := s.Find(tb, other); got != want {
					t.Fatalf("seed %d: found %v, and %v for a key that differs in what was not asked for, among %d entries", seed, describe(want), describe(got), len(all))
				}
			}
			if len(a.Bits.List()) < flow.KeyWords/4 {
				free++
			}
		}
	}
	if changed < 10_000 || free < 1000 {
		t.Errorf("%d keys were changed, %d lookups asked for little: this proves nothing", changed, free)
	}
}

// TestExaminedBitsOfPorts is TestExaminedBits for masks of ports and addresses as they
// come: prefixes, ranges, masks with holes, two fields at once; among values that
// share bytes; and with some bits that are known. Keys and disguises are looked up
// in the linear twin.
func TestExaminedBitsOfPorts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 5))
	fields := []flow.FieldID{flow.TCPSrc, flow.TCPDst, flow.IPSrc, flow.IPDst, flow.Reg0}
	value := func(f *flow.Field) (v flow.Value) {
		for range f.Bits / 8 { // each byte one of three
			v = v.Shl(8).Or(flow.Value{Lo: []uint64{0, 0x50, 0xff}[r.IntN(3)]})
		}
		return v
	}
	key := func() *flow.Key {
		k := &flow.Key{}
		for _, id := range fields {
			f := flow.FieldByID(id)
			f.Put(k, value(f), flow.Ones(128))
		}
		return k
	}
	changed, few := 0, 0
	for range 300 {
		all := portEntries(r, fields, value)
		tb := &Table{Static: newClassifier(all), Live: new(TableState)}
		for range 30 {
			k, a := key(), Examined{}
			for _, id := range fields[:r.IntN(2)] {
				written := BitsOf(id, randomMask(r, flow.FieldByID(id)))
				a.Known.Add(&written)
			}
			s := Scratch{Examined: &a}
			want := s.Find(tb, k)
			for w, m := range a.Known {
				if a.Bits[w]&m != 0 {
					t.Fatalf("seed %d: known bits are asked for", seed)
				}
			}
			fixed := Examined{Bits: a.Bits}
			fixed.Bits.Add(&a.Known)
			for range 8 {
				other := disguise(k, key(), &fixed)
				if *other != *k {
					changed++
				}
				if got := linear(all).find(other); got != want {
					t.Fatalf("seed %d: found %v, and %v for a key that differs in what was not asked for, among %d entries", seed, describe(want), describe(got), len(all))
				}
			}
			if ports := BitsOf(flow.TCPDst, flow.Ones(16)); ports.beyond(&a) == 8 {
				few++
			}
		}
	}
	if changed < 10_000 || few < 100 {
		t.Errorf("%d keys were changed, %d lookups asked for a byte of a port: this proves nothing", changed, few)
	}
}

// portEntries makes entries with masks of all shapes over some fields.
func portEntries(r *rand.Rand, fields []flow.FieldID, value func(*flow.Field) flow.Value) []*Entry {
	seen := map[flow.Identity]*Entry{}
	for i := range 1 + r.IntN(40) {
		var m flow.Match
		for range 1 + r.IntN(3) {
			f := flow.FieldByID(fields[r.IntN(len(fields))])
			mask := randomMask(r, f)
			if r.IntN(4) == 0 {
				mask = flow.Value{Lo: r.Uint64()}.And(flow.Ones(f.Bits))
			}
			m.Add(f.ID, value(f).And(mask), mask)
		}
		e := &flow.Entry{Priority: uint16(i), Match: m.Mini()}
		seen[e.Identity()] = testEntry(e, uint64(i))
	}
	return slices.SortedFunc(maps.Values(seen), byPriority)
}

// disguise is k with the bits of another key where nothing was asked for. It
// has no conj_id, as no packet has.
func disguise(k, other *flow.Key, a *Examined) *flow.Key {
	n := *k
	for i := range flow.KeyWords {
		n.SetWord(i, other.Word(i)&^a.Bits[i], ^a.Bits[i])
	}
	n.SetConjID(0)
	return &n
}

// TestFewBitsExamined: of an address or a port that no entry has, lookups ask for
// a byte or two, and for nothing where bits that they have asked for will do.
func TestFewBitsExamined(t *testing.T) {
	var all []*Entry
	for i, text := range []string{
		"udp,nw_src=172.16.0.1,tp_dst=80", "udp,nw_src=172.16.0.2,tp_dst=443", "udp,tp_dst=3306", "udp,tp_dst=8080",
		"udp,nw_src=192.168.0.0/16", "tcp,nw_dst=10.0.0.9", "ip,in_port=7,nw_src=10.0.0.7",
	} {
		e, err := parse.Entry("priority="+strconv.Itoa(1+i)+","+text+" actions=drop", flow.NewNames())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, testEntry(e, uint64(i)))
	}
	tb := &Table{Static: newClassifier(all), Live: new(TableState)}
	type part struct {
		field flow.FieldID
		mask  uint64
	}
	for packet, want := range map[string][]part{
		"udp,in_port=1,nw_src=10.1.2.3,nw_dst=10.0.0.9,udp_src=1000,udp_dst=40000": {{flow.InPort, 0xff}, {flow.IPProto, 0xff}, {flow.IPSrc, 0xff000000}, {flow.UDPDst, 0xff00}},
		"udp,in_port=1,nw_src=172.16.2.3,nw_dst=10.0.0.9,udp_src=1000,udp_dst=81":  {{flow.InPort, 0xff}, {flow.IPProto, 0xff}, {flow.IPSrc, 0xff000000}, {flow.UDPDst, 0xffff}},
		"tcp,in_port=1,nw_src=10.1.2.3,nw_dst=10.0.0.8,tcp_src=1000,tcp_dst=80":    {{flow.InPort, 0xff}, {flow.IPProto, 0xff}, {flow.IPDst, 0xff}},
	} {
		m, err := parse.Match(packet, flow.NewNames())
		if err != nil {
			t.Fatal(err)
		}
		var a, expected Examined
		s := Scratch{Examined: &a}
		if e := s.Find(tb, &m.Value); e != nil {
			t.Errorf("%s: found %s", packet, describe(e))
		}
		for _, p := range want {
			b := BitsOf(p.field, flow.Value{Lo: p.mask})
			expected.add(&b)
		}
		if a.Bits != expected.Bits {
			t.Errorf("%s asks for\n%x, want\n%x", packet, a.Bits, expected.Bits)
		}
	}
}

// TestTrieLacks compares what a trie says of prefixes that are not there with a
// search through all of them.
func TestTrieLacks(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 4))
	some := func() (v aligned, n uint8) {
		n = uint8(1 + r.IntN(128))
		v = aligned{uint64(r.IntN(4)) << (62 - r.IntN(20)), uint64(r.IntN(4))}
		return v.cut(n), n
	}
	type node struct {
		value  aligned
		length uint8
	}
	few := 0
	for range 200 {
		var tree trie
		there := map[node]bool{}
		for range 1 + r.IntN(60) {
			v, n := some()
			there[node{v, n}] = true
			tree.insert(v, n)
		}
		for range 100 {
			v, n := some()
			need, lacks := tree.lacks(v, n)
			if lacks == there[node{v, n}] {
				t.Fatalf("seed %d: lacks %x/%d: %v", seed, v, n, lacks)
			}
			for other := range there {
				if lacks && other.length == n && other.value.common(v, 128) >= need {
					t.Fatalf("seed %d: %d bits of %x/%d do not tell it from %x", seed, need, v, n, other.value)
				}
			}
			if lacks && need < n {
				few++
			}
		}
	}
	if few < 1000 {
		t.Errorf("only %d were told by some of their bits", few)
	}
}
