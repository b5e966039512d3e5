package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// JSON of keys, matches and names, for a peer in another process. A key is an object with a
// member for each nonzero field, a match one with each field that it matches on. A field appears
// once, under the name that Diff uses: whole registers rather than their unions, TCP's names for
// ports. Package wire has entries and groups.
//
//	Key    {"reg0":"0x3","in_port":"7","ct_state":"new|trk","ip_dst":"10.96.0.1"}
//	Match  {"reg0":"0x3/0xf","tun_dst":"192.168.77.102"}: a mask, if not whole, in hexadecimal
//	Names  {"tables":{"4":"SpoofGuard"},"ports":{"2":"antrea-gw0"}}, and "options" if there are some
//
// Unlike the text of a match, a key may have fields without their prerequisites, and all 32 bits
// of in_port. A FieldID is the field's name; the empty text is FieldNone.

// MarshalText implements encoding.TextMarshaler. It returns an error for an unknown number.
func (id FieldID) MarshalText() ([]byte, error) {
	if id >= NumFields {
		return nil, fmt.Errorf("no field has the number %d", id)
	}
	return []byte(fields[id].Name), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The error names the text.
func (id *FieldID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = FieldNone
		return nil
	}
	f := FieldByName(string(text))
	if f == nil {
		return fmt.Errorf("no field is called %.60q", text)
	}
	*id = f.ID
	return nil
}

// errBare keeps entries and groups from being written in a form without a reader.
var errBare = errors.New("entries and groups cross as wire.Entry and wire.Group (flow/wire)")

// MarshalJSON implements json.Marshaler. It always fails: wire.Entry is an entry as JSON.
func (e Entry) MarshalJSON() ([]byte, error) { return nil, errBare }

// MarshalJSON implements json.Marshaler. It always fails: wire.Group is a group as JSON.
func (g Group) MarshalJSON() ([]byte, error) { return nil, errBare }

// errStray is for a key that Diff would show only in part. Extract makes none.
var errStray = errors.New("the key has a bit that belongs to no field")

