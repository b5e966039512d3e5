package parse

import (
	"strconv"
	"strings"

	"github.com/antrail/antrail/flow"
)

// parser reads text. With grow it numbers new names: a whole program may name tables and ports, a
// single entry may not.
type parser struct {
	names     *flow.Names
	grow      bool
	style     tableStyle // with grow: how tables are named so far
	nextTable uint8
	nextPort  uint32
	match     *flow.Match // the match of the entry whose actions are read; nil in groups
	whole     flow.Match  // what match points to

	// Memory that each line uses again.
	items []matchItem
	given []string // settings
	needs []need
	lists []*actionList // by depth

	// Memory for the next entries, if there are many.
	many    bool
	entries []flow.Entry
	matches flow.MinimatchRoom
	room    []flow.Action
}

// number reads an unsigned number up to limit: decimal, or 0x and hexadecimal.
func number[N uint8 | uint16 | uint32 | uint64](s span, limit N) (N, error) {
	v, err := wideNumber(s)
	if err != nil {
		return 0, err
	}
	if v.Hi != 0 || v.Lo > uint64(limit) {
		return 0, s.errorf("%s is too large; the largest is %d", s.text, limit)
	}
	return N(v.Lo), nil
}

func number16(o item, v *uint16) (err error) {
	*v, err = number[uint16](o.value, 65535)
	return err
}

// wideNumber reads a number of up to 128 bits.
func wideNumber(s span) (flow.Value, error) {
	v, err := flow.ParseNumber(s.text)
	return v, s.placed(err)
}

// value reads a field's value and mask as Field.ParseValue does, and ports by their names.
func (p *parser) value(f *flow.Field, s span) (v, mask flow.Value, err error) {
	if f.Form == flow.PortNumber {
		return p.portValue(f, s)
	}
	v, mask, err = f.ParseValue(s.text)
	return v, mask, s.placed(err)
}

// portValue reads a port as a field's value. Such a field has no mask.
func (p *parser) portValue(f *flow.Field, s span) (v, mask flow.Value, err error) {
	mask = flow.Ones(f.Bits)
	name, maskText, hasMask := s.cut("/")
	if hasMask {
		return v, mask, maskText.errorf("%s takes no mask", f.Name)
	}
	port, err := p.port(name)
	return flow.Value{Lo: uint64(port)}, mask, err
}

// port reads a port: a number, a reserved name, or a known name.
func (p *parser) port(s span) (uint32, error) {
	if s.text != "" && s.text[0] >= '0' && s.text[0] <= '9' {
		if v, err := wideNumber(s); err == nil {
			return portNumber(s, v)
		}
	}
	name, quoted, err := unquote(s)
	if err != nil {
		return 0, err
	}
	if port, ok := flow.ReservedPort(name); ok && !quoted {
		return port, nil
	}
	if port, ok := p.names.PortID(name); ok {
		return port, nil
	}
	if p.grow && name != "" {
		return p.newPort(s, name)
	}
	return 0, s.errorf("unknown port %q; expected a number, a known name or LOCAL, IN_PORT, CONTROLLER …", name)
}

func portNumber(s span, v flow.Value) (uint32, error) {
	switch {
	case v.Hi == 0 && v.Lo <= flow.MaxPort:
		return uint32(v.Lo), nil
	case v.Hi == 0 && v.Lo >= 0xfff8 && v.Lo <= 0xffff:
		return flow.PortOf16(uint32(v.Lo)), nil
	case v.Hi == 0 && v.Lo >= flow.PortInPort && v.Lo <= flow.PortNone:
		return uint32(v.Lo), nil
	}
	return 0, s.errorf("port %s is out of range; ports are 0 to %d", s.text, flow.MaxPort)
}

// firstNamedPort is the first number for ports that have only names.
const firstNamedPort = 32768

// newPort numbers a port that has only a name.
func (p *parser) newPort(s span, name string) (uint32, error) {
	if err := checkName(s, name); err != nil {
		return 0, err
	}
	p.nextPort = max(p.nextPort, firstNamedPort)
	for p.names.Port(p.nextPort) != "" {
		p.nextPort++
	}
	if p.nextPort > flow.MaxPort {
		return 0, s.errorf("no number is left for port %q", name)
	}
	p.names.SetPort(p.nextPort, name)
	return p.nextPort, nil
}

