package learn

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/antrail/antrail/flow"
)

// Session is a learner at a lesson. Its methods are the commands.
type Session struct {
	Lesson *Lesson
	Root   string // directory of the lessons' directories
	Out    io.Writer
	Width  int // columns of Out, if it is a terminal; otherwise 0
}

// Verbs are Do's verbs, in the order of help.
var Verbs = []string{"send", "check", "compare", "dump", "reset", "solution"}

// ErrNotDone is Do's error for a check that failed.
var ErrNotDone = errors.New("the lesson is not done")

// ErrUnknownWord is Do's error for an unknown word.
var ErrUnknownWord = errors.New("unknown word")

// Do runs a verb with its words. Without a verb it begins the lesson. If step is not nil,
// packets are shown table by table.
func (s *Session) Do(verb string, words []string, step *Stepper) error {
	switch verb {
	case "send":
		return s.Send(words, step)
	case "compare":
		return s.Compare(words)
	case "dump":
		words = append(words, "", "")
		return s.Dump(words[0], words[1])
	}
	if len(words) > 0 {
		return s.unknown(verb, words[0])
	}
	switch verb {
	case "check":
		done, err := s.Check()
		if err == nil && !done {
			err = ErrNotDone
		}
		return err
	case "solution":
		return s.Solution()
	}
	return s.BeginLesson(verb == "reset")
}

// unknown is the error for a word that has no meaning behind a verb or a lesson's number.
func (s *Session) unknown(verb, word string) error {
	lesson := fmt.Sprintf("antrail learn %d", s.Lesson.Number)
	if verb != "" {
		return fmt.Errorf("%w %q: %s %s takes no further word", ErrUnknownWord, word, lesson, verb)
	}
	if f, err := s.files(); err == nil {
		packets, err := parsePackets(f)
		if _, none := findPacket(packets, word); err == nil && none == nil {
			return fmt.Errorf("%w %q: to send a packet: %s send %s", ErrUnknownWord, word, lesson, word)
		}
	}
	return fmt.Errorf("%w %q%s: %s is followed by %s", ErrUnknownWord, word, flow.Suggest(word, Verbs), lesson, strings.Join(Verbs, ", "))
}

// List prints the lessons, and which are done. A lesson is done if its files below root
// pass the check.
func List(root string, out io.Writer) error {
	all, err := Lessons()
	if err != nil {
		return err
	}
	width := 0
	for _, l := range all {
		width = max(width, len(l.Title))
	}
	for _, l := range all {
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%2d  %-*s  %s", l.Number, width, l.Title, l.progress(root)), " "))
	}
	_, err = fmt.Fprintln(out, "\nantrail learn 1 begins the first.")
	return err
}

// progress is "done", "begun" or "".
func (l *Lesson) progress(root string) string {
	f, err := l.Read(root)
	if err != nil {
		return ""
	}
	if r, err := l.Run(f); err != nil || r.Failure != "" {
		return "begun"
	}
	return "done"
}

// BeginLesson makes the learner's files, and prints the lesson. With reset it replaces existing files.
func (s *Session) BeginLesson(reset bool) error {
	f, err := s.Lesson.MakeFiles(s.Root, reset)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "%s\n---\nYour files are in %s: %s.\n", fold(s.Lesson.Text, s.Width), f.Dir, strings.Join(f.Names(), ", "))
	return err
}

// files are the learner's. Before the lesson is begun, they are the start files.
func (s *Session) files() (*Files, error) {
	f, err := s.Lesson.Read(s.Root)
	if errors.Is(err, ErrNotBegun) {
		return s.Lesson.Start()
	}
	return f, err
}

// open makes the sandbox of the learner's files, and a plan from words.
func (s *Session) open(words []string) (*Sandbox, []planned, error) {
	f, err := s.files()
	if err != nil {
		return nil, nil, err
	}
	packets, err := parsePackets(f)
	if err != nil {
		return nil, nil, err
	}
	plan, err := newPlan(packets, words)
	if err != nil {
		return nil, nil, err
	}
	box, err := NewSandbox(s.Lesson, f)
	return box, plan, err
}

