package flow

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

// Minimatch is the form in which entries keep a match: only the words of the key in which the
// mask has a bit. A Match has 752 bytes, of which most entries use fewer than 80. The name is
// that of Open vSwitch's struct for the same purpose.
//
// It is immutable and comparable: equal matches are equal Minimatches. The zero value matches
// every packet.
type Minimatch struct {
	// words has, 8 bytes each: a bitmap of the key's words, these words of the mask, and the same
	// words of the value. It is empty if the mask is.
	words string
}

// Minimask is the mask of a Minimatch. It is comparable, so it can be a map key.
type Minimask struct{ words string }

// Mini returns the match in its short form.
func (m *Match) Mini() Minimatch {
	var room [maxMini]byte
	return Minimatch{string(m.appendMini(room[:0]))}
}

// maxMini is the length of the longest Minimatch.
const maxMini = 8 + 2*KeySize

// appendMini appends Minimatch.words.
func (m *Match) appendMini(b []byte) []byte {
	var has uint64
	for i := range KeyWords {
		if m.Mask.Word(i) != 0 {
			has |= 1 << i
		}
	}
	if has == 0 {
		return b
	}
	b = binary.LittleEndian.AppendUint64(b, has)
	for _, k := range []*Key{&m.Mask, &m.Value} {
		for left := has; left != 0; left &= left - 1 {
			i := bits.TrailingZeros64(left)
			b = append(b, k[8*i:8*i+8]...)
		}
	}
	return b
}

// MinimatchRoom makes many Minimatches in few objects, because the garbage collector visits each
// object. All Minimatches of an object stay in memory as long as one is in use.
type MinimatchRoom struct{ room strings.Builder }

// minimatchBytes is the size of an object of a MinimatchRoom.
const minimatchBytes = 4 << 10

// Mini returns m in its short form.
func (r *MinimatchRoom) Mini(m *Match) Minimatch {
	var made [maxMini]byte
	b := m.appendMini(made[:0])
	if r.room.Cap()-r.room.Len() < len(b) {
		r.room.Reset()
		r.room.Grow(minimatchBytes)
	}
	r.room.Write(b)
	all := r.room.String()
	return Minimatch{all[len(all)-len(b):]}
}

// has is the bitmap of the key's words that the mask has.
func (m Minimatch) has() uint64 {
	if m.words == "" {
		return 0
	}
	return wordAt(m.words, 0)
}

// half is the offset of the value's words.
func (m Minimatch) half() int {
	if m.words == "" {
		return 0
	}
	return 8 + (len(m.words)-8)/2
}

// wordAt reads a word. The compiler makes no copy, because the slice is never written.
func wordAt(s string, at int) uint64 { return binary.LittleEndian.Uint64([]byte(s[at : at+8])) }

// expand puts words into a key.
func expand(k *Key, has uint64, words string) {
	for at := 0; has != 0; has &= has - 1 {
		i := bits.TrailingZeros64(has)
		copy(k[8*i:8*i+8], words[at:])
		at += 8
	}
}

// Expand returns the whole match.
func (m Minimatch) Expand() (full Match) {
	if m.words != "" {
		half := m.half()
		expand(&full.Mask, m.has(), m.words[8:half])
		expand(&full.Value, m.has(), m.words[half:])
	}
	return full
}

// Value returns the value of the whole match.
func (m Minimatch) Value() (k Key) {
	expand(&k, m.has(), m.words[m.half():])
	return k
}

// Word returns a word of the value, as Key.Word does.
func (m Minimatch) Word(i int) uint64 {
	has := m.has()
	if has>>i&1 == 0 {
		return 0
	}
	return wordAt(m.words, m.half()+8*bits.OnesCount64(has&(1<<i-1)))
}

// Mask returns the mask.
func (m Minimatch) Mask() Minimask { return Minimask{m.words[:m.half()]} }

// Key returns the whole mask.
func (m Minimask) Key() (k Key) {
	if m.words != "" {
		expand(&k, wordAt(m.words, 0), m.words[8:])
	}
	return k
}

// IsAny reports whether m matches every packet.
func (m Minimatch) IsAny() bool { return m.words == "" }

// Get is Match.Get. It is cheap for a field that m does not match on.
func (m Minimatch) Get(id FieldID) (value, mask Value) {
	if m.has()&fieldWords[id] == 0 {
		return Value{}, Value{}
	}
	full := m.Expand()
	return full.Get(id)
}

// Matches is Match.Matches.
func (m Minimatch) Matches(k *Key) bool {
	full := m.Expand()
	return full.Matches(k)
}

// Implies is Match.Implies.
func (m Minimatch) Implies(p Prereq) bool {
	full := m.Expand()
	return full.Implies(p)
}

// Within is Match.Within.
func (m Minimatch) Within(wider *Match) bool {
	full := m.Expand()
	return full.Within(wider)
}

// String is Match.String.
func (m Minimatch) String() string { return m.Text(nil) }

// Text is Match.Text.
func (m Minimatch) Text(n *Names) string { return string(m.AppendText(nil, n)) }

// AppendText is Match.AppendText.
func (m Minimatch) AppendText(b []byte, n *Names) []byte {
	p := matchPrinter{m: m.Expand(), names: n, b: b, start: len(b)}
	return p.print()
}
