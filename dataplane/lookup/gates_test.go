package lookup

import (
	"fmt"
	"slices"
	"testing"

	"github.com/antrail/antrail/flow/parse"
)

// TestOtherLengthsAreNotExamined asserts which of a hundred subtables a lookup asks:
// those whose prefixes the key has, and those without any.
func TestOtherLengthsAreNotExamined(t *testing.T) {
	var entries []*Entry
	var matches []string // of the entries, by priority
	add := func(match string) {
		e, err := parse.Entry(fmt.Sprintf("priority=%d,%s actions=drop", len(entries), match), nil)
		if err != nil {
			t.Fatal(err)
		}
		entries, matches = append(entries, testEntry(e, 0)), append(matches, match)
	}
	for n := range 64 {
		add(fmt.Sprintf("ipv6,ipv6_src=%x00::/%d", 64+n, 8+n))
	}
	for n := range 24 {
		add(fmt.Sprintf("ip,nw_src=%d.0.0.0/%d", 10+n, 8+n))
	}
	add("in_port=1")
	for n := range 15 {
		add(fmt.Sprintf("tcp,tp_dst=%#x/%#x", 0x8000>>n, 0xffff<<(15-n)&0xffff))
	}
	c := newClassifier(entries)
	for text, want := range map[string][]string{
		"ip,nw_src=10.1.2.3":             {"in_port=1", "ip,nw_src=10.0.0.0/8"},
		"ip,nw_src=200.1.2.3":            {"in_port=1"},
		"ip,nw_src=13.0.0.0":             {"in_port=1", "ip,nw_src=13.0.0.0/11"},
		"tcp,nw_src=200.1.2.3,tp_dst=80": {"in_port=1", "tcp,tp_dst=0x40/0xffc0"},
		"ipv6,ipv6_src=4500::1":          {"in_port=1", "ipv6,ipv6_src=4500::/13"},
	} {
		m, err := parse.Match(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		var s Scratch
		var got []string
		open := c.gates.open(s.open, c, &m.Value, &s.lengths)
		for i := open.next(0); i < len(c.probes); i = nextAfter(open, i) {
			c.probes[i].all(func(r *row) { got = append(got, matches[r.priority]) })
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: asked are %q, want %q", text, got, want)
		}
	}
}

// nextAfter is the place in a set behind i.
func nextAfter(s placeSet, i int) int {
	if i+1 == 64*len(s) {
		return i + 1
	}
	return s.next(i + 1)
}
