package openflow

import (
	"time"

	"github.com/antrail/antrail/flow"
)

// FlowStats is an entry with its counters: a part of StatsFlow.
type FlowStats struct {
	Entry          *flow.Entry
	Packets, Bytes uint64
	Duration, Idle time.Duration
}

// part implements Part.
func (s *FlowStats) part(w *writer, v Version, nx bool) error {
	start := w.len()
	w.u16(0)
	if v == V15 {
		w.u16(0)
	}
	w.u8(s.Entry.Table)
	w.u8(0)
	var err error
	switch {
	case v == V15:
		err = s.encode15(w)
	case nx:
		err = s.encodeNX(w)
	case v == V10:
		s.encode10(w)
	default:
		err = s.encode13(w, v)
	}
	if err == nil {
		err = w.entryActions(s.Entry.Actions, v)
	}
	if n := w.len() - start; err == nil && n > replyRoom {
		err = fail(BadLength, "an entry of %d bytes is too large for a message", n)
	}
	if err == nil {
		w.set16(start, w.len()-start)
	}
	return err
}

// duration writes seconds and nanoseconds.
func (w *writer) duration(d time.Duration) {
	w.u32(uint32(d / time.Second))
	w.u32(uint32(d % time.Second))
}

// times writes duration, priority and timeouts, which most forms have in the middle.
func (s *FlowStats) times(w *writer) {
	w.duration(s.Duration)
	w.u16(s.Entry.Priority)
	w.u16(s.Entry.IdleTimeout)
	w.u16(s.Entry.HardTimeout)
}

func (s *FlowStats) counters(w *writer) {
	w.u64(s.Entry.Cookie)
	w.u64(s.Packets)
	w.u64(s.Bytes)
}

func (s *FlowStats) flags() uint16 {
	if s.Entry.SendFlowRem {
		return flagSendFlowRem
	}
	return 0
}

// encode15 writes the form of OpenFlow 1.5, whose counters follow the match.
func (s *FlowStats) encode15(w *writer) error {
	w.u16(s.Entry.Priority)
	w.u16(s.Entry.IdleTimeout)
	w.u16(s.Entry.HardTimeout)
	w.u16(s.flags())
	w.u16(0)
	w.u64(s.Entry.Cookie)
	m := s.Entry.Match.Expand()
	err := w.match(&m, V15)
	w.counters15(
		counter15{oxsDuration, seconds(s.Duration)}, counter15{oxsIdle, seconds(s.Idle)},
		counter15{oxsPackets, s.Packets}, counter15{oxsBytes, s.Bytes})
	return err
}

// Counters of OpenFlow 1.5 (OXS), by their numbers.
const (
	oxsClass    = 0x8002
	oxsDuration = 0
	oxsIdle     = 1
	oxsFlows    = 3
	oxsPackets  = 4
	oxsBytes    = 5
)

// counter15 is a counter of OpenFlow 1.5.
type counter15 struct {
	no uint8
	n  uint64
}

// seconds is a time in OpenFlow 1.5: seconds in the upper 32 bits, nanoseconds in the lower.
func seconds(d time.Duration) uint64 {
	return uint64(d/time.Second)<<32 | uint64(d%time.Second)
}

// counters15 writes a list of counters, padded to 8 bytes.
func (w *writer) counters15(all ...counter15) {
	start := w.len()
	w.zeros(4)
	for _, c := range all {
		w.u16(oxsClass)
		w.u8(c.no << 1)
		if c.no == oxsFlows {
			w.u8(4)
			w.u32(uint32(c.n))
			continue
		}
		w.u8(8)
		w.u64(c.n)
	}
	w.set16(start+2, w.len()-start)
	w.pad(start)
}

// encode13 writes the form of OpenFlow 1.3 and 1.4.
func (s *FlowStats) encode13(w *writer, v Version) error {
	s.times(w)
	w.u16(s.flags())
	w.zeros(4)
	s.counters(w)
	m := s.Entry.Match.Expand()
	return w.match(&m, v)
}

// encode10 writes the form of OpenFlow 1.0. Its match leaves out fields that the version lacks.
func (s *FlowStats) encode10(w *writer) {
	m := s.Entry.Match.Expand()
	w.match10(&m)
	s.times(w)
	w.zeros(6)
	s.counters(w)
}

// age is a number of seconds in NXST_FLOW: one more, because 0 means "unknown".
func age(d time.Duration) uint16 { return uint16(min(d/time.Second+1, 65535)) }

// encodeNX writes the form of Nicira.
func (s *FlowStats) encodeNX(w *writer) error {
	s.times(w)
	at := w.len()
	w.u16(0)
	w.u16(age(s.Idle))
	w.u16(age(s.Duration))
	s.counters(w)
	start := w.len()
	m := s.Entry.Match.Expand()
	err := w.appendMatch(&m, V10)
	w.set16(at, w.len()-start)
	w.pad(start)
	return err
}

// Aggregate is the answer to StatsAggregate.
type Aggregate struct {
	Packets, Bytes uint64
	Flows          uint32
}

// part implements Part.
func (a *Aggregate) part(w *writer, v Version, _ bool) error {
	if v == V15 {
		w.counters15(counter15{oxsPackets, a.Packets}, counter15{oxsBytes, a.Bytes}, counter15{oxsFlows, uint64(a.Flows)})
		return nil
	}
	w.u64(a.Packets)
	w.u64(a.Bytes)
	w.u32(a.Flows)
	w.u32(0)
	return nil
}
