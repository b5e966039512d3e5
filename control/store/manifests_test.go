package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/internal/antrailtest"
)

// namespaceText is a manifest of a Namespace with a label.
func namespaceText(name, label string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {l: \"%s\"}}\n---\n", name, label)
}

// namespaces are the Namespaces of a snapshot with their labels.
func namespaces(c *cluster.Cluster) string {
	var out []string
	for k, ns := range c.Namespaces {
		out = append(out, k.Name+"="+ns.Labels["l"])
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func problemLines(dir string, problems []manifest.Problem) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, strings.ReplaceAll(p.Error(), dir+string(filepath.Separator), ""))
	}
	return strings.Join(lines, "\n")
}

// TestReadManifests changes files step by step, and checks the objects in force and the
// problems after each reading.
func TestReadManifests(t *testing.T) {
	steps := []struct {
		name     string
		do       func(t *testing.T, dir string)
		want     string
		problems string
	}{
		{"nothing", func(*testing.T, string) {}, "", ""},
		{"files", func(t *testing.T, dir string) {
			antrailtest.Write(t, namespaceText("a", "1")+namespaceText("b", "1"), dir, "one.yaml")
			antrailtest.Write(t, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c"}}`, dir, "two.json")
			antrailtest.Write(t, namespaceText("x", "1"), dir, "notes.txt")
			antrailtest.Write(t, namespaceText("x", "1"), dir, ".hidden.yaml")
		}, "a=1 b=1 c=", ""},
		{"a change", func(t *testing.T, dir string) {
			antrailtest.Write(t, namespaceText("a", "2")+namespaceText("b", "1"), dir, "one.yaml")
		}, "a=2 b=1 c=", ""},
		{"an object with a fault", func(t *testing.T, dir string) {
			antrailtest.Write(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, label: 3}\n---\n"+namespaceText("b", "2"), dir, "one.yaml")
		}, "a=2 b=2 c=", "one.yaml:3: Namespace/a: metadata.label: unknown field (did you mean labels?); the last good one stays"},
		{"a broken document", func(t *testing.T, dir string) {
			antrailtest.Write(t, namespaceText("b", "3")+"apiVersion: v1\n kind: x\n", dir, "one.yaml")
		}, "a=2 b=3 c=", "one.yaml:6: mapping values are not allowed in this context; what the file held before stays"},
		{"a fault in a new object", func(t *testing.T, dir string) {
			antrailtest.Write(t, namespaceText("b", "3")+namespaceText("a_b", "3"), dir, "one.yaml")
		}, "b=3 c=", "one.yaml:7: Namespace/a_b: metadata.name: Invalid value"},
		{"in a directory below", func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			antrailtest.Write(t, namespaceText("d", "1")+namespaceText("b", "9"), dir, "sub", "d.yml")
			antrailtest.Write(t, namespaceText("b", "3"), dir, "one.yaml")
		}, "b=3 c= d=1", "sub/d.yml:5: Namespace/b: is there already, at one.yaml:1"},
		{"from one file to another", func(t *testing.T, dir string) {
			antrailtest.Write(t, "", dir, "one.yaml")
			antrailtest.Write(t, namespaceText("b", "3"), dir, "three.yaml")
			antrailtest.Write(t, namespaceText("d", "1"), dir, "sub", "d.yml")
		}, "b=3 c= d=1", ""},
		{"not a file", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "two.json")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("/dev/zero", filepath.Join(dir, "two.json")); err != nil {
				t.Fatal(err)
			}
		}, "b=3 c= d=1", "two.json: is not a regular file; what it held before stays"},
		{"all gone", func(t *testing.T, dir string) {
			for _, name := range []string{"one.yaml", "two.json", "three.yaml", "sub/d.yml"} {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}, "", ""},
	}
	dir, store := t.TempDir(), NewStore(DeriveEndpoints)
	m, err := NewManifests(dir, store)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		step.do(t, dir)
		m.Read()
		if got := namespaces(store.Snapshot()); got != step.want {
			t.Errorf("%s: %q is in force, want %q", step.name, got, step.want)
		}
		if got := problemLines(dir, m.Problems()); got != step.problems && (step.problems == "" || !strings.HasPrefix(got, step.problems)) {
			t.Errorf("%s: problems %q, want %q", step.name, got, step.problems)
		}
	}
}

