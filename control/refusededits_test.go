package control

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// onePortPolicy is a manifest of a NetworkPolicy that allows one port.
func onePortPolicy(name, port string) string {
	return "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: " + name + ", namespace: default}\n" +
		"spec:\n  podSelector: {}\n  ingress:\n  - ports:\n    - {port: " + port + "}\n---\n"
}

// TestRefusedEdits changes files step by step: which objects stay as they were, and what
// is told of their edits. An edit that is mended, or whose object is deleted, is told no
// more, and an object that never was good has no edit.
func TestRefusedEdits(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.yaml"), filepath.Join(dir, "two.yaml")
	write(t, onePortPolicy("a", "80")+onePortPolicy("b", "80"), one)
	write(t, onePortPolicy("c", "80"), two)
	store := NewStore(DeriveEndpoints)
	m, err := NewManifests(dir, store)
	if err != nil {
		t.Fatal(err)
	}
	const refused = "one.yaml:8: spec.ingress[0].ports[0].port: Invalid value: 330600: must be between 1 and 65535, inclusive"
	for _, s := range []struct {
		name, file, text string
		edits, policies  string
	}{
		{"a port that is none", one, onePortPolicy("a", "330600") + onePortPolicy("b", "80"), "a " + refused, "a b c"},
		{"another file", two, onePortPolicy("c", "81"), "a " + refused, "a b c"},
		{"one that never was good", two, onePortPolicy("c", "81") + onePortPolicy("d", "330600"), "a " + refused, "a b c"},
		{"mended", one, onePortPolicy("a", "81") + onePortPolicy("b", "80"), "", "a b c"},
		{"a part that cannot be read", one, onePortPolicy("a", "81") + "spec: [\n", "b one.yaml:11: did not find expected node content", "a b c"},
		{"a file that cannot be read", one, "spec: [\n", "a one.yaml:2: did not find expected node content; b one.yaml:2: did not find expected node content", "a b c"},
		{"refused and deleted", one, onePortPolicy("a", "330600"), "a " + refused, "a c"},
		{"deleted", one, onePortPolicy("e", "80"), "", "c e"},
	} {
		write(t, s.text, s.file)
		m.Read()
		if got := editLines(dir, store); got != s.edits {
			t.Errorf("%s: %q, want %q", s.name, got, s.edits)
		}
		var there []string
		for _, k := range sortedKeys(store.Snapshot().NetworkPolicies) {
			there = append(there, k.Name)
		}
		if got := strings.Join(there, " "); got != s.policies {
			t.Errorf("%s: policies %s, want %s", s.name, got, s.policies)
		}
	}
	if err := os.Remove(two); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(two, 0o700); err != nil { // no file any more
		t.Fatal(err)
	}
	m.Read()
	if got := editLines(dir, store); got != "" {
		t.Errorf("a file that is gone: %q", got)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	defer os.Rename(dir+".away", dir)
	m.Read()
	if got := editLines(dir, store); !strings.HasPrefix(got, "e ") || !strings.Contains(got, "no such file or directory; what was read before stays") {
		t.Errorf("the directory is gone: %q", got)
	}
}

// editLines are the refused edits of a store, in order.
func editLines(dir string, store *Store) string {
	var lines []string
	edits := store.RefusedEdits()
	for _, k := range edits.Keys() {
		lines = append(lines, k.Name+" "+strings.ReplaceAll(edits[k], dir+string(filepath.Separator), ""))
	}
	return strings.Join(lines, "; ")
}
