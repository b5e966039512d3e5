package snapshot

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/switchd"
)

// maxSize bounds the file: a hundred thousand entries take about 17 MB
// (BenchmarkSnapshot).
const maxSize = 256 << 20

// Read reads the file of this boot and configuration. The error says
// why there is nothing to begin with.
func Read(path, identity string, now int64) (*Snapshot, error) {
	b, err := switchd.ReadOwnFile(path, maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is none")
	}
	if err != nil {
		return nil, err
	}
	s, err := Parse(b)
	if err != nil {
		return nil, err
	}
	boot, err := switchd.BootID()
	switch {
	case err != nil:
		return nil, err
	case s.Boot != hex.EncodeToString(boot[:]):
		return nil, errors.New("it is from before the machine was started")
	case s.Config != identity:
		return nil, errors.New("it belongs to another configuration")
	case s.Taken > now:
		return nil, errors.New("it is from the future")
	}
	for i := range s.Learned {
		s.Learned[i].Age += TimeSince(s.Taken, now)
		s.Learned[i].Idle += TimeSince(s.Taken, now)
	}
	return s, nil
}

// TimeSince is the time between two readings of a clock in nanoseconds.
func TimeSince(then, now int64) time.Duration { return time.Duration(now - then) }

// Identity is what of the configuration a snapshot speaks of: under another,
// ports and addresses may be others'.
func Identity(c *config.Config) string {
	b, err := json.Marshal(struct {
		Node    string
		Gateway config.Gateway
		Tunnel  config.Tunnel
		Pods    any
		Peers   []config.Peer
		Ports   []config.Port
	}{c.NodeName, c.Gateway, c.Tunnel, c.PodCIDRs, c.Peers, c.Ports})
	if err != nil {
		return err.Error() // plain data: it has a text
	}
	return checksum(b)
}
