package flow

import (
	"math/rand/v2"
	"testing"
)

// unions are the bytes of the Key that several fields share on purpose. The first
// field owns them, the others are other names or parts.
var unions = map[FieldID][]FieldID{
	VlanTCI: {VlanVID, VlanPCP},
	IPTOS:   {IPDSCP, IPECN},
	IPSrc:   {ArpSPA},
	IPDst:   {ArpTPA},
	TCPSrc:  {UDPSrc, SCTPSrc, ICMPType, ICMPv6Type},
	TCPDst:  {UDPDst, SCTPDst, ICMPCode, ICMPv6Code},
	ArpSHA:  {NDSLL},
	ArpTHA:  {NDTLL},
}

// padding are the bytes of the Key that belong to no field and stay 0.
var padding = map[int]bool{offPad1: true, offPad2: true, offPad2 + 1: true, offPad2 + 2: true, offPad2 + 3: true}

// Every byte of the Key belongs to one field, is padding, or is shared by a
// declared union. This test fails when a new field breaks that.
func TestRegistryCoversKey(t *testing.T) {
	shared := map[FieldID]bool{}
	for owner, parts := range unions {
		for _, p := range parts {
			shared[p] = true
			o, f := FieldByID(owner), FieldByID(p)
			if f.Off < o.Off || f.Off+f.Size > o.Off+o.Size {
				t.Errorf("%s is declared a part of %s and lies outside it", f.Name, o.Name)
			}
		}
	}
	var owner [KeySize]string
	for id := Reg0; id < NumFields; id++ {
		f := FieldByID(id)
		if shared[id] || id >= XReg0 && id < ConjID { // xreg and xxreg are unions of registers
			continue
		}
		for i := f.Off; i < f.Off+f.Size; i++ {
			if owner[i] != "" {
				t.Errorf("byte %d of the key belongs to %s and to %s; declare a union or move one", i, owner[i], f.Name)
			}
			owner[i] = f.Name
		}
	}
	for i, name := range owner {
		if (name == "") != padding[i] {
			t.Errorf("byte %d of the key belongs to %q, padding %v", i, name, padding[i])
		}
	}
}

// Each row is whole: an ID, a place that holds its bits, and names that find only
// this row.
func TestRegistryRows(t *testing.T) {
	names := map[string]FieldID{}
	for id := Reg0; id < NumFields; id++ {
		f := FieldByID(id)
		if f.ID != id || f.Name == "" {
			t.Fatalf("field %d has no row", id)
		}
		if f.Off < 0 || f.Off+f.Size > KeySize || f.Lsb+f.Bits > 8*f.Size || f.Bits < 1 {
			t.Errorf("%s: %d bits above %d do not lie in %d bytes at %d", f.Name, f.Bits, f.Lsb, f.Size, f.Off)
		}
		for _, n := range []string{f.Name, f.Alias, f.NXM, f.OXM} {
			if n == "" {
				continue
			}
			if other, again := names[n]; again {
				t.Errorf("%s names %s and %s", n, FieldByID(other).Name, f.Name)
			}
			names[n] = id
			if FieldByName(n) != f {
				t.Errorf("%s does not lead to its field", n)
			}
		}
		if f.NXM == "" && !f.ReadOnly {
			t.Errorf("%s has no header name, so no action can name it, but it is not read-only", f.Name)
		}
	}
}

// A union of registers begins with its first register, highest bits first.
func TestRegisterUnions(t *testing.T) {
	var k Key
	for i := range 16 {
		k.SetReg(i, uint32(0x01010101*(i+1)))
	}
	if got, want := FieldByID(XReg0+1).Get(&k), (Value{Lo: 0x03030303_04040404}); got != want {
		t.Errorf("xreg1 = %x, want %x", got, want)
	}
	if got, want := FieldByID(XXReg0+3).Get(&k), (Value{0x0d0d0d0d_0e0e0e0e, 0x0f0f0f0f_10101010}); got != want {
		t.Errorf("xxreg3 = %x, want %x", got, want)
	}
}

// Put and Get are each other's inverse and touch no other bit, for whole fields
// and subfields.
func TestPutGet(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	for id := Reg0; id < NumFields; id++ {
		f := FieldByID(id)
		for range 50 {
			var before Key
			for i := range before {
				before[i] = byte(r.Uint32())
			}
			s := Subfield{Field: id, Ofs: uint8(r.IntN(f.Bits))}
			s.N = uint8(1 + r.IntN(f.Bits-int(s.Ofs)))
			v := Value{r.Uint64(), r.Uint64()}.And(Ones(int(s.N)))
			k := before
			s.Put(&k, v)
			if got := s.Get(&k); got != v {
				t.Fatalf("%s[%d..+%d]: put %x, got %x", f.Name, s.Ofs, s.N, v, got)
			}
			s.Put(&k, s.Get(&before))
			if k != before {
				t.Fatalf("%s[%d..+%d]: other bits changed", f.Name, s.Ofs, s.N)
			}
		}
	}
}
