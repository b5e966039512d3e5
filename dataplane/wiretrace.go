package dataplane

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/antrail/antrail/flow"
)

// A trace as JSON. Its steps meet the same entries and groups again and again, and
// code that reads a trace compares their pointers. So a trace lists each entry and each
// group once, and a step names a place in the list:
//
//	{"start":{…},"entries":["table=0,… actions=goto_table:1","table=1,…"],"groups":["group_id=5,…"],
//	 "steps":[{"kind":"entry","depth":1,"table":0,"entry":0,"after":{…}},
//	          {"kind":"bucket","depth":1,"table":1,"group":0,"bucket":2,…}, …],
//	 "verdict":{…},"names":{…}}
//
// A step without entry is a table-miss, or of another kind. An action is its text,
// a frame is in base64. A Step by itself does not cross; only a trace does.

// plainTrace is Trace without its methods.
type plainTrace Trace

type wireTrace struct {
	*plainTrace
	Entries []*flow.Entry     `json:"entries,omitzero"`
	Groups  []*flow.Group     `json:"groups,omitzero"`
	Steps   []json.RawMessage `json:"steps"`
}

// wireStep is a step whose entry and group are places in the trace's lists.
type wireStep struct {
	Step
	Entry  *int             `json:"entry,omitzero"`
	Action *flow.ActionText `json:"action,omitzero"`
	Group  *int             `json:"group,omitzero"`
}

// MarshalJSON implements json.Marshaler. The error is for a key with a bit that no
// field has.
func (t Trace) MarshalJSON() ([]byte, error) {
	w := wireTrace{plainTrace: (*plainTrace)(&t)}
	entries, groups := map[*flow.Entry]int{}, map[*flow.Group]int{}
	if t.Steps != nil {
		w.Steps = []json.RawMessage{}
	}
	for i := range t.Steps {
		st := wireStep{Step: t.Steps[i]}
		st.Entry = placeOf(&w.Entries, entries, st.Step.Entry)
		st.Group = placeOf(&w.Groups, groups, st.Step.Group)
		if a := st.Step.Action; a != nil {
			st.Action = &flow.ActionText{Action: a}
		}
		text, err := json.Marshal(&st)
		if err != nil {
			return nil, fmt.Errorf("steps[%d]: %w", i, err)
		}
		w.Steps = append(w.Steps, text)
	}
	return json.Marshal(w)
}

// placeOf is where a list has x, at its end when it is new; nil for nil.
func placeOf[T any](list *[]*T, places map[*T]int, x *T) *int {
	if x == nil {
		return nil
	}
	at, known := places[x]
	if !known {
		at = len(*list)
		places[x] = at
		*list = append(*list, x)
	}
	return &at
}

// UnmarshalJSON implements json.Unmarshaler. The error names the field or the step.
func (t *Trace) UnmarshalJSON(b []byte) error {
	var got Trace
	w := wireTrace{plainTrace: (*plainTrace)(&got)}
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("a trace: %w", err)
	}
	if w.Steps != nil {
		got.Steps = []Step{}
	}
	for i, text := range w.Steps {
		st, err := w.step(text)
		if err != nil {
			return fmt.Errorf("a trace: steps[%d]: %w", i, err)
		}
		got.Steps = append(got.Steps, st)
	}
	*t = got
	return nil
}

// step reads a step. A short text is refused before memory is spent on it: each step
// needs its kind.
func (w *wireTrace) step(text []byte) (st Step, err error) {
	var s wireStep
	if err := json.Unmarshal(text, &s); err != nil {
		return st, err
	}
	if !s.Kind.known() {
		return st, fmt.Errorf("kind %.40q is none of a step", s.Kind)
	}
	st = s.Step
	if st.Entry, err = atPlace(w.Entries, s.Entry); err != nil {
		return st, fmt.Errorf("entry: %w", err)
	}
	if st.Group, err = atPlace(w.Groups, s.Group); err != nil {
		return st, fmt.Errorf("group: %w", err)
	}
	if s.Action != nil {
		st.Action = s.Action.Action
	}
	return st, nil
}

// atPlace is what a list has at a place; nil without one.
func atPlace[T any](list []*T, at *int) (*T, error) {
	switch {
	case at == nil:
		return nil, nil
	case *at < 0 || *at >= len(list):
		return nil, fmt.Errorf("%d is no place in a list of %d", *at, len(list))
	case list[*at] == nil:
		return nil, errors.New("there is null in the list")
	}
	return list[*at], nil
}

// known says whether steps have such a kind.
func (k StepKind) known() bool {
	switch k {
	case StepEntry, StepAction, StepCT, StepBucket, StepLearn, StepOutput, StepPacketIn, StepWait, StepDrop:
		return true
	}
	return false
}
