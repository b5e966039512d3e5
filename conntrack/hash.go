package conntrack

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
)

// Keys come from the network, so an attacker who could predict a hash would
// choose packets that all fall into one chain, or know the port that NAT will
// take; hence keyed hashes, whose secrets never leave the process (CT-41).
//
// There are two. What NAT chooses is seen by others, and each choice tells them
// a little of the hash: that is SipHash-1-3 (Aumasson and Bernstein, 2012),
// made to be seen. The place in the index is seen by nobody: neither a dump nor
// a packet shows it. So it is enough that it cannot be guessed, and it is
// chainSecret's, at a fifth of the time, for it is computed for every packet.

// secret is SipHash's 128 bits, from which all else is drawn.
type secret [2]uint64

// chainSecret is 448 bits that SipHash has drawn, so that no hash made with
// them tells anything of the secret.
type chainSecret [7]uint64

// chains draws the secret of the index.
func (s secret) chains() (c chainSecret) {
	for i := range c {
		c[i] = s.hashWords(&keyWords{}, uint64(i)) // no key is all zero: it has a family
	}
	return c
}

// hash multiplies secret words, each added to a word of the key without carry,
// to 128 bits and folds those (as in wyhash and Go's own maps). Two keys that
// differ meet with a chance near 2^-64 for one who does not know the secret;
// one who made them meet all the same would be stopped by maxChain. The last
// product is for keys that differ by a pattern in one word.
func (c *chainSecret) hash(w *keyWords) uint64 {
	low := foldedProduct(w[1]^c[0], w[4]^c[1])
	high := foldedProduct(w[0]^c[2], w[3]^c[3])
	return foldedProduct(foldedProduct(low^w[2]^c[4], high^c[5]), c[6])
}

func foldedProduct(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

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
