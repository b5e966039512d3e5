package parse

import (
	"strings"

	"github.com/antrail/antrail/flow"
)

// learn(…): the settings of the learned entry, and its parts. A part is
// eth_type=0x800 or NXM_OF_IP_DST[] (a match), load:… or output:….

func (l *actionList) learn(it item) (flow.Action, error) {
	if it.sep != '(' {
		return nil, it.key.errorf("expected learn(…)")
	}
	a := &flow.Learn{Table: 1, Priority: flow.DefaultPriority}
	err := each(it.value, func(o item) error { return l.learnPart(a, o) })
	return a, err
}

func (l *actionList) learnPart(a *flow.Learn, o item) (err error) {
	switch o.key.text {
	case "table":
		a.Table, err = l.p.table(o.value)
	case "priority":
		err = number16(o, &a.Priority)
	case "idle_timeout":
		err = number16(o, &a.IdleTimeout)
	case "hard_timeout":
		err = number16(o, &a.HardTimeout)
	case "fin_idle_timeout":
		err = number16(o, &a.FinIdleTimeout)
	case "fin_hard_timeout":
		err = number16(o, &a.FinHardTimeout)
	case "cookie":
		a.Cookie, err = number[uint64](o.value, 1<<64-1)
	case "limit":
		a.Limit, err = number[uint32](o.value, 1<<32-1)
	case "send_flow_rem":
		a.SendFlowRem, err = true, o.bare()
	case "delete_learned":
		a.DeleteLearned, err = true, o.bare()
	case "result_dst":
		err = o.key.errorf("result_dst is not supported by this switch")
	default:
		var s flow.LearnSpec
		s, err = l.learnSpec(o)
		a.Specs = append(a.Specs, s)
	}
	return err
}

func (l *actionList) learnSpec(o item) (flow.LearnSpec, error) {
	switch o.key.text {
	case "load":
		return learnLoad(o)
	case "output":
		src, err := subfield(o.value)
		return flow.LearnSpec{Kind: flow.LearnOutput, FromField: true, Src: src}, err
	}
	dst, err := subfield(o.key)
	if err != nil {
		return flow.LearnSpec{}, err
	}
	s := flow.LearnSpec{Kind: flow.LearnMatch, Dst: dst}
	if o.sep == 0 {
		s.FromField, s.Src = true, dst
		return s, nil
	}
	name, _, _ := strings.Cut(o.value.text, "[")
	if flow.FieldByName(aliasOf(name)) != nil {
		s.FromField = true
		if s.Src, err = subfield(o.value); err == nil {
			err = sameWidth(o.value, s.Src, dst)
		}
		return s, err
	}
	s.Immediate, err = l.learnImmediate(o.value, dst)
	return s, err
}

// learnImmediate reads the value that the learned entry matches on.
func (l *actionList) learnImmediate(s span, dst flow.Subfield) (flow.Value, error) {
	f := flow.FieldByID(dst.Field)
	if dst != f.Full() {
		return fitting(s, dst)
	}
	v, mask, err := l.p.value(f, s)
	if err == nil && (mask != flow.Ones(f.Bits) && mask != flow.Ones(len(f.Form.Flags())) || strings.Contains(s.text, "/")) {
		err = s.errorf("a mask is not possible here; name the bits, as in %s[0..3]", f.Name)
	}
	return v, err
}

func learnLoad(o item) (flow.LearnSpec, error) {
	value, name, err := arrow(o)
	if err != nil {
		return flow.LearnSpec{}, err
	}
	s := flow.LearnSpec{Kind: flow.LearnLoad}
	if s.Dst, err = writableSubfield(name); err != nil {
		return s, err
	}
	if value.text == "" || value.text[0] >= '0' && value.text[0] <= '9' {
		s.Immediate, err = fitting(value, s.Dst)
		return s, err
	}
	s.FromField = true
	if s.Src, err = subfield(value); err == nil {
		err = sameWidth(value, s.Src, s.Dst)
	}
	return s, err
}
