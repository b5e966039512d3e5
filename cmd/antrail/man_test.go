//go:build linux && !portable

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestManPages: every command that help shows has a page with its flags and examples,
// and mandoc(1) finds no error in any.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	var out, complaint bytes.Buffer
	if code := run([]string{"man", dir}, &out, &complaint); code != 0 {
		t.Fatalf("exit code %d: %s", code, complaint.String())
	}
	wantManPage(t, dir, rootCommand(new(bool)))
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 30 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("mandoc(1) is not here to read the pages")
	}
	said, _ := exec.Command(mandoc, append([]string{"-T", "lint", "-W", "warning"}, pages...)...).CombinedOutput()
	for line := range strings.Lines(string(said)) {
		if !strings.Contains(line, "WARNING: missing date") { // a test's build knows none
			t.Error(line)
		}
	}
}

// wantManPage looks for what the help of a command shows, below it too.
func wantManPage(t *testing.T, dir string, c *cobra.Command) {
	t.Helper()
	if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
		return
	}
	name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Error(err)
		return
	}
	page := strings.ReplaceAll(string(text), `\-`, "-")
	for line := range strings.Lines(c.LocalFlags().FlagUsages()) {
		if flag := "--" + firstWord(line); !strings.Contains(page, flag) {
			t.Errorf("%s says nothing of %s", name, flag)
		}
	}
	if !strings.Contains(page, ".SH NAME\n"+strings.TrimSuffix(name, ".1")+" - ") || c.Example != "" && !strings.Contains(page, ".SH EXAMPLES\n") {
		t.Errorf("%s has no name or no examples:\n%s", name, page)
	}
	for _, sub := range c.Commands() {
		wantManPage(t, dir, sub)
	}
}

// firstWord is the name of the flag that a line of help begins with.
func firstWord(line string) string {
	_, after, _ := strings.Cut(line, "--")
	name, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	return name
}
