package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrail/antrail/agent/assignments"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/switchd/local"
)

// The agent writes its assignments to a file a moment after entries change, and when it stops.
// It writes nothing until the switch has the entries of all objects: until then, the file of
// the previous agent is the better one.
//
// An agent that is killed within that moment leaves the numbers of the change before. The next
// agent then gives other numbers to the objects of the lost change.

const (
	// The pause between two writes is assignmentsPause, or assignmentsShare times as long as
	// the last write took. So writing takes at most a twentieth of a processor.
	assignmentsPause = time.Second
	assignmentsShare = 20
)

// errNoEntries is why an agent restores nothing: a new switch has no entries.
var errNoEntries = errors.New("the switch has no entries")

// restore adopts the entries that the switch has. The error says why objects do not keep their
// numbers and ports.
func (l *live) restore(p *pipeline.Pipeline) error {
	if p.Switch.Names() == nil {
		return errNoEntries
	}
	path, installed := l.config.AssignmentsFile(), installedIn(p)
	a, err := assignments.Read(path, l.config)
	if err == nil {
		err = l.objects.Restore(a.Memory, installed)
	}
	if err != nil {
		l.log.Info("no assignments restored", "file", path, "why", err)
		// The first change removes the entries that no object asks for.
		return errors.Join(err, l.objects.Restore(&control.Memory{}, installed))
	}
	l.log.Info(fmt.Sprintf("assignments restored beside %d entries, %d groups", len(installed.Entries), len(installed.Groups)), "file", path)
	l.restored = a.PodPorts()
	l.shield.endpoints(local.EndpointsOf(installed.Groups))
	return nil
}

// installedIn is what a switch has. It leaves out entries that packets learned, and those of
// programs beside the objects: no object asks for either.
func installedIn(p *pipeline.Pipeline) *flow.Program {
	prog := &flow.Program{Names: p.Switch.Names(), First: p.Switch.First()}
	for _, f := range p.Switch.Flows() {
		if !f.Learned && !p.IsBeside(f.Entry) {
			prog.Entries = append(prog.Entries, f.Entry)
		}
	}
	for _, g := range p.Switch.Groups() {
		prog.Groups = append(prog.Groups, g.Group)
	}
	for _, m := range p.Switch.Meters() {
		prog.Meters = append(prog.Meters, m.Meter)
	}
	return prog
}

// runAssignments writes the file of assignments after changes, until ctx ends.
func (a *Agent) runAssignments(ctx context.Context) {
	path := a.config.AssignmentsFile()
	if path == "" {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-a.live.synced:
	}
	for {
		start := time.Now()
		a.writeAssignments(path)
		select {
		case <-ctx.Done():
		case <-time.After(max(assignmentsPause, assignmentsShare*time.Since(start))):
		}
		select {
		case <-a.live.applied:
		case <-ctx.Done():
			if len(a.live.applied) > 0 {
				a.writeAssignments(path)
			}
			return
		}
	}
}

// writeAssignments writes the file.
func (a *Agent) writeAssignments(path string) {
	if err := assignments.New(a.config, a.Pods.Wanted(), a.live.objects.Remember()).Write(path); err != nil {
		a.log.Error("cannot write the assignments", "file", path, "error", err)
	}
}
