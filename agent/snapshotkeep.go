package agent

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/antrail/antrail/agent/snapshot"
	"github.com/antrail/antrail/switchd"
)

// When the flow snapshot is written: a moment after the entries changed, and
// when the agent is told to stop. What packets learned is written with it, and
// by itself from time to time: it is lost with little harm. Nothing is written
// before the switch has what the manifests say: until then, the file that the
// agent began with is the better one.
//
// An agent that is killed within that moment leaves the snapshot before the last
// change. The next one then forwards by it until it has read the manifests.

const (
	// snapshotPause lies between two looks, and snapshotShare times as long as
	// the last writing took: a twentieth of a processor at most.
	snapshotPause = time.Second
	snapshotShare = 20
	// learnedPause is how long what packets learned waits, while nothing else
	// changes.
	learnedPause = 30 * time.Second
)

// keptState is what of the switch was written last.
type keptState struct {
	generation, learnings uint64
	at                    time.Time
}

// runSnapshots keeps the flow snapshot until ctx ends.
func (a *Agent) runSnapshots(ctx context.Context) {
	path := a.config.SnapshotFile()
	if path == "" {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-a.live.synced:
	}
	var kept keptState
	for ctx.Err() == nil {
		start := time.Now()
		a.keepSnapshot(path, &kept, learnedPause)
		select {
		case <-ctx.Done():
		case <-time.After(max(snapshotPause, snapshotShare*time.Since(start))):
		}
	}
	a.keepSnapshot(path, &kept, 0)
}

// keepSnapshot writes the snapshot if entries changed since it was written, or
// something was learned since and that is a while ago.
func (a *Agent) keepSnapshot(path string, kept *keptState, waitAtMost time.Duration) {
	failed := a.BeginAsking()
	now := keptState{a.Switch.Generation(), a.Switch.Learnings(), time.Now()}
	if failed() != nil {
		return // the file has more than the switch says
	}
	if now.generation == kept.generation && (now.learnings == kept.learnings || now.at.Sub(kept.at) < waitAtMost) {
		return
	}
	if err := a.writeSnapshot(path); err != nil {
		a.log.Error("the flow snapshot cannot be kept", "file", path, "error", err)
		if failed() != nil {
			return // nothing was written: the next round is to try again
		}
	}
	*kept = now
}

// writeSnapshot writes the snapshot, one writer at a time.
func (a *Agent) writeSnapshot(path string) error {
	a.snapshots.Lock()
	defer a.snapshots.Unlock()
	s, err := a.takeSnapshot()
	if err != nil {
		return err
	}
	text, err := s.Encode()
	if err != nil {
		return err
	}
	return switchd.WriteOwnFile(path, text)
}

// takeSnapshot is what the switch holds now. The error is also that of a switch that does
// not answer.
func (a *Agent) takeSnapshot() (*snapshot.Snapshot, error) {
	boot, err := switchd.BootID()
	if err != nil {
		return nil, err
	}
	s := &snapshot.Snapshot{Head: snapshot.Head{
		Boot: hex.EncodeToString(boot[:]), Config: snapshot.Identity(a.config), Taken: a.Clock(),
		Tables: map[uint8]string{},
	}}
	failed := a.BeginAsking()
	if a.Remote != nil { // not by a.Switch.Names, which may be a second old
		if i, err := a.Remote.Info(context.Background()); err == nil && i.Names == nil {
			return nil, errEmptySwitch
		}
	}
	s.Memory = a.live.objects.Remember(func() { s.Fill(a.Switch) })
	if err := failed(); err != nil {
		return nil, err
	}
	for _, p := range a.Pods.Wanted() {
		s.Ports = append(s.Ports, snapshot.Port{Port: p, OneWay: p.NoReturn})
	}
	return s, nil
}

// errEmptySwitch is why no snapshot is written: the switch has been started again without
// its files, and the snapshot is all that is left.
var errEmptySwitch = errors.New("the switch has no entries: it has lost those that the agent sent")
