package openflow

// RemovedReason is why an entry is gone, as OFPT_FLOW_REMOVED numbers it.
type RemovedReason uint8

// The reasons. Deletion with a group is one from OpenFlow 1.1 on.
const (
	RemovedIdle RemovedReason = iota
	RemovedHard
	RemovedDelete
	RemovedGroupDelete
	RemovedMeterDelete
)

// FlowRemoved is OFPT_FLOW_REMOVED, or Nicira's NXT_FLOW_REMOVED: an entry that is gone, with its
// last counters.
type FlowRemoved struct {
	FlowStats
	Reason RemovedReason
	// NX asks for Nicira's form in OpenFlow 1.0, whose match has all fields.
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
		return f.nxm(w)
	case v == V10:
		f.ten(w)
		return nil
	case v == V15:
		return f.fifteen(w)
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

// ten writes the form of OpenFlow 1.0, which has no table.
func (f *FlowRemoved) ten(w *writer) {
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

// nxm writes Nicira's form. Its table is one more, so that 0 is "unknown".
func (f *FlowRemoved) nxm(w *writer) error {
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

// fifteen writes the form of OpenFlow 1.5, whose counters follow the match.
func (f *FlowRemoved) fifteen(w *writer) error {
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
