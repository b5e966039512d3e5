package kube

import (
	"maps"
	"slices"

	"github.com/antrail/antrail/control/cluster"
)

// State is the state of a watch.
type State string

// States of a watch.
const (
	Reading  State = "reading"  // the first list has not come yet
	Watching State = "watching" // the objects are those of the API server
	Away     State = "away"     // the last try failed: the objects may be old
	Absent   State = "absent"   // the API server lacks the kind; the agent waits for it
)

// WatchStatus is the status of the watch of one resource.
type WatchStatus struct {
	Resource string `json:"resource"` // the name for RBAC, and the part that is watched
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Objects  int    `json:"objects"` // held objects
	Refused  int    `json:"refused"` // of these, with a refused state
	Events   uint64 `json:"events"`  // objects that came one by one
	Faults   uint64 `json:"faults"`  // lists and watches that failed
}

// Status returns the status of all watches, and the absent kinds.
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
