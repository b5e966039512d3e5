package flow

// ParseEntry reads one flow entry as dump-flows prints it or add-flows takes
// it: settings and match in any order, then actions=…. Counters and ages are
// read and left out. Names that n does not know are refused. The error is an
// *Error with the column.
func ParseEntry(line string, n *Names) (*Entry, error) {
	p := &parser{names: n}
	return p.entry(span{line, 0})
}

// maxLine bounds a line, as OpenFlow bounds the message that would carry it.
const maxLine = 65535

func checkLength(s span) error {
	if len(s.text) > maxLine {
		return s.errorf("the line is longer than %d bytes", maxLine)
	}
	return nil
}

func (p *parser) entry(line span) (*Entry, error) {
	if err := checkLength(line); err != nil {
		return nil, err
	}
	e := &Entry{Priority: DefaultPriority}
	hasTable, settings := false, make(map[string]bool)
	var match []item
	for rest := line; ; {
		it, ok, err := next(&rest)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return nil, rest.errorf("expected actions=… at the end of the entry")
		}
		if isActions(it) {
			if err := p.startEntry(e, line, hasTable, match); err != nil {
				return nil, err
			}
			if err := p.entryActions(e, line.from(it.value.at-line.at)); err != nil {
				return nil, err
			}
			return e, nil
		}
		set := entrySettings[it.key.text]
		if set == nil {
			match = append(match, it)
			continue
		}
		if settings[it.key.text] {
			return nil, it.key.errorf("%s is given twice", it.key.text)
		}
		settings[it.key.text] = true
		hasTable = hasTable || it.key.text == "table"
		if err := set(p, e, it); err != nil {
			return nil, err
		}
	}
}

func isActions(it item) bool {
	return it.sep == '=' && (it.key.text == "actions" || it.key.text == "action")
}

// startEntry finishes what stands before the actions.
func (p *parser) startEntry(e *Entry, line span, hasTable bool, match []item) (err error) {
	if !hasTable && p.grow && p.style == byName {
		return line.errorf("expected table=NAME, as other lines of the program have it")
	}
	if !hasTable {
		err = p.tableStyle(line, byNumber)
	}
	if err == nil {
		e.Match, err = p.readMatch(match)
	}
	return err
}

func (p *parser) entryActions(e *Entry, s span) error {
	p.match = &e.Match
	defer func() { p.match = nil }()
	list, err := p.actionsBehind(s, 0, tagsOf(&e.Match))
	if err != nil {
		return err
	}
	e.Actions = list.actions
	if c := checkActions(e.Actions, &e.Match, int(e.Table)); c != nil {
		return list.at[c.action].errorf("%s", c.msg)
	}
	return nil
}

// entrySettings reads what stands in an entry beside its match.
var entrySettings = map[string]func(*parser, *Entry, item) error{
	"table":            (*parser).entryTable,
	"cookie":           entryCookie,
	"priority":         func(_ *parser, e *Entry, it item) error { return number16(it, &e.Priority) },
	"idle_timeout":     func(_ *parser, e *Entry, it item) error { return number16(it, &e.IdleTimeout) },
	"hard_timeout":     func(_ *parser, e *Entry, it item) error { return number16(it, &e.HardTimeout) },
	"send_flow_rem":    entrySendFlowRem,
	"duration":         counted,
	"n_packets":        counted,
	"n_bytes":          counted,
	"idle_age":         counted,
	"hard_age":         counted,
	"reset_counts":     counted, // how the entry was sent, not what it is
	"check_overlap":    counted,
	"importance":       entryUnsupported,
	"no_packet_counts": entryUnsupported,
	"no_byte_counts":   entryUnsupported,
}

func (p *parser) entryTable(e *Entry, it item) (err error) {
	e.Table, err = p.table(it.value)
	return err
}

func entryCookie(_ *parser, e *Entry, it item) (err error) {
	e.Cookie, err = number(it.value, 1<<64-1)
	return err
}

func entrySendFlowRem(_ *parser, e *Entry, it item) error {
	e.SendFlowRem = true
	return it.bare()
}

func counted(*parser, *Entry, item) error { return nil }

func entryUnsupported(_ *parser, _ *Entry, it item) error {
	return it.key.errorf("%s is not supported by this switch", it.key.text)
}
