package store

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/internal/racetest"
	"github.com/antrail/antrail/packet"
)

// TestEntryLayout keeps entries small and out of the garbage collector's way
// (CT-42).
func TestEntryLayout(t *testing.T) {
	c := reflect.TypeFor[Cell]()
	if c.Size() != 192 {
		t.Errorf("a cell takes %d bytes, not three cache lines", c.Size())
	}
	const n = 1 << 16
	x := NewIndex(n)
	if each := c.Size() + uintptr(len(x.heads))*reflect.TypeOf(x.heads).Elem().Size()/n; each > 224 {
		t.Errorf("a connection takes %d bytes with its part of the index, more than 224", each)
	}
	if f := pointerIn(c); f != "" {
		t.Errorf("a cell holds a pointer: %s", f)
	}
}

// pointerIn names the first part of a type that is a Go pointer or holds one.
func pointerIn(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if p := pointerIn(t.Field(i).Type); p != "" {
				return t.Field(i).Name + " " + p
			}
		}
		return ""
	case reflect.Array:
		return pointerIn(t.Elem())
	}
	if t.Kind() <= reflect.Complex128 {
		return ""
	}
	return t.String()
}

// TestTwoLives: a cell is one connection's and then another's, again and again, and the
// new keys come into it word by word. No lookup finds a key that is of both.
func TestTwoLives(t *testing.T) {
	var c Cell
	one, other := tuple.Words{0, 1, 0, 0, 1}, tuple.Words{0, 2, 0, 0, 2}
	both := tuple.Words{0, 2, 0, 0, 1}
	racetest.Beside(func() {
		if gen, found := c.holds(tuple.Original, &both); found {
			t.Errorf("in life %d the cell held what it never does", gen)
		}
	}, func(i int) {
		c.Unlock(2 * uint32(i))
		w := one
		if i%2 == 1 {
			w = other
		}
		setWord(&c.keys[tuple.Original][1], w[1])
		racetest.Linger(100)
		setWord(&c.keys[tuple.Original][4], w[4])
		c.Unlock(2*uint32(i) + 1)
	}, func() bool { return !Live(c.Head()) })
}

// TestStoreOrder: the states of a connection are in its cell only after the numbers that
// belong to them. If a process is killed in between, the next one restores the old states.
func TestStoreOrder(t *testing.T) {
	var c Cell
	racetest.Beside(func() {
		if window, next := uint32(c.mut[6].Load()), uint32(c.mut[4].Load()); int32(next-window) < 0 {
			t.Errorf("state %d goes with number %d", window, next)
		}
	}, func(i int) {
		e := Entry{Keys: [2]tuple.Key{{Proto: packet.ProtoTCP}}}
		e.TCP[tuple.Original] = proto.Peer{Next: uint32(i), Window: uint32(i)}
		c.Store(&e)
	}, func() bool { return c.mut[6].Load()&1 != 0 })
}

// TestChecksum: the checksum of an entry is another one when any bit is, and when
// words from any place on are those of another entry.
func TestChecksum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() (f FixedWords) {
		for i := range f {
			f[i] = r.Uint64() >> (r.Uint64() % 64)
		}
		return f
	}
	for range 1000 {
		f, other := random(), random()
		sum := Checksum(&f)
		for bit := range 64 * len(f) {
			g := f
			if g[bit/64] ^= 1 << (bit % 64); Checksum(&g) == sum {
				t.Fatalf("%x: bit %d makes no difference", f, bit)
			}
		}
		for i := range f {
			g := f
			if copy(g[i:], other[i:]); g != f && Checksum(&g) == sum {
				t.Fatalf("%x: words of %x from %d on make no difference", f, other, i)
			}
		}
	}
	if Checksum(&FixedWords{}) == 0 {
		t.Error("an empty cell has a checksum that holds")
	}
}
