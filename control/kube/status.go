package kube

import (
	"maps"
	"slices"

	"github.com/antrail/antrail/control/cluster"
)

// State is how a watch stands.
type State string

// States of a watch.
const (
	Reading  State = "reading"  // the first list has not come yet
	Watching State = "watching" // what is held is what the API server has
	Away     State = "away"     // the last try failed: what is held may be old
	Absent   State = "absent"   // the API server has no such kind; waited for
)

// WatchStatus is how the watch of one resource stands.
type WatchStatus struct {
	Resource string `json:"resource"` // as RBAC names it, and which part of it
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Objects  int    `json:"objects"` // that are held
	Refused  int    `json:"refused"` // of those, as they are now
	Events   uint64 `json:"events"`  // objects that came one by one
	Faults   uint64 `json:"faults"`  // lists and watches that failed
}

// Status is how all watches stand, and which kinds are absent.
func (s *Source) Status() []WatchStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []WatchStatus
	for _, w := range s.watches {
		all = append(all, w.status())
	}
	for _, k := range slices.Sorted(maps.Keys(s.absent)) {
		all = append(all, WatchStatus{Resource: pluralOf(k) + "." + antreaGroup, State: Absent,
			Reason: "the API server has no such kind; waiting for it"})
	}
	return all
}

func pluralOf(kind cluster.Kind) string {
	for _, k := range antreaKinds {
		if k.kind == kind {
			return k.plural
		}
	}
	return ""
}

func (w *watch) status() WatchStatus {
	st := WatchStatus{
		Resource: w.name(), State: Watching, Objects: len(w.held), Refused: len(w.refused), Events: w.events, Faults: w.faults,
	}
	if w.unenforced {
		st.Reason = "antrail does not enforce this kind: all objects are refused"
	}
	if !w.listed {
		st.State = Reading
	}
	if w.fault != nil {
		st.State, st.Reason = Away, w.fault.Error()
	}
	return st
}
