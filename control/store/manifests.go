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

// Manifests: a file, or a directory with all files below it whose names end in
// .yaml, .yml or .json and do not begin with a dot. They are read into a store,
// once or (manifests_watch.go) whenever they change.
//
// What cannot be read does not take away what was there. An object that is
// refused stays as it was when it was last good; a part of a file that cannot
// be understood keeps every object that the file held and that does not stand
// in its readable parts; a file that cannot be opened keeps all its objects.
// Only a file or an object that is gone is gone; but when the path itself is
// gone, all that was read stays.

// Limits of a directory.
const maxFiles = 10000

// Manifests reads a file or directory of manifests into a store. Its methods
// may be called from any goroutine.
type Manifests struct {
	path  string
	store *Store

	mu    sync.Mutex
	files map[string]*manifestFile
	fault *manifest.Problem // the path itself cannot be read
}

// manifestFile is a file as it was last read.
type manifestFile struct {
	stat      os.FileInfo
	objects   map[cluster.Key]cluster.Object // last good
	problems  []manifest.Problem
	edits     RefusedEdits
	unread    error // why it could not be opened or read the last time
	documents manifest.Documents
}

// NewManifests reads path into the store. It is an error if there is no such
// file or directory; faults in the files are not, see Problems.
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

// LoadManifests reads a file or directory once, without watching it, and
// derives EndpointSlices where Services have none.
func LoadManifests(path string) (*cluster.Cluster, []manifest.Problem, error) {
	store := NewStore(DeriveEndpoints)
	m, err := NewManifests(path, store)
	if err != nil {
		return nil, nil, err
	}
	return store.Snapshot(), m.Problems(), nil
}

// Problems are all faults of the manifests as they are now: those of files in
// order of files and lines, then those between objects.
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

// Unread is why not all of the files could be read the last time: of what they
// held nothing is known, unless they were read before. What is wrong in a file
// that was read is no reason.
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

// Read reads the files that are new or look different (size, time or inode)
// and takes over what changed, as one snapshot. It is called by NewManifests
// and by Watch.
func (m *Manifests) Read() Update { return m.read(nil, time.Time{}, func(string) {}) }

// read is Read; files that are touched are read even if they look the same, and
// since is when the first of them was, zero when that is not known.
// Each directory is told to seeDir before it is listed.
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

// list names the files, in order. Directories that a link names are not
// entered; a file that a link names is read.
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

// forget gives up the files that are gone.
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

// readFile reads a file if it may have changed and tells what differs.
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

// setDecoded makes what was decoded the file's state, keeps what was last good where
// something is wrong, and tells the difference.
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

// explainKept says of refused objects that their last good state stays.
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
