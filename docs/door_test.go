package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/antrailtest"
)

// doorBlock is a shell block of door.md, and the text that its answer has.
var doorBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```\n(?:\n```text\n(.*?)\n```\n)?")

// TestDoorExamples runs the page's commands one after the other, and compares what they
// print with the text below each; … stands for anything.
func TestDoorExamples(t *testing.T) {
	top, antrail, text := builtFor(t, "door.md")
	here := strings.NewReplacer("bin/antrail", antrail, "/tmp/", t.TempDir()+"/")
	all := doorBlock.FindAllStringSubmatch(text, -1)
	if len(all) < 10 {
		t.Fatalf("%d examples were found", len(all))
	}
	for _, m := range all {
		cmd := exec.Command("sh", "-e", "-c", here.Replace(m[1]))
		cmd.Dir = top
		log, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		cmd.Stdout, cmd.Stderr = log, log // a file: the switch in the background keeps it open
		if err := cmd.Run(); err != nil {
			out, _ := os.ReadFile(log.Name())
			t.Fatalf("%s: %v\n%s", m[1], err, out)
		}
		out, err := os.ReadFile(log.Name())
		if err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(regexp.QuoteMeta(m[2]), "…", "[^\n]*")
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("%s\nprints\n%s\nand the page says\n%s", m[1], out, m[2])
		}
	}
}

// builtFor makes what the examples of a page need: the top of the repository, where they run,
// a build of antrail, and the page's text.
func builtFor(t *testing.T, page string) (top, antrail, text string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("the page starts a switch, which needs root")
	}
	antrail, err := antrailtest.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	top, err = filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return top, antrail, string(all)
}
