package conntrack

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
)

// secret seeds the hash of a table. Keys come from the network, so an attacker
// who could predict the hash would choose packets that all fall into one
// chain; hence a keyed hash, SipHash-1-3 (Aumasson and Bernstein, 2012), with
// 128 secret bits that never leave the process (CT-41).
type secret [2]uint64

// newSecret draws a secret from the system's random source.
func newSecret() secret {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return secret{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
}

// sip is SipHash's state of four words.
type sip struct{ v0, v1, v2, v3 uint64 }

// hash is the keyed hash of a key; salt gives independent hashes of one key.
func (s secret) hash(k *key, salt uint64) uint64 {
	w := k.words()
	return s.hashWords(&w, salt)
}

// hashWords is hash of a key's words.
func (s secret) hashWords(words *keyWords, salt uint64) uint64 {
	h := sip{
		s[0] ^ 0x736f6d6570736575, s[1] ^ 0x646f72616e646f6d,
		s[0] ^ 0x6c7967656e657261, s[1] ^ 0x7465646279746573,
	}
	for _, w := range words {
		h.absorb(w)
	}
	h.absorb(salt)
	h.v2 ^= 0xff
	h.round()
	h.round()
	h.round()
	return h.v0 ^ h.v1 ^ h.v2 ^ h.v3
}

func (h *sip) absorb(w uint64) {
	h.v3 ^= w
	h.round()
	h.v0 ^= w
}

func (h *sip) round() {
	h.v0 += h.v1
	h.v2 += h.v3
	h.v1 = bits.RotateLeft64(h.v1, 13) ^ h.v0
	h.v3 = bits.RotateLeft64(h.v3, 16) ^ h.v2
	h.v0 = bits.RotateLeft64(h.v0, 32)
	h.v2 += h.v1
	h.v0 += h.v3
	h.v1 = bits.RotateLeft64(h.v1, 17) ^ h.v2
	h.v3 = bits.RotateLeft64(h.v3, 21) ^ h.v0
	h.v2 = bits.RotateLeft64(h.v2, 32)
}