// TestMoveIsOneStep moves an object between files. Every snapshot has the object.
func TestMoveIsOneStep(t *testing.T) {
	dir, store := t.TempDir(), NewStore(DeriveEndpoints)
	antrailtest.Write(t, namespaceText("a", "1"), dir, "one.yaml")
	m, err := NewManifests(dir, store)
	if err != nil {
		t.Fatal(err)
	}
	antrailtest.Write(t, "", dir, "one.yaml")
	antrailtest.Write(t, namespaceText("a", "1"), dir, "two.yaml")
	if u := m.Read(); len(u.Changed) != 0 || u.New.Namespace("a").Source.File != filepath.Join(dir, "two.yaml") {
		t.Errorf("changed %v, now %v", u.Changed, u.New.Namespace("a"))
	}
}

// TestSameDocuments: a reading keeps the objects of documents whose text did not change.
func TestSameDocuments(t *testing.T) {
	dir, store := t.TempDir(), NewStore(DeriveEndpoints)
	antrailtest.Write(t, namespaceText("a", "1")+namespaceText("b", "1"), dir, "f.yaml")
	m, err := NewManifests(dir, store)
	if err != nil {
		t.Fatal(err)
	}
	old := store.Snapshot()
	antrailtest.Write(t, namespaceText("a", "1")+namespaceText("b", "2"), dir, "f.yaml")
	u := m.Read()
	if u.New.Namespace("a") != old.Namespace("a") || u.New.Namespace("b") == old.Namespace("b") || len(u.Changed) != 1 {
		t.Errorf("changed %v", u.Changed)
	}
}

// TestNoManifests: NewManifests returns an error if the path does not exist. If it goes later,
// the objects stay.
func TestNoManifests(t *testing.T) {
	if _, _, err := LoadManifests(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no error")
	}
	dir := t.TempDir()
	antrailtest.Write(t, namespaceText("a", "1"), dir, "f.yaml")
	store := NewStore(DeriveEndpoints)
	m, err := NewManifests(dir, store)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	m.Read()
	if namespaces(store.Snapshot()) != "a=1" || len(m.Problems()) != 1 {
		t.Errorf("a directory that is gone: %q, %v", namespaces(store.Snapshot()), m.Problems())
	}
}

// watchDir watches path until the test ends and returns a function that waits
// until the snapshot holds the given Namespaces.
func watchDir(t testing.TB, path string) func(want string) {
	t.Helper()
	store := NewStore(DeriveEndpoints)
	m, err := NewManifests(path, store)
	if err != nil {
		t.Fatal(err)
	}
	reports := make(chan struct{}, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	done, err := m.Watch(ctx, func([]manifest.Problem) { reports <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); <-done })
	return func(want string) {
		t.Helper()
		for namespaces(store.Snapshot()) != want {
			select {
			case <-reports:
			case <-time.After(time.Minute):
				t.Fatalf("%q is in force, want %q", namespaces(store.Snapshot()), want)
			}
		}
	}
}

