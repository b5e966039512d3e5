// Package wiretest tests values that cross to another process as JSON. It fills values by
// reflection, so it also fills fields that are added later. The test fails if a field does not
// cross.
package wiretest

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Filler fills values at random.
type Filler struct {
	*rand.Rand
	t testing.TB
	// How makes the values of types that reflection alone would fill wrongly.
	How map[reflect.Type]func() any
	// Private names the unexported fields of a struct that do not cross, or that After sets. Fill
	// fails the test at any other unexported field.
	Private map[reflect.Type][]string
	// Stays names the exported fields that cannot cross and stay zero.
	Stays map[reflect.Type][]string
	// After changes a struct once its exported fields are filled; it gets a pointer.
	After map[reflect.Type]func(any)
}

// New makes a filler. Its seed is logged; WIRE_SEED sets another.
func New(t testing.TB, seed uint64) *Filler {
	if s := os.Getenv("WIRE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("WIRE_SEED: %v", err)
		}
	}
	t.Logf("seed %d", seed)
	f := &Filler{Rand: rand.New(rand.NewPCG(seed, 1)), t: t,
		Private: map[reflect.Type][]string{}, Stays: map[reflect.Type][]string{}, After: map[reflect.Type]func(any){}}
	f.How = map[reflect.Type]func() any{
		reflect.TypeFor[netip.Addr](): func() any { return f.addr() },
		reflect.TypeFor[netip.AddrPort](): func() any {
			if a := f.addr(); a.IsValid() {
				return netip.AddrPortFrom(a, uint16(f.Uint32()))
			}
			return netip.AddrPort{}
		},
		reflect.TypeFor[netip.Prefix](): func() any {
			a := f.addr()
			if !a.IsValid() {
				return netip.Prefix{}
			}
			return netip.PrefixFrom(a, f.IntN(a.BitLen()+1))
		},
		// A time crosses as its wall clock, in UTC.
		reflect.TypeFor[time.Time](): func() any { return time.Unix(int64(f.Uint32()), int64(f.IntN(1e9))).UTC() },
	}
	return f
}

// Chance is true in a percentage of its calls.
func (f *Filler) Chance(percent int) bool { return f.IntN(100) < percent }

// Bytes is n random bytes.
func (f *Filler) Bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(f.Uint32())
	}
	return b
}

func (f *Filler) addr() netip.Addr {
	switch b := f.Bytes(16); {
	case f.Chance(10):
		return netip.Addr{}
	case f.Chance(50):
		return netip.AddrFrom4([4]byte(b))
	default:
		return netip.AddrFrom16([16]byte(b))
	}
}

// Fill fills what p points to. Most numbers, texts and pointers are not zero.
func (f *Filler) Fill(p any) { f.fill(reflect.ValueOf(p).Elem(), 0) }

// Value is a filled value of a type.
func Value[T any](f *Filler) (v T) {
	f.Fill(&v)
	return v
}

func (f *Filler) fill(v reflect.Value, depth int) {
	if how := f.How[v.Type()]; how != nil {
		if x := reflect.ValueOf(how()); x.IsValid() {
			v.Set(x)
		}
		return
	}
	if depth > 12 {
		f.t.Fatalf("%v nests too deep", v.Type())
	}
	switch v.Kind() {
	case reflect.Struct:
		f.fillStruct(v, depth)
	case reflect.Pointer:
		if f.Chance(80) {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if f.Chance(80) {
			v.Set(reflect.MakeSlice(v.Type(), f.IntN(4), 4))
		}
		f.fillEach(v, depth)
	case reflect.Array:
		f.fillEach(v, depth)
	case reflect.Map:
		f.fillMap(v, depth)
	default:
		f.fillPlain(v)
	}
}

func (f *Filler) fillEach(v reflect.Value, depth int) {
	for i := range v.Len() {
		f.fill(v.Index(i), depth+1)
	}
}

func (f *Filler) fillStruct(v reflect.Value, depth int) {
	t := v.Type()
	for i := range t.NumField() {
		switch field := t.Field(i); {
		case slices.Contains(f.Stays[t], field.Name), slices.Contains(f.Private[t], field.Name):
		case !field.IsExported():
			f.t.Fatalf("%v has an unexported field %s: it must cross, and the test must fill it", t, field.Name)
		default:
			f.fill(v.Field(i), depth+1)
		}
	}
	if after := f.After[t]; after != nil {
		after(v.Addr().Interface())
	}
}

func (f *Filler) fillMap(v reflect.Value, depth int) {
	if f.Chance(20) {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for range f.IntN(4) {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, depth+1)
		f.fill(value, depth+1)
		v.SetMapIndex(key, value)
	}
}

func (f *Filler) fillPlain(v reflect.Value) {
	small := f.Chance(30)
	switch {
	case f.Chance(10): // stays zero
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt() && small:
		v.SetInt(int64(f.IntN(100)))
	case v.CanInt():
		v.SetInt(int64(f.Uint64()) >> (64 - v.Type().Bits()))
	case v.CanUint() && small:
		v.SetUint(uint64(f.IntN(100)))
	case v.CanUint():
		v.SetUint(f.Uint64() >> (64 - v.Type().Bits()))
	case v.CanFloat():
		v.SetFloat(f.NormFloat64())
	case v.Kind() == reflect.String:
		v.SetString([]string{"a", "tx ring full", `"quoted\`, "<&>", "ü\u2028", "\x00\n"}[f.IntN(6)])
	default:
		f.t.Fatalf("no way to fill %v", v.Type())
	}
}

// Cross returns a value after JSON. It encodes it by json.Marshal, and by an encoder that escapes
// nothing for HTML: both must arrive equal. The caller compares the value with the result, or
// calls Same.
func Cross[T any](t testing.TB, v T) (got T) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%+v cannot be sent: %v", v, err)
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("what was sent is refused: %v\n%s", err, text)
	}
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	var other T
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(plain.Bytes(), &other); err != nil {
		t.Fatalf("what was sent without escapes is refused: %v\n%s", err, plain.Bytes())
	}
	if !reflect.DeepEqual(got, other) {
		t.Fatalf("with escapes for HTML and without them, other values arrive:\n%+v\n%+v", got, other)
	}
	return got
}

// Same fails the test unless v arrives as it was sent.
func Same[T any](t testing.TB, v T) {
	t.Helper()
	if got := Cross(t, v); !reflect.DeepEqual(got, v) {
		text, _ := json.Marshal(v)
		t.Fatalf("%T was sent:\n%+v\nand arrived:\n%+v\nas\n%s", v, v, got, text)
	}
}
