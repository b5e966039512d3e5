package flow

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// The reading side of form.go. Error columns count from the beginning of the value.

// errorAt is an error i bytes behind the beginning.
func errorAt(i int, format string, args ...any) error {
	return &Error{Column: i + 1, Msg: fmt.Sprintf(format, args...)}
}

// behind moves an error n bytes to the right.
func behind(n int, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.Column += n
	}
	return err
}

// ParseNumber reads an unsigned number of up to 128 bits. It is decimal, or 0x and
// hexadecimal; a decimal number has up to 64 bits. The error is an *Error.
func ParseNumber(s string) (Value, error) {
	digits, hex := strings.CutPrefix(s, "0x")
	if !hex {
		digits, hex = strings.CutPrefix(s, "0X")
	}
	if !hex {
		if len(digits) > 1 && digits[0] == '0' {
			return Value{}, errorAt(0, "%q: a number cannot begin with 0 (write 0x for hexadecimal)", s)
		}
		v, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return Value{}, errorAt(0, "expected a number, not %q", s)
		}
		return Value{Lo: v}, nil
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" && len(s) > 2 {
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
		return Value{}, errorAt(0, "expected a number of up to 128 bits, not %q", s)
	}
	return v, nil
}

// ParseValue reads a value of the field, with a mask behind / where the form allows one. Without
// one, the mask is the whole field. Bits of the value outside the mask stay: the caller clears or
// refuses them. The error is an *Error.
func (f *Field) ParseValue(s string) (v, mask Value, err error) {
	switch f.Form {
	case CTStateBits, TCPFlagBits, TunnelFlagBits:
		return flagValue(f, s)
	case FragmentBits:
		return fragmentValue(s)
	}
	mask = Ones(f.Bits)
	text, maskText, hasMask := strings.Cut(s, "/")
	if hasMask && !f.Maskable && !f.fixedMask(maskText) {
		return v, mask, errorAt(len(text)+1, "%s takes no mask", f.Name)
	}
	if v, err = f.ParseExact(text); err != nil || !hasMask {
		return v, mask, err
	}
	mask, err = maskValue(f, maskText)
	return v, mask, behind(len(text)+1, err)
}

// fixedMask reports whether text is the mask that OVS prints for a load of a whole field that
// does not fill its bytes (nw_ecn=1/0x3).
func (f *Field) fixedMask(text string) bool {
	return f.Bits%8 != 0 && text == string(appendHex(nil, Ones(f.Bits)))
}

// ParseExact reads a value of the field without a mask: an address in its own form, any
// other value as a number. The error is an *Error.
func (f *Field) ParseExact(s string) (v Value, err error) {
	switch f.Form {
	case MACAddress:
		return macValue(s)
	case IPv4Address, IPv6Address:
		return addrValue(f, s)
	}
	if v, err = ParseNumber(s); err != nil {
		return v, err
	}
	if v.And(Ones(f.Bits)) != v {
		return v, errorAt(0, "%s is too large for %s, which has %d bits", s, f.Name, f.Bits)
	}
	return v, nil
}

// maskValue reads the mask of a number or an address.
func maskValue(f *Field, s string) (Value, error) {
	switch f.Form {
	case MACAddress:
		return macValue(s)
	case IPv4Address, IPv6Address:
		if strings.ContainsAny(s, ".:") {
			return addrValue(f, s)
		}
		n, err := ParseNumber(s)
		if err == nil && (n.Hi != 0 || n.Lo > uint64(f.Bits)) {
			err = errorAt(0, "%s is too large; the largest is %d", s, f.Bits)
		}
		if err != nil {
			return Value{}, err
		}
		return Ones(int(n.Lo)).Shl(f.Bits - int(n.Lo)), nil
	}
	mask, err := ParseNumber(s)
	if err == nil && mask.And(Ones(f.Bits)) != mask {
		err = errorAt(0, "mask %s is too large for %s, which has %d bits", s, f.Name, f.Bits)
	}
	return mask, err
}

func macValue(s string) (Value, error) {
	mac, err := net.ParseMAC(s)
	if err != nil || len(mac) != 6 || !strings.Contains(s, ":") {
		return Value{}, errorAt(0, "expected a MAC address such as 0a:00:00:00:00:01, not %q", s)
	}
	return ValueOfMAC(mac), nil
}

func addrValue(f *Field, s string) (Value, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.BitLen() != f.Bits || a.Zone() != "" {
		want := "IPv4 address such as 10.0.0.1"
		if f.Bits == 128 {
			want = "IPv6 address such as fd00::1"
		}
		return Value{}, errorAt(0, "expected an %s, not %q", want, s)
	}
	return ValueOfAddr(a), nil
}

// flagValue reads +new-est, new|trk, or numbers 0x21/0x21.
func flagValue(f *Field, s string) (v, mask Value, err error) {
	words := flagWords[f.Form]
	switch {
	case s == "":
		return v, mask, errorAt(0, "%s needs a value such as +%s", f.Name, words[0])
	case s[0] == '+' || s[0] == '-':
		return signedFlags(f, s)
	case s[0] >= '0' && s[0] <= '9':
		return numericFlags(f, s)
	}
	for at, more := 0, true; more; {
		var word string
		word, _, more = strings.Cut(s[at:], "|")
		bit, err := flagBit(f, word)
		if err != nil {
			return v, mask, behind(at, err)
		}
		v = v.Or(bit)
		at += len(word) + 1
	}
	return v, f.allFlags().And(Ones(f.Bits)), nil
}

// allFlags has a bit for each flag that exists.
func (f *Field) allFlags() Value { return Ones(len(flagWords[f.Form])) }

func signedFlags(f *Field, s string) (v, mask Value, err error) {
	for at := 0; at < len(s); {
		set := s[at] == '+'
		at++
		word := s[at:]
		if end := strings.IndexAny(word, "+-"); end >= 0 {
			word = word[:end]
		}
		bit, err := flagBit(f, word)
		if err != nil {
			return v, mask, behind(at, err)
		}
		if !mask.And(bit).IsZero() {
			return v, mask, errorAt(at, "%s is given twice", word)
		}
		mask = mask.Or(bit)
		if set {
			v = v.Or(bit)
		}
		at += len(word)
	}
	return v, mask, nil
}

// numericFlags reads flags as a number. It refuses bits without a flag.
func numericFlags(f *Field, s string) (v, mask Value, err error) {
	all := f.allFlags()
	text, maskText, hasMask := strings.Cut(s, "/")
	if v, err = ParseNumber(text); err != nil {
		return v, all, err
	}
	mask = all
	if hasMask {
		if mask, err = ParseNumber(maskText); err != nil {
			return v, mask, behind(len(text)+1, err)
		}
	}
	if !v.Or(mask).AndNot(all).IsZero() {
		return v, mask, errorAt(0, "%s has bits that no %s flag has; the flags are %s", s, f.Name, strings.Join(flagWords[f.Form], " "))
	}
	return v, mask, nil
}

func flagBit(f *Field, word string) (Value, error) {
	words := flagWords[f.Form]
	if i := slices.Index(words, word); i >= 0 {
		return Value{Lo: 1 << i}, nil
	}
	return Value{}, errorAt(0, "%q is no %s flag; expected %s", word, f.Name, strings.Join(words, " "))
}

func fragmentValue(s string) (v, mask Value, err error) {
	for _, f := range fragments {
		// "later" comes twice: the first is the one that OVS reads.
		if f.word == s {
			return Value{Lo: f.value}, Value{Lo: f.mask}, nil
		}
	}
	return v, mask, errorAt(0, "%q is no fragment type; expected no, yes, first, later or not_later", s)
}
