package snapshot

import (
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
)

// Fill takes what a switch holds.
func (s *Snapshot) Fill(sw door.Switch) {
	names := sw.Names()
	for _, t := range sw.Tables() {
		if name := names.Table(t.ID); name != "" {
			s.Tables[t.ID] = name
		}
	}
	s.PortNames, s.First = names.OpenPorts(), sw.First()
	for _, f := range sw.Flows() {
		if f.Learned {
			s.Learned = append(s.Learned, telemetry.Learned{Entry: f.Entry, Age: f.Duration, Idle: f.Idle})
		} else {
			s.Entries = append(s.Entries, f.Entry)
		}
	}
	for _, g := range sw.Groups() {
		s.Groups = append(s.Groups, g.Group)
	}
	for _, m := range sw.Meters() {
		s.Meters = append(s.Meters, m.Meter)
	}
}

// Installed are the entries of a switch without those that packets learned.
func Installed(sw door.Switch) *flow.Program {
	s := &Snapshot{Head: Head{Tables: map[uint8]string{}}}
	s.Fill(sw)
	return s.Program()
}
