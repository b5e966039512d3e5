package store

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
)

// Manifests are a file, or a directory with all files below it. Their names end in .yaml, .yml
// or .json and do not begin with a dot. A store reads them once, or whenever they change
// (manifests_watch.go).
//
// A fault removes nothing:
//
//   - A refused object keeps its last good state.
//   - If a part of a file cannot be understood, the objects of the file that the readable
//     parts lack stay.
//   - If a file cannot be opened, all its objects stay.
//   - If the path itself is gone, everything that was read stays.
//
// Only a missing file or object removes objects.

// maxFiles is the limit of files in a directory.
const maxFiles = 10000

// Manifests reads a file or directory of manifests into a store. Any goroutine may call its
// methods.
type Manifests struct {
	path  string
	store *Store

	mu    sync.Mutex
	files map[string]*manifestFile
	fault *manifest.Problem // the path itself cannot be read
}

// manifestFile is the state of a file at its last reading.
type manifestFile struct {
	stat      os.FileInfo
	objects   map[cluster.Key]cluster.Object // last good
	problems  []manifest.Problem
	edits     RefusedEdits
	unread    error // why the last reading failed
	documents manifest.Documents
}

// NewManifests reads path into the store. It returns an error if the file or directory does
// not exist. Problems has the faults in files.
func NewManifests(path string, store *Store) (*Manifests, error) {
	stat, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("manifests: %w", err)
	}
	if stat.IsDir() { // walking does not follow a link
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, fmt.Errorf("manifests: %w", err)
		}
	}
	m := &Manifests{path: filepath.Clean(path), store: store, files: map[string]*manifestFile{}}
	m.Read()
	return m, nil
}

// LoadManifests reads a file or directory once, without watching it. It derives
// EndpointSlices for Services without any.
func LoadManifests(path string) (*cluster.Cluster, []manifest.Problem, error) {
	store := NewStore(DeriveEndpoints)
	m, err := NewManifests(path, store)
	if err != nil {
		return nil, nil, err
	}
	return store.Snapshot(), m.Problems(), nil
}

// Problems returns all faults of the manifests: first those in files, by file and line, then
// those between objects.
func (m *Manifests) Problems() []manifest.Problem {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []manifest.Problem
	if m.fault != nil {
		out = append(out, *m.fault)
	}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		out = append(out, m.files[name].problems...)
	}
	return append(out, m.store.Problems()...)
}

// Unread says why the last reading did not read all files. The objects of an unread file are
// those of an earlier reading, or unknown. Faults in a file that was read do not count.
func (m *Manifests) Unread() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return m.fault
	}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		if err := m.files[name].unread; err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Read reads the files that are new or look different (size, time or inode), and applies all
// changes as one snapshot. NewManifests and Watch call it.
func (m *Manifests) Read() Update { return m.read(nil, time.Time{}, func(string) {}) }

// read is Read with three additions. It reads touched files even if they look the same. since
// is the time of the first event, or zero. It calls seeDir with each directory before it lists
// the directory.
func (m *Manifests) read(touched map[string]bool, since time.Time, seeDir func(string)) Update {
	m.mu.Lock()
	defer m.mu.Unlock()
	names, err := m.list(seeDir)
	m.fault = nil
	if err != nil {
		m.fault = &manifest.Problem{Source: cluster.Source{File: m.path}, Reason: err.Error() + "; what was read before stays"}
	}
	var changes []Change
	for _, name := range names {
		if c, changed := m.readFile(name, touched[name]); changed {
			changes = append(changes, c)
		}
	}
	if err == nil {
		changes = append(changes, m.forget(names)...)
	}
	for i := range changes {
		changes[i].Since = since
	}
	m.store.SetRefusedEdits(m.refusedEdits())
	return m.store.Apply(changes...)
}

