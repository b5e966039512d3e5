package flow

import "encoding/binary"

// Matches says whether a packet's key is one that m asks for.
func (m *Match) Matches(k *Key) bool {
	for i := 0; i < KeySize; i += 8 {
		have := binary.LittleEndian.Uint64(k[i:])
		mask := binary.LittleEndian.Uint64(m.Mask[i:])
		if have&mask != binary.LittleEndian.Uint64(m.Value[i:]) {
			return false
		}
	}
	return true
}

// Add asks for value under mask in a field, beside what m asks for already.
// Bits of value outside mask, and of both outside the field, are left out. A packet without a
// Geneve option does not match on any value of it, and mask 0 asks whether the option is there.
func (m *Match) Add(id FieldID, value, mask Value) {
	f := &fields[id]
	f.Put(&m.Value, value, mask)
	f.Put(&m.Mask, mask, mask)
	if IsTunMetadata(id) {
		m.Value.SetTunnelOptionPresent(id)
		m.Mask.SetTunnelOptionPresent(id)
	}
}

// AddExact asks for exactly value in a field.
func (m *Match) AddExact(id FieldID, value Value) { m.Add(id, value, Ones(fields[id].Bits)) }

// Get is what m asks for in a field, as value and mask.
func (m *Match) Get(id FieldID) (value, mask Value) {
	f := &fields[id]
	return f.Get(&m.Value), f.Get(&m.Mask)
}

// IsAny says whether m matches every packet.
func (m *Match) IsAny() bool { return m.Mask == Key{} }

// Identity is what makes an entry itself: two entries of one pipeline with the
// same Identity are the same entry. It can be compared, and used as a map key.
type Identity struct {
	Table    uint8
	Priority uint16
	Match    Minimatch
}

// Identity is the entry's table, priority and match.
func (e *Entry) Identity() Identity { return Identity{e.Table, e.Priority, e.Match} }
