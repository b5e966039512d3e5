package datum

import (
	"encoding/json"
	"reflect"
	"testing"
	"testing/quick"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
)

// numbers and pairs are a set of integers and a map of strings to integers.
var (
	numbers = Type{Key: NewBase(Integer), Max: Unlimited}
	pairs   = Type{Key: NewBase(String), Value: &Base{Kind: Integer, Least: -1 << 63, Most: 1<<63 - 1}, Max: Unlimited}
	scalar  = Type{Key: NewBase(Integer), Max: 1}
)

// TestDiff: Apply follows what Diff made, for sets, maps and columns of one atom.
func TestDiff(t *testing.T) {
	ofSet := func(m map[int64]bool) (d Datum) {
		for n := range m {
			d.Keys = append(d.Keys, Int(n%8))
		}
		return Set(d.Keys...)
	}
	check := func(a, b map[int64]bool, c, d map[string]int64) bool {
		ok := true
		for _, e := range []struct {
			t        *Type
			from, to Datum
		}{{&numbers, ofSet(a), ofSet(b)}, {&pairs, IntMap(c), IntMap(d)}, {&pairs, IntMap(c), IntMap(map[string]int64{"": 1})}, {&scalar, One(Int(1)), Datum{}}} {
			ok = ok && Equal(Apply(e.t, e.from, Diff(e.t, e.from, e.to)), e.to)
		}
		return ok
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
	from, to := IntMap(map[string]int64{"a": 1, "b": 2, "c": 3}), IntMap(map[string]int64{"b": 2, "c": 4, "d": 5})
	if got, want := Diff(&pairs, from, to), IntMap(map[string]int64{"a": 1, "c": 4, "d": 5}); !Equal(got, want) {
		t.Errorf("the difference is %v, want %v", got, want)
	}
}

// TestSets: what the mutators and the functions of conditions do with sets and maps.
func TestSets(t *testing.T) {
	a, b := Set(Int(3), Int(1), Int(3), Int(2)), Set(Int(2), Int(4))
	for _, c := range []struct{ got, want any }{
		{Union(a, b).Keys, Set(Int(1), Int(2), Int(3), Int(4)).Keys},
		{Subtract(a, b).Keys, Set(Int(1), Int(3)).Keys},
		{Includes(a, Set(Int(1), Int(3))), true},
		{Includes(a, b), false},
		{Excludes(a, b), false},
		{Excludes(a, Set(Int(9))), true},
		{Union(TextMap(map[string]string{"a": "1"}), TextMap(map[string]string{"a": "2", "b": "3"})), TextMap(map[string]string{"a": "1", "b": "3"})},
		{SubtractKeys(TextMap(map[string]string{"a": "1", "b": "2"}), Texts("a")), TextMap(map[string]string{"b": "2"})},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}

// TestIDs: a UUID is read as it is written, and nothing else is one.
func TestIDs(t *testing.T) {
	id := NewID()
	if again, err := ParseID(id.String()); err != nil || again != id {
		t.Errorf("%s: %s, %v", id, again, err)
	}
	for _, s := range []string{"", "x", id.String() + "0", "0000000000000000-0000-0000-000000000000", "00000000-0000-0000-0000-00000000000g", "0000000-00000-0000-0000-000000000000", "00000000-0000-0000-0000--0000000000-"} {
		if _, err := ParseID(s); err == nil {
			t.Errorf("%q is taken for a UUID", s)
		}
	}
}

// FuzzParse: whatever a peer sends as a value is an error, or a value that is written as what
// it was read from.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`1`, `"a"`, `["set",[1,2]]`, `["map",[["a",1],["b",2]]]`, `["uuid","00000000-0000-0000-0000-000000000001"]`, `["named-uuid","x"]`, `["set",[["uuid","x"]]]`, `true`, `{}`, `["map",[[]]]`} {
		f.Add(s)
	}
	types := []*Type{&numbers, &pairs, &scalar, {Key: NewBase(UUID), Max: Unlimited}, {Key: NewBase(String), Min: 1, Max: 1}, {Key: NewBase(Boolean), Max: 2}}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := jsonrpc.Decode([]byte(s))
		if err != nil {
			return
		}
		for _, typ := range types {
			d, err := typ.Parse(v, func(string) ID { return ID{1} })
			if err != nil {
				continue
			}
			_ = typ.Check(d)
			text, err := jsonrpc.Encode(typ.JSONOf(d))
			if err != nil {
				t.Fatal(err)
			}
			again, err := jsonrpc.Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			e, err := typ.Parse(again, nil)
			if err != nil || !Equal(d, e) {
				t.Errorf("%s is read as %v, written as %s and read as %v, %v", s, d, text, e, err)
			}
		}
	})
}

// TestNumbersStayExact: an integer of 64 bits does not pass through a float.
func TestNumbersStayExact(t *testing.T) {
	d, err := scalar.Parse(json.Number("9223372036854775807"), nil)
	if err != nil || d.Keys[0].Num != 1<<63-1 {
		t.Errorf("%v, %v", d, err)
	}
}
