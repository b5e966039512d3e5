package tuple

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
)

// Keys come from the network. An attacker that could predict a hash would choose packets that all
// fall into one chain, or would know the port that NAT chooses. So hashes are keyed, and the
// secrets never leave the process (CT-41).
//
// There are two hashes:
//
//  1. NAT uses SipHash-1-3 (Aumasson and Bernstein, 2012). Other hosts see the port that NAT
//     chooses, so each choice reveals a little of the hash. SipHash is designed for that.
//  2. The index uses ChainSecret's hash. Neither a dump nor a packet reveals a place in the
//     index, so it is enough that the place cannot be guessed. The hash is computed for every
//     packet, and takes a fifth of SipHash's time.

// Secret is SipHash's 128 bits. All other secrets are derived from it.
type Secret [2]uint64

// ChainSecret is 448 bits that SipHash derives from Secret. It keys the hash of the index, whose
// values reveal nothing of Secret.
type ChainSecret [7]uint64

// Chains derives the secret of the index.
func (s Secret) Chains() (c ChainSecret) {
	for i := range c {
		c[i] = s.hashWords(&Words{}, uint64(i)) // no key is all zero: it has a family
	}
	return c
}

// Hash adds each word of the key to a secret word without carry. It multiplies the sums in pairs
// to 128 bits, and folds the products, as wyhash and Go's own maps do. If the secret is unknown,
// two different keys have one hash with a chance near 2^-64. The index limits its chains, in case
// an attacker knows the secret. The last product is for keys that differ by a pattern in one
// word.
func (c *ChainSecret) Hash(w *Words) uint64 {
	low := FoldedProduct(w[1]^c[0], w[4]^c[1])
	high := FoldedProduct(w[0]^c[2], w[3]^c[3])
	return FoldedProduct(FoldedProduct(low^w[2]^c[4], high^c[5]), c[6])
}

// FoldedProduct is the two halves of a 128-bit product, combined by exclusive or.
func FoldedProduct(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// NewSecret draws a secret from the system's random number source.
func NewSecret() Secret {
	var b [16]byte
	rand.Read(b[:]) // never fails, because crypto/rand ends the process instead
	return Secret{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
}

// sip is SipHash's state of four words.
type sip struct{ v0, v1, v2, v3 uint64 }

// Hash is SipHash-1-3 of a key. Each salt gives an independent hash.
func (s Secret) Hash(k *Key, salt uint64) uint64 {
	w := k.Words()
	return s.hashWords(&w, salt)
}

// hashWords is Hash of a key's words.
func (s Secret) hashWords(words *Words, salt uint64) uint64 {
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
