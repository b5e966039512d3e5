package parse

import (
	"strings"

	"github.com/antrail/antrail/flow"
)

// Filter reads the conditions that ovs-ofctl dump-flows accepts: a match, table=,
// cookie=VALUE/MASK, out_port= and out_group=. It also accepts priority=. The error is a
// *flow.Error with the column.
func Filter(text string, n *flow.Names) (*flow.Filter, error) {
	p, f := &parser{names: n}, &flow.Filter{}
	var items []matchItem
	given := map[string]bool{}
	if err := checkLength(span{text, 0}); err != nil {
		return nil, err
	}
	err := each(span{text, 0}, func(it item) error {
		name := it.key.text
		read := filterParts[name]
		switch {
		case name == "actions" || name == "action":
			return it.key.errorf("a filter has no actions; out_port= and out_group= choose entries by theirs")
		case read == nil && entrySettings[name] != nil:
			return it.key.errorf("a filter takes no %s; it takes a match, table, priority, cookie, out_port and out_group", name)
		case read == nil:
			items = append(items, staged(it))
			return nil
		case given[name]:
			return it.key.errorf("%s is given twice", name)
		case it.sep != '=':
			return it.key.errorf("expected %s=VALUE", name)
		}
		given[name] = true
		return read(p, f, it)
	})
	if err != nil {
		return nil, err
	}
	return f, p.readMatch(&f.Match, items)
}

// filterParts reads the conditions beside a match.
var filterParts = map[string]func(*parser, *flow.Filter, item) error{
	"table": func(p *parser, f *flow.Filter, it item) error {
		id, err := p.table(it.value)
		f.Table = &id
		return err
	},
	"priority": func(_ *parser, f *flow.Filter, it item) error {
		f.Priority = new(uint16)
		return number16(it, f.Priority)
	},
	"cookie": filterCookie,
	"out_port": func(p *parser, f *flow.Filter, it item) error {
		port, err := p.port(it.value)
		f.OutPort = &port
		return err
	},
	"out_group": func(_ *parser, f *flow.Filter, it item) error {
		id, err := number[uint32](it.value, 1<<32-1)
		f.OutGroup = &id
		return err
	},
}

// filterCookie reads a cookie. Without a mask, every bit counts; -1 as a mask is all bits.
func filterCookie(_ *parser, f *flow.Filter, it item) (err error) {
	value, mask, masked := it.value.cut("/")
	f.CookieMask = 1<<64 - 1
	if masked && strings.TrimSpace(mask.text) != "-1" {
		if f.CookieMask, err = number[uint64](mask, 1<<64-1); err != nil {
			return err
		}
	}
	f.Cookie, err = number[uint64](value, 1<<64-1)
	if err == nil && f.Cookie&^f.CookieMask != 0 {
		return it.value.errorf("the value has bits that the mask has not")
	}
	return err
}
