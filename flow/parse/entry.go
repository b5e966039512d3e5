package parse

import (
	"slices"

	"github.com/antrail/antrail/flow"
)

// Entry reads one flow entry as dump-flows prints it or add-flows accepts it: settings and match
// in any order, then actions=…. It skips counters and ages. It refuses names that are not in n.
// The error is a *flow.Error with the column.
func Entry(line string, n *flow.Names) (*flow.Entry, error) {
	p := &parser{names: n}
	return p.entry(span{line, 0})
}

// Parser reads one flow entry after another as the function Entry does. It is faster, because it
// uses its memory again. Only one goroutine may use it at a time.
//
// It allocates several entries as one object, and their short lists of actions as another,
// because the garbage collector visits each object. All of them stay in memory as long as one is
// in use.
type Parser struct{ p parser }

// NewParser makes a parser of entries with the names of n. The names must not change while it
// reads.
func NewParser(n *flow.Names) *Parser { return &Parser{parser{names: n, many: true}} }

// Entry reads one flow entry. The entry holds no part of line.
func (r *Parser) Entry(line string) (*flow.Entry, error) { return r.p.entry(span{line, 0}) }

// maxLine is the longest line. OpenFlow has the same limit for messages.
const maxLine = 65535

func checkLength(s span) error {
	if len(s.text) > maxLine {
		return s.errorf("the line is longer than %d bytes", maxLine)
	}
	return nil
}

func (p *parser) entry(line span) (*flow.Entry, error) {
	if err := checkLength(line); err != nil {
		return nil, err
	}
	r := entryReader{p: p, line: line, e: p.newEntry()}
	p.items, p.given = p.items[:0], p.given[:0]
	for rest := line; ; {
		it, ok, err := next(&rest)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return nil, rest.errorf("expected actions=… at the end of the entry")
		case isActions(it):
			return r.finish(line.from(it.value.at - line.at))
		}
		if err := r.part(it); err != nil {
			return nil, err
		}
	}
}

// Several entries share an object, and several actions do.
const (
	entriesTogether = 32 // 2 KB
	actionsTogether = 32
)

// newEntry allocates an entry.
func (p *parser) newEntry() *flow.Entry {
	if len(p.entries) == 0 {
		p.entries = make([]flow.Entry, 1)
		if p.many {
			p.entries = make([]flow.Entry, entriesTogether)
		}
	}
	e := &p.entries[0]
	p.entries = p.entries[1:]
	e.Priority = flow.DefaultPriority
	return e
}

// mini makes the short match of an entry.
func (p *parser) mini(m *flow.Match) flow.Minimatch {
	if p.many {
		return p.matches.Mini(m)
	}
	return m.Mini()
}

// keep copies a list of actions into an entry's memory.
func (p *parser) keep(actions []flow.Action) []flow.Action {
	n := len(actions)
	if !p.many || n == 0 || n > actionsTogether/4 {
		return append([]flow.Action(nil), actions...)
	}
	if n > len(p.room) {
		p.room = make([]flow.Action, actionsTogether)
	}
	kept := p.room[:n:n]
	p.room = p.room[n:]
	copy(kept, actions)
	return kept
}

// entryReader reads the part before an entry's actions.
type entryReader struct {
	p    *parser // with the items of the match, and the settings so far
	line span
	e    *flow.Entry
}

func isActions(it item) bool {
	return it.sep == '=' && (it.key.text == "actions" || it.key.text == "action")
}

// part reads a setting, or stores an item of the match for finish.
func (r *entryReader) part(it item) error {
	name := it.key.text
	set := entrySettings[name]
	if set == nil {
		r.p.items = append(r.p.items, staged(it))
		return nil
	}
	if slices.Contains(r.p.given, name) {
		return it.key.errorf("%s is given twice", name)
	}
	r.p.given = append(r.p.given, name)
	return set(r.p, r.e, it)
}

// finish reads match and actions. If tables have numbers, a missing table is 0.
func (r *entryReader) finish(actions span) (*flow.Entry, error) {
	if !slices.Contains(r.p.given, "table") {
		if r.p.grow && r.p.style == byName {
			return nil, r.line.errorf("expected table=NAME, as other lines of the program have it")
		}
		if err := r.p.tableStyle(r.line, byNumber); err != nil {
			return nil, err
		}
	}
	r.p.whole = flow.Match{}
	if err := r.p.readMatch(&r.p.whole, r.p.items); err != nil {
		return nil, err
	}
	r.e.Match = r.p.mini(&r.p.whole)
	if err := r.p.entryActions(r.e, actions); err != nil {
		return nil, err
	}
	return r.e, nil
}

func (p *parser) entryActions(e *flow.Entry, s span) error {
	p.match = &p.whole
	defer func() { p.match = nil }()
	tags := 0
	if p.whole.Implies(flow.NeedVLAN) {
		tags = 1
	}
	list, err := p.actionsBehind(s, 0, tags)
	if err != nil {
		return err
	}
	e.Actions = list.actions
	return list.located(e.Check())
}

// entrySettings reads the settings beside the match.
var entrySettings = map[string]func(*parser, *flow.Entry, item) error{
	"table":            (*parser).entryTable,
	"cookie":           entryCookie,
	"priority":         func(_ *parser, e *flow.Entry, it item) error { return number16(it, &e.Priority) },
	"idle_timeout":     func(_ *parser, e *flow.Entry, it item) error { return number16(it, &e.IdleTimeout) },
	"hard_timeout":     func(_ *parser, e *flow.Entry, it item) error { return number16(it, &e.HardTimeout) },
	"send_flow_rem":    entrySendFlowRem,
	"duration":         counted,
	"n_packets":        counted,
	"n_bytes":          counted,
	"idle_age":         counted,
	"hard_age":         counted,
	"reset_counts":     counted, // concerns the command, not the entry
	"check_overlap":    counted,
	"importance":       entryUnsupported,
	"no_packet_counts": entryUnsupported,
	"no_byte_counts":   entryUnsupported,
}

func (p *parser) entryTable(e *flow.Entry, it item) (err error) {
	e.Table, err = p.table(it.value)
	return err
}

func entryCookie(_ *parser, e *flow.Entry, it item) (err error) {
	e.Cookie, err = number[uint64](it.value, 1<<64-1)
	return err
}

func entrySendFlowRem(_ *parser, e *flow.Entry, it item) error {
	e.SendFlowRem = true
	return it.bare()
}

func counted(*parser, *flow.Entry, item) error { return nil }

func entryUnsupported(_ *parser, _ *flow.Entry, it item) error {
	return it.key.errorf("%s is not supported by this switch", it.key.text)
}
