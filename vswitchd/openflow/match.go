package openflow

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// A match is a list of fields (OXM of OpenFlow 1.2 and later, NXM of Nicira's extensions to 1.0). A
// field must follow those that it needs, so the order below matters. match10.go has the fixed match
// of OpenFlow 1.0.

// narrowOrder and wideOrder are the orders in which fields are written. In OpenFlow 1.5 registers
// are written in pairs, as fields of 64 bits, because controllers expect that.
var narrowOrder, wideOrder = makeMatchOrder(flow.Reg0, flow.XReg0), makeMatchOrder(flow.XReg0, flow.XXReg0)

// orderOf is the order of fields in a version.
func orderOf(v Version) []flow.FieldID {
	if v >= V15 {
		return wideOrder
	}
	return narrowOrder
}

// makeMatchOrder is the order of fields whose registers are those from first up to end.
func makeMatchOrder(first, end flow.FieldID) (all []flow.FieldID) {
	seen := map[flow.FieldID]bool{flow.VlanTCI: true, flow.VlanVID: true, flow.VlanPCP: true, flow.IPTOS: true}
	for _, id := range []flow.FieldID{flow.ConjID, flow.InPort, flow.EthSrc, flow.EthDst, flow.EthType, flow.CTState, flow.IPFrag, flow.IPProto} {
		all, seen[id] = append(all, id), true
	}
	for id := flow.Reg0; id < flow.NumFields; id++ {
		register := id < flow.Reg0+16 || id >= flow.XReg0 && id < flow.ConjID
		if register && (id < first || id >= end) {
			continue
		}
		if h := headersOf[id]; !seen[id] && (h.nxm.size != 0 || h.oxm.size != 0) {
			all = append(all, id)
		}
	}
	return all
}

// appendMatch writes the fields of a match without a length before them. The error is for a
// match that has no form in OpenFlow.
func (w *writer) appendMatch(m *flow.Match, v Version) error {
	left := m.Mask
	for _, id := range orderOf(v) {
		f := flow.FieldByID(id)
		mask := f.Get(&left)
		if flow.IsTunMetadata(id) {
			w.tlvField(m, id, &left)
			continue
		}
		if id == flow.EthDst {
			w.vlan(m, v)
		}
		if mask.IsZero() || !m.Implies(f.Need) {
			continue
		}
		value := f.Get(&m.Value)
		h := headersOf[id].in(v)
		if mask == flow.Ones(f.Bits) {
			w.oxm(h, value, nil)
		} else {
			w.oxm(h, value, &mask)
		}
		f.Put(&left, flow.Value{}, flow.Ones(f.Bits))
	}
	flow.FieldByID(flow.VlanTCI).Put(&left, flow.Value{}, flow.Ones(16))
	if left != (flow.Key{}) {
		return fail(BadField, "the match %q has a field that OpenFlow cannot carry", m.Text(nil))
	}
	return nil
}

const (
	vidAndPresent = 0x1fff
	pcpBits       = 0xe000
)

// vlan writes the fields of the VLAN tag: vlan_vid and vlan_pcp if they can express the mask, and
// NXM's vlan_tci otherwise.
func (w *writer) vlan(m *flow.Match, v Version) {
	tci, mask := m.Get(flow.VlanTCI)
	if mask.IsZero() {
		return
	}
	vid, pcp := flow.Value{Lo: mask.Lo & vidAndPresent}, mask.Lo&pcpBits
	plain := pcp == 0 || pcp == pcpBits && tci.Lo&packet.VLANPresent != 0
	if v == V10 || !plain {
		w.masked(headersOf[flow.VlanTCI].nxm, tci, mask, 16)
		return
	}
	if !vid.IsZero() {
		w.masked(headersOf[flow.VlanVID].oxm, flow.Value{Lo: tci.Lo & vidAndPresent}, vid, 13)
	}
	if pcp != 0 {
		w.oxm(headersOf[flow.VlanPCP].oxm, flow.Value{Lo: tci.Lo >> 13}, nil)
	}
}

// masked writes a field of bits bits. It leaves out a mask of all bits.
func (w *writer) masked(h header, v, mask flow.Value, bits int) {
	if mask == flow.Ones(bits) {
		w.oxm(h, v, nil)
		return
	}
	w.oxm(h, v, &mask)
}

// matchType is the type of a match of OXM fields.
const matchType = 1

