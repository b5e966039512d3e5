package flowcache

import (
	"reflect"
	"testing"

	"github.com/antrail/antrail/conntrack"
)

// TestEntryLines: a packet of IPv4 reads three cache lines of its entry, and those that Warm
// reads are the same three.
func TestEntryLines(t *testing.T) {
	const line = 64
	e := reflect.TypeFor[Entry]()
	at := func(name string) uintptr {
		f, ok := e.FieldByName(name)
		if !ok {
			t.Fatalf("an entry has no field %s", name)
		}
		return f.Offset
	}
	if e.Size()%line != 0 {
		t.Errorf("an entry has %d bytes: entries do not begin at cache lines", e.Size())
	}
	change := reflect.TypeFor[Change]()
	addrs, _ := change.FieldByName("Addrs")
	for _, part := range []struct {
		name     string
		from, to uintptr
		want     uintptr
	}{
		{"the search", at("slot"), at("near") + nearWords*8, 0},
		{"the first ct()", at("CT"), at("CT") + reflect.TypeFor[conntrack.Seen]().Size(), 1},
		{"the change of a packet without NAT", at("Change"), at("Change") + addrs.Offset, 2},
	} {
		if part.from/line != part.want || (part.to-1)/line != part.want {
			t.Errorf("%s reads bytes %d to %d, which are not line %d", part.name, part.from, part.to, part.want)
		}
	}
}
