package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/wire"
)

// A trace as JSON. Its steps refer to the same entries and groups many times, and code that reads
// a trace compares their pointers. So a trace lists each entry and each group once, and a step
// has an index into the list:
//
//	{"start":{…},"entries":["table=0,… actions=goto_table:1","table=1,…"],"groups":["group_id=5,…"],
//	 "steps":[{"kind":"entry","depth":1,"table":0,"entry":0,"after":{…}},
//	          {"kind":"bucket","depth":1,"table":1,"group":0,"bucket":2,…}, …],
//	 "verdict":{…},"names":{…}}
//
// A step without entry is a table-miss, or of another kind. An action is its text, and a frame is
// in base64. Only a whole trace is encoded, never a Step by itself.

// plainTrace is Trace without its methods.
type plainTrace Trace

type wireTrace struct {
	*plainTrace
	Entries []wire.Entry      `json:"entries,omitzero"`
	Groups  []wire.Group      `json:"groups,omitzero"`
	Steps   []json.RawMessage `json:"steps"`
}

// wireStep is a step whose entry and group are indexes into the trace's lists.
type wireStep struct {
	Step
	Entry  *int         `json:"entry,omitzero"`
	Action *wire.Action `json:"action,omitzero"`
	Group  *int         `json:"group,omitzero"`
}

// MarshalJSON implements json.Marshaler. The error is for a key with a bit outside all fields.
func (t Trace) MarshalJSON() ([]byte, error) {
	w := wireTrace{plainTrace: (*plainTrace)(&t)}
	entries, groups := uniqueList[*flow.Entry]{}, uniqueList[*flow.Group]{}
	if t.Steps != nil {
		w.Steps = []json.RawMessage{}
	}
	for i := range t.Steps {
		st := wireStep{Step: t.Steps[i]}
		if e := st.Step.Entry; e != nil {
			st.Entry = entries.of(e)
		}
		if g := st.Step.Group; g != nil {
			st.Group = groups.of(g)
		}
		if a := st.Step.Action; a != nil {
			st.Action = &wire.Action{Action: a}
		}
		text, err := json.Marshal(&st)
		if err != nil {
			return nil, fmt.Errorf("steps[%d]: %w", i, err)
		}
		w.Steps = append(w.Steps, text)
	}
	w.Entries = converted(entries.list, func(e *flow.Entry) wire.Entry { return wire.Entry{Entry: e} })
	w.Groups = converted(groups.list, func(g *flow.Group) wire.Group { return wire.Group{Group: g} })
	return json.Marshal(w)
}

// uniqueList is a list without repetitions.
type uniqueList[T comparable] struct {
	list []T
	at   map[T]int
}

// of is the index of x. It appends x if x is new.
func (l *uniqueList[T]) of(x T) *int {
	at, known := l.at[x]
	if !known {
		if l.at == nil {
			l.at = map[T]int{}
		}
		at = len(l.list)
		l.at[x] = at
		l.list = append(l.list, x)
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

// step decodes a step. It refuses a step without a known kind before it allocates more.
func (w *wireTrace) step(text []byte) (st Step, err error) {
	var s wireStep
	if err := json.Unmarshal(text, &s); err != nil {
		return st, err
	}
	if !s.Kind.known() {
		return st, fmt.Errorf("kind %.40q is not a kind of step", s.Kind)
	}
	st = s.Step
	entry, err := atPlace(w.Entries, s.Entry)
	if err != nil {
		return st, fmt.Errorf("entry: %w", err)
	}
	group, err := atPlace(w.Groups, s.Group)
	if err != nil {
		return st, fmt.Errorf("group: %w", err)
	}
	st.Entry, st.Group = entry.Entry, group.Group
	if s.Action != nil {
		st.Action = s.Action.Action
	}
	return st, nil
}

// atPlace is the element of a list at an index; zero if at is nil.
func atPlace[T comparable](list []T, at *int) (x T, err error) {
	switch {
	case at == nil:
		return x, nil
	case *at < 0 || *at >= len(list):
		return x, fmt.Errorf("index %d is outside a list of %d", *at, len(list))
	case list[*at] == x:
		return x, errors.New("the list has null at this index")
	}
	return list[*at], nil
}

// known says whether a kind of step exists.
func (k StepKind) known() bool {
	switch k {
	case StepEntry, StepAction, StepCT, StepBucket, StepLearn, StepOutput, StepPacketIn, StepWait, StepDrop:
		return true
	}
	return false
}
