package filter

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/bpf"
)

// The grammar, as in pcap-filter(7). "and" and "or" have equal precedence, from left to right;
// "not" binds tighter. A value without qualifiers has those of the value before: "src port 80
// or 443".
//
//	expression  = term { ("and" | "or") term }
//	term        = "not" term | "(" expression ")" | access | [words] value | name

// maxDepth bounds the nesting of parentheses and negations.
const maxDepth = 100

// parser reads an expression.
type parser struct {
	text  string
	words []word
	depth int
	shift uint32 // 4 for each "vlan" so far
	deep  bool
	last  *words // of the last value
}

// words are the qualifiers of a value.
type words struct {
	proto string // ether, ip, ip6, arp, rarp, tcp, udp, sctp
	dir   direction
	kind  string // host, net, port, portrange, proto
}

// refusal is an error on its way out of the parser.
type refusal struct{ err *Error }

// parse parses an expression.
func parse(text string) (n node, deep bool, err error) {
	if len(text) > maxText {
		return nil, false, &Error{text[:40] + "…", maxText, fmt.Sprintf("the expression is too long, want %d bytes at most", maxText)}
	}
	p := &parser{text: text, words: scan(text)}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case refusal:
			n, err = nil, r.err
		default:
			panic(r)
		}
	}()
	if len(p.words) == 0 {
		return always, false, nil
	}
	n = p.expression()
	if len(p.words) > 0 {
		p.refuse("expected and, or, or the end, not %q", p.words[0].text)
	}
	return n, p.deep, nil
}

// refuse ends parsing at the next word.
func (p *parser) refuse(format string, args ...any) {
	column := len(p.text) + 1
	if len(p.words) > 0 {
		column = p.words[0].column
	}
	panic(refusal{&Error{p.text, column, fmt.Sprintf(format, args...)}})
}

// peek is the next word, "" at the end.
func (p *parser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0].text
}

// next takes the next word.
func (p *parser) next() string {
	w := p.peek()
	if w != "" {
		p.words = p.words[1:]
	}
	return w
}

// accept takes the next word if it is one of some, and says which.
func (p *parser) accept(some ...string) string {
	if w := p.peek(); w != "" && slices.Contains(some, w) {
		return p.next()
	}
	return ""
}

// expect takes a word that has to be there.
func (p *parser) expect(w string) {
	if p.accept(w) == "" {
		p.refuse("expected %q", w)
	}
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.refuse("more than %d parentheses and negations within one another", maxDepth)
	}
}

func (p *parser) expression() node { return p.chain(p.term) }

// chain is terms with "and" and "or" between them.
func (p *parser) chain(term func() node) node {
	n := term()
	for {
		switch p.accept("and", "&&", "or", "||") {
		case "and", "&&":
			n = and(n, term())
		case "or", "||":
			n = or(n, term())
		default:
			return n
		}
	}
}

func (p *parser) term() node {
	p.enter()
	defer func() { p.depth-- }()
	switch {
	case p.accept("not", "!") != "":
		return not(p.term())
	case p.accept("(") != "":
		n := p.expression()
		p.expect(")")
		return n
	case p.peek() == "":
		p.refuse("expected an expression")
	}
	if len(p.words) > 1 && p.words[1].text == "[" {
		return p.access()
	}
	if n := p.name(); n != nil {
		return n
	}
	return p.primitive()
}

// name parses a word that is a test itself, or begins one; nil for other words.
func (p *parser) name() node {
	switch p.accept("icmp", "icmp6", "igmp", "vlan", "less", "greater", "broadcast", "multicast") {
	case "icmp":
		return ipProto(protoICMP, p.shift)
	case "icmp6":
		return ip6Proto(protoICMPv6, p.shift)
	case "igmp":
		return ipProto(protoIGMP, p.shift)
	case "vlan":
		return p.vlan()
	case "less":
		return p.length(bpf.JumpLessOrEqual)
	case "greater":
		return p.length(bpf.JumpGreaterOrEqual)
	case "broadcast":
		return p.group(&words{proto: "ether", kind: "broadcast"})
	case "multicast":
		return p.group(&words{proto: "ether", kind: "multicast"})
	}
	return nil
}

