package control

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/flow"
)

// Stories are in testdata/stories/*.txtar, one file each. A story begins with a summary. Its steps have up to three files of
// one stem:
//
//	NAME.yaml    objects that come or change
//	NAME.delete  keys of objects that go, a line each
//	NAME.want    the result: lines of the dump that went (-) and came (+), and behind
//	             them the status of objects that are not installed or that the store refuses
//
// Steps whose names begin with 0 set the scene and expect nothing. The tests of package tables check the entries of a feature
// or a family.
//
// Every story begins with node.yaml and runs in six ways:
//
//  1. As written.
//  2. With one bundle in ten failing.
//  3. Likewise, with the switch itself in place of its model.
//  4. With a restart of the process between the steps (restore_test.go).
//  5. From its end state at once.
//  6. From the objects of that state one by one, in several orders.
//
// Each way must have the same pipeline as result. When all objects of the story are gone, the pipeline must be as at the start.
//
// go test -run Stories -update writes the .want files again, for review.

var update = flag.Bool("update", false, "write the expectations of stories again")

// story is one file.
type story struct {
	path    string
	comment string
	steps   []*storyStep
}

type storyStep struct {
	name, yaml, remove, want string
	objects                  []cluster.Object
	gone                     []cluster.Key
}

// storyFile is the Source of all objects of stories.
const storyFile = "story"

// readStory reads a file in txtar form: a comment, then files, each after a line -- name --.
func readStory(t *testing.T, path string) *story {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &story{path: path}
	var to *string = &s.comment
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(line, "-- ")
		name, end := strings.CutSuffix(strings.TrimRight(name, "\n"), " --")
		if ok && end {
			to = s.file(t, name)
			continue
		}
		*to += line
	}
	for _, step := range s.steps {
		step.decode(t)
	}
	return s
}

// file returns the place for the text of a named file.
func (s *story) file(t *testing.T, name string) *string {
	stem, kind := strings.TrimSuffix(name, filepath.Ext(name)), filepath.Ext(name)
	if n := len(s.steps); n == 0 || s.steps[n-1].name != stem {
		s.steps = append(s.steps, &storyStep{name: stem})
	}
	step := s.steps[len(s.steps)-1]
	switch kind {
	case ".yaml":
		return &step.yaml
	case ".delete":
		return &step.remove
	case ".want":
		return &step.want
	}
	t.Fatalf("%s: a file %s", s.path, name)
	return nil
}

func (s *storyStep) decode(t *testing.T) {
	t.Helper()
	d := manifest.Decode(storyFile, []byte(s.yaml))
	for _, p := range d.Problems {
		t.Fatalf("%s: %v", s.name, p)
	}
	s.objects = d.Objects
	for line := range strings.Lines(s.remove) {
		s.gone = append(s.gone, parseKey(t, strings.TrimSpace(line)))
	}
}

// parseKey reads Kind/name or Kind/namespace/name.
func parseKey(t *testing.T, text string) cluster.Key {
	t.Helper()
	switch parts := strings.Split(text, "/"); len(parts) {
	case 2:
		return cluster.Key{Kind: cluster.Kind(parts[0]), Name: parts[1]}
	case 3:
		return cluster.Key{Kind: cluster.Kind(parts[0]), Namespace: parts[1], Name: parts[2]}
	}
	t.Fatalf("%q is not a key", text)
	return cluster.Key{}
}

