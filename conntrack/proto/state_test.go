package proto

import (
	"slices"
	"testing"
	"time"
)

// TestStateNames: every state has a name, and its timeout is the same whichever side
// is in which state.
func TestStateNames(t *testing.T) {
	for s := sctpClosed; s <= sctpHeartbeatSent; s++ {
		if s.String() == "" {
			t.Errorf("SCTP state %d has no name", s)
		}
	}
	timeouts := DefaultTimeouts()
	for a := TCPClosed; a <= TCPTimeWait; a++ {
		for b := TCPClosed; b <= TCPTimeWait; b++ {
			if timeouts.OfTCP(a, b) != timeouts.OfTCP(b, a) || timeouts.OfTCP(a, b) < time.Second {
				t.Errorf("timeout of %s and %s: %v", a, b, timeouts.OfTCP(a, b))
			}
		}
	}
}

// TestStates: every name that a filter may ask for, once.
func TestStates(t *testing.T) {
	s := StateNames()
	if !slices.IsSorted(s) || len(slices.Compact(slices.Clone(s))) != len(s) || !slices.Contains(s, "ESTABLISHED") || !slices.Contains(s, "SHUTDOWN_SENT") {
		t.Errorf("states %v", s)
	}
}
