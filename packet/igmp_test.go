package packet

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

// told are the memberships in a message: + joins, - leaves.
func told(h IGMP) (all []string) {
	for m := range h.Memberships() {
		all = append(all, fmt.Sprintf("%s%s", map[bool]string{true: "+", false: "-"}[m.Joins], m.Group))
	}
	return all
}

// TestIGMPMemberships reads messages as RFC 1112, RFC 2236 and RFC 3376 lay them out.
func TestIGMPMemberships(t *testing.T) {
	group := []byte{239, 1, 2, 3}
	record := func(kind byte, sources int) []byte {
		return append(append([]byte{kind, 0, 0, byte(sources)}, group...), make([]byte, 4*sources)...)
	}
	report := func(records ...[]byte) IGMP {
		return append([]byte{0x22, 0, 0, 0, 0, 0, 0, byte(len(records))}, slices.Concat(records...)...)
	}
	for _, c := range []struct {
		name string
		h    IGMP
		want []string
	}{
		{"version 1", append([]byte{0x12, 0, 0, 0}, group...), []string{"+239.1.2.3"}},
		{"version 2", append([]byte{0x16, 0, 0, 0}, group...), []string{"+239.1.2.3"}},
		{"leave", append([]byte{0x17, 0, 0, 0}, group...), []string{"-239.1.2.3"}},
		{"excludes none", report(record(2, 0)), []string{"+239.1.2.3"}},
		{"changes to exclude", report(record(4, 0)), []string{"+239.1.2.3"}},
		{"includes none", report(record(1, 0)), []string{"-239.1.2.3"}},
		{"changes to include none", report(record(3, 0)), []string{"-239.1.2.3"}},
		{"includes one", report(record(1, 1)), []string{"+239.1.2.3"}},
		{"allows new sources", report(record(5, 2)), []string{"+239.1.2.3"}},
		{"blocks old sources", report(record(6, 1)), nil},
		{"several", report(record(6, 1), record(4, 3), record(3, 0)), []string{"+239.1.2.3", "-239.1.2.3"}},
		{"cut", report(record(4, 0), record(4, 9)[:20]), []string{"+239.1.2.3"}},
		{"a query", NewIGMPQuery(100, 125), nil},
		{"too short", IGMP{0x16, 0, 0, 0, 239, 1, 2}, nil},
	} {
		if got := told(c.h); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestIGMPMade: the package reads the messages that it makes, and they have a checksum.
func TestIGMPMade(t *testing.T) {
	r := NewIGMPReport([]netip.Addr{netip.MustParseAddr("239.0.0.1"), netip.MustParseAddr("239.0.0.2")},
		[]netip.Addr{netip.MustParseAddr("239.0.0.3")})
	if got := told(r); !slices.Equal(got, []string{"+239.0.0.1", "+239.0.0.2", "-239.0.0.3"}) || !r.Valid() {
		t.Errorf("%v, valid %t", got, r.Valid())
	}
	q := NewIGMPQuery(100, 200)
	if q.Type() != IGMPQuery || !q.Valid() || q[1] != 100 || q[9] != 127 {
		t.Errorf("% x", q)
	}
}

// FuzzIGMP: no message makes the reader read past its end, or report more groups than it has room
// for.
func FuzzIGMP(f *testing.F) {
	f.Add([]byte(NewIGMPReport([]netip.Addr{netip.MustParseAddr("239.0.0.1")}, nil)))
	f.Add([]byte{0x22, 0, 0, 0, 0, 0, 0xff, 0xff, 4, 255, 255, 255, 239, 1, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		h := IGMP(slices.Clip(b))
		if n := len(told(h)); n > len(b)/igmpRecordLen {
			t.Errorf("%d groups in %d bytes", n, len(b))
		}
	})
}
