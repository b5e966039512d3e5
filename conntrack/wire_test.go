package conntrack

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/internal/wiretest"
)

// newFiller fills what this package tells.
func newFiller(t testing.TB, seed uint64) *wiretest.Filler {
	f := wiretest.New(t, seed)
	f.How[reflect.TypeFor[DropReason]()] = func() any { return DropReason(f.IntN(int(numDropReasons))) }
	f.Stays[reflect.TypeFor[Request]()] = []string{"Near"}
	// The place of the connection in its table does not cross; orig is filled below.
	f.Private[reflect.TypeFor[Meta]()] = []string{"orig", "at", "dir", "sound", "again", "counted", "seen", "unknown"}
	f.After[reflect.TypeFor[Meta]()] = func(p any) {
		if f.Chance(20) {
			return
		}
		k := &p.(*Meta).orig
		*k = tuple.Key{
			Src: tuple.Address{Lo: uint64(f.Uint32())}, Dst: tuple.Address{Lo: uint64(f.Uint32())},
			SrcPort: uint16(f.Uint32()), DstPort: uint16(f.Uint32()), Zone: uint16(f.Uint32()), Proto: uint8(f.Uint32()), Family: tuple.IPv4,
		}
		if f.Chance(50) {
			k.Src, k.Dst, k.Family = tuple.Address{Hi: f.Uint64(), Lo: f.Uint64()}, tuple.Address{Hi: f.Uint64(), Lo: f.Uint64()}, tuple.IPv6
		}
	}
	return f
}

// TestValuesCross: every value with a JSON form arrives as it was sent.
func TestValuesCross(t *testing.T) {
	f := newFiller(t, 41)
	for range 300 {
		wiretest.Same(t, wiretest.Value[Conn](f))
		wiretest.Same(t, wiretest.Value[Stats](f))
		wiretest.Same(t, wiretest.Value[ZoneLimit](f))
		wiretest.Same(t, wiretest.Value[PortStats](f))
		wiretest.Same(t, wiretest.Value[Filter](f))
		wiretest.Same(t, wiretest.Value[Label](f))
		wiretest.Same(t, wiretest.Value[Meta](f))
		wiretest.Same(t, wiretest.Value[Request](f))
		wiretest.Same(t, wiretest.Value[Restored](f))
		wiretest.Same(t, wiretest.Value[State](f))
		wiretest.Same(t, wiretest.Value[map[DropReason]State](f))
	}
}

// TestWireNames: what JSON shows is for people to read.
func TestWireNames(t *testing.T) {
	for _, x := range []struct {
		v    any
		want string
	}{
		{State(0), `"0"`},
		{New | Tracked, `"new|trk"`},
		{Tracked | 0x300, `"trk|0x300"`},
		{Label{}, `"0x0"`},
		{Label{1, 2}, `"0x10000000000000002"`},
		{DropZoneFull, `"ct_zone_full"`},
		{Meta{}, `{}`},
	} {
		if text, err := json.Marshal(x.v); err != nil || string(text) != x.want {
			t.Errorf("%#v: %s, %v; expected %s", x.v, text, err, x.want)
		}
	}
	if text, err := json.Marshal(numDropReasons); err == nil {
		t.Errorf("a reason that there is not: %s", text)
	}
}

// TestWrongJSON: what cannot be read is refused, and the error names the place.
func TestWrongJSON(t *testing.T) {
	for _, x := range []struct {
		into       any
		text, want string
	}{
		{new(State), `"new|old"`, `"old" is not a connection state`},
		{new(State), `""`, `"" is not a connection state`},
		{new(State), `"0x100000000"`, `"0x100000000" is not a connection state`},
		{new(Label), `"12"`, `label "12"`},
		{new(Label), `"0x"`, `label "0x"`},
		{new(Label), `"0x1` + strings.Repeat("0", 32) + `"`, "up to 32 hexadecimal digits"},
		{new(Label), `"0x-1"`, `label "0x-1"`},
		{new(DropReason), `"full"`, `"full" is not a drop reason of conntrack`},
		{new(Stats), `{"drops":{"full":1}}`, `"full" is not a drop reason`},
		{new(Stats), `{"natTries":[1,2,3,4,5,6,7,8,9,10,11]}`, "natTries has 11 elements"},
		{new(Stats), `{"entries":"x"}`, "entries"},
		{new(Meta), `{"original":{"src":"10.0.0.1","dst":"fd00::1"}}`, "original: 10.0.0.1 and fd00::1"},
		{new(Meta), `{"original":{}}`, "original:"},
		{new(Meta), `{"original":{"src":"fe80::1%eth0","dst":"fe80::2"}}`, "original:"},
	} {
		before := fmt.Sprintf("%+v", x.into)
		err := json.Unmarshal([]byte(x.text), x.into)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v; expected %s", x.text, err, x.want)
		}
		if after := fmt.Sprintf("%+v", x.into); after != before {
			t.Errorf("%s was refused and left %s", x.text, after)
		}
	}
}

// FuzzUnmarshal: no text makes a decoder panic, and what it takes is sent and arrives
// as it is.
func FuzzUnmarshal(f *testing.F) {
	for _, text := range []string{`"new|trk|0x300"`, `"0x10000000000000002"`, `"ct_full"`, `{"drops":{"ct_full":7},"natTries":[1]}`,
		`{"state":"trk","original":{"zone":1,"src":"10.0.0.1","dst":"10.0.0.2","proto":6,"srcPort":1,"dstPort":2}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzzJSON[State](t, text)
		fuzzJSON[Label](t, text)
		fuzzJSON[DropReason](t, text)
		fuzzJSON[Stats](t, text)
		fuzzJSON[Meta](t, text)
	})
}

func fuzzJSON[T any](t *testing.T, text []byte) {
	var v T
	if json.Unmarshal(text, &v) == nil {
		wiretest.Same(t, v)
	}
}
