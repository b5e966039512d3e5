package agent

import (
	"context"
	"errors"
	"time"

	"github.com/antrail/antrail/control/store"
)

// An agent that began with the entries of the one before forwards while it looks for the
// manifests. Until all of them could be read once, the switch stays as it was:
// half of the objects would take the others away.

// firstSync brings the switch from those entries to what the manifests say, as
// soon as they can be read; false when ctx ended before.
func (l *live) firstSync(ctx context.Context) bool {
	told := ""
	for {
		read := make(chan error, 1)
		go l.runFirstRead(read)
		select {
		case <-ctx.Done():
			return false
		case err := <-read:
			if err == nil {
				l.resume()
				return true
			}
			if told != err.Error() {
				told = err.Error()
				l.log.Warn("the manifests cannot be read yet; the entries of the agent before stay", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(retryTime):
		}
	}
}

// runFirstRead reads the manifests, which may take as long as a file system
// that does not answer, and tells whether all could be read and are this Node's.
func (l *live) runFirstRead(done chan<- error) {
	var err error
	if l.manifests == nil {
		l.manifests, err = store.NewManifests(l.config.Manifests, l.store)
	} else {
		l.manifests.Read()
	}
	if err == nil {
		l.report(l.manifests.Problems())
		err = errors.Join(l.manifests.Unread(), l.config.Fits(l.store.Snapshot().NodeConfig(l.config.NodeName)))
	}
	done <- err
}

// resume installs the difference between those entries and the manifests.
func (l *live) resume() {
	l.portsMu.Lock()
	l.restored = nil
	l.portsMu.Unlock()
	l.update(store.Update{New: l.store.Snapshot()})
}