// write writes a story to its file.
func (s *story) write(t *testing.T) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(s.comment)
	for _, step := range s.steps {
		for _, f := range [][2]string{{"yaml", step.yaml}, {"delete", step.remove}, {"want", step.want}} {
			if f[1] != "" {
				fmt.Fprintf(&b, "-- %s.%s --\n%s", step.name, f[0], f[1])
			}
		}
	}
	if err := os.WriteFile(s.path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// storyNode is the Node of the stories.
const storyNode = "node-a"

// telling is a running story.
type telling struct {
	t     *testing.T
	store *store.Store
	r     *Reconciler
	sw    *ledger.MemorySwitch
	clock time.Time
	fails *failing             // nil: no bundle is made to fail
	has   func() *flow.Program // the contents of the switch
}

// newTelling starts with some objects of node.yaml. wrap, if not nil, wraps the switch.
func newTelling(t *testing.T, start []cluster.Object, wrap func(ledger.Installer) ledger.Installer) *telling {
	x := &telling{t: t, store: store.NewStore(store.DeriveEndpoints), sw: ledger.NewMemorySwitch(), clock: time.Unix(1e9, 0)}
	var to ledger.Installer = x.sw
	if wrap != nil {
		to = wrap(to)
		x.fails, _ = to.(*failing)
	}
	x.has = x.sw.Program
	x.r = NewReconciler(storyNode, to, func() time.Time { return x.clock })
	x.change(start, nil)
	return x
}

// change applies objects and retries until everything possible is installed.
func (x *telling) change(set []cluster.Object, gone []cluster.Key) {
	x.t.Helper()
	x.clock = x.clock.Add(time.Minute)
	u := x.store.Apply(store.Change{Source: storyFile, Set: set, Delete: gone})
	err := x.r.Update(u.New, u.Changed)
	for range 200 {
		if !x.disturbed() && !x.pending() {
			return
		}
		err = x.r.Retry()
	}
	x.t.Fatalf("after 200 attempts: %v", err)
}

// disturbed reports whether a bundle was made to fail since the last call. After such a failure the change is tried in parts.
// Parts that want each other's place are then refused until the next attempt.
func (x *telling) disturbed() bool {
	if x.fails == nil || x.fails.count == 0 {
		return false
	}
	x.fails.count = 0
	return true
}

// pending reports whether an injected failure keeps a part from being installed.
func (x *telling) pending() bool {
	return slices.ContainsFunc(x.r.Statuses(), func(s Status) bool {
		return s.State == ledger.Pending && strings.Contains(s.Reason, errInjected.Error())
	})
}

func (x *telling) dump() []string { return dumpLines(x.has()) }

// statuses returns the states of objects that are not installed, or that have a reason.
func (x *telling) statuses() (lines []string) {
	for _, s := range x.r.Statuses() {
		if s.State != ledger.Installed || s.Reason != "" {
			lines = append(lines, fmt.Sprintf("! %s: %s: %s\n", s.Object, s.State, s.Reason))
		}
	}
	edits := x.store.RefusedEdits()
	for _, k := range edits.Keys() {
		lines = append(lines, fmt.Sprintf("! %s: edit refused: %s\n", k, strings.TrimPrefix(edits[k], storyFile)))
	}
	for _, p := range x.store.Problems() {
		if edits[p.Key] != "" {
			continue
		}
		lines = append(lines, strings.ReplaceAll(fmt.Sprintf("! %s: refused: %s: %s\n", p.Key, p.Field, p.Reason), ": : ", ": "))
	}
	return lines
}

// diffDumps returns the lines that went and came.
func diffDumps(was, now []string) string {
	var b strings.Builder
	for _, d := range []struct {
		sign  string
		a, of []string
	}{{"-", now, was}, {"+", was, now}} {
		there := map[string]bool{}
		for _, l := range d.a {
			there[l] = true
		}
		for _, l := range d.of {
			if !there[l] {
				fmt.Fprintf(&b, "%s %s\n", d.sign, l)
			}
		}
	}
	return b.String()
}

// TestStories runs every story in every way.
func TestStories(t *testing.T) {
	base := readManifest(t, "testdata/stories/node.yaml")
	paths, _ := filepath.Glob("testdata/stories/*.txtar")
	if len(paths) < 10 {
		t.Fatalf("only %d stories", len(paths))
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			s := readStory(t, path)
			dumps := s.asWritten(t, base)
			s.withFailures(t, base, dumps, nil)
			s.withFailures(t, base, dumps, newRealSwitch(t))
			s.restarted(t, base, dumps)
			s.anyOrder(t, base, dumps[len(dumps)-1])
		})
	}
}

func readManifest(t *testing.T, path string) []cluster.Object {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := manifest.Decode(storyFile, text)
	for _, p := range d.Problems {
		t.Fatal(p)
	}
	return d.Objects
}

