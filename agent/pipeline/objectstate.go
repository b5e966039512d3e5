package pipeline

import (
	"fmt"

	"github.com/antrail/antrail/control"
)

// State is the state of an object, its reason, and why an edit of it is refused.
func State(s control.Status) string {
	text := StateInForce(s)
	if s.EditRefused != "" {
		text += ", edit refused: " + s.EditRefused
	}
	return text
}

// StateInForce is State without the refused edit.
func StateInForce(s control.Status) string {
	switch {
	case s.Reason != "":
		return fmt.Sprintf("%s: %s", s.State, s.Reason)
	case s.State == "":
		return "-"
	}
	return string(s.State)
}
