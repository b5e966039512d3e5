package dataplane

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/antrail/antrail/flow"
)

// TestAskedBits: whatever the bits are that a lookup has not asked for, it gives
// the same entry.
func TestAskedBits(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	free, changed := 0, 0
	for range 300 {
		all := randomEntries(r, 1+r.IntN(60))
		tb := &table{classifier: newClassifier(all), live: new(tableState)}
		for range 30 {
			k := randomKey(r)
			var a asked
			s := lookupScratch{asked: &a}
			want := s.find(tb, k)
			s.asked = nil
			for i := range 8 {
				other := randomKey(r)
				for w := range flow.KeyWords * (i % 2) {
					other.SetWord(w, r.Uint64(), ^uint64(0))
				}
				other = disguise(k, other, &a)
				if *other != *k {
					changed++
				}
				if got := s.find(tb, other); got != want {
					t.Fatalf("seed %d: found %v, and %v for a key that differs in what was not asked for, among %d entries", seed, describe(want), describe(got), len(all))
				}
			}
			if len(a.bits.list()) < flow.KeyWords/4 {
				free++
			}
		}
	}
	if changed < 10_000 || free < 1000 {
		t.Errorf("%d keys were changed, %d lookups asked for little: this proves nothing", changed, free)
	}
}

// disguise is k with the bits of another key where nothing was asked for. It
// has no conj_id, as no packet has.
func disguise(k, other *flow.Key, a *asked) *flow.Key {
	n := *k
	for i := range flow.KeyWords {
		n.SetWord(i, other.Word(i)&^a.bits[i], ^a.bits[i])
	}
	n.SetConjID(0)
	return &n
}

// TestAskedForLittle: of an address or a port that no entry has, lookups ask for
// a byte or two, and for nothing where bits that they have asked for will do.
func TestAskedForLittle(t *testing.T) {
	var all []*entry
	for i, text := range []string{
		"udp,nw_src=172.16.0.1,tp_dst=80", "udp,nw_src=172.16.0.2,tp_dst=443", "udp,tp_dst=3306", "udp,tp_dst=8080",
		"udp,nw_src=192.168.0.0/16", "tcp,nw_dst=10.0.0.9", "ip,in_port=7,nw_src=10.0.0.7",
	} {
		e, err := flow.ParseEntry("priority="+strconv.Itoa(1+i)+","+text+" actions=drop", flow.NewNames())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, newEntry(e, uint64(i), 0))
	}
	tb := &table{classifier: newClassifier(all), live: new(tableState)}
	type part struct {
		field flow.FieldID
		mask  uint64
	}
	for packet, want := range map[string][]part{
		"udp,in_port=1,nw_src=10.1.2.3,nw_dst=10.0.0.9,udp_src=1000,udp_dst=40000": {{flow.InPort, 0xff}, {flow.IPProto, 0xff}, {flow.IPSrc, 0xff000000}, {flow.UDPDst, 0xff00}},
		"udp,in_port=1,nw_src=172.16.2.3,nw_dst=10.0.0.9,udp_src=1000,udp_dst=81":  {{flow.InPort, 0xff}, {flow.IPProto, 0xff}, {flow.IPSrc, 0xff000000}, {flow.UDPDst, 0xffff}},
		"tcp,in_port=1,nw_src=10.1.2.3,nw_dst=10.0.0.8,tcp_src=1000,tcp_dst=80":    {{flow.InPort, 0xff}, {flow.IPProto, 0xff}, {flow.IPDst, 0xff}},
	} {
		m, err := flow.ParseMatch(packet, flow.NewNames())
		if err != nil {
			t.Fatal(err)
		}
		var a, expected asked
		s := lookupScratch{asked: &a}
		if e := s.find(tb, &m.Value); e != nil {
			t.Errorf("%s: found %s", packet, describe(e))
		}
		for _, p := range want {
			b := bitsOf(p.field, flow.Value{Lo: p.mask})
			expected.add(&b)
		}
		if a.bits != expected.bits {
			t.Errorf("%s asks for\n%x, want\n%x", packet, a.bits, expected.bits)
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
		var tree *trie
		there := map[node]bool{}
		for range 1 + r.IntN(60) {
			v, n := some()
			there[node{v, n}] = true
			tree = tree.insert(v, n, nil)
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
