package flow

import "encoding/binary"

// Matches reports whether m matches a packet's key.
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

// Add adds value under mask of a field to the match. It ignores bits of value outside mask, and
// bits outside the field. A packet without a Geneve option matches no value of it. Mask 0 matches
// any packet with the option.
func (m *Match) Add(id FieldID, value, mask Value) {
	f := &fields[id]
	f.Put(&m.Value, value, mask)
	f.Put(&m.Mask, mask, mask)
	if IsTunMetadata(id) {
		m.Value.SetTunnelOptionPresent(id)
		m.Mask.SetTunnelOptionPresent(id)
	}
}

// AddExact adds the exact value of a field to the match.
func (m *Match) AddExact(id FieldID, value Value) { m.Add(id, value, Ones(fields[id].Bits)) }

// Get is the value and mask of a field in m.
func (m *Match) Get(id FieldID) (value, mask Value) {
	f := &fields[id]
	return f.Get(&m.Value), f.Get(&m.Mask)
}

// IsAny reports whether m matches every packet.
func (m *Match) IsAny() bool { return m.Mask == Key{} }

// Identity identifies an entry: two entries of one pipeline with the same Identity are the same
// entry. It is comparable, so it can be a map key.
type Identity struct {
	Table    uint8
	Priority uint16
	Match    Minimatch
}

// Identity is the entry's table, priority and match.
func (e *Entry) Identity() Identity { return Identity{e.Table, e.Priority, e.Match} }
