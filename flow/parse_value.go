package flow

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// parser reads text. It numbers names that are new to it only when grow is
// set: a whole program may name tables and ports, a single entry may not.
type parser struct {
	names     *Names
	grow      bool
	style     tableStyle // with grow: how tables are named so far
	nextTable uint8
	nextPort  uint32
	match     *Match // of the entry whose actions are read; nil in groups

	// Memory that one line after another uses.
	items []matchItem
	given []string // settings
	needs []need
	lists []*actionList // by depth
}

// number reads an unsigned number up to limit: decimal, or 0x and hexadecimal.
func number(s span, limit uint64) (uint64, error) {
	v, err := wideNumber(s)
	if err != nil {
		return 0, err
	}
	if v.Hi != 0 || v.Lo > limit {
		return 0, s.errorf("%s is too large; the largest is %d", s.text, limit)
	}
	return v.Lo, nil
}

// wideNumber reads a number of up to 128 bits; decimals have up to 64.
func wideNumber(s span) (Value, error) {
	digits, hex := strings.CutPrefix(s.text, "0x")
	if !hex {
		digits, hex = strings.CutPrefix(s.text, "0X")
	}
	if !hex {
		if len(digits) > 1 && digits[0] == '0' {
			return Value{}, s.errorf("%q: a number cannot begin with 0 (write 0x for hexadecimal)", s.text)
		}
		v, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return Value{}, s.errorf("expected a number, not %q", s.text)
		}
		return Value{Lo: v}, nil
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" && len(s.text) > 2 {
		return Value{}, nil
	}
	low := max(len(digits)-16, 0)
	v := Value{}
	var err1, err2 error
	if low > 0 {
		v.Hi, err1 = strconv.ParseUint(digits[:low], 16, 64)
	}
	v.Lo, err2 = strconv.ParseUint(digits[low:], 16, 64)
	if err1 != nil || err2 != nil {
		return Value{}, s.errorf("expected a number of up to 128 bits, not %q", s.text)
	}
	return v, nil
}

// value reads a field's value, with a mask behind / where the form allows one.
// The mask is the whole field when none is written; value bits outside the
// mask are kept, for the caller to clear or refuse.
func (p *parser) value(f *Field, s span) (v, mask Value, err error) {
	mask = Ones(f.Bits)
	text, maskText, hasMask := s.cut("/")
	switch f.Form {
	case CTStateBits, TCPFlagBits, TunnelFlagBits:
		return flagValue(f, s)
	case FragmentBits:
		return fragmentValue(s)
	}
	if hasMask && !f.Maskable && !f.fixedMask(maskText.text) {
		return v, mask, maskText.errorf("%s takes no mask", f.Name)
	}
	if v, err = p.plainValue(f, text); err != nil || !hasMask {
		return v, mask, err
	}
	mask, err = maskValue(f, maskText)
	return v, mask, err
}

// fixedMask says whether text is the mask that OVS itself prints when a load
// fills a field that does not fill its bytes (nw_ecn=1/0x3).
func (f *Field) fixedMask(text string) bool {
	return f.Bits%8 != 0 && text == string(appendHex(nil, Ones(f.Bits)))
}

// plainValue reads a value without a mask.
func (p *parser) plainValue(f *Field, s span) (v Value, err error) {
	switch f.Form {
	case MACAddress:
		return macValue(s)
	case IPv4Address, IPv6Address:
		return addrValue(f, s)
	case PortNumber:
		port, err := p.port(s)
		return Value{Lo: uint64(port)}, err
	}
	if v, err = wideNumber(s); err != nil {
		return v, err
	}
	if v.And(Ones(f.Bits)) != v {
		return v, s.errorf("%s is too large for %s, which has %d bits", s.text, f.Name, f.Bits)
	}
	return v, nil
}

// maskValue reads the mask of a number or an address.
func maskValue(f *Field, s span) (Value, error) {
	switch f.Form {
	case MACAddress:
		return macValue(s)
	case IPv4Address, IPv6Address:
		if strings.ContainsAny(s.text, ".:") {
			return addrValue(f, s)
		}
		n, err := number(s, uint64(f.Bits))
		return Ones(int(n)).Shl(f.Bits - int(n)), err
	}
	mask, err := wideNumber(s)
	if err == nil && mask.And(Ones(f.Bits)) != mask {
		err = s.errorf("mask %s is too large for %s, which has %d bits", s.text, f.Name, f.Bits)
	}
	return mask, err
}

func macValue(s span) (Value, error) {
	mac, err := net.ParseMAC(s.text)
	if err != nil || len(mac) != 6 || !strings.Contains(s.text, ":") {
		return Value{}, s.errorf("expected a MAC address such as 0a:00:00:00:00:01, not %q", s.text)
	}
	return ValueOfMAC(mac), nil
}

func addrValue(f *Field, s span) (Value, error) {
	a, err := netip.ParseAddr(s.text)
	if err != nil || a.BitLen() != f.Bits || a.Zone() != "" {
		want := "IPv4 address such as 10.0.0.1"
		if f.Bits == 128 {
			want = "IPv6 address such as fd00::1"
		}
		return Value{}, s.errorf("expected an %s, not %q", want, s.text)
	}
	return ValueOfAddr(a), nil
}

