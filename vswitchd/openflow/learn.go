package openflow

import "github.com/antrail/antrail/flow"

// learn() is a header and a list of parts. Each part has a source (a field or bytes) and a
// destination (a match, a load or an output).

const (
	learnSendFlowRem   = 1 << 0
	learnDeleteLearned = 1 << 1
	learnWriteResult   = 1 << 2
)

// The first two bytes of a part.
const (
	partBits      = 0x7ff
	partKindShift = 11
	partImmediate = 1 << 13
	partUnknown   = 3 << 14
)

func (a *actionReader) learn(r *reader) error {
	x, err := learnHead(r)
	if err == nil {
		err = a.learnParts(x, r)
	}
	return err
}

func (a *actionReader) learn2(r *reader) error {
	x, err := learnHead(r)
	if err != nil {
		return err
	}
	x.Limit = r.u32()
	r.skip(4) // result_dst, which is not supported
	return a.learnParts(x, r)
}

// learnHead reads the head, which both kinds of learn have.
func learnHead(r *reader) (*flow.Learn, error) {
	x := &flow.Learn{IdleTimeout: r.u16(), HardTimeout: r.u16(), Priority: r.u16(), Cookie: r.u64()}
	flags := r.u16()
	x.Table = r.u8()
	r.skip(1)
	x.FinIdleTimeout, x.FinHardTimeout = r.u16(), r.u16()
	x.SendFlowRem, x.DeleteLearned = flags&learnSendFlowRem != 0, flags&learnDeleteLearned != 0
	switch {
	case flags&learnWriteResult != 0:
		return nil, fail(BadActionArgument, "learn with result_dst is not supported")
	case flags>>3 != 0:
		return nil, fail(BadActionArgument, "learn has flags %#x", flags)
	case x.Table == 255:
		return nil, fail(BadActionArgument, "nothing can be learned into table 255")
	}
	return x, nil
}

func (a *actionReader) learnParts(x *flow.Learn, r *reader) error {
	for len(r.b) >= 2 {
		head := r.u16()
		if head == 0 {
			break // the rest is padding
		}
		s, err := learnPart(head, r)
		if err != nil {
			return err
		}
		x.Specs = append(x.Specs, s)
	}
	a.addAction(x)
	return nil
}

func learnPart(head uint16, r *reader) (s flow.LearnSpec, err error) {
	n := int(head & partBits)
	s.Kind = flow.LearnKind(head >> partKindShift & 3)
	if head&partUnknown != 0 || s.Kind > flow.LearnOutput || n == 0 {
		return s, fail(BadActionArgument, "learn has a part %#x", head)
	}
	if head&partImmediate == 0 {
		s.FromField = true
		if s.Src, err = learnField(r, n); err != nil {
			return s, err
		}
	} else {
		if n > 128 || s.Kind == flow.LearnOutput {
			return s, fail(BadActionArgument, "learn has an immediate of %d bits", n)
		}
		s.Immediate = r.value((n + 15) / 16 * 2)
		if s.Immediate.And(flow.Ones(n)) != s.Immediate {
			return s, fail(BadActionArgument, "learn has an immediate of more than %d bits", n)
		}
	}
	if s.Kind != flow.LearnOutput {
		s.Dst, err = learnField(r, n)
	}
	if err == nil && r.short {
		err = fail(BadActionLength, "learn ends within a part")
	}
	return s, err
}

func learnField(r *reader, n int) (flow.Subfield, error) {
	id, err := r.field()
	if err != nil {
		return flow.Subfield{}, err
	}
	return subfieldOf(id, int(r.u16()), n)
}

// appendLearn writes learn().
func (w *writer) appendLearn(x *flow.Learn, v Version) error {
	subtype := uint16(nxLearn)
	if x.Limit != 0 {
		subtype = nxLearn2
	}
	start := w.nxAction(subtype)
	w.u16(x.IdleTimeout)
	w.u16(x.HardTimeout)
	w.u16(x.Priority)
	w.u64(x.Cookie)
	var flags uint16
	if x.SendFlowRem {
		flags |= learnSendFlowRem
	}
	if x.DeleteLearned {
		flags |= learnDeleteLearned
	}
	w.u16(flags)
	w.u8(x.Table)
	w.u8(0)
	w.u16(x.FinIdleTimeout)
	w.u16(x.FinHardTimeout)
	if x.Limit != 0 {
		w.u32(x.Limit)
		w.u32(0)
	}
	for i := range x.Specs {
		if err := w.learnPart(&x.Specs[i], v); err != nil {
			return err
		}
	}
	return w.endAction(start)
}

func (w *writer) learnPart(s *flow.LearnSpec, v Version) error {
	n := s.Dst.N
	if s.Kind == flow.LearnOutput {
		n = s.Src.N
	}
	head := uint16(n) | uint16(s.Kind)<<partKindShift
	if !s.FromField {
		w.u16(head | partImmediate)
		w.value(s.Immediate, (int(n)+15)/16*2)
	} else {
		w.u16(head)
		if err := w.learnField(s.Src, v); err != nil {
			return err
		}
	}
	if s.Kind == flow.LearnOutput {
		return nil
	}
	return w.learnField(s.Dst, v)
}

func (w *writer) learnField(s flow.Subfield, v Version) error {
	err := w.moveHeader(s.Field, v)
	w.u16(uint16(s.Ofs))
	return err
}
