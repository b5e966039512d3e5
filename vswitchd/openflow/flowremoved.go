package openflow

// RemovedReason is the reason of OFPT_FLOW_REMOVED.
type RemovedReason uint8

// The reasons. RemovedGroupDelete exists since OpenFlow 1.1, and RemovedMeterDelete since 1.4.
const (
	RemovedIdle RemovedReason = iota
	RemovedHard
	RemovedDelete
	RemovedGroupDelete
	RemovedMeterDelete
)

// FlowRemoved is OFPT_FLOW_REMOVED, or Nicira's NXT_FLOW_REMOVED: a removed entry with its last
// counters.
type FlowRemoved struct {
	FlowStats
	Reason RemovedReason
	// NX selects Nicira's form in OpenFlow 1.0, whose match has all fields.
	NX bool
}

func (f *FlowRemoved) kind() uint8 {
	if f.NX {
		return typeExperimenter
	}
	return typeFlowRemoved
}

// encode implements Body.
func (f *FlowRemoved) encode(w *writer, v Version) error {
	switch {
	case f.NX:
		return f.encodeNX(w)
	case v == V10:
		f.encode10(w)
		return nil
	case v == V15:
		return f.encode15(w)
	}
	e := f.Entry
	w.u64(e.Cookie)
	w.u16(e.Priority)
	w.u8(uint8(f.Reason))
	w.u8(e.Table)
	w.duration(f.Duration)
	w.u16(e.IdleTimeout)
	w.u16(e.HardTimeout)
	w.u64(f.Packets)
	w.u64(f.Bytes)
	m := e.Match.Expand()
	return w.match(&m, v)
}

// encode10 writes the form of OpenFlow 1.0, which has no table.
func (f *FlowRemoved) encode10(w *writer) {
	e := f.Entry
	m := e.Match.Expand()
	w.match10(&m)
	w.u64(e.Cookie)
	w.u16(e.Priority)
	w.u8(uint8(f.Reason))
	w.u8(0)
	w.duration(f.Duration)
	w.u16(e.IdleTimeout)
	w.zeros(2)
	w.u64(f.Packets)
	w.u64(f.Bytes)
}

// encodeNX writes Nicira's form. Its table is one more, because 0 means "unknown".
func (f *FlowRemoved) encodeNX(w *writer) error {
	e := f.Entry
	w.u32(nicira)
	w.u32(nxtFlowRemoved)
	w.u64(e.Cookie)
	w.u16(e.Priority)
	w.u8(uint8(f.Reason))
	w.u8(e.Table + 1)
	w.duration(f.Duration)
	w.u16(e.IdleTimeout)
	at := w.len()
	w.u16(0)
	w.u64(f.Packets)
	w.u64(f.Bytes)
	start := w.len()
	m := e.Match.Expand()
	err := w.appendMatch(&m, V10)
	w.set16(at, w.len()-start)
	w.pad(start)
	return err
}

// encode15 writes the form of OpenFlow 1.5, whose counters follow the match.
func (f *FlowRemoved) encode15(w *writer) error {
	e := f.Entry
	w.u8(e.Table)
	w.u8(uint8(f.Reason))
	w.u16(e.Priority)
	w.u16(e.IdleTimeout)
	w.u16(e.HardTimeout)
	w.u64(e.Cookie)
	m := e.Match.Expand()
	err := w.match(&m, V15)
	w.counters15(counter15{oxsDuration, seconds(f.Duration)}, counter15{oxsPackets, f.Packets}, counter15{oxsBytes, f.Bytes})
	return err
}

// LastRemoved is the last reason that a version has.
func LastRemoved(v Version) RemovedReason {
	switch {
	case v == V10:
		return RemovedDelete
	case v < V14:
		return RemovedGroupDelete
	}
	return RemovedMeterDelete
}
