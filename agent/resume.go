package agent

import (
	"context"
	"errors"
	"time"

	"github.com/antrail/antrail/control/store"
)

// An agent that starts with the previous agent's entries keeps them until it has read all
// manifests once. With half of the objects, it would remove the entries of the others.

// firstSync changes the switch from those entries to what the manifests say, once they can be
// read. It returns false if ctx ends first.
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
				l.log.Warn("the manifests cannot be read yet; the previous agent's entries stay", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(retryTime):
		}
	}
}

// runFirstRead reads the manifests. A file system that does not answer may block it. done
// receives nil if all manifests were read and are this Node's.
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
