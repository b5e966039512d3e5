package demo

import (
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/reaptest"
	"github.com/antrail/antrail/lab"
)

// To make a lab takes three seconds of a processor. Tests that leave a lab as they found it
// use one in turn. A lab in which a test failed is taken down, and the next test gets
// another one. Parallel tests have labs of their own.

// sharedLab is a lab of several tests.
type sharedLab struct {
	*lab.Lab
	objects string         // the directory of its objects
	dialled *atomic.Uint32 // connections of all its worlds
}

// shared are the labs that are up, by what they are for.
var shared = map[string]*sharedLab{}

// downShared takes all of them down.
func downShared() (failed bool) {
	for kind, s := range maps.All(shared) {
		delete(shared, kind)
		if err := s.Down(); err != nil {
			os.Stderr.WriteString("the " + kind + " lab: " + err.Error() + "\n")
			failed = true
		}
	}
	return failed
}

// plainLab is a lab with the built-in objects. Its agents serve their pages.
func plainLab(t *testing.T) *sharedLab {
	t.Helper()
	return sharedUp(t, "plain", func(string) lab.Options { return lab.Options{Page: config.Page{Address: pageAddress}} })
}

// world is a world with servers in its pods, until the test ends.
func (s *sharedLab) world(t *testing.T) *world {
	t.Helper()
	w, err := newWorld(s.Lab)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	w.dialled = s.dialled
	return w
}

// bare is a world without servers.
func (s *sharedLab) bare() *world {
	return &world{lab: s.Lab, addresses: addresses(s.Lab, false), dialled: s.dialled}
}

// put writes a file of objects, which goes when the test ends.
func (s *sharedLab) put(t *testing.T, name, objects string) {
	t.Helper()
	file := filepath.Join(s.objects, name)
	if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	})
}

// sharedUp is the lab of a kind. When the test ends, its counters have to agree.
func sharedUp(t *testing.T, kind string, options func(objects string) lab.Options) *sharedLab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a lab needs root")
	}
	if shared[kind] == nil {
		shared[kind] = makeShared(t, options)
	}
	s := shared[kind]
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		delete(shared, kind)
		showLogs(t, s.Lab)
		if err := s.Down(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { wantAccounted(t, s.Lab) })
	return s
}

func makeShared(t *testing.T, options func(objects string) lab.Options) *sharedLab {
	t.Helper()
	dir, err := reaptest.SharedLabDir()
	if err != nil {
		t.Fatal(err)
	}
	s := &sharedLab{objects: dir + "-objects", dialled: new(atomic.Uint32)}
	o := options(s.objects)
	o.Binary, o.StateDir = antrail, dir
	if s.Lab, err = lab.Up(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if o.Manifests == "" {
		s.objects = filepath.Join(s.Dir, "manifests")
	}
	return s
}
