// Package docs holds the documentation; its test keeps the examples true.
package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/antrailtest"
	"github.com/antrail/antrail/internal/reaptest"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")

// TestExamples runs every shell block of the documentation from the top of the
// repository, as a reader would, with a binary built for the test. All share one
// directory for /tmp, since a reader comes from one page to the next. A block fails
// when one of its commands does.
func TestExamples(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the examples make network namespaces, which needs root")
	}
	top, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	antrail, err := antrailtest.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob("../docs/pipeline/*.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob("../examples/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks, here := 0, strings.NewReplacer("bin/antrail", antrail, "/tmp/", t.TempDir()+"/")
	for _, page := range append(slices.Concat(pages, tables, examples), "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if page == "../docs/door.md" || page == "../docs/walkthrough.md" {
			continue // TestDoorExamples and TestWalkthrough compare what they print, too
		}
		for _, m := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			blocks++
			// The name is part of the paths of the lab's sockets, which Linux bounds.
			t.Run(fmt.Sprint(filepath.Base(page), "-", blocks), func(t *testing.T) { run(t, top, page, here, m[1]) })
		}
	}
	if blocks == 0 {
		t.Error("no page has an example that runs")
	}
}

// run runs one block with a state of labs of its own, so that the example's lab
// is the only one, and takes down what the block leaves up. here puts in the binary
// and the directory for /tmp.
func run(t *testing.T, dir, page string, here *strings.Replacer, script string) {
	t.Helper()
	env := append(os.Environ(), "ANTRAIL_LAB_DIR="+reaptest.LabDir(t))
	shell := func(script string) ([]byte, error) {
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", here.Replace(script))
		cmd.Dir, cmd.Env = dir, env
		return cmd.CombinedOutput()
	}
	if out, err := shell(script); err != nil {
		t.Errorf("%s: %v\n%s\n%s", page, err, script, out)
	}
	if out, err := shell("bin/antrail lab down"); err != nil {
		t.Errorf("%s: %v\n%s", page, err, out)
	}
}