// MarshalJSON implements json.Marshaler. It returns an error for a bit that belongs to no field.
func (k Key) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	var said Key
	for id := Reg0; id < NumFields; id++ {
		f := &fields[id]
		if isUnion(id) {
			continue
		}
		if v := f.Get(&k); !v.IsZero() {
			b = appendWireValue(appendMember(b, f), f, v)
			b = append(b, '"')
			f.Put(&said, v, v)
		}
	}
	if said != k {
		return nil, errStray
	}
	return append(b, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler. The error names the field.
func (k *Key) UnmarshalJSON(b []byte) error {
	var got Key
	err := eachMember(b, func(f *Field, s string) error {
		v, err := wireValue(f, s)
		f.Put(&got, v, v)
		return err
	})
	if err == nil {
		*k = got
	}
	return err
}

// MarshalJSON implements json.Marshaler. It returns an error for a bit that belongs to no field,
// or a value outside its mask.
func (m Match) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	var said Match
	for id := Reg0; id < NumFields; id++ {
		f := &fields[id]
		v, mask := m.Get(id)
		if isUnion(id) || mask.IsZero() {
			continue
		}
		b = appendMember(b, f)
		if mask == Ones(f.Bits) {
			b = appendWireValue(b, f, v)
		} else {
			b = appendHex(append(appendHex(b, v), '/'), mask)
		}
		b = append(b, '"')
		f.Put(&said.Value, v, mask)
		f.Put(&said.Mask, mask, mask)
	}
	if said != m {
		return nil, errStray
	}
	return append(b, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler. The error names the field.
func (m *Match) UnmarshalJSON(b []byte) error {
	var got Match
	err := eachMember(b, func(f *Field, s string) error {
		value, maskText, masked := strings.Cut(s, "/")
		v, err := wireValue(f, value)
		mask := Ones(f.Bits)
		if err == nil && masked {
			mask, err = wireNumber(f, maskText)
			err = behind(len(value)+1, err)
		}
		if err == nil && !v.AndNot(mask).IsZero() {
			err = errorAt(0, "the value %s has bits outside its mask %s", value, maskText)
		}
		f.Put(&got.Value, v, mask)
		f.Put(&got.Mask, mask, mask)
		return err
	})
	if err == nil {
		*m = got
	}
	return err
}

// appendMember begins the member of a field, up to the quote before its value.
func appendMember(b []byte, f *Field) []byte {
	if len(b) > 1 {
		b = append(b, ',')
	}
	b = append(append(b, '"'), f.Name...)
	return append(b, `":"`...)
}

// eachMember calls put for each member of an object of fields; null has none.
func eachMember(b []byte, put func(f *Field, s string) error) error {
	var all map[string]string
	if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("fields of a packet: %w", err)
	}
	for name, text := range all {
		f := FieldByName(name)
		if f == nil || f.Name != name || isUnion(f.ID) {
			return fmt.Errorf("fields of a packet: %.60q is not the name of a whole field", name)
		}
		if err := put(f, text); err != nil {
			return fmt.Errorf("fields of a packet: %s: %w", name, err)
		}
	}
	return nil
}

// appendWireValue writes a field's value without loss.
func appendWireValue(b []byte, f *Field, v Value) []byte {
	switch f.Form {
	case Decimal, PortNumber, FragmentBits:
		return strconv.AppendUint(b, v.Lo, 10)
	case CTStateBits, TCPFlagBits, TunnelFlagBits:
		if !v.AndNot(Ones(len(flagWords[f.Form]))).IsZero() {
			return appendHex(b, v)
		}
	}
	return appendExact(b, f, v, nil)
}

// wireValue reads what appendWireValue writes.
func wireValue(f *Field, s string) (v Value, err error) {
	if s == "0" || strings.HasPrefix(s, "0x") {
		return wireNumber(f, s)
	}
	switch f.Form {
	case MACAddress:
		return macValue(s)
	case IPv4Address, IPv6Address:
		return addrValue(f, s)
	case CTStateBits, TCPFlagBits, TunnelFlagBits:
		if s == "" || s[0] == '+' || s[0] == '-' {
			return v, errorAt(0, "expected flags such as %s, not %q", flagWords[f.Form][0], s)
		}
		v, _, err = flagValue(f, s)
		return v, err
	}
	return wireNumber(f, s)
}

// wireNumber reads a number that fits a field.
func wireNumber(f *Field, s string) (Value, error) {
	v, err := ParseNumber(s)
	if err == nil && !v.AndNot(Ones(f.Bits)).IsZero() {
		err = errorAt(0, "%s is too large for a field of %d bits", s, f.Bits)
	}
	return v, err
}

// wireNames is Names as JSON.
type wireNames struct {
	Tables map[uint8]string  `json:"tables"`
	Ports  map[uint32]string `json:"ports"`

	Options []TunnelOption `json:"options,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (n *Names) MarshalJSON() ([]byte, error) {
	if n == nil {
		return []byte("null"), nil
	}
	return json.Marshal(wireNames{n.tables.names, n.ports.names, n.options})
}

// UnmarshalJSON implements json.Unmarshaler. It refuses two tables, or two ports, with one name.
func (n *Names) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var w wireNames
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("names: %w", err)
	}
	got := NewNames()
	err := got.tables.fill("tables", w.Tables)
	if err == nil {
		err = got.ports.fill("ports", w.Ports)
	}
	if err == nil {
		err = got.SetTunnelOptions(w.Options)
	}
	if err != nil {
		return fmt.Errorf("names: %w", err)
	}
	*n = *got
	return nil
}

// fill sets all names. It returns an error for a name with two numbers.
func (t *numbering[N]) fill(what string, all map[N]string) error {
	for _, n := range slices.Sorted(maps.Keys(all)) {
		if other, ok := t.number(all[n]); ok {
			return fmt.Errorf("%s %v and %v are both called %q", what, other, n, all[n])
		}
		t.set(n, all[n])
	}
	return nil
}
