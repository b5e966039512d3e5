package flow

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/wiretest"
)

// newFiller fills keys, matches and fields.
func newFiller(t testing.TB, seed uint64) *wiretest.Filler {
	f := wiretest.New(t, seed)
	f.How[reflect.TypeFor[Key]()] = func() any { return fillKey(f) }
	f.How[reflect.TypeFor[Match]()] = func() any { return fillMatch(f) }
	f.How[reflect.TypeFor[FieldID]()] = func() any { return FieldID(f.IntN(int(NumFields))) }
	return f
}

func fillKey(f *wiretest.Filler) (k Key) {
	for i := range fields {
		if f.Chance(30) && fields[i].Bits > 0 {
			fields[i].Put(&k, Value{f.Uint64(), f.Uint64()}, Ones(128))
		}
	}
	return k
}

func fillMatch(f *wiretest.Filler) (m Match) {
	for i := range fields {
		if f.Chance(30) && fields[i].Bits > 0 {
			mask := Ones(128)
			if f.Chance(50) {
				mask = Value{f.Uint64(), f.Uint64()}
			}
			m.Add(FieldID(i), Value{f.Uint64(), f.Uint64()}.And(mask), mask)
		}
	}
	return m
}

// TestValuesCross: every value with a JSON form arrives as it was sent.
func TestValuesCross(t *testing.T) {
	f := newFiller(t, 11)
	for range 300 {
		wiretest.Same(t, wiretest.Value[*Meter](f))
		wiretest.Same(t, wiretest.Value[Key](f))
		wiretest.Same(t, wiretest.Value[Match](f))
		wiretest.Same(t, wiretest.Value[[]FieldID](f))
	}
}

// TestNamesCross: names arrive, and a nil set stays nil.
func TestNamesCross(t *testing.T) {
	n := NewNames()
	wiretest.Same(t, n)
	wiretest.Same(t, (*Names)(nil))
	n.SetTable(4, "SpoofGuard")
	n.SetTable(0, `od"d`)
	n.SetPort(PortLocal, "br-int")
	n.SetPort(2, "antrea-gw0")
	if err := n.SetTunnelOptions([]TunnelOption{{Index: 3, Class: 0xffff, Type: 0, Size: 8}, {Index: 0, Class: 0x102, Type: 0x80, Size: 4}}); err != nil {
		t.Fatal(err)
	}
	wiretest.Same(t, n)
	if reflect.TypeFor[Names]().NumField() != 3 {
		t.Error("Names has other fields than tables, ports and options: they must cross too")
	}
}

// TestKeyStrayBit: a bit that no field has is refused, not dropped.
func TestKeyStrayBit(t *testing.T) {
	for i := range KeySize {
		for bit := range 8 {
			var k, known Key
			k[i] = 1 << bit
			for id := Reg0; id < NumFields; id++ {
				f := FieldByID(id)
				f.Put(&known, f.Get(&k), Ones(128))
			}
			_, err := json.Marshal(k)
			if (known == k) != (err == nil) {
				t.Errorf("byte %d, bit %d: %v", i, bit, err)
			}
			_, err = json.Marshal(Match{Mask: k})
			if (known == k) != (err == nil) {
				t.Errorf("mask, byte %d, bit %d: %v", i, bit, err)
			}
		}
	}
}

// TestBareEntries: an entry or a group has no JSON of its own.
func TestBareEntries(t *testing.T) {
	for _, x := range []any{Entry{}, &Entry{}, Group{}, &Group{}, Program{Entries: []*Entry{{}}}} {
		if b, err := json.Marshal(x); err == nil {
			t.Errorf("%T is %s", x, b)
		}
	}
}

// TestWrongJSON: unreadable JSON is refused, and the error names the place.
func TestWrongJSON(t *testing.T) {
	for _, x := range []struct {
		into       any
		text, want string
	}{
		{new(Names), `{"tables":{"256":"x"}}`, "names:"},
		{new(Names), `{"tables":{"1":"x","2":"x"}}`, `tables 1 and 2 are both called "x"`},
		{new(Names), `{"ports":{"1":"x","2":"x"}}`, `ports 1 and 2 are both called "x"`},
		{new(Key), `{"xreg0":"1"}`, `"xreg0" is not the name of a whole field`},
		{new(Key), `{"reg0":"0x100000000"}`, "reg0: column 1:"},
		{new(Key), `{"reg0":1}`, "fields of a packet:"},
		{new(Key), `{"ct_state":"+new"}`, "ct_state: column 1:"},
		{new(Key), `{"eth_src":"0a:00"}`, "eth_src: column 1:"},
		{new(Match), `{"reg0":"3/1"}`, "reg0: column 1: the value 3 has bits outside its mask 1"},
		{new(Match), `{"reg0":"3/"}`, "reg0: column 3:"},
		{new(FieldID), `"reg77"`, `no field is called "reg77"`},
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

// fuzzJSON: a value that a decoder accepts arrives unchanged after it is sent.
func fuzzJSON[T any](t *testing.T, text []byte) {
	var v T
	if json.Unmarshal(text, &v) == nil {
		wiretest.Same(t, v)
	}
}

// FuzzUnmarshalKey: no text makes the decoder of a key or a match panic, and accepted values
// arrive unchanged.
func FuzzUnmarshalKey(f *testing.F) {
	f.Add([]byte(`{"reg0":"0x3","in_port":"7","ct_state":"new|trk","ip_dst":"10.96.0.1","eth_src":"0a:00:00:00:00:01"}`))
	f.Add([]byte(`{"reg0":"0x3/0xf","ipv6_src":"fd00::1","ip_frag":"3"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzzJSON[Key](t, text)
		fuzzJSON[Match](t, text)
	})
}

// FuzzUnmarshalNames: likewise.
func FuzzUnmarshalNames(f *testing.F) {
	f.Add([]byte(`{"tables":{"4":"SpoofGuard"},"ports":{"2":"antrea-gw0"}}`))
	f.Fuzz(func(t *testing.T, text []byte) { fuzzJSON[*Names](t, text) })
}
