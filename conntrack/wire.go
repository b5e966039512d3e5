package conntrack

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/conntrack/tuple"
)

// The values that this package reports, as JSON for another process. For most types the tags of
// their fields are enough. These types have methods:
//
//	State       words joined by "|": "new|trk"; "0" for none
//	Label       128 bits in hexadecimal, as dumps show it
//	DropReason  its name
//	Stats       refused packets as an object by DropReason, those that are not 0
//	Meta        state, zone, mark, label and the original tuple
//
// The JSON of a Meta omits the place of its connection, and that of a Request omits Near. Both
// have a meaning only for one table. So a decoded Meta is only for reading.

// stateWords names the bits of a State: element i is bit i.
var stateWords = [...]string{"new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"}

// MarshalText implements encoding.TextMarshaler. Bits without a name become one hexadecimal
// number after the words.
func (s State) MarshalText() ([]byte, error) {
	var b []byte
	for i, word := range stateWords {
		if s>>i&1 != 0 {
			b = append(append(b, word...), '|')
		}
	}
	if rest := s >> len(stateWords) << len(stateWords); rest != 0 {
		b = append(strconv.AppendUint(append(b, "0x"...), uint64(rest), 16), '|')
	}
	if len(b) == 0 {
		return []byte("0"), nil
	}
	return b[:len(b)-1], nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The error names the word.
func (s *State) UnmarshalText(text []byte) error {
	var got State
	for word := range strings.SplitSeq(string(text), "|") {
		bit, err := stateBits(word)
		if err != nil {
			return err
		}
		got |= bit
	}
	*s = got
	return nil
}

// stateBits reads a word, or a number.
func stateBits(word string) (State, error) {
	if i := slices.Index(stateWords[:], word); i >= 0 {
		return 1 << i, nil
	}
	n, err := strconv.ParseUint(word, 0, 32)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a connection state; expected one of %s", word, strings.Join(stateWords[:], " "))
	}
	return State(n), nil
}

// MarshalText implements encoding.TextMarshaler.
func (l Label) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It reads 0x and up to 32 digits.
func (l *Label) UnmarshalText(text []byte) (err error) {
	digits, hex := strings.CutPrefix(string(text), "0x")
	low := max(0, len(digits)-16)
	var got Label
	if low > 0 {
		got.Hi, err = strconv.ParseUint(digits[:low], 16, 64)
	}
	if err == nil {
		got.Lo, err = strconv.ParseUint(digits[low:], 16, 64)
	}
	if !hex || err != nil {
		return fmt.Errorf("label %.60q: expected 0x and up to 32 hexadecimal digits", text)
	}
	*l = got
	return nil
}

// MarshalText implements encoding.TextMarshaler. The error is for a number that is not a reason.
func (r DropReason) MarshalText() ([]byte, error) {
	if r >= numDropReasons {
		return nil, fmt.Errorf("no reason of conntrack has the number %d", r)
	}
	return []byte(r.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The error names the text.
func (r *DropReason) UnmarshalText(text []byte) error {
	i := slices.Index(dropNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("%.40q is not a drop reason of conntrack; expected one of %s", text, strings.Join(dropNames[:], " "))
	}
	*r = DropReason(i)
	return nil
}

// plainStats is Stats without its methods. wireStats hides its fields Drops and NATTries.
type plainStats Stats

type wireStats struct {
	*plainStats
	Drops    map[DropReason]uint64 `json:"drops"`
	NATTries []uint64              `json:"natTries"`
}

// MarshalJSON implements json.Marshaler.
func (s Stats) MarshalJSON() ([]byte, error) {
	w := wireStats{(*plainStats)(&s), map[DropReason]uint64{}, s.NATTries[:]}
	for r, n := range s.Drops {
		if n != 0 {
			w.Drops[DropReason(r)] = n
		}
	}
	return json.Marshal(w)
}

// UnmarshalJSON implements json.Unmarshaler. The error names the reason or the field.
func (s *Stats) UnmarshalJSON(b []byte) error {
	var got Stats
	w := wireStats{plainStats: (*plainStats)(&got)}
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("counters of conntrack: %w", err)
	}
	if len(w.NATTries) > natTryBuckets {
		return fmt.Errorf("counters of conntrack: natTries has %d elements; expected %d", len(w.NATTries), natTryBuckets)
	}
	copy(got.NATTries[:], w.NATTries)
	for r, n := range w.Drops {
		got.Drops[r] = n
	}
	*s = got
	return nil
}

// plainMeta is Meta without its methods.
type plainMeta Meta

type wireMeta struct {
	*plainMeta
	// Original is the original tuple before NAT, absent for an untracked packet.
	Original *wireKey `json:"original,omitzero"`
}

// wireKey is a key as JSON. For ICMP, srcPort is the identifier, and dstPort has the
// type in its upper byte and the code in its lower one.
type wireKey struct {
	Zone    uint16     `json:"zone"`
	Src     netip.Addr `json:"src"`
	Dst     netip.Addr `json:"dst"`
	Proto   uint8      `json:"proto"`
	SrcPort uint16     `json:"srcPort"`
	DstPort uint16     `json:"dstPort"`
}

// MarshalJSON implements json.Marshaler.
func (m Meta) MarshalJSON() ([]byte, error) {
	w := wireMeta{plainMeta: (*plainMeta)(&m)}
	if k := &m.orig; *k != (tuple.Key{}) {
		w.Original = &wireKey{k.Zone, k.Src.Addr(k.Family), k.Dst.Addr(k.Family), k.Proto, k.SrcPort, k.DstPort}
	}
	return json.Marshal(w)
}

// UnmarshalJSON implements json.Unmarshaler. The error names the field.
func (m *Meta) UnmarshalJSON(b []byte) error {
	var got Meta
	w := wireMeta{plainMeta: (*plainMeta)(&got)}
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("a packet's connection: %w", err)
	}
	if o := w.Original; o != nil {
		if !o.Src.IsValid() || !o.Dst.IsValid() || o.Src.Is4() != o.Dst.Is4() || o.Src.Zone()+o.Dst.Zone() != "" {
			return fmt.Errorf("a packet's connection: original: %v and %v are not two addresses of one family", o.Src, o.Dst)
		}
		got.orig = tuple.Key{
			Src: tuple.AddressOf(o.Src), Dst: tuple.AddressOf(o.Dst), SrcPort: o.SrcPort, DstPort: o.DstPort,
			Zone: o.Zone, Proto: o.Proto, Family: tuple.FamilyOf(o.Src),
		}
	}
	*m = got
	return nil
}
