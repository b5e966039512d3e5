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
// when one of its commands does. Blocks that begin with a plain lab and end with its end
// use one lab in turn: see plain.
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
	shared := example{dir: top, env: labEnv(t), here: here}
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
			t.Run(fmt.Sprint(filepath.Base(page), "-", blocks), func(t *testing.T) {
				if script, ok := plain(m[1]); ok {
					shared.inLab(t, page, script)
					return
				}
				e := example{dir: top, env: labEnv(t), here: here}
				e.run(t, page, m[1])
				e.run(t, page, labDown)
			})
		}
	}
	shared.endLab(t, "the last page")
	if blocks == 0 {
		t.Error("no page has an example that runs")
	}
}

// Commands that begin and end a lab as the built-in one is.
const labUp, labDown = "bin/antrail lab up\n", "bin/antrail lab down\n"

// plain is what a block does between making a plain lab and taking it down. ok says that
// it does both, and has no other lab: so it may find a lab that is up, and leave it up.
func plain(block string) (script string, ok bool) {
	script, up := strings.CutPrefix(block, labUp)
	script, down := strings.CutSuffix(script, labDown)
	return script, up && down && !strings.Contains(script, "bin/antrail lab up") && !strings.Contains(script, "bin/antrail lab down")
}

// labEnv is the environment of blocks whose labs are the only ones.
func labEnv(t *testing.T) []string {
	return append(os.Environ(), "ANTRAIL_LAB_DIR="+reaptest.LabDir(t))
}

// example is where blocks run. here puts in the binary and the directory for /tmp.
type example struct {
	dir  string
	env  []string
	here *strings.Replacer
	up   bool // a plain lab is
}

func (e *example) run(t *testing.T, page, script string) {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", e.here.Replace(script))
	cmd.Dir, cmd.Env = e.dir, e.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s\n%s", page, err, script, out)
	}
}

// inLab runs a block in the plain lab. After a block that failed, the next one has another.
func (e *example) inLab(t *testing.T, page, script string) {
	t.Helper()
	if !e.up {
		e.run(t, page, labUp)
		e.up = true
	}
	e.run(t, page, script)
	if t.Failed() {
		e.endLab(t, page)
	}
}

func (e *example) endLab(t *testing.T, page string) {
	t.Helper()
	if e.up {
		e.run(t, page, labDown)
		e.up = false
	}
}