// list returns the files in order. It reads a file through a link, but does not enter a
// directory through a link.
func (m *Manifests) list(seeDir func(string)) ([]string, error) {
	var names []string
	err := filepath.WalkDir(m.path, func(path string, d fs.DirEntry, err error) error {
		hidden := path != m.path && strings.HasPrefix(d.Name(), ".")
		switch {
		case err != nil:
			return err
		case d.IsDir() && hidden:
			return filepath.SkipDir
		case d.IsDir():
			seeDir(path)
		case path == m.path || !hidden && isManifest(path):
			names = append(names, path)
		}
		if len(names) > maxFiles {
			return fmt.Errorf("there are more than %d files", maxFiles)
		}
		return nil
	})
	return names, err
}

func isManifest(path string) bool {
	switch filepath.Ext(path) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// forget drops the files that are gone.
func (m *Manifests) forget(names []string) []Change {
	var changes []Change
	for name, f := range m.files {
		if _, there := slices.BinarySearch(names, name); there {
			continue
		}
		changes = append(changes, Change{Source: name, Delete: slices.Collect(maps.Keys(f.objects))})
		delete(m.files, name)
	}
	return changes
}

// readFile reads a file if it may have changed, and returns the difference.
func (m *Manifests) readFile(name string, touched bool) (Change, bool) {
	f := m.files[name]
	if f == nil {
		f = &manifestFile{}
		m.files[name] = f
	}
	stat, err := os.Stat(name)
	if err == nil && !touched && f.looksLike(stat) {
		return Change{}, false
	}
	f.stat = stat
	var text []byte
	if err == nil {
		text, err = readText(name, stat)
	}
	if f.unread = err; err != nil {
		f.stat = nil
		p := manifest.Problem{Source: cluster.Source{File: name}, Reason: err.Error()}
		f.edits = f.unreadEdits(p)
		p.Reason += f.stays()
		f.problems = []manifest.Problem{p}
		return Change{}, false
	}
	var d *manifest.Decoded
	d, f.documents = manifest.DecodeChanged(name, text, f.documents)
	return f.setDecoded(name, d), true
}

func (f *manifestFile) looksLike(stat os.FileInfo) bool {
	return f.stat != nil && os.SameFile(f.stat, stat) && f.stat.Size() == stat.Size() &&
		f.stat.ModTime().Equal(stat.ModTime())
}

func (f *manifestFile) stays() string {
	if len(f.objects) == 0 {
		return ""
	}
	return "; what it held before stays"
}

func readText(name string, stat os.FileInfo) ([]byte, error) {
	if !stat.Mode().IsRegular() {
		return nil, fmt.Errorf("is not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, manifest.MaxFile+1))
}

// setDecoded sets the decoded objects, keeps the last good state of faulty ones, and returns
// the difference.
func (f *manifestFile) setDecoded(name string, d *manifest.Decoded) Change {
	next := make(map[cluster.Key]cluster.Object, len(d.Objects))
	for _, obj := range d.Objects {
		next[obj.Metadata().Key] = obj
	}
	kept := map[cluster.Key]bool{}
	keep := func(k cluster.Key) {
		if old, had := f.objects[k]; had && next[k] == nil {
			next[k], kept[k] = old, true
		}
	}
	for _, k := range d.Refused {
		keep(k)
	}
	if d.Broken {
		for k := range f.objects {
			keep(k)
		}
	}
	c := Change{Source: name}
	for k, obj := range next {
		if f.objects[k] != obj {
			c.Set = append(c.Set, obj)
		}
	}
	for k := range f.objects {
		if next[k] == nil {
			c.Delete = append(c.Delete, k)
		}
	}
	f.objects, f.problems, f.edits = next, explainKept(d.Problems, kept), refusedEdits(name, d.Problems, kept)
	return c
}

// explainKept adds to the problems of refused objects that their last good state stays.
func explainKept(problems []manifest.Problem, kept map[cluster.Key]bool) []manifest.Problem {
	problems = slices.Clone(problems)
	for i := range problems {
		switch p := &problems[i]; {
		case kept[p.Key]:
			p.Reason += manifest.LastGoodStays
		case p.Key == cluster.Key{} && !p.Ignored && len(kept) > 0:
			p.Reason += "; what the file held before stays"
		}
	}
	return problems
}
