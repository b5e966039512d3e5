package agent

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/switchd"
)

// The file of the flow snapshot, beside the connections.

// maxSnapshot bounds the file: a hundred thousand entries take about 17 MB
// (BenchmarkSnapshot).
const maxSnapshot = 256 << 20

// snapshotFile is where the flow snapshot is kept; "" when it is not.
func (c *Config) snapshotFile() string {
	if c.FlowSnapshot != nil && !*c.FlowSnapshot || !c.fromObjects() {
		return ""
	}
	return c.besideSocket("flows.snapshot")
}

// identity is what of the configuration a snapshot speaks of: under another,
// ports and addresses may be others'.
func (c *Config) identity() string {
	b, err := json.Marshal(struct {
		Node    string
		Gateway Gateway
		Tunnel  Tunnel
		Pods    any
		Peers   []Peer
		Ports   []Port
	}{c.NodeName, c.Gateway, c.Tunnel, c.PodCIDRs, c.Peers, c.Ports})
	if err != nil {
		return err.Error() // plain data: it has a text
	}
	return checksum(b)
}

// readSnapshot reads the file of this boot and configuration. The error says
// why there is nothing to begin with.
func readSnapshot(path, config string, now int64) (*snapshot, error) {
	b, err := switchd.ReadOwnFile(path, maxSnapshot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is none")
	}
	if err != nil {
		return nil, err
	}
	s, err := parseSnapshot(b)
	if err != nil {
		return nil, err
	}
	boot, err := switchd.BootID()
	switch {
	case err != nil:
		return nil, err
	case s.Boot != hex.EncodeToString(boot[:]):
		return nil, errors.New("it is from before the machine was started")
	case s.Config != config:
		return nil, errors.New("it belongs to another configuration")
	case s.Taken > now:
		return nil, errors.New("it is from the future")
	}
	for i := range s.learned {
		s.learned[i].Age += timeSince(s.Taken, now)
		s.learned[i].Idle += timeSince(s.Taken, now)
	}
	return s, nil
}

// errNoSnapshot is why an agent that keeps no flow snapshot restores none.
var errNoSnapshot = errors.New("none is kept")

// restore puts the snapshot of the agent before into an empty switch, and says
// so, or why not.
func (l *live) restore(p *pipeline, path string) error {
	if path == "" {
		return errNoSnapshot
	}
	s, err := readSnapshot(path, l.config.identity(), p.clock())
	if err == nil {
		err = l.install(p, s)
	}
	if err != nil {
		l.log.Info("no flow snapshot restored", "file", path, "why", err)
		return err
	}
	if p.local != nil && !p.local.Awaits() { // what packets learned until then is told later
		if err := p.sw.Relearn(s.learned); err != nil {
			l.log.Warn("what packets learned is not restored", "file", path, "why", err)
		}
	}
	l.log.Info(fmt.Sprintf("flow snapshot restored: %d entries, %d groups, %d learned", len(s.entries), len(s.groups), len(s.learned)),
		"file", path, "age", timeSince(s.Taken, p.clock()))
	l.restored = s.ports()
	l.shield.endpoints(switchd.EndpointsOf(s.groups))
	return nil
}

// installed are the entries of a switch without those that packets learned.
func installed(sw door.Switch) *flow.Program {
	s := &snapshot{snapshotHead: snapshotHead{Tables: map[uint8]string{}}}
	s.fill(sw)
	return s.program()
}

// install gives a snapshot to the switch and to control, to both or none.
func (l *live) install(p *pipeline, s *snapshot) error {
	if p.remote != nil && p.sw.Names() != nil {
		return l.objects.Recall(s.Memory, installed(p.sw)) // the switch has more recent entries than the file
	}
	program := s.program()
	if err := l.objects.Recall(s.Memory, program); err != nil {
		return err
	}
	err := p.sw.Apply(dataplane.BundleOf(program))
	if err != nil {
		l.objects = l.newObjects(p)
	}
	return err
}
