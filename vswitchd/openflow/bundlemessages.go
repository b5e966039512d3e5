package openflow

// BundleStep is the type of a BundleControl.
type BundleStep uint16

// The steps. The answer to a request is one more.
const (
	BundleOpen    BundleStep = 0
	BundleClose   BundleStep = 2
	BundleCommit  BundleStep = 4
	BundleDiscard BundleStep = 6
)

// Flags of a bundle.
const (
	BundleAtomic  = 1 << 0
	BundleOrdered = 1 << 1
)

// BundleControl is OFPT_BUNDLE_CONTROL, which is ONF's extension in OpenFlow 1.3.
type BundleControl struct {
	ID    uint32
	Step  BundleStep
	Flags uint16
}

// BundleAdd is OFPT_BUNDLE_ADD_MESSAGE. Message is a whole message, not yet decoded.
type BundleAdd struct {
	ID      uint32
	Flags   uint16
	Message []byte
}

// ONF's messages in OpenFlow 1.3.
const (
	onfBundleControl = 2300
	onfBundleAdd     = 2301
)

func decodeBundleControl(r *reader, _ Version) (Body, error) {
	b := &BundleControl{r.u32(), BundleStep(r.u16()), r.u16()}
	if b.Step > BundleDiscard || b.Step%2 != 0 {
		return b, fail(BundleBadType, "a bundle has no request %d", b.Step)
	}
	if b.Flags&^(BundleAtomic|BundleOrdered) != 0 {
		return b, fail(BundleBadFlags, "a bundle has flags %#x", b.Flags)
	}
	r.rest() // properties
	return b, nil
}

func decodeBundleAdd(r *reader, v Version) (Body, error) {
	b := &BundleAdd{ID: r.u32()}
	r.skip(2)
	b.Flags = r.u16()
	if r.short || len(r.b) < headerSize {
		return nil, fail(BundleBadLength, "the message in a bundle is shorter than its header")
	}
	n := int(r.b[2])<<8 | int(r.b[3])
	if n < headerSize || n > len(r.b) {
		return nil, fail(BundleBadLength, "the message in a bundle has length %d, and %d bytes are left", n, len(r.b))
	}
	b.Message = r.take(n)
	r.rest() // properties
	if Version(b.Message[0]) != v {
		return nil, fail(BadVersion, "the message in a bundle has version %d", b.Message[0])
	}
	return b, nil
}

// MayBundle reports whether a message may be in a bundle. Only flow mods and group mods may.
func MayBundle(b Body) bool {
	switch b.(type) {
	case *FlowMod, *GroupMod:
		return true
	}
	return false
}

// encode implements Body: the answer to the request.
func (b *BundleControl) encode(w *writer, v Version) error {
	if v == V13 {
		w.u32(onf)
		w.u32(onfBundleControl)
	}
	w.u32(b.ID)
	w.u16(uint16(b.Step) + 1)
	w.u16(b.Flags)
	return nil
}
