package rig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options bounds a run of the rig. A field that is zero has a default.
type Options struct {
	// Profiles are the names of the profiles to run, in this order. If it is empty, the usual ones
	// run; "all" stands for all of them.
	Profiles []string `json:"profiles"`
	// Time is about how long the whole run takes, 2 minutes by default. Every contender runs once
	// even if that takes longer.
	Time time.Duration `json:"time"`
	// Rounds is how many times each contender runs at least, however long that takes. If it is 0,
	// contenders run as often as there is time for.
	Rounds int `json:"rounds"`
	// Window is how long traffic flows for one figure, 200 ms by default.
	Window time.Duration `json:"window"`
	// Contenders leaves out contenders whose names contain none of these, whatever the case of
	// letters. If it is empty, all take part.
	Contenders []string `json:"contenders,omitempty"`
	// Largest is where sweeps end, 10 to 1,000,000, or earlier if the time is up; 100,000 by
	// default.
	Largest int `json:"largest"`
	// Binary is the antrail binary that labs' agents run, by default the running one.
	Binary string `json:"binary,omitempty"`
	// StateDir is where labs keep their state, by default the usual place.
	StateDir string `json:"stateDir,omitempty"`
}

// Complete sets defaults and checks the options. usual are the profiles that run by default, and
// known those that there are.
func (o *Options) Complete(usual, known []string) error {
	o.Time = cmp.Or(o.Time, 2*time.Minute)
	o.Window = cmp.Or(o.Window, 200*time.Millisecond)
	o.Largest = cmp.Or(o.Largest, 100_000)
	if o.Time < 0 || o.Rounds < 0 || o.Window < time.Millisecond {
		return fmt.Errorf("bench: %d rounds, window %v, time %v: all are positive, the window at least 1ms", o.Rounds, o.Window, o.Time)
	}
	if o.Largest < 10 || o.Largest > 1_000_000 {
		return fmt.Errorf("bench: sweeps end at 10 to 1000000, not at %d", o.Largest)
	}
	if len(o.Profiles) == 0 {
		o.Profiles = usual
	}
	if slices.Equal(o.Profiles, []string{"all"}) {
		o.Profiles = known
	}
	for _, name := range o.Profiles {
		if !slices.Contains(known, name) {
			return fmt.Errorf("bench: %q is no profile: all and %s are", name, strings.Join(known, ", "))
		}
	}
	return nil
}