// table reads a table: a number or a known name. It refuses 255, which is NoTable.
func (p *parser) table(s span) (uint8, error) {
	if s.text != "" && s.text[0] >= '0' && s.text[0] <= '9' {
		if v, err := wideNumber(s); err == nil {
			if v.Hi != 0 || v.Lo >= flow.NoTable {
				return 0, s.errorf("table %s is out of range; tables are 0 to 254", s.text)
			}
			return uint8(v.Lo), p.tableStyle(s, byNumber)
		}
	}
	name, _, err := unquote(s)
	if err != nil {
		return 0, err
	}
	if id, ok := p.names.TableID(name); ok {
		return id, nil
	}
	if p.grow && name != "" {
		return p.newTable(s, name)
	}
	return 0, s.errorf("unknown table %q; expected a number or a known name", name)
}

// tableStyle is how a program's files refer to tables. They use only one way, because numbers
// assigned by first appearance would clash with given ones.
type tableStyle uint8

const (
	anyStyle tableStyle = iota
	byNumber
	byName
	givenNames // by names given beforehand: numbers work too
)

func (p *parser) tableStyle(s span, style tableStyle) error {
	if !p.grow || p.style == style || p.style == givenNames {
		return nil
	}
	if p.style == anyStyle {
		p.style = style
		return nil
	}
	return s.errorf("table %s: tables have either names or numbers in one program, not both", s.text)
}

// newTable gives a new table the next number.
func (p *parser) newTable(s span, name string) (uint8, error) {
	if err := checkName(s, name); err != nil {
		return 0, err
	}
	if err := p.tableStyle(s, byName); err != nil {
		return 0, err
	}
	for p.nextTable < flow.NoTable && p.names.Table(p.nextTable) != "" {
		p.nextTable++
	}
	if p.nextTable == flow.NoTable {
		return 0, s.errorf("no number is left for table %q; a pipeline has up to 255", name)
	}
	p.names.SetTable(p.nextTable, name)
	return p.nextTable, nil
}

// checkName refuses names that the text of a flow entry cannot hold. No interface or table has
// one.
func checkName(s span, name string) error {
	for i := 0; i < len(name); i++ {
		if c := name[i]; c <= ' ' || strings.IndexByte("\"\\,/#()=", c) >= 0 {
			return s.errorf("%q cannot be in a name", c)
		}
	}
	if name == "" || len(name) > maxName {
		return s.errorf("expected a name of 1 to %d bytes", maxName)
	}
	return nil
}

// maxName is the longest name of a port or table, as in OpenFlow's tables.
const maxName = 31

// unquote removes the quotes of a name.
func unquote(s span) (name string, quoted bool, err error) {
	if !strings.HasPrefix(s.text, `"`) {
		return s.text, false, nil
	}
	var b strings.Builder
	for i := 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"' && i == len(s.text)-1:
			return b.String(), true, nil
		case c == '"':
			return "", true, s.from(i).errorf("expected the end of the name behind a quote")
		case c == '\\':
			n, err := unescape(&b, s.from(i))
			if err != nil {
				return "", true, err
			}
			i += n - 1
		default:
			b.WriteByte(c)
		}
	}
	return "", true, s.errorf("a name that is not closed by a quote")
}

// unescape reads a JSON escape at the beginning of s and returns its length. It knows only those
// that appendName writes.
func unescape(b *strings.Builder, s span) (int, error) {
	if len(s.text) >= 2 && (s.text[1] == '"' || s.text[1] == '\\') {
		b.WriteByte(s.text[1])
		return 2, nil
	}
	if len(s.text) >= 6 && strings.HasPrefix(s.text, `\u00`) {
		if c, err := strconv.ParseUint(s.text[4:6], 16, 8); err == nil {
			b.WriteByte(byte(c))
			return 6, nil
		}
	}
	return 0, s.errorf(`unknown escape in a name; expected \", \\ or \u00xx`)
}