// flagValue reads +new-est, new|trk, or numbers 0x21/0x21.
func flagValue(f *Field, s span) (v, mask Value, err error) {
	words := flagWords[f.Form]
	all := Ones(len(words))
	switch {
	case s.text == "":
		return v, mask, s.errorf("%s needs a value such as +%s", f.Name, words[0])
	case s.text[0] == '+' || s.text[0] == '-':
		return signedFlags(f, s)
	case s.text[0] >= '0' && s.text[0] <= '9':
		return numericFlags(f, s)
	}
	for rest, more := s, true; more; {
		var word span
		word, rest, more = rest.cut("|")
		bit, err := flagBit(f, word)
		if err != nil {
			return v, mask, err
		}
		v = v.Or(bit)
	}
	return v, all.And(Ones(f.Bits)), nil
}

func signedFlags(f *Field, s span) (v, mask Value, err error) {
	for s.text != "" {
		set := s.text[0] == '+'
		s = s.from(1)
		end := strings.IndexAny(s.text, "+-")
		if end < 0 {
			end = len(s.text)
		}
		bit, err := flagBit(f, s.upTo(end))
		if err != nil {
			return v, mask, err
		}
		if !mask.And(bit).IsZero() {
			return v, mask, s.errorf("%s is given twice", s.upTo(end).text)
		}
		mask = mask.Or(bit)
		if set {
			v = v.Or(bit)
		}
		s = s.from(end)
	}
	return v, mask, nil
}

// numericFlags reads flags as a number; only flags that exist may be set.
func numericFlags(f *Field, s span) (v, mask Value, err error) {
	all := Ones(len(flagWords[f.Form]))
	text, maskText, hasMask := s.cut("/")
	if v, err = wideNumber(text); err != nil {
		return v, all, err
	}
	mask = all
	if hasMask {
		if mask, err = wideNumber(maskText); err != nil {
			return v, mask, err
		}
	}
	if !v.Or(mask).AndNot(all).IsZero() {
		return v, mask, s.errorf("%s has bits that no %s flag has; the flags are %s", s.text, f.Name, strings.Join(flagWords[f.Form], " "))
	}
	return v, mask, nil
}

func flagBit(f *Field, word span) (Value, error) {
	words := flagWords[f.Form]
	for i, w := range words {
		if w == word.text {
			return Value{Lo: 1 << i}, nil
		}
	}
	return Value{}, word.errorf("%q is no %s flag; expected %s", word.text, f.Name, strings.Join(words, " "))
}

func fragmentValue(s span) (v, mask Value, err error) {
	for _, f := range fragments {
		// "later" comes twice: the first is the one that OVS reads.
		if f.word == s.text {
			return Value{Lo: f.value}, Value{Lo: f.mask}, nil
		}
	}
	return v, mask, s.errorf("%q is no fragment type; expected no, yes, first, later or not_later", s.text)
}

// port reads a port: a number, a reserved name, or a name that is known.
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
	if port, ok := reservedPort(name); ok && !quoted {
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

func portNumber(s span, v Value) (uint32, error) {
	switch {
	case v.Hi == 0 && v.Lo <= maxPort:
		return uint32(v.Lo), nil
	case v.Hi == 0 && v.Lo >= 0xfff8 && v.Lo <= 0xffff:
		return portOf16(uint32(v.Lo)), nil
	case v.Hi == 0 && v.Lo >= PortInPort && v.Lo <= PortNone:
		return uint32(v.Lo), nil
	}
	return 0, s.errorf("port %s is out of range; ports are 0 to %d", s.text, maxPort)
}

// firstNamedPort is where ports get numbers that have only names.
const firstNamedPort = 32768

// newPort numbers a port that nobody numbered.
func (p *parser) newPort(s span, name string) (uint32, error) {
	if err := checkName(s, name); err != nil {
		return 0, err
	}
	p.nextPort = max(p.nextPort, firstNamedPort)
	for p.names.Port(p.nextPort) != "" {
		p.nextPort++
	}
	if p.nextPort > maxPort {
		return 0, s.errorf("no number is left for port %q", name)
	}
	p.names.SetPort(p.nextPort, name)
	return p.nextPort, nil
}

// table reads a table: a number or a name that is known. 255 is no table.
func (p *parser) table(s span) (uint8, error) {
	if s.text != "" && s.text[0] >= '0' && s.text[0] <= '9' {
		if v, err := wideNumber(s); err == nil {
			if v.Hi != 0 || v.Lo >= NoTable {
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

// tableStyle is how a program's files name their tables; one way only, since
// numbers that are given out by the first appearance would clash with others.
type tableStyle uint8

const (
	anyStyle tableStyle = iota
	byNumber
	byName
	givenNames // by names given beforehand: numbers are as good
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

// newTable gives a table that is new its number: the next one.
func (p *parser) newTable(s span, name string) (uint8, error) {
	if err := checkName(s, name); err != nil {
		return 0, err
	}
	if err := p.tableStyle(s, byName); err != nil {
		return 0, err
	}
	for p.nextTable < NoTable && p.names.Table(p.nextTable) != "" {
		p.nextTable++
	}
	if p.nextTable == NoTable {
		return 0, s.errorf("no number is left for table %q; a pipeline has up to 255", name)
	}
	p.names.SetTable(p.nextTable, name)
	return p.nextTable, nil
}

// checkName refuses names that the text of a flow entry cannot carry; no
// interface and no table has such a name.
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

// maxName is the longest name of a port or table, as OpenFlow's tables have it.
const maxName = 31

// unquote takes the quotes off a name.
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

// unescape reads a JSON escape at the beginning of s and says how long it is.
// Only what appendName writes is known.
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
