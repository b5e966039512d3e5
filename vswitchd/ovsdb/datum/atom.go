package datum

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
)

// Kind is the kind of an atom.
type Kind uint8

// The kinds of atoms.
const (
	Integer Kind = iota
	Boolean
	String
	UUID
)

// String is the kind's name in a schema.
func (k Kind) String() string { return [...]string{"integer", "boolean", "string", "uuid"}[k] }

// ID is a UUID: the name of a row.
type ID [16]byte

// NewID makes a random UUID (RFC 9562 version 4).
func NewID() (id ID) {
	_, _ = rand.Read(id[:]) // it never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// ParseID reads a UUID.
func ParseID(s string) (id ID, err error) {
	digits := strings.ReplaceAll(s, "-", "")
	if len(s) == 36 && len(digits) == 32 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		if _, err := hex.Decode(id[:], []byte(digits)); err == nil {
			return id, nil
		}
	}
	return ID{}, Syntaxf("%.60q is not a UUID", s)
}

// String is the UUID with its four hyphens.
func (id ID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// Atom is one value.
type Atom struct {
	Kind Kind
	Num  int64 // of Integer; 0 or 1 of Boolean
	Str  string
	ID   ID
}

// Int makes an integer.
func Int(n int64) Atom { return Atom{Kind: Integer, Num: n} }

// Text makes a string.
func Text(s string) Atom { return Atom{Kind: String, Str: s} }

// Ref makes a UUID.
func Ref(id ID) Atom { return Atom{Kind: UUID, ID: id} }

// Bool makes a boolean.
func Bool(b bool) Atom {
	if b {
		return Atom{Kind: Boolean, Num: 1}
	}
	return Atom{Kind: Boolean}
}

// Compare orders atoms of one kind.
func Compare(a, b Atom) int {
	switch a.Kind {
	case String:
		return strings.Compare(a.Str, b.Str)
	case UUID:
		return strings.Compare(string(a.ID[:]), string(b.ID[:]))
	}
	return cmp.Compare(a.Num, b.Num)
}