func (p *parser) vlan() node {
	id := -1
	if w := p.peek(); w != "" && w[0] >= '0' && w[0] <= '9' {
		id = int(p.number(0xfff))
	}
	n := vlanTag(id, p.shift)
	p.shift += 4
	return n
}

func (p *parser) length(cond bpf.JumpTest) node {
	p.deep = true
	return test(cond, p.number(1<<32-1), bpf.LoadExtension{Num: bpf.ExtLen})
}

// primitive parses qualifiers and a value, or qualifiers alone that name a protocol.
func (p *parser) primitive() node {
	w, said := p.qualifiers()
	if said == 0 {
		if w = p.last; w == nil {
			w = &words{kind: "host"}
		}
	} else if w.kind == "" && w.dir == either && !p.valueFollows() {
		return p.protocol(w.proto)
	}
	if p.accept("(") != "" {
		n := p.values(w)
		p.expect(")")
		return n
	}
	return p.value(w)
}

// values parses values in parentheses, with the same qualifiers.
func (p *parser) values(w *words) node {
	var term func() node
	term = func() node {
		p.enter()
		defer func() { p.depth-- }()
		switch {
		case p.accept("not", "!") != "":
			return not(term())
		case p.accept("(") != "":
			n := p.chain(term)
			p.expect(")")
			return n
		}
		return p.value(w)
	}
	return p.chain(term)
}

// qualifiers parses the qualifiers of a value, and counts them.
func (p *parser) qualifiers() (w *words, said int) {
	w = &words{}
	before := len(p.words)
	w.proto = p.accept("ether", "ip", "ip6", "arp", "rarp", "tcp", "udp", "sctp")
	if w.proto != "" {
		if kind := p.accept("broadcast", "multicast"); kind != "" {
			w.kind = kind
			return w, before - len(p.words)
		}
	}
	w.dir = p.direction()
	w.kind = p.accept("host", "net", "port", "portrange", "proto")
	return w, before - len(p.words)
}

func (p *parser) direction() direction {
	d := direction(p.accept("src", "dst"))
	if d == either || len(p.words) < 2 {
		return d
	}
	other := map[direction]string{src: "dst", dst: "src"}[d]
	if by := p.peek(); (by == "and" || by == "or") && p.words[1].text == other {
		p.words = p.words[2:]
		if by == "and" {
			return both
		}
		return either
	}
	return d
}

// valueFollows says whether the next word can be a value or a list of them.
func (p *parser) valueFollows() bool {
	w := p.peek()
	return w != "" && !slices.Contains([]string{")", "and", "&&", "or", "||"}, w)
}

// protocol matches frames of a protocol.
func (p *parser) protocol(name string) node {
	switch name {
	case "tcp", "udp", "sctp":
		return bothProto(protocols[name], p.shift)
	case "ether":
		p.refuse("expected host, src, dst, proto, broadcast or multicast behind ether")
	}
	return etherType(etherTypes[name], p.shift)
}

// value parses the value of qualifiers.
func (p *parser) value(w *words) node {
	p.last = w
	switch w.kind {
	case "broadcast", "multicast":
		return p.group(w)
	case "port", "portrange":
		return p.ports(w)
	case "proto":
		return p.protoNumber(w)
	}
	if w.proto == "ether" {
		if w.kind == "net" {
			p.refuse("there is no ether net")
		}
		mac, err := net.ParseMAC(p.peek())
		if err != nil || len(mac) != 6 {
			p.refuse("expected an Ethernet address such as 02:00:00:00:00:01, not %q", p.peek())
		}
		p.next()
		return etherHost(w.dir, [6]byte(mac))
	}
	return p.address(w)
}

