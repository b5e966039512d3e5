package learn

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what checks say and commands print into the lessons")

// lessons are all lessons.
func lessons(t *testing.T) []*Lesson {
	t.Helper()
	all, err := Lessons()
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range all {
		if l.Number != i+1 {
			t.Fatalf("lesson %s: it is the %dth of them", l.Name, i+1)
		}
	}
	return all
}

// TestSolutions: a lesson's start files do not pass its check, and its solution does.
func TestSolutions(t *testing.T) {
	for _, l := range lessons(t) {
		t.Run(l.Name, func(t *testing.T) {
			start, err := l.Start()
			if err != nil {
				t.Fatal(err)
			}
			if r, err := l.Run(start); err != nil || r.Failure == "" {
				t.Errorf("the beginning: %+v, %v", r, err)
			}
			solution, err := l.Variant("solution")
			if err != nil {
				t.Fatal(err)
			}
			if names := solution.differing(start); len(names) == 0 || slices.Contains(names, packetsFile) {
				t.Errorf("the solution has other %v", names)
			}
			if r, err := l.Run(solution); err != nil || r.Failure != "" || r.Steps < 3 {
				t.Errorf("the solution: %+v, %v", r, err)
			}
		})
	}
}

// TestMistakes: common mistakes fail the check, or are refused, with the text in says.txt.
func TestMistakes(t *testing.T) {
	for _, l := range lessons(t) {
		mistakes, err := fs.Glob(embedded, path.Join("lessons", l.Name, "mistake*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(mistakes) == 0 {
			t.Errorf("%s has no mistake", l.Name)
		}
		for _, mistake := range mistakes {
			name := path.Base(mistake)
			t.Run(l.Name+"/"+name, func(t *testing.T) {
				f, err := l.Variant(name)
				if err != nil {
					t.Fatal(err)
				}
				want := f.Text["says.txt"]
				delete(f.Text, "says.txt")
				got := ""
				if r, err := l.Run(f); err != nil {
					got = err.Error() + "\n"
				} else if r.Failure != "" {
					got = r.Failure + "\n"
				} else {
					t.Fatal("it passes the check")
				}
				golden(t, filepath.Join("lessons", l.Name, name, "says.txt"), got, want)
			})
		}
	}
}

func golden(t *testing.T, path, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	if !*update {
		t.Errorf("%s: it says\n%s\nand not\n%s", path, got, want)
		return
	}
	if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
		t.Fatal(err)
	}
}

// fence is a block of a text: its kind and its lines.
var fence = regexp.MustCompile("(?ms)^```(console|flows)( solution| mistake)?\n(.*?)^```\n")

// TestTexts: the commands in a text print what it shows, with the start files or, if it
// says so, the solution. The entries that it shows exist.
func TestTexts(t *testing.T) {
	for _, l := range lessons(t) {
		t.Run(l.Name, func(t *testing.T) {
			for _, must := range []string{"# Lesson ", "```console $", "## Your task", l.Task, "antrail learn "} {
				if !strings.Contains(strings.Join(strings.Fields(l.Text), " "), strings.TrimSpace(must)) {
					t.Errorf("the text has no %q", must)
				}
			}
			text := fence.ReplaceAllStringFunc(l.Text, func(block string) string {
				m := fence.FindStringSubmatch(block)
				variant := strings.TrimSpace(m[2])
				if m[1] == "flows" {
					l.shows(t, m[3], variant)
					return block
				}
				return "```console" + m[2] + "\n" + l.console(t, m[3], variant) + "```\n"
			})
			golden(t, filepath.Join("lessons", l.Name, "text.md"), text, l.Text)
		})
	}
}

// console is a block with its command and output. If the text left out lines with ..., the
// others must appear in order.
func (l *Lesson) console(t *testing.T, block, variant string) string {
	t.Helper()
	command, shown, _ := strings.Cut(block, "\n")
	words := strings.Fields(command)
	if len(words) < 5 || strings.Join(words[:3], " ") != "$ antrail learn" || words[3] != strings.TrimLeft(l.Name[:2], "0") {
		t.Fatalf("%q is no command of this lesson", command)
	}
	var out bytes.Buffer
	s := &Session{Lesson: l, Root: l.laidOut(t, variant), Out: &out}
	if err := s.Do(words[4], words[5:], nil); err != nil && err != ErrNotDone {
		t.Fatalf("%s: %v", command, err)
	}
	printed := strings.TrimRight(out.String(), "\n") + "\n"
	if !strings.Contains("\n"+shown, "\n...\n") {
		return command + "\n" + printed
	}
	rest := "\n" + printed
	for _, part := range strings.Split("\n"+shown, "\n...\n") {
		_, after, ok := strings.Cut(rest, strings.TrimRight(part, "\n"))
		if !ok {
			t.Errorf("%s does not print\n%s\nbut\n%s", command, part, printed)
		}
		rest = after
	}
	return block
}

// laidOut is a directory with the lesson's files of a variant.
func (l *Lesson) laidOut(t *testing.T, variant string) string {
	t.Helper()
	root := t.TempDir()
	f, err := l.MakeFiles(root, true)
	if err != nil {
		t.Fatal(err)
	}
	if variant == "" {
		return root
	}
	v, err := l.Variant(variant)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range f.Names() {
		if err := os.WriteFile(f.path(name), []byte(v.Text[name]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// shows checks that a block's lines are entries or groups of the lesson's switches.
func (l *Lesson) shows(t *testing.T, block, variant string) {
	t.Helper()
	if variant == "" {
		variant = "start"
	}
	f, err := l.Variant(variant)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := l.nodes(f)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, n := range nodes {
		for _, e := range n.program.Entries {
			there[line(e, n.program.Names)] = true
		}
		for _, g := range n.program.Groups {
			there[strings.TrimSpace(g.Text(n.program.Names))] = true
		}
	}
	for _, text := range strings.Split(strings.TrimSpace(block), "\n") {
		if !there[text] {
			t.Errorf("no switch has\n%s", text)
		}
	}
}

// TestIndex: docs/learn.md lists the lessons as they are.
func TestIndex(t *testing.T) {
	got := lessonsPage(lessons(t))
	have, err := os.ReadFile("../docs/learn.md")
	if err != nil && !*update {
		t.Fatal(err)
	}
	golden(t, "../docs/learn.md", got, string(have))
}
