package support

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Redaction replaces names, MAC addresses and IP addresses in all files. Equal texts have equal
// replacements. First marks take the places, and the replacements come last, so that no
// replacement is replaced again.

// Patterns of addresses in text. Other texts that match stay.
var (
	macText  = regexp.MustCompile(`\b[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}\b`)
	ipv6Text = regexp.MustCompile(`[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?:/\d{1,3})?`)
	ipv4Text = regexp.MustCompile(`\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?`)
	// fourRegisters match an IPv6 address in a dump:
	// reg12=0xfd000010,reg13=0x100000,reg14=0,reg15=0x24.
	fourRegisters = regexp.MustCompile(`reg\d+=(?:0x)?([0-9a-f]{1,8}),reg\d+=(?:0x)?([0-9a-f]{1,8}),reg\d+=(?:0x)?([0-9a-f]{1,8}),reg\d+=(?:0x)?([0-9a-f]{1,8})\b`)
)

// mark is the place of a replacement.
var mark = regexp.MustCompile("\x00(\\d+)\x00")

// redaction is the replacements of one archive.
type redaction struct {
	addresses mapping
	to        []string       // replacements, by number
	numbers   map[string]int // by the replaced text
}

// redact replaces all names of the Node and its pods in all files.
func (c *collection) redact() error {
	r := &redaction{addresses: mapping{make([]byte, 32)}, numbers: map[string]int{}}
	if _, err := rand.Read(r.addresses.key); err != nil {
		return err
	}
	inHex := hexAddresses(c.files)
	hex := r.hexReplacer(inHex)
	whole, parts := r.nameReplacers(namesOf(c.files))
	for i := range c.files {
		text := strings.ReplaceAll(string(c.files[i].text), "\x00", "")
		text = rewrite(text, fourRegisters, func(run string) (string, bool) { return r.registers(run, inHex) })
		text = hex.Replace(text)
		text = rewrite(text, macText, r.mac)
		text = rewrite(text, ipv6Text, r.ip)
		text = rewrite(text, ipv4Text, r.ip)
		text = parts.Replace(text)
		if whole != nil {
			text = whole.ReplaceAllStringFunc(text, func(name string) string { return r.marked(name, "") })
		}
		c.files[i].text = []byte(mark.ReplaceAllStringFunc(text, func(m string) string {
			n, _ := strconv.Atoi(strings.Trim(m, "\x00")) // digits
			return r.to[n]
		}))
	}
	return nil
}

// marked is the mark of a text. A new text gets the replacement to.
func (r *redaction) marked(what, to string) string {
	n, known := r.numbers[what]
	if !known {
		n = len(r.to)
		r.numbers[what], r.to = n, append(r.to, to)
	}
	return fmt.Sprintf("\x00%d\x00", n)
}

// longest orders texts so that a text comes before its parts.
func longest(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }

// hexReplacer replaces addresses in hexadecimal.
func (r *redaction) hexReplacer(all map[string]netip.Addr) *strings.Replacer {
	var pairs []string
	for _, text := range slices.SortedFunc(maps.Keys(all), longest) {
		a := all[text]
		pairs = append(pairs, text, r.marked(text, hexText(r.addresses.addr(a, a.BitLen()))))
	}
	return strings.NewReplacer(pairs...)
}

// shortName is the length of names that may be part of other words.
const shortName = 4

// nameReplacers replace names. whole matches names that may be words, or parts of words; parts
// replaces all others anywhere. whole is nil if there are none.
func (r *redaction) nameReplacers(names *nameSet) (whole *regexp.Regexp, parts *strings.Replacer) {
	var pairs, words []string
	counts := map[string]int{}
	for _, name := range slices.SortedFunc(maps.Keys(names.words), longest) {
		word := names.words[name]
		counts[word]++
		m := r.marked(name, fmt.Sprintf("%s-%d", word, counts[word]))
		if len(name) >= shortName && strings.ContainsAny(name, "-.0123456789") {
			pairs = append(pairs, name, m)
		} else {
			words = append(words, regexp.QuoteMeta(name))
		}
	}
	if words != nil {
		whole = regexp.MustCompile(`\b(?:` + strings.Join(words, "|") + `)\b`)
	}
	return whole, strings.NewReplacer(pairs...)
}

// rewrite replaces the matches of a pattern. If to refuses a match, rewrite searches again from
// its second letter.
func rewrite(text string, pattern *regexp.Regexp, to func(string) (string, bool)) string {
	var b strings.Builder
	for {
		at := pattern.FindStringIndex(text)
		if at == nil {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:at[0]])
		if replaced, ok := to(text[at[0]:at[1]]); ok {
			b.WriteString(replaced)
			text = text[at[1]:]
			continue
		}
		b.WriteByte(text[at[0]])
		text = text[at[0]+1:]
	}
}

// mac replaces a MAC address.
func (r *redaction) mac(text string) (string, bool) {
	a, err := net.ParseMAC(text)
	if err != nil {
		return "", false
	}
	return r.marked(strings.ToLower(text), r.addresses.mac(a).String()), true
}

// ip replaces an address or a prefix. A prefix keeps zeros behind its length; an address with a
// prefix length keeps all bits.
func (r *redaction) ip(text string) (string, bool) {
	host, length, _ := strings.Cut(text, "/")
	a, err := netip.ParseAddr(host)
	if err != nil {
		return "", false
	}
	bits := a.BitLen()
	if n, err := strconv.Atoi(length); err == nil && n <= bits && netip.PrefixFrom(a, n).Masked().Addr() == a {
		bits = n
	}
	to := r.addresses.addr(a, bits).String()
	if length != "" {
		to += "/" + length
	}
	return r.marked(text, to), true
}

// registers replaces a run of four registers if they hold a known address.
func (r *redaction) registers(run string, known map[string]netip.Addr) (string, bool) {
	m := fourRegisters.FindStringSubmatch(run)
	var words [16]byte
	for i, digits := range m[1:] {
		v, err := strconv.ParseUint(digits, 16, 32)
		if err != nil {
			return "", false
		}
		binary.BigEndian.PutUint32(words[4*i:], uint32(v))
	}
	a := netip.AddrFrom16(words)
	if known[hexText(a)] != a {
		return "", false
	}
	to := r.addresses.addr(a, a.BitLen()).As16()
	return r.marked(run, replacedRegisters(run, to)), true
}

// replacedRegisters is a run of registers with other values.
func replacedRegisters(run string, to [16]byte) string {
	names := strings.Split(run, ",")
	for i := range names {
		name, _, _ := strings.Cut(names[i], "=")
		names[i] = fmt.Sprintf("%s=%#x", name, binary.BigEndian.Uint32(to[4*i:]))
	}
	return strings.Join(names, ",")
}

// hexAddresses are the addresses in files as registers have them: 0xa0a0018. Well-known ones stay.
func hexAddresses(files []file) map[string]netip.Addr {
	all := map[string]netip.Addr{}
	for _, f := range files {
		for _, pattern := range []*regexp.Regexp{ipv4Text, ipv6Text} {
			for _, text := range pattern.FindAllString(string(f.text), -1) {
				host, _, _ := strings.Cut(text, "/")
				a, err := netip.ParseAddr(host)
				if err == nil && !slices.ContainsFunc(wellKnown, func(p netip.Prefix) bool { return p.Contains(a) }) {
					all[hexText(a)] = a
				}
			}
		}
	}
	return all
}

func hexText(a netip.Addr) string {
	digits := strings.TrimLeft(fmt.Sprintf("%x", a.AsSlice()), "0")
	return "0x" + digits
}
