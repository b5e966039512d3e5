package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/host/preflight"
)

// TestManifestLines: the check before an agent starts reports wrong objects, each with its place,
// and a missing Node or directory.
func TestManifestLines(t *testing.T) {
	example, err := os.ReadDir("../examples/web-app")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, e := range example {
		text, err := os.ReadFile(filepath.Join("../examples/web-app", e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, e.Name()), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lines := func(dir, node string) string {
		var b strings.Builder
		if err := preflight.Write(&b, ManifestLines((&config.Config{Manifests: dir, NodeName: node}))); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := lines(dir, "node-a"); !strings.HasPrefix(got, "ok ") || !strings.Contains(got, " are in force") || strings.Count(got, "\n") != 1 {
		t.Errorf("all is well:\n%s", got)
	}
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte(strings.Repeat("---\n{apiVersion: v1, kind: Pod, metadata: {name: p, namspace: a}}\n", mostWrong+3)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct{ dir, node, want string }{
		{dir, "node-a", bad + ":2: Pod/default/p: metadata.namspace: unknown field (did you mean namespace?)"},
		{dir, "node-a", "3 more are wrong"},
		{dir, "node-x", "node-x"},
		{filepath.Join(dir, "none"), "node-a", "none: no such file or directory"},
	} {
		if got := lines(s.dir, s.node); !strings.Contains(got, s.want) || !strings.Contains(got, "fail ") {
			t.Errorf("%s of %s: want %q:\n%s", s.node, s.dir, s.want, got)
		}
	}
	if got := ManifestLines((&config.Config{})); got != nil {
		t.Errorf("without manifests: %v", got)
	}
}