// match writes a match with type and length, padded to 8 bytes.
func (w *writer) match(m *flow.Match, v Version) error {
	start := w.len()
	w.u16(matchType)
	w.u16(0)
	if err := w.appendMatch(m, v); err != nil {
		return err
	}
	w.set16(start+2, w.len()-start)
	w.pad(start)
	return nil
}

// match takes a match with type and length into m, which is empty.
func (r *reader) match(m *flow.Match) error {
	kind, n := r.u16(), int(r.u16())
	switch {
	case kind != matchType:
		return fail(BadMatchType, "a match of type %d", kind)
	case n < 4 || n-4 > len(r.b):
		return fail(BadMatchLength, "a match of %d bytes", n)
	}
	err := readMatch(m, r.take(n-4), nil)
	r.skip(padded(n) - n)
	return err
}

// cookieHeader is the header of the cookie in a match of NXM.
const cookieHeader = nxmNX<<16 | 30<<9 | 8

// cookieMatch is the cookie in a match of NXM.
type cookieMatch struct{ value, mask uint64 }

// matchReader builds a match of fields.
type matchReader struct {
	m      *flow.Match
	seen   [flow.NumFields]bool
	cookie *cookieMatch // nil if the match may not name one
}

// readMatch reads fields until b ends.
func readMatch(m *flow.Match, b []byte, cookie *cookieMatch) error {
	r := &reader{b: b}
	mr := matchReader{m: m, cookie: cookie}
	for len(r.b) > 0 {
		if len(r.b) < 4 {
			return fail(BadMatchLength, "%d bytes follow the fields of a match", len(r.b))
		}
		o, err := r.oxm()
		if err == nil {
			err = mr.addField(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addField adds a field to the match.
func (mr *matchReader) addField(o oxm) error {
	if o.header == cookieHeader && mr.cookie != nil {
		*mr.cookie = cookieMatch{o.value.Lo, ^uint64(0)}
		if o.masked {
			mr.cookie.mask = o.mask.Lo
		}
		return nil
	}
	id, ok := fieldOf[o.header]
	if !ok {
		return unknownField(o.header, BadField)
	}
	f := flow.FieldByID(id)
	if mr.seen[id] {
		return fail(DuplicateField, "%s is given twice", f.Name)
	}
	mr.seen[id] = true
	bits := f.Bits
	if id == flow.VlanVID {
		bits = 13 // with OFPVID_PRESENT
	}
	mask := flow.Ones(bits)
	if o.masked {
		mask = o.mask.And(mask)
	}
	switch {
	case o.value.And(flow.Ones(bits)) != o.value:
		return fail(BadValue, "the value of %s has more than %d bits", f.Name, bits)
	case mask.IsZero() && o.value.IsZero() && !flow.IsTunMetadata(id):
		return nil
	case mask != flow.Ones(bits) && !f.Maskable:
		return fail(BadMask, "%s takes no mask", f.Name)
	case !o.value.AndNot(mask).IsZero():
		return fail(BadWildcards, "the value of %s has bits outside its mask", f.Name)
	case f.Need != flow.NeedVLAN && !mr.m.Implies(f.Need):
		return fail(BadPrerequisite, "%s needs %s before it", f.Name, f.Need)
	}
	return mr.putField(id, o.value, mask)
}

// putField adds a field's value in the form that the text of entries has.
func (mr *matchReader) putField(id flow.FieldID, v, mask flow.Value) error {
	switch id {
	case flow.VlanVID:
		id = flow.VlanTCI
	case flow.VlanPCP:
		id, v, mask = flow.VlanTCI, flow.Value{Lo: v.Lo<<13 | packet.VLANPresent}, flow.Value{Lo: pcpBits | packet.VLANPresent}
	case flow.VlanTCI:
		if v.IsZero() && mask == flow.Ones(16) {
			mask = flow.Value{Lo: vidAndPresent} // no tag has neither VID nor PCP
		}
	case flow.IPTOS:
		mask = flow.Value{Lo: 0xfc}
		v = v.And(mask)
	case flow.InPort:
		v.Lo = uint64(flow.PortOf16(uint32(v.Lo)))
	}
	have, haveMask := mr.m.Get(id)
	if both := mask.And(haveMask); have.And(both) != v.And(both) {
		return fail(BadValue, "%s contradicts an earlier field of the match", flow.FieldByID(id).Name)
	}
	mr.m.Add(id, v, mask)
	return nil
}
