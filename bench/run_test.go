package bench

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/internal/antrailtest"
	"github.com/antrail/antrail/internal/reaptest"
)

// cheapProfiles are those that TestProfiles runs with -short. Between them they have every
// kind of contender; the others take most of the time.
var cheapProfiles = []string{"pipeline", "policy", "programs", "stream", "rr", "tunnel", "gateway", "trace", "gc"}

// TestProfiles runs every profile for a moment. All contenders that the machine has reach something, or a
// note says that other programs had the processors.
func TestProfiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	dir := reaptest.LabDir(t)
	if err := os.WriteFile(filepath.Join(dir, "stays"), nil, 0o600); err != nil { // a lab that ends removes its directory when it is empty
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir) // the contenders'
	antrail, err := antrailtest.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	profiles, comparisons := []string{"all"}, len(ComparisonNames())
	if testing.Short() {
		profiles, comparisons = cheapProfiles, len(cheapProfiles)+1 // pipeline has two
	}
	o := rig.Options{Profiles: profiles, Rounds: 1, Time: 300 * time.Millisecond, Window: 20 * time.Millisecond, Largest: 10, Binary: antrail, StateDir: dir}
	result, err := Run(t.Context(), o, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Comparisons) != comparisons {
		t.Fatalf("%d comparisons, want %d of %v", len(result.Comparisons), comparisons, ComparisonNames())
	}
	for _, c := range result.Comparisons {
		if len(c.Sides) == 0 || len(c.Lines) == 0 {
			t.Errorf("%s has %d sides and %d lines", c.Profile, len(c.Sides), len(c.Lines))
		}
		reached := make([]bool, len(c.Sides))
		for _, l := range c.Lines {
			for i, s := range l.Reached {
				// A difference may be below 0 on a busy machine, and an idle switch may need no time at all.
				reached[i] = reached[i] || s != nil && (s.Median != 0 || c.Profile == "idle")
			}
		}
		if i := slices.Index(reached, false); i >= 0 && !slices.Contains(c.Notes, rig.MissingNote) {
			t.Errorf("%s: %s reached nothing: %+v", c.Profile, c.Sides[i], c.Lines)
		}
	}
	saved := filepath.Join(t.TempDir(), "new")
	if err := result.Save(saved); err != nil {
		t.Fatal(err)
	}
	again, err := rig.Load(saved)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := rig.Compare(&out, again, result); err != nil || !strings.Contains(out.String(), "~") {
		t.Errorf("a run compared with itself: %v\n%s", err, out.String())
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, rig.Options{Profiles: []string{"forward"}}, io.Discard)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []rig.Options{{Rounds: -1}, {Time: -1}, {Window: 1}, {Largest: 9}, {Largest: 1e7}, {Profiles: []string{"stream", "quic"}}} {
		if _, err := Run(t.Context(), o, io.Discard); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	if err := Check(rig.Options{}); err != nil {
		t.Error(err)
	}
}

// TestTimeIsDivided checks that time is divided by weight, with what earlier profiles left or overdrew.
func TestTimeIsDivided(t *testing.T) {
	now := time.Now()
	end := now.Add(60 * time.Second)
	three := []profile{{weight: 3}, {weight: 2}, {weight: 1}}
	for left, want := range map[int]time.Duration{0: 30 * time.Second, 1: 40 * time.Second, 2: 60 * time.Second} {
		if got := share(now, end, three[left:]).Sub(now); got != want {
			t.Errorf("with %d gone: %v, want %v", left, got, want)
		}
	}
	for _, p := range profiles(nil) {
		if p.weight < 1 {
			t.Errorf("%s has no weight", p.name)
		}
	}
}
