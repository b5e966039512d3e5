package parse

import (
	"net/netip"
	"strings"

	"github.com/antrail/antrail/flow"
)

// ct(…) and the nat(…) inside it.

func (l *actionList) ct(it item) (flow.Action, error) {
	if it.sep != '(' && it.sep != 0 {
		return nil, it.key.errorf("expected ct(…)")
	}
	a := &flow.CT{Table: flow.NoTable}
	if err := each(it.value, func(o item) error { return l.ctOption(a, o) }); err != nil {
		return nil, err
	}
	switch {
	case a.Force && !a.Commit:
		return nil, it.key.errorf("ct(force) needs commit")
	case !a.Commit && len(a.Exec) > 0:
		return nil, it.key.errorf("ct(exec(…)) needs commit")
	case !a.Commit && a.NAT != nil && a.NAT.Type != flow.NATRestore:
		return nil, it.key.errorf("ct(nat(…)) with src or dst needs commit")
	}
	return a, nil
}

func (l *actionList) ctOption(a *flow.CT, o item) (err error) {
	switch o.key.text {
	case "commit":
		a.Commit, err = true, o.bare()
	case "force":
		a.Force, err = true, o.bare()
	case "table":
		a.Table, err = l.p.table(o.value)
	case "zone":
		err = ctZone(a, o.value)
	case "nat":
		a.NAT, err = nat(o)
	case "exec":
		err = l.ctExec(a, o)
	case "alg":
		a.ALG, err = oneOf(o.value, []string{"ftp", "tftp"})
	default:
		err = o.key.errorf("unknown ct option %q; expected commit, force, table, zone, nat, exec or alg", o.key.text)
	}
	return err
}

// ctZone reads a number, or 16 bits of a field.
func ctZone(a *flow.CT, s span) error {
	if s.text != "" && s.text[0] >= '0' && s.text[0] <= '9' {
		zone, err := number[uint16](s, 65535)
		a.Zone, a.ZoneSrc = zone, nil
		return err
	}
	src, err := subfield(s)
	if err == nil && src.N != 16 {
		err = s.errorf("a zone has 16 bits, %s has %d", s.text, src.N)
	}
	a.Zone, a.ZoneSrc = 0, &src
	return err
}

// ctExec reads actions on ct_mark and ct_label, the only ones allowed.
func (l *actionList) ctExec(a *flow.CT, o item) error {
	if o.sep != '(' {
		return o.key.errorf("expected exec(ACTIONS)")
	}
	inner, err := l.p.actions(o.value, l.depth+1)
	if err != nil {
		return err
	}
	for i, x := range inner.actions {
		if f, ok := written(x); !ok || f != flow.CTMark && f != flow.CTLabel {
			return inner.at[i].errorf("exec(…) can only set ct_mark and ct_label")
		}
	}
	a.Exec = inner.actions
	return nil
}

// written is the field that an action writes.
func written(a flow.Action) (flow.FieldID, bool) {
	switch a := a.(type) {
	case flow.SetField:
		return a.Field, true
	case flow.Load:
		return a.Dst.Field, true
	case flow.Move:
		return a.Dst.Field, true
	}
	return flow.FieldNone, false
}

func (l *actionList) strayNAT(it item) (flow.Action, error) {
	return nil, it.key.errorf("nat stands inside ct(…)")
}

func nat(o item) (*flow.NAT, error) {
	if o.sep != '(' && o.sep != 0 {
		return nil, o.key.errorf("expected nat or nat(…)")
	}
	a := &flow.NAT{}
	if err := each(o.value, func(x item) error { return natOption(a, x) }); err != nil {
		return nil, err
	}
	switch {
	case a.Hash && a.Random:
		return nil, o.key.errorf("nat takes hash or random, not both")
	case (a.Hash || a.Random || a.Persistent) && a.Type == flow.NATRestore:
		return nil, o.key.errorf("nat with hash, random or persistent needs src or dst")
	case (a.Hash || a.Random || a.Persistent) && !a.AddrMin.IsValid():
		return nil, o.key.errorf("nat with hash, random or persistent needs an address")
	}
	return a, nil
}

func natOption(a *flow.NAT, x item) (err error) {
	switch x.key.text {
	case "src", "dst":
		if a.Type != flow.NATRestore {
			return x.key.errorf("nat takes one of src and dst, once")
		}
		a.Type = flow.NATSource
		if x.key.text == "dst" {
			a.Type = flow.NATDestination
		}
		if x.sep != 0 {
			err = natRange(a, x.value)
		}
	case "persistent":
		a.Persistent, err = true, x.bare()
	case "hash":
		a.Hash, err = true, x.bare()
	case "random":
		a.Random, err = true, x.bare()
	default:
		err = x.key.errorf("unknown nat option %q; expected src, dst, persistent, hash or random", x.key.text)
	}
	return err
}

// natRange reads ADDR[-ADDR][:PORT[-PORT]]. IPv6 addresses are in brackets if
// ports follow.
func natRange(a *flow.NAT, s span) error {
	addrs, ports, hasPorts := splitPorts(s)
	minText, maxText := splitAddrs(addrs)
	var err error
	if a.AddrMin, err = natAddr(minText); err != nil {
		return err
	}
	a.AddrMax = a.AddrMin
	if maxText.text != "" {
		if a.AddrMax, err = natAddr(maxText); err != nil {
			return err
		}
	}
	if a.AddrMin.BitLen() != a.AddrMax.BitLen() || a.AddrMax.Less(a.AddrMin) {
		return maxText.errorf("%s is not an address after %s", a.AddrMax, a.AddrMin)
	}
	if hasPorts {
		return natPorts(a, ports)
	}
	return nil
}

// splitPorts cuts at the colon that is outside an IPv6 address.
func splitPorts(s span) (addrs, ports span, ok bool) {
	i := strings.LastIndex(s.text, "]:") + 1
	if i == 0 && strings.Count(s.text, ":") == 1 {
		i = strings.Index(s.text, ":")
	}
	if i <= 0 {
		return s, s.from(len(s.text)), false
	}
	return s.upTo(i), s.from(i + 1), true
}

func splitAddrs(s span) (first, last span) {
	first, last, _ = s.cut("-")
	return first, last
}

func natAddr(s span) (netip.Addr, error) {
	text := s.text
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		text = text[1 : len(text)-1]
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" || a.Is4() != (text == s.text && !strings.Contains(text, ":")) {
		return a, s.errorf("expected an IP address, not %q", s.text)
	}
	return a, nil
}

func natPorts(a *flow.NAT, s span) error {
	minText, maxText, isRange := s.cut("-")
	lo, err := number[uint16](minText, 65535)
	if err != nil {
		return err
	}
	hi := lo
	if isRange {
		if hi, err = number[uint16](maxText, 65535); err != nil {
			return err
		}
	}
	if lo == 0 || hi < lo {
		return s.errorf("expected a port, or two with the lower one first, not %q", s.text)
	}
	a.PortMin, a.PortMax = lo, hi
	return nil
}
