package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
)

// Watching manifests with inotify. Directories are watched, not files, so that
// a file that is renamed over another (editors, and the links of a mounted
// ConfigMap) is seen like one that is written. Events only say that something
// happened: after a short quiet time everything that looks different is read
// again. So a file that is written in several steps is mostly read once; who
// wants to be sure renames a finished file into its place.

// A change is read when nothing has happened for settleTime, and at the latest
// after maxSettleTime; it shall be in a snapshot within 100 ms.
const (
	settleTime    = 15 * time.Millisecond
	maxSettleTime = 50 * time.Millisecond
)

// Watch begins to watch and reads again what changed since the last Read. Until
// the context ends, changes go to the store, and report, when not nil, is
// called with all problems after each reading. Wait for the channel it returns
// to know that no more calls come.
func (m *Manifests) Watch(ctx context.Context, report func([]manifest.Problem)) (<-chan struct{}, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("manifests: %w", err)
	}
	watch := &manifestWatch{manifests: m, watcher: w, report: report, touched: map[string]bool{}}
	if err := watch.root(); err != nil {
		w.Close()
		return nil, fmt.Errorf("manifests: watching %s: %w", m.path, err)
	}
	watch.read()
	done := make(chan struct{})
	go watch.run(ctx, done)
	return done, nil
}

// manifestWatch is a watch that goes on.
type manifestWatch struct {
	manifests *Manifests
	watcher   *fsnotify.Watcher
	report    func([]manifest.Problem)
	isDir     bool            // whether the path is a directory
	touched   map[string]bool // named by events since the last reading
	since     time.Time       // of the first of these events
}

// root watches the directory that the path is listed in, so that one that goes
// and comes again is seen. The path itself, if it is a directory, is watched
// when it is read.
func (w *manifestWatch) root() error {
	stat, err := os.Stat(w.manifests.path)
	if err != nil {
		return err
	}
	w.isDir = stat.IsDir()
	return w.watcher.Add(filepath.Dir(w.manifests.path))
}

// read reads what changed; directories that are new are watched from before
// they are listed, so that nothing is missed.
func (w *manifestWatch) read() {
	var faults []manifest.Problem
	w.manifests.read(w.touched, w.since, func(dir string) {
		if err := w.watcher.Add(dir); err != nil {
			faults = append(faults, manifest.Problem{Source: cluster.Source{File: dir}, Reason: "is not watched: " + err.Error()})
		}
	})
	clear(w.touched)
	w.since = time.Time{}
	if w.report != nil {
		w.report(append(w.manifests.Problems(), faults...))
	}
}

// run takes events and reads when they have settled.
func (w *manifestWatch) run(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	defer w.watcher.Close()
	settled := time.NewTimer(time.Hour)
	settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-w.watcher.Events:
			if w.concerns(event.Name) {
				w.noteEvent(event.Name)
				settled.Reset(w.waitAtMost())
			}
		case <-w.watcher.Errors: // events were lost: look at everything
			w.noteEvent(w.manifests.path)
			settled.Reset(w.waitAtMost())
		case <-settled.C:
			w.read()
		}
	}
}

// concerns tells the path of a directory from its neighbours. A single file may
// be a link through one of its neighbours.
func (w *manifestWatch) concerns(name string) bool {
	below, err := filepath.Rel(w.manifests.path, name)
	return !w.isDir || err == nil && below != ".." && !strings.HasPrefix(below, ".."+string(filepath.Separator))
}

// noteEvent takes down an event.
func (w *manifestWatch) noteEvent(name string) {
	w.touched[filepath.Clean(name)] = true
	if w.since.IsZero() {
		w.since = time.Now()
	}
}

// polling is how long to wait for more events.
func (w *manifestWatch) waitAtMost() time.Duration {
	return max(0, min(settleTime, maxSettleTime-time.Since(w.since)))
}