// group matches broadcasts and multicasts.
func (p *parser) group(w *words) node {
	switch {
	case w.proto == "ether" && w.kind == "broadcast":
		return etherHost(dst, [6]byte{255, 255, 255, 255, 255, 255})
	case w.proto == "ether":
		return test(bpf.JumpBitsSet, 1, byteAt(0))
	case w.proto == "ip" && w.kind == "multicast":
		return and(etherType(typeIPv4, p.shift), test(bpf.JumpGreaterOrEqual, 224, byteAt(30+p.shift)))
	case w.proto == "ip6" && w.kind == "multicast":
		return and(etherType(typeIPv6, p.shift), test(bpf.JumpEqual, 255, byteAt(38+p.shift)))
	}
	p.refuse("there is no %s %s here", w.proto, w.kind)
	return nil
}

func (p *parser) ports(w *words) node {
	protos := []uint32{protoTCP, protoUDP, protoSCTP}
	switch w.proto {
	case "":
	case "tcp", "udp", "sctp":
		protos = []uint32{protocols[w.proto]}
	default:
		p.refuse("%s has no ports; tcp, udp and sctp have", w.proto)
	}
	from, to, isRange := strings.Cut(p.peek(), "-")
	if !isRange || w.kind == "port" {
		from, to = p.peek(), p.peek()
	}
	low, err := strconv.ParseUint(from, 10, 16)
	high, err2 := strconv.ParseUint(to, 10, 16)
	if err != nil || err2 != nil {
		p.refuse("expected a port from 0 to 65535%s, not %q; names are not looked up",
			map[bool]string{true: ", or two with - between them"}[w.kind == "portrange"], p.peek())
	}
	p.next()
	return portNumbers(protos, w.dir, uint32(min(low, high)), uint32(max(low, high)), p.shift)
}

// protoNumber parses a protocol by number or name.
func (p *parser) protoNumber(w *words) node {
	if w.dir != either {
		p.refuse("proto has no direction")
	}
	name := strings.TrimPrefix(p.peek(), `\`)
	names, most := protocols, uint32(0xff)
	if w.proto == "ether" {
		names, most = etherTypes, 0xffff
	}
	n, ok := names[name]
	if ok {
		p.next()
	} else {
		n = p.number(most)
	}
	switch w.proto {
	case "":
		return bothProto(n, p.shift)
	case "ether":
		return etherType(n, p.shift)
	case "ip":
		return ipProto(n, p.shift)
	case "ip6":
		return ip6Proto(n, p.shift)
	}
	p.refuse("expected proto behind ether, ip or ip6, not behind %s", w.proto)
	return nil
}

// number parses a number, decimal or with 0x.
func (p *parser) number(most uint32) uint32 {
	n, err := strconv.ParseUint(p.peek(), 0, 32)
	if err != nil || uint32(n) > most {
		p.refuse("expected a number up to %d, not %q", most, p.peek())
	}
	p.next()
	return uint32(n)
}

// address matches packets of a host or a network.
func (p *parser) address(w *words) node {
	switch w.proto {
	case "tcp", "udp", "sctp":
		p.refuse("expected port or portrange behind %s", w.proto)
	}
	text := p.peek()
	prefix, ok := parseNetwork(text)
	if w.kind != "net" {
		a, err := netip.ParseAddr(text)
		ok = err == nil && a.Zone() == ""
		prefix = netip.PrefixFrom(a, a.BitLen())
	}
	switch {
	case !ok && w.kind == "net":
		p.refuse("expected a network such as 10.10.0.0/24, not %q; names are not looked up", text)
	case !ok:
		p.refuse("expected an address, not %q; names are not looked up", text)
	case prefix.Addr().Is6() && (w.proto == "ip" || w.proto == "arp" || w.proto == "rarp"):
		p.refuse("%s has no IPv6 addresses", w.proto)
	case prefix.Addr().Is4() && w.proto == "ip6":
		p.refuse("ip6 has no IPv4 addresses")
	}
	p.next()
	return network(w.proto, w.dir, prefix, p.shift)
}

// parseNetwork parses a prefix, an address, or the first bytes of an IPv4 network: 10.10 is
// 10.10.0.0/16.
func parseNetwork(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p, true
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	bytes := strings.Count(text, ".") + 1
	if text == "" || bytes > 3 {
		return netip.Prefix{}, false
	}
	a, err := netip.ParseAddr(text + strings.Repeat(".0", 4-bytes))
	return netip.PrefixFrom(a, 8*bytes), err == nil
}
