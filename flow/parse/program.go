package parse

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/antrail/antrail/flow"
)

// A program is read from up to four texts: ports, flow entries, groups and
// meters. Names get numbers in this order:
//
//   - ports have the numbers in the ports text (or Sources.Names);
//   - tables are numbered in the order in which lines of the flows begin with
//     table=NAME, so that goto_table goes forward in a dump. Tables that only
//     actions and groups name follow, in order of appearance;
//   - other ports are numbered from 32768 up in order of appearance, so that
//     a dump can be read without the machine it comes from.

// Source is one text and the name that errors give it.
type Source struct {
	Name, Text string
}

// Text is a source that is already in memory.
func Text(name, text string) Source { return Source{name, text} }

// File reads a source from a file.
func File(path string) (Source, error) {
	b, err := os.ReadFile(path)
	return Source{path, string(b)}, err
}

// Sources are the texts of a program; empty ones are skipped. Names, if not nil,
// has names known from the start. It is not changed.
type Sources struct {
	Flows, Groups, Meters, Ports Source
	Names                        *flow.Names
}

// Program reads a whole program: a dump of flows, groups, meters and ports as
// ovs-ofctl prints them, or files for add-flows and the like. It skips blank
// lines, comments behind # and reply headers. The error is an *Errors with all
// wrong lines, and the program is nil.
func Program(src Sources) (*flow.Program, error) {
	r := programReader{prog: &flow.Program{Names: src.Names.Clone()}}
	r.p = &parser{names: r.prog.Names, grow: true}
	for range r.prog.Names.Tables() {
		r.p.style = givenNames
		break
	}
	r.lines(src.Ports, r.portLine)
	r.lines(src.Flows, r.nameTable)
	r.lines(src.Flows, r.flowLine)
	r.lines(src.Groups, r.groupLine)
	r.meters(src.Meters)
	if len(r.errs.List) > 0 {
		return nil, &r.errs
	}
	return r.prog, nil
}

type programReader struct {
	p    *parser
	prog *flow.Program
	errs Errors
	line int // the one being read
}

// lines calls f for every line that is not empty.
func (r *programReader) lines(src Source, f func(span) error) {
	for i, line := range strings.Split(src.Text, "\n") {
		r.line = i + 1
		line, _, _ = strings.Cut(line, "#")
		if s := (span{line, 0}); !isHeader(s.trim().text) {
			if err := f(s); err != nil {
				r.errs.add(located(err, src.Name, r.line))
			}
		}
	}
}

// isHeader reports whether a line is empty, or the first line of a reply such as
// OFPST_FLOW reply (OF1.5) (xid=0x2):.
func isHeader(line string) bool {
	return line == "" || strings.HasPrefix(line, "OFPST_") || strings.HasPrefix(line, "NXST_")
}

// located adds file and line to an error.
func located(err error, file string, line int) *flow.Error {
	var e *flow.Error
	if !errors.As(err, &e) {
		e = &flow.Error{Column: 1, Msg: err.Error()}
	}
	e.File, e.Line = file, line
	return e
}

// nameTable numbers the table that a line of the flows begins with. flowLine
// reports errors.
func (r *programReader) nameTable(line span) error {
	for rest := line; ; {
		it, ok, err := next(&rest)
		if err != nil || !ok || isActions(it) {
			return nil
		}
		if it.key.text == "table" && it.sep == '=' {
			_, _ = r.p.table(it.value)
			return nil
		}
	}
}

func (r *programReader) flowLine(line span) error {
	e, err := r.p.entry(line)
	if err != nil {
		return err
	}
	if len(r.prog.Entries) == 0 {
		r.prog.First = e.Table
	}
	r.prog.Entries = append(r.prog.Entries, e)
	return nil
}

func (r *programReader) groupLine(line span) error {
	g, err := r.p.group(line)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(r.prog.Groups, func(have *flow.Group) bool { return have.ID == g.ID }) {
		return line.trim().errorf("group %d is there already", g.ID)
	}
	r.prog.Groups = append(r.prog.Groups, g)
	return nil
}

func (r *programReader) meters(src Source) {
	var m meterReader
	r.lines(src, func(s span) error { return m.read(s, r.line) })
	seen := make(map[uint32]bool)
	for _, x := range m.meters {
		err := x.check()
		if err == nil && seen[x.meter.ID] {
			err = x.at.errorf("meter %d is there already", x.meter.ID)
		}
		if err != nil {
			r.errs.add(located(err, src.Name, x.line))
		}
		seen[x.meter.ID] = true
		r.prog.Meters = append(r.prog.Meters, x.meter)
	}
}

// portLine reads a line of dump-ports-desc: ` 37(web): addr:…`. It skips the
// lines below with the port's details.
func (r *programReader) portLine(line span) error {
	s := line.trim()
	if s.text[0] < '0' || s.text[0] > '9' {
		return r.namedPort(s)
	}
	numberText, rest, ok := s.cut("(")
	end := strings.LastIndex(rest.text, "):")
	if strings.HasSuffix(rest.text, ")") {
		end = len(rest.text) - 1
	}
	if !ok || end < 0 {
		return s.errorf("expected NUMBER(NAME), as dump-ports-desc prints it")
	}
	port, err := number[uint32](numberText, flow.MaxPort)
	if err != nil {
		return err
	}
	name, _, err := unquote(rest.upTo(end))
	if err == nil {
		err = checkName(rest, name)
	}
	if err != nil {
		return err
	}
	r.p.names.SetPort(port, name)
	return nil
}

// namedPort reads LOCAL(br-int): addr:…, and skips any other line.
func (r *programReader) namedPort(s span) error {
	word, rest, _ := s.cut("(")
	name, _, ok := rest.cut(")")
	if port, known := flow.ReservedPort(word.text); known && ok && checkName(name, name.text) == nil {
		r.p.names.SetPort(port, name.text)
	}
	return nil
}
