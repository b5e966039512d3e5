package openflow

// AsyncKind is a kind of asynchronous message.
type AsyncKind int

// The kinds.
const (
	AsyncPacketIn AsyncKind = iota
	AsyncPortStatus
	AsyncFlowRemoved
	asyncKinds13     // the number of kinds in OpenFlow 1.3
	asyncKinds   = 6 // with role and table status and forwarded requests, which are never sent
)

// AsyncConfig has the asynchronous messages that a controller gets: a bit for each reason. The
// first index is a kind. The second is 0 for a master or equal, and 1 for a slave.
type AsyncConfig [asyncKinds][2]uint32

// reasonInvalidTTL is OFPR_INVALID_TTL, and removedEviction OFPRR_EVICTION, which does not happen.
const reasonInvalidTTL, removedEviction = 2, 5

// DefaultAsync is the configuration of a controller that has not set one.
func DefaultAsync(v Version) (a AsyncConfig) {
	a[AsyncPacketIn][0] = 1<<0 | 1<<1
	if v >= V14 {
		a[AsyncPacketIn][0] |= 1<<3 | 1<<4 | 1<<5
	}
	a[AsyncFlowRemoved][0] = 1<<(LastRemoved(v)+1) - 1
	if v >= V14 {
		a[AsyncFlowRemoved][0] |= 1 << removedEviction
	}
	a[AsyncPortStatus] = [2]uint32{7, 7}
	return a
}

// Wants reports whether a controller in a role gets a message.
func (a *AsyncConfig) Wants(kind AsyncKind, role ControllerRole, reason uint8) bool {
	of := 0
	if role == RoleSlave {
		of = 1
	}
	return reason < 32 && a[kind][of]>>reason&1 != 0
}

// SetInvalidTTL sets whether a master or equal gets packets whose TTL ends.
func (a *AsyncConfig) SetInvalidTTL(on bool) {
	a[AsyncPacketIn][0] &^= 1 << reasonInvalidTTL
	if on {
		a[AsyncPacketIn][0] |= 1 << reasonInvalidTTL
	}
}

// GetAsync is OFPT_GET_ASYNC_REQUEST, and AsyncReply its answer.
type (
	GetAsync   struct{}
	AsyncReply struct{ Config AsyncConfig }
)

// SetAsync is OFPT_SET_ASYNC or one of Nicira's two forms of it.
type SetAsync struct {
	Config AsyncConfig
	// Given are the kinds and roles that the message names. The others stay.
	Given [asyncKinds][2]bool
}

// decodeSetAsync reads all six masks, or, from OpenFlow 1.4 on, those that it names.
func decodeSetAsync(r *reader, v Version) (Body, error) {
	s := &SetAsync{}
	if v >= V14 {
		return s, s.properties(r)
	}
	for kind := range asyncKinds13 {
		for of := range s.Config[kind] {
			s.Config[kind][of], s.Given[kind][of] = r.u32(), true
		}
	}
	return s, nil
}

// properties reads masks, each with its kind and role.
func (s *SetAsync) properties(r *reader) error {
	for len(r.b) > 0 {
		no, p, err := r.property()
		if err != nil {
			return fail(BadLength, "asynchronous messages: %v", err)
		}
		mask := p.u32()
		switch {
		case p.short || len(p.b) > 0:
			return fail(BadLength, "property %d of asynchronous messages: want 8 bytes", no)
		case no >= 2*uint16(asyncKinds):
			return fail(AsyncConfigUnsupported, "there is no property %d of asynchronous messages", no)
		default: // the property of a slave comes first
			kind, of := no/2, 1-no%2
			s.Config[kind][of], s.Given[kind][of] = mask, true
		}
	}
	return nil
}

// encode implements Body.
func (a *AsyncReply) encode(w *writer, v Version) error {
	for kind, masks := range a.Config {
		if v < V14 && kind == int(asyncKinds13) {
			break
		}
		for i, mask := range masks {
			if v >= V14 {
				w.u16(uint16(2*kind + i))
				w.u16(8)
				mask = masks[1-i]
			}
			w.u32(mask)
		}
	}
	return nil
}
