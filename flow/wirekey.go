package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Keys and matches as JSON: an object with a member for each field that is not zero,
// or that is asked for, under the field's name. A field stands there once, under the
// names that Diff has: whole registers rather than their unions, TCP's names for
// ports.
//
//	Key    {"reg0":"0x3","in_port":"7","ct_state":"new|trk","ip_dst":"10.96.0.1"}
//	Match  {"reg0":"0x3/0xf","tun_dst":"192.168.77.102"}: a mask, if not whole, in hexadecimal
//
// Unlike a match in text, a key says what prerequisites would forbid, and all 32 bits
// of in_port. A FieldID is the field's name; the empty text is FieldNone.

// MarshalText implements encoding.TextMarshaler. The error is for a number that no
// field has.
func (id FieldID) MarshalText() ([]byte, error) {
	if id >= numFields {
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

// errStray is for a key that Diff would show only in part. Extract makes none.
var errStray = errors.New("the key has a bit that belongs to no field")

// MarshalJSON implements json.Marshaler. The error is for a key with a bit that
// belongs to no field.
func (k Key) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	var said Key
	for id := Reg0; id < numFields; id++ {
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
	err := eachMember(b, func(f *Field, s span) error {
		v, err := wireValue(f, s)
		f.Put(&got, v, v)
		return err
	})
	if err == nil {
		*k = got
	}
	return err
}

// MarshalJSON implements json.Marshaler. The error is for a match with a bit that
// belongs to no field, or with a value outside its mask.
func (m Match) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	var said Match
	for id := Reg0; id < numFields; id++ {
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
		said.Add(id, v, mask)
	}
	if said != m {
		return nil, errStray
	}
	return append(b, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler. The error names the field.
func (m *Match) UnmarshalJSON(b []byte) error {
	var got Match
	err := eachMember(b, func(f *Field, s span) error {
		value, maskText, masked := s.cut("/")
		v, err := wireValue(f, value)
		mask := Ones(f.Bits)
		if err == nil && masked {
			mask, err = wireNumber(f, maskText)
		}
		if err == nil && !v.AndNot(mask).IsZero() {
			err = s.errorf("the value %s has bits outside its mask %s", value.text, maskText.text)
		}
		got.Add(f.ID, v, mask)
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
func eachMember(b []byte, put func(f *Field, s span) error) error {
	var all map[string]string
	if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("fields of a packet: %w", err)
	}
	for name, text := range all {
		f := FieldByName(name)
		if f == nil || f.Name != name || isUnion(f.ID) {
			return fmt.Errorf("fields of a packet: %.60q is not the name of a whole field", name)
		}
		if err := put(f, span{text, 0}); err != nil {
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
func wireValue(f *Field, s span) (v Value, err error) {
	if s.text == "0" || strings.HasPrefix(s.text, "0x") {
		return wireNumber(f, s)
	}
	switch f.Form {
	case MACAddress:
		return macValue(s)
	case IPv4Address, IPv6Address:
		return addrValue(f, s)
	case CTStateBits, TCPFlagBits, TunnelFlagBits:
		if s.text == "" || s.text[0] == '+' || s.text[0] == '-' {
			return v, s.errorf("expected flags such as %s, not %q", flagWords[f.Form][0], s.text)
		}
		v, _, err = flagValue(f, s)
		return v, err
	}
	return wireNumber(f, s)
}

// wireNumber reads a number that fits a field.
func wireNumber(f *Field, s span) (Value, error) {
	v, err := wideNumber(s)
	if err == nil && !v.AndNot(Ones(f.Bits)).IsZero() {
		err = s.errorf("%s is too large for a field of %d bits", s.text, f.Bits)
	}
	return v, err
}
