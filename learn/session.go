package learn

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/antrail/antrail/flow"
)

// Session is a learner at a lesson: what the commands do.
type Session struct {
	Lesson *Lesson
	Root   string // directory of the lessons' directories
	Out    io.Writer
}

// Verbs are what Do does, in the order of help.
var Verbs = []string{"send", "check", "compare", "dump", "reset", "solution"}

// ErrNotDone is Do's answer to a check that found something.
var ErrNotDone = errors.New("the lesson is not done")

// Do does a verb with the words behind it; none begins the lesson. With step, packets
// are shown table by table.
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
		return fmt.Errorf("there is nothing to be done with %q: a lesson's number is followed by %s", words, strings.Join(Verbs, ", "))
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
	return s.Begin(verb == "reset")
}

// List prints the lessons, and which of them are done: whose files below root pass the
// check.
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

// progress is how far the learner is.
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

// Begin makes the learner's files, and prints the lesson.
func (s *Session) Begin(anew bool) error {
	f, err := s.Lesson.Begin(s.Root, anew)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "%s\n---\nYour files are in %s: %s.\n", s.Lesson.Text, f.Dir, strings.Join(f.Names(), ", "))
	return err
}

// open reads the learner's files and makes their sandbox. Who has not begun yet gets
// the files of the beginning.
func (s *Session) open() (*Sandbox, *Files, error) {
	f, err := s.Lesson.Read(s.Root)
	if errors.Is(err, ErrNotBegun) {
		f, err = s.Lesson.Start()
	}
	if err != nil {
		return nil, nil, err
	}
	box, err := NewSandbox(s.Lesson, f)
	return box, f, err
}

// Send sends packets of the learner's file, one after the other, all of them when none
// is named, and prints their ways. A packet that answers another has that one sent
// before it, silently.
func (s *Session) Send(names []string, step *Stepper) error {
	return s.each(names, func(box *Sandbox, w *Way) (bool, error) {
		if step != nil {
			return step.Show(box, w)
		}
		_, err := w.WriteTo(s.Out)
		fmt.Fprintln(s.Out)
		return true, err
	})
}

// each sends packets and tells what became of those that are named.
func (s *Session) each(names []string, tell func(*Sandbox, *Way) (bool, error)) error {
	box, f, err := s.open()
	if err != nil {
		return err
	}
	defer box.Close()
	all, err := parsePackets(f)
	if err != nil {
		return err
	}
	named, order, err := inOrder(all, names)
	if err != nil {
		return err
	}
	for _, p := range order {
		w, err := box.Send(p, 0)
		if err != nil {
			return err
		}
		if !named[p.name] {
			continue
		}
		if on, err := tell(box, w); err != nil || !on {
			return err
		}
	}
	return nil
}

// inOrder are the packets to send, those that they answer before them; with none named
// all.
func inOrder(all []aPacket, names []string) (named map[string]bool, order []aPacket, err error) {
	named = map[string]bool{}
	sent := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		p, err := find(all, name)
		if err != nil || sent[name] {
			return err
		}
		if p.reply != "" {
			if err := add(p.reply); err != nil {
				return err
			}
		}
		sent[name] = true
		order = append(order, p)
		return nil
	}
	if len(names) == 0 {
		for _, p := range all {
			names = append(names, p.name)
		}
	}
	for _, name := range names {
		named[name] = true
		if err := add(name); err != nil {
			return nil, nil, err
		}
	}
	return named, order, nil
}

// Check runs the lesson's check, and prints what is wrong. It is false when something
// is.
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

// Compare prints, for each packet of the learner's file, its way with the files of the
// beginning beside that with the learner's.
func (s *Session) Compare(names []string) error {
	start, err := s.Lesson.Start()
	if err != nil {
		return err
	}
	return s.each(names, func(box *Sandbox, after *Way) (bool, error) {
		before, err := s.begun(start, after.Packet)
		if err != nil {
			return false, fmt.Errorf("in the beginning: %w", err)
		}
		text, same := Compare(before, after)
		if same {
			text = "  goes the same way as in the beginning\n"
		}
		_, err = fmt.Fprintf(s.Out, "%s\n%s\n", after.Packet, text)
		return true, err
	})
}

// begun is the way of a packet of the learner's with the entries of the beginning.
func (s *Session) begun(start *Files, name string) (*Way, error) {
	box, err := NewSandbox(s.Lesson, start)
	if err != nil {
		return nil, err
	}
	defer box.Close()
	f, err := s.Lesson.Read(s.Root)
	if errors.Is(err, ErrNotBegun) {
		f, err = start, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := parsePackets(f)
	if err != nil {
		return nil, err
	}
	_, order, err := inOrder(all, []string{name})
	if err != nil {
		return nil, err
	}
	var w *Way
	for _, p := range order {
		if w, err = box.Send(p, 0); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Dump prints the entries of the first Node, as dump-flows does: of a table when one is
// named, and with that text in them.
func (s *Session) Dump(table, with string) error {
	box, _, err := s.open()
	if err != nil {
		return err
	}
	defer box.Close()
	p := box.nodes[0].program
	if _, known := p.Names.TableID(table); table != "" && !known {
		return fmt.Errorf("there is no table %q here", table)
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

// Solution prints the files of a solution that differ from the beginning.
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
