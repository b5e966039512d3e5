// Package docs holds the documentation; its test keeps the examples true.
package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")

// TestExamples runs every shell block of the documentation from the top of the
// repository, as a reader would, with a binary built for the test. A block
// fails when one of its commands does.
func TestExamples(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the examples make network namespaces, which needs root")
	}
	top, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin+"/antrail", "./cmd/antrail")
	build.Dir = top
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob("../examples/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, page := range append(append(pages, examples...), "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			blocks++
			run(t, top, page, strings.ReplaceAll(m[1], "bin/antrail", bin+"/antrail"))
		}
	}
	if blocks == 0 {
		t.Error("no page has an example that runs")
	}
}

func run(t *testing.T, dir, page, script string) {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ANTRAIL_LAB_DIR="+t.TempDir()) // the example's lab is the only one there
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s\n%s", page, err, script, out)
	}
}
