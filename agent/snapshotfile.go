package agent

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/agent/snapshot"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/switchd"
)

// The file of the flow snapshot, beside the connections.

// errNoSnapshot is why an agent that keeps no flow snapshot restores none.
var errNoSnapshot = errors.New("none is kept")

// restore puts the snapshot of the agent before into an empty switch, and says
// so, or why not.
func (l *live) restore(p *pipeline.Pipeline, path string) error {
	if path == "" {
		return errNoSnapshot
	}
	s, err := snapshot.Read(path, snapshot.Identity(l.config), p.Clock())
	if err == nil {
		err = l.install(p, s)
	}
	if err != nil {
		l.log.Info("no flow snapshot restored", "file", path, "why", err)
		return err
	}
	if p.Local != nil && !p.Local.Awaits() { // what packets learned until then is told later
		if err := p.Switch.Relearn(s.Learned); err != nil {
			l.log.Warn("what packets learned is not restored", "file", path, "why", err)
		}
	}
	l.log.Info(fmt.Sprintf("flow snapshot restored: %d entries, %d groups, %d learned", len(s.Entries), len(s.Groups), len(s.Learned)),
		"file", path, "age", snapshot.TimeSince(s.Taken, p.Clock()))
	l.restored = s.PodPorts()
	l.shield.endpoints(switchd.EndpointsOf(s.Groups))
	return nil
}

// install gives a snapshot to the switch and to control, to both or none.
func (l *live) install(p *pipeline.Pipeline, s *snapshot.Snapshot) error {
	if p.Remote != nil && p.Switch.Names() != nil {
		return l.objects.Restore(s.Memory, snapshot.Installed(p.Switch)) // the switch has more recent entries than the file
	}
	prog := s.Program()
	if err := l.objects.Restore(s.Memory, prog); err != nil {
		return err
	}
	err := p.Switch.Apply(flow.BundleOf(prog))
	if err != nil {
		l.objects = l.newObjects(p)
	}
	return err
}