// TestWatch changes files in the ways of editors and tools.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	antrailtest.Write(t, namespaceText("a", "1"), dir, "f.yaml")
	wait := watchDir(t, dir)
	wait("a=1")

	antrailtest.Write(t, namespaceText("a", "2"), dir, "f.yaml") // renamed over
	wait("a=2")
	if err := os.WriteFile(filepath.Join(dir, "f.yaml"), []byte(namespaceText("a", "3")), 0o600); err != nil { // written in place
		t.Fatal(err)
	}
	wait("a=3")
	if err := os.Rename(filepath.Join(dir, "f.yaml"), filepath.Join(dir, "f.yaml~")); err != nil { // with a backup kept
		t.Fatal(err)
	}
	antrailtest.Write(t, namespaceText("a", "4"), dir, "f.yaml")
	wait("a=4")
	if err := os.MkdirAll(filepath.Join(dir, "x", "y"), 0o700); err != nil {
		t.Fatal(err)
	}
	antrailtest.Write(t, namespaceText("b", "1"), dir, "x", "y", "g.yaml") // in a new directory
	wait("a=4 b=1")
	antrailtest.Write(t, namespaceText("b", "2"), dir, "x", "y", "g.yaml")
	wait("a=4 b=2")
	if err := os.RemoveAll(filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	wait("a=4")
	if err := os.Remove(filepath.Join(dir, "f.yaml")); err != nil {
		t.Fatal(err)
	}
	wait("")
}

// TestWatchMountedConfigMap replaces all files at once by a link, as the kubelet does.
func TestWatchMountedConfigMap(t *testing.T) {
	dir := t.TempDir()
	version := func(name, label string) {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		antrailtest.Write(t, namespaceText("a", label), dir, name, "f.yaml")
		if err := os.Symlink(name, filepath.Join(dir, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("..1", "1")
	if err := os.Symlink("..data/f.yaml", filepath.Join(dir, "f.yaml")); err != nil {
		t.Fatal(err)
	}
	wait := watchDir(t, dir)
	wait("a=1")
	version("..2", "2")
	wait("a=2")
}

// TestWatchHere watches the working directory by the path ".".
func TestWatchHere(t *testing.T) {
	t.Chdir(t.TempDir())
	antrailtest.Write(t, namespaceText("a", "1"), "f.yaml")
	wait := watchDir(t, ".")
	for _, label := range []string{"2", "3"} {
		antrailtest.Write(t, namespaceText("a", label), "f.yaml")
		wait("a=" + label)
	}
}

// TestWatchAgain watches a directory that goes and comes again.
func TestWatchAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	wait := watchDir(t, dir)
	for _, label := range []string{"4", "5"} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		antrailtest.Write(t, namespaceText("a", label), dir, "f.yaml")
		wait("a=" + label)
		antrailtest.Write(t, namespaceText("a", label+"x"), dir, "f.yaml")
		wait("a=" + label + "x")
	}
}

// TestWatchFile watches a single file.
func TestWatchFile(t *testing.T) {
	dir := t.TempDir()
	antrailtest.Write(t, namespaceText("a", "1"), dir, "f.conf")
	wait := watchDir(t, filepath.Join(dir, "f.conf"))
	antrailtest.Write(t, namespaceText("b", "1"), dir, "other.yaml")
	antrailtest.Write(t, namespaceText("a", "2"), dir, "f.conf")
	wait("a=2")
}

// BenchmarkWatch measures the time from writing a file to a snapshot with its objects. Most of
// it is the wait for more events.
func BenchmarkWatch(b *testing.B) {
	dir := b.TempDir()
	wait := watchDir(b, dir)
	for n := 0; b.Loop(); n++ {
		text := namespaceText("a", strconv.Itoa(n))
		if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		wait(fmt.Sprintf("a=%d", n))
	}
}

// TestUnread: Unread names files that cannot be read. A fault in a file that was read does not
// count.
func TestUnread(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("broken.yaml", "kind: [")
	m, err := NewManifests(dir, NewStore(DeriveEndpoints))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Unread(); err != nil || len(m.Problems()) == 0 {
		t.Errorf("%v, problems %v; want only problems", err, m.Problems())
	}
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	m.Read()
	if err := m.Unread(); err == nil || !strings.Contains(err.Error(), pipe) {
		t.Errorf("%v, want one that names %s", err, pipe)
	}
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	m.Read()
	if err := m.Unread(); err != nil {
		t.Errorf("%v after the file is gone", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	m.Read()
	if err := m.Unread(); err == nil {
		t.Error("a directory that is gone was read")
	}
}