// Send runs a plan (plan.go) in one sandbox, and prints the packets' ways.
func (s *Session) Send(words []string, step *Stepper) error {
	box, plan, err := s.open(words)
	if err != nil {
		return err
	}
	defer box.Close()
	for _, p := range plan {
		w, err := box.do(p)
		switch {
		case err != nil:
			return err
		case w == nil:
			fmt.Fprintf(s.Out, "%s\n\n", box.happened(p))
		case !p.told:
		case step != nil:
			if on, err := step.Show(box, w); err != nil || !on {
				return err
			}
		default:
			if _, err := w.WriteTo(s.Out); err != nil {
				return err
			}
			fmt.Fprintln(s.Out)
		}
	}
	return nil
}

// Check runs the lesson's check and prints what is wrong. It returns false if something is.
func (s *Session) Check() (bool, error) {
	f, err := s.Lesson.Read(s.Root)
	if err != nil {
		return false, err
	}
	r, err := s.Lesson.Run(f)
	if err != nil {
		return false, err
	}
	if r.Failure != "" {
		_, err = fmt.Fprintf(s.Out, "Not yet: %d of %d steps are as they should be.\n%s\n", r.Steps, len(s.Lesson.Check), r.Failure)
		return false, err
	}
	_, err = fmt.Fprintf(s.Out, "Lesson %d is done: %d of %d steps are as they should be.\n", s.Lesson.Number, r.Steps, r.Steps)
	return true, err
}

// Compare runs a plan with the start files and with the learner's. It prints each packet's
// two ways side by side.
func (s *Session) Compare(words []string) error {
	box, plan, err := s.open(words)
	if err != nil {
		return err
	}
	defer box.Close()
	start, err := s.Lesson.Start()
	if err != nil {
		return err
	}
	begun, err := NewSandbox(s.Lesson, start)
	if err != nil {
		return err
	}
	defer begun.Close()
	for _, p := range plan {
		before, unsent := begun.do(p)
		after, err := box.do(p)
		if err != nil {
			return err
		}
		if after == nil || !p.told {
			continue
		}
		text, same := "", false
		if unsent != nil {
			text = fmt.Sprintf("  there is none in the beginning: %v\n", unsent)
		} else if text, same = Compare(before, after); same {
			text = "  goes the same way as in the beginning\n"
		}
		fmt.Fprintf(s.Out, "%s\n%s\n", after.Packet, text)
	}
	return nil
}

// Dump prints the entries of the first Node, as dump-flows does. If table is not "", it
// prints only that table's entries. It prints only entries whose text contains with.
func (s *Session) Dump(table, with string) error {
	f, err := s.files()
	if err != nil {
		return err
	}
	nodes, err := s.Lesson.nodes(f)
	if err != nil {
		return err
	}
	p := nodes[0].program
	if err := knownTable(p, table); err != nil {
		return err
	}
	for _, e := range p.Entries {
		text := e.Text(flow.Format{Names: p.Names})
		if (table == "" || tableName(p.Names, e.Table) == table) && strings.Contains(text, with) {
			fmt.Fprintln(s.Out, text)
		}
	}
	for _, g := range p.Groups {
		if text := g.Text(p.Names); table == "" && strings.Contains(text, with) {
			fmt.Fprintln(s.Out, " "+text)
		}
	}
	return nil
}

// knownTable is an error if a program has no entry in a table of that name.
func knownTable(p *flow.Program, name string) error {
	var names []string
	for _, e := range p.Entries {
		names = append(names, tableName(p.Names, e.Table))
	}
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("there is no table %q here%s", name, flow.Suggest(name, names))
}

// Solution prints the files of a solution that differ from the start.
func (s *Session) Solution() error {
	start, err := s.Lesson.Start()
	if err != nil {
		return err
	}
	f, err := s.Lesson.Variant("solution")
	if err != nil {
		return err
	}
	for _, name := range f.differing(start) {
		fmt.Fprintf(s.Out, "# %s\n%s", name, f.Text[name])
	}
	return nil
}
