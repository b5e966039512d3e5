package tuple

import (
	"slices"
	"testing"
)

func TestHashDependsOnEverything(t *testing.T) {
	base := Key{Address{1, 2}, Address{3, 4}, 5, 6, 7, 8, IPv4}
	seen := map[uint64]int{}
	variants := []Key{
		base,
		{Address{0, 2}, Address{3, 4}, 5, 6, 7, 8, IPv4},
		{Address{1, 0}, Address{3, 4}, 5, 6, 7, 8, IPv4},
		{Address{1, 2}, Address{0, 4}, 5, 6, 7, 8, IPv4},
		{Address{1, 2}, Address{3, 0}, 5, 6, 7, 8, IPv4},
		{Address{1, 2}, Address{3, 4}, 0, 6, 7, 8, IPv4},
		{Address{1, 2}, Address{3, 4}, 5, 0, 7, 8, IPv4},
		{Address{1, 2}, Address{3, 4}, 5, 6, 0, 8, IPv4},
		{Address{1, 2}, Address{3, 4}, 5, 6, 7, 0, IPv4},
		{Address{1, 2}, Address{3, 4}, 5, 6, 7, 8, IPv6},
	}
	for i, k := range variants {
		for _, s := range []Secret{{1, 2}, {2, 1}} {
			chains, w := s.Chains(), k.Words()
			for _, h := range []uint64{s.Hash(&k, 0), s.Hash(&k, 1), chains.Hash(&w)} {
				if j, dup := seen[h]; dup {
					t.Errorf("variants %d and %d have one hash", i, j)
				}
				seen[h] = i
			}
		}
	}
	if first, second := NewSecret(), NewSecret(); first == second {
		t.Error("two tables drew one secret")
	}
}

// TestHashSpreads counts keys that differ in a few bits of one field, by the
// lowest and by the highest bits of their hash.
func TestHashSpreads(t *testing.T) {
	s := Secret{1, 2}
	chains := s.Chains()
	const buckets = 1 << 10
	fields := []func(k *Key, i int){
		func(k *Key, i int) { k.Src.Lo = uint64(i) << 4 },
		func(k *Key, i int) { k.Src.Hi = uint64(i) << 32 },
		func(k *Key, i int) { k.Dst.Lo = uint64(i) },
		func(k *Key, i int) { k.Dst.Hi = uint64(i) << 48 },
		func(k *Key, i int) { k.SrcPort = uint16(i) },
		func(k *Key, i int) { k.DstPort = uint16(i) << 2 },
		func(k *Key, i int) { k.Zone = uint16(i) },
		func(k *Key, i int) { k.SrcPort, k.Src.Lo = uint16(i)&0xff, uint64(i>>8) },
	}
	for field, set := range fields {
		var count [4][buckets]int
		for i := range 16 * buckets {
			k := Key{Src: Address{Lo: 0x0a000001}, Dst: Address{Lo: 0x0a600001}, Proto: 17, Family: IPv4}
			set(&k, i)
			w := k.Words()
			for j, h := range []uint64{s.Hash(&k, 0), chains.Hash(&w)} {
				count[2*j][h%buckets]++
				count[2*j+1][h>>54]++
			}
		}
		for j := range count {
			if most := slices.Max(count[j][:]); most > 42 { // mean 16; 42 is 6.5 standard deviations
				t.Errorf("field %d: %d keys of %d fall into one of %d chains of kind %d", field, most, 16*buckets, buckets, j)
			}
		}
	}
}
