package docs

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/reaptest"
)

var update = flag.Bool("update", false, "write what the commands of walkthrough.md print")

// step is a shell block of walkthrough.md, and the text block below it with what it prints.
var step = regexp.MustCompile("(?ms)^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?")

// changing is what differs between two runs: it is shown as "…".
var changing = []*regexp.Regexp{
	regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-][\d:]+)`),
	regexp.MustCompile(`\b\d\d:\d\d:\d\d(?:\.\d+)?\b`),
	regexp.MustCompile(`\b\d+(?:\.\d+)?(?:ns|µs|ms|s|m)\b`),
	regexp.MustCompile(`\b(?:pid|PID|time|duration)[=: ]+[\d.]+(?: ms)?`),
	regexp.MustCompile(`\b(?:sport|dport|id|packets|bytes|tp_src|tcp_seq|seq|instance)=[\w.]+`),
	regexp.MustCompile(`/tmp/labs/\w+`),
}

// columns are as wide as their longest value, which may be one that changes.
var columns = regexp.MustCompile(` {2,}`)

// TestWalkthrough runs walkthrough.md from its first command to its last, as a new user
// does, and compares the output of each command.
func TestWalkthrough(t *testing.T) {
	top, antrail, text := builtFor(t, "walkthrough.md")
	w := &walkthrough{top: top, binary: antrail, tmp: t.TempDir(), labs: reaptest.LabDir(t)}
	steps := 0
	got := step.ReplaceAllStringFunc(text, func(block string) string {
		steps++
		m := step.FindStringSubmatch(block)
		out, err := w.run(m[1])
		if err != nil {
			t.Errorf("%v\n%s\n%s", err, m[1], out)
		}
		if out == "" {
			return "```sh\n" + m[1] + "```\n"
		}
		return "```sh\n" + m[1] + "```\n\n```text\n" + out + "```\n"
	})
	if steps < 12 {
		t.Errorf("%d steps", steps)
	}
	if *update {
		if err := os.WriteFile("walkthrough.md", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != text {
		t.Errorf("the commands of walkthrough.md print something else now; -update writes\n%s", got)
	}
}

// walkthrough is what the steps of the page share.
type walkthrough struct{ top, binary, tmp, labs string }

// run runs a step in a shell, and returns what it prints with names as the page has them.
func (w *walkthrough) run(script string) (string, error) {
	out, err := os.CreateTemp(w.tmp, "out")
	if err != nil {
		return "", err
	}
	defer out.Close()
	here := strings.NewReplacer("bin/antrail", w.binary, "/tmp/", w.tmp+"/")
	cmd := exec.Command("bash", "-eu", "-c", here.Replace(script))
	cmd.Dir, cmd.Env = w.top, append(os.Environ(), "ANTRAIL_LAB_DIR="+w.labs)
	cmd.Stdout, cmd.Stderr = out, out // a file: an agent in the background keeps it open
	failed := cmd.Run()
	text, err := os.ReadFile(out.Name())
	if err != nil {
		return "", err
	}
	there := strings.NewReplacer(w.binary, "antrail", w.tmp+"/", "/tmp/", w.labs, "/tmp/labs")
	shown := there.Replace(string(text))
	for _, c := range changing {
		shown = c.ReplaceAllString(shown, "…")
	}
	var lines []string
	for line := range strings.Lines(shown) {
		line = columns.ReplaceAllString(strings.TrimRight(line, " \n"), "  ")
		lines = append(lines, line+"\n")
	}
	return strings.Join(lines, ""), failed
}
