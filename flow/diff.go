package flow

// Diff lists the fields in which two keys differ. It names whole registers rather
// than their unions, and ports by TCP's names.
func Diff(a, b *Key) []FieldID {
	if *a == *b {
		return nil
	}
	var ids []FieldID
	for id := Reg0; id < NumFields; id++ {
		if f := &fields[id]; !isUnion(id) && f.Get(a) != f.Get(b) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Unmet lists the fields in which a packet differs from a match, under the names
// that Diff uses. It is nil if the packet matches.
func (m *Match) Unmet(k *Key) []FieldID {
	looked := *k
	for i := range looked {
		looked[i] = looked[i]&^m.Mask[i] | m.Value[i]
	}
	return Diff(&looked, k)
}

// isUnion reports whether a field's bytes are shown under another name too.
func isUnion(id FieldID) bool {
	switch id {
	case VlanVID, VlanPCP, IPDSCP, IPECN, ArpSPA, ArpTPA, UDPSrc, UDPDst, SCTPSrc, SCTPDst,
		ICMPType, ICMPCode, ICMPv6Type, ICMPv6Code, NDSLL, NDTLL:
		return true
	}
	return id >= XReg0 && id < ConjID
}

// FieldText is one field of a key as matches write it: reg0=0x3,
// in_port="client-a".
func FieldText(id FieldID, k *Key, n *Names) string {
	f := &fields[id]
	return string(appendExact(append([]byte(f.Name), '='), f, f.Get(k), n))
}

// KeyText is a packet's key as a match on each of its nonzero fields, for traces.
func KeyText(k *Key, n *Names) string {
	var m Match
	for id := Reg0; id < NumFields; id++ {
		f := &fields[id]
		switch v := f.Get(k); {
		case f.Bits == 0 || isUnion(id) || v.IsZero():
		case id == TunPresent:
			m.Add(id, v, v)
		default:
			m.AddExact(id, v)
		}
	}
	return m.Text(n)
}
