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

// Watching manifests with inotify. The watch is on directories, because editors and mounted
// ConfigMaps rename files or links into place. An event only says that something happened.
// After a short quiet time, everything that looks different is read again.
//
// A file that is written in several steps is thus mostly read once. To be certain, write
// another file and rename it into place.

// A change is read after settleTime without events, and after maxSettleTime at the latest. The
// aim is a snapshot within 100 ms.
const (
	settleTime    = 15 * time.Millisecond
	maxSettleTime = 50 * time.Millisecond
)

// Watch reads what changed since the last Read, and watches until ctx ends. Changes go to the
// store. After each reading, it calls report, if not nil, with all problems. When the returned
// channel is closed, no more calls come.
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

// manifestWatch is a running watch.
type manifestWatch struct {
	manifests *Manifests
	watcher   *fsnotify.Watcher
	report    func([]manifest.Problem)
	isDir     bool            // whether the path is a directory
	touched   map[string]bool // files with events since the last reading
	since     time.Time       // the first of these events
}

// root watches the parent directory of the path, because the path may go and come again. If
// the path is a directory, read watches it.
func (w *manifestWatch) root() error {
	stat, err := os.Stat(w.manifests.path)
	if err != nil {
		return err
	}
	w.isDir = stat.IsDir()
	return w.watcher.Add(filepath.Dir(w.manifests.path))
}

// read reads what changed. It watches a new directory before listing it, so no change is missed.
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

// run collects events, and reads when they have settled.
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
		case <-w.watcher.Errors: // events were lost: read everything
			w.noteEvent(w.manifests.path)
			settled.Reset(w.waitAtMost())
		case <-settled.C:
			w.read()
		}
	}
}

// concerns ignores events of the neighbours of a watched directory. It accepts all events of a
// single file's neighbours, because the file may be a link through one of them.
func (w *manifestWatch) concerns(name string) bool {
	below, err := filepath.Rel(w.manifests.path, name)
	return !w.isDir || err == nil && below != ".." && !strings.HasPrefix(below, ".."+string(filepath.Separator))
}

// noteEvent records an event.
func (w *manifestWatch) noteEvent(name string) {
	w.touched[filepath.Clean(name)] = true
	if w.since.IsZero() {
		w.since = time.Now()
	}
}

// waitAtMost is how long to wait for more events.
func (w *manifestWatch) waitAtMost() time.Duration {
	return max(0, min(settleTime, maxSettleTime-time.Since(w.since)))
}
