package learn

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The files of a lesson.
const (
	entriesFile = "entries.flows"  // of the learner's tables, as dump-flows prints them
	groupsFile  = "entries.groups" // as dump-groups prints them
	objectsFile = "objects.yaml"   // of the cluster
	packetsFile = "packets"
	readmeFile  = "README.md" // the lesson's text
)

// Files are a lesson's files, by name. Dir is their directory, for errors; "" for files of
// the lesson itself.
type Files struct {
	Dir  string
	Text map[string]string
}

// Start are the learner's files at the beginning.
func (l *Lesson) Start() (*Files, error) {
	f := &Files{Text: map[string]string{}}
	return f, f.readFS("lessons/" + l.Name + "/start")
}

// Variant is Start with the files of the solution or a mistake.
func (l *Lesson) Variant(name string) (*Files, error) {
	f, err := l.Start()
	if err != nil {
		return nil, err
	}
	return f, f.readFS("lessons/" + l.Name + "/" + name)
}

func (f *Files) readFS(dir string) error {
	entries, err := fs.ReadDir(embedded, dir)
	for _, e := range entries {
		b, err := embedded.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		f.Text[e.Name()] = string(b)
	}
	return err
}

// Names are the files' names, sorted.
func (f *Files) Names() []string { return slices.Sorted(maps.Keys(f.Text)) }

// path is a file's name in errors.
func (f *Files) path(name string) string { return filepath.Join(f.Dir, name) }

// ErrNotBegun is Read's error if the lesson has no directory yet.
var ErrNotBegun = errors.New("the lesson was not begun")

// Read reads the learner's files below a directory. A missing file is empty.
func (l *Lesson) Read(root string) (*Files, error) {
	start, err := l.Start()
	if err != nil {
		return nil, err
	}
	f := &Files{Dir: filepath.Join(root, l.Name), Text: map[string]string{}}
	if _, err := os.Stat(f.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: antrail learn %d makes %s", ErrNotBegun, l.Number, f.Dir)
	}
	for name := range start.Text {
		b, err := os.ReadFile(f.path(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		f.Text[name] = string(b)
	}
	return f, nil
}

// MakeFiles makes the learner's directory below root. With reset it replaces existing files.
func (l *Lesson) MakeFiles(root string, reset bool) (*Files, error) {
	f, err := l.Start()
	if err != nil {
		return nil, err
	}
	f.Dir = filepath.Join(root, l.Name)
	if err := os.MkdirAll(f.Dir, 0o777); err != nil {
		return nil, err
	}
	if err := writeNew(f.path(readmeFile), l.Text, true); err != nil {
		return nil, err
	}
	for name, text := range f.Text {
		if err := writeNew(f.path(name), text, reset); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// writeNew writes a file. It replaces an existing one only if replace is true.
func writeNew(path, text string, replace bool) error {
	if _, err := os.Lstat(path); err == nil && !replace {
		return nil
	}
	return os.WriteFile(path, []byte(text), 0o666)
}

// differing are the files that differ from the beginning.
func (f *Files) differing(start *Files) (names []string) {
	for _, name := range f.Names() {
		if strings.TrimSpace(f.Text[name]) != strings.TrimSpace(start.Text[name]) {
			names = append(names, name)
		}
	}
	return names
}
