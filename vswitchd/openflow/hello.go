package openflow

// Hello is OFPT_HELLO: the versions of one side.
type Hello struct{ Versions []Version }

// helloBitmap is the type of the element that lists versions.
const helloBitmap = 1

// decodeHello reads the versions of a peer. Without a bitmap they are all up to the header's
// (OpenFlow 1.3.1, section 6.3.1).
func decodeHello(r *reader, header Version) (Body, error) {
	h := &Hello{}
	for v := Version(1); v <= header && v < 32; v++ {
		h.Versions = append(h.Versions, v)
	}
	for len(r.b) >= 4 {
		kind, n := r.u16(), int(r.u16())
		if n < 4 || n-4 > len(r.b) {
			return h, nil // a later version may have another format
		}
		element := &reader{b: r.take(n - 4)}
		r.take(min(padded(n)-n, len(r.b)))
		if kind != helloBitmap {
			continue
		}
		h.Versions = h.Versions[:0]
		for bits, v := element.u32(), Version(0); v < 32; v++ {
			if bits>>v&1 != 0 {
				h.Versions = append(h.Versions, v)
			}
		}
	}
	return h, nil
}

// encode implements Body.
func (h *Hello) encode(w *writer, _ Version) error {
	var bits uint32
	for _, v := range h.Versions {
		bits |= 1 << v
	}
	w.u16(helloBitmap)
	w.u16(8)
	w.u32(bits)
	return nil
}

// Negotiate is the latest version that is in both lists.
func (h *Hello) Negotiate(ours []Version) (best Version, ok bool) {
	for _, v := range ours {
		for _, theirs := range h.Versions {
			if v == theirs && v > best {
				best, ok = v, true
			}
		}
	}
	return best, ok
}

// EchoRequest is OFPT_ECHO_REQUEST, and EchoReply its answer with the same data.
type (
	EchoRequest struct{ Data []byte }
	EchoReply   struct{ Data []byte }
)

// encode implements Body.
func (e *EchoRequest) encode(w *writer, _ Version) error { w.bytes(e.Data); return nil }

// encode implements Body.
func (e *EchoReply) encode(w *writer, _ Version) error { w.bytes(e.Data); return nil }

// BarrierRequest is OFPT_BARRIER_REQUEST, and BarrierReply its answer.
type (
	BarrierRequest struct{}
	BarrierReply   struct{}
)

// encode implements Body.
func (*BarrierReply) encode(*writer, Version) error { return nil }

// PeerError is an OFPT_ERROR that a peer has sent. A switch only logs it.
type PeerError struct {
	Kind, Code uint16
	Data       []byte
}

func decodeError(r *reader, _ Version) (Body, error) {
	return &PeerError{r.u16(), r.u16(), r.rest()}, nil
}