// asWritten runs the steps, compares each with its expectation and returns the dump after each.
func (s *story) asWritten(t *testing.T, base []cluster.Object) (dumps [][]string) {
	x := newTelling(t, base, nil)
	start := x.dump()
	was := start
	for _, step := range s.steps {
		x.change(step.objects, step.gone)
		now := x.dump()
		got := diffDumps(was, now) + strings.Join(x.statuses(), "")
		switch scene := strings.HasPrefix(step.name, "0"); {
		case scene:
			step.want = ""
		case *update:
			step.want = got
		case got != step.want:
			t.Errorf("%s:\n%swant:\n%s", step.name, got, step.want)
		}
		was = now
		dumps = append(dumps, now)
	}
	x.end(s, base, start)
	if *update {
		s.write(t)
	}
	return dumps
}

// end removes the story's objects and expects the pipeline of the start.
func (x *telling) end(s *story, base []cluster.Object, start []string) {
	x.t.Helper()
	state := map[cluster.Key]cluster.Object{}
	for _, step := range s.steps {
		for _, o := range step.objects {
			state[o.Metadata().Key] = o
		}
	}
	for _, o := range base {
		delete(state, o.Metadata().Key)
	}
	x.change(base, slices.Collect(maps.Keys(state)))
	if diff := diffDumps(start, x.dump()); diff != "" {
		x.t.Errorf("it does not end as it began:\n%s", diff)
	}
	if n := x.r.Waiting(); n > 0 {
		x.t.Errorf("%d parts still wait", n)
	}
}

// errInjected is the error of a bundle that was made to fail.
var errInjected = errors.New("made to fail")

// failing is an Installer that refuses one bundle in ten.
type failing struct {
	ledger.Installer
	rnd   *rand.Rand
	count int // of bundles that failed
}

func (f *failing) Apply(b *flow.Bundle) error {
	if f.rnd.IntN(10) == 0 {
		f.count++
		return errInjected
	}
	return f.Installer.Apply(b)
}

// withFailures runs the story with failures, on a switch or, if that is nil, on its model. After every step, the pipeline is
// that of asWritten.
func (s *story) withFailures(t *testing.T, base []cluster.Object, dumps [][]string, sw *realSwitch) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("failures: seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	x := newTelling(t, base, func(to ledger.Installer) ledger.Installer {
		if sw != nil {
			to = sw
		}
		return &failing{Installer: to, rnd: rnd}
	})
	if sw != nil {
		x.has = sw.Program
	}
	start := x.dump()
	for i, step := range s.steps {
		x.change(step.objects, step.gone)
		if ok, diff := sameDump(dumps[i], x.dump()); !ok {
			t.Errorf("%s, with failures:\n%s", step.name, diff)
		}
	}
	x.end(s, base, start)
}

// anyOrder loads the end state of the story at once, and object by object in several orders.
func (s *story) anyOrder(t *testing.T, base []cluster.Object, want []string) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("orders: seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	state := map[cluster.Key]cluster.Object{}
	for _, o := range base {
		state[o.Metadata().Key] = o
	}
	for _, step := range s.steps {
		for _, o := range step.objects {
			state[o.Metadata().Key] = o
		}
		for _, k := range step.gone {
			delete(state, k)
		}
	}
	final := slices.SortedFunc(maps.Values(state), func(a, b cluster.Object) int { return a.Metadata().Key.Compare(b.Metadata().Key) })
	at := newTelling(t, final, nil)
	if ok, diff := sameDump(want, at.dump()); !ok && !s.ordered() {
		t.Errorf("loaded at once:\n%s", diff)
	}
	for range 8 {
		rnd.Shuffle(len(final), func(i, j int) { final[i], final[j] = final[j], final[i] })
		x := newTelling(t, nil, nil)
		for _, o := range final {
			x.change([]cluster.Object{o}, nil)
		}
		if ok, diff := sameDump(want, x.dump()); !ok && !s.ordered() {
			t.Fatalf("in the order %v:\n%s", keysInOrder(final), diff)
		}
	}
}

// ordered reports whether the result of a story depends on the order of its objects.
func (s *story) ordered() bool { return strings.Contains(s.comment, "first come, first served") }

func keysInOrder(objects []cluster.Object) (keys []string) {
	for _, o := range objects {
		keys = append(keys, o.Metadata().Key.String())
	}
	return keys
}
