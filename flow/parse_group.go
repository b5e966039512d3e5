package flow

import "strings"

// maxGroup is the largest group number (OpenFlow 1.3, OFPG_MAX).
const maxGroup = 0xffffff00

// ParseGroup reads one group as dump-groups prints it or add-group takes it.
// The error is an *Error with the column.
func ParseGroup(line string, n *Names) (*Group, error) {
	p := &parser{names: n}
	return p.group(span{line, 0})
}

// A group's text is group_id=…,type=… and then bucket=…,bucket=…; a bucket goes
// on to the next one or to the end.
func (p *parser) group(line span) (*Group, error) {
	if err := checkLength(line); err != nil {
		return nil, err
	}
	head, buckets := line, []span(nil)
	for rest, first := line, true; ; first = false {
		part, more, ok := cutBucket(rest)
		if first {
			head = part
		} else {
			buckets = append(buckets, part)
		}
		if !ok {
			break
		}
		rest = more
	}
	g := &Group{}
	if err := groupHead(g, head); err != nil {
		return nil, err
	}
	for i, s := range buckets {
		b, err := p.bucket(g, s, i)
		if err != nil {
			return nil, err
		}
		g.Buckets = append(g.Buckets, b)
	}
	if err := checkGroup(g, head); err != nil {
		return nil, err
	}
	return g, nil
}

// cutBucket cuts before the next bucket=.
func cutBucket(s span) (part, rest span, ok bool) {
	for i := 0; ; {
		j := strings.Index(s.text[i:], "bucket=")
		if j < 0 {
			return s, s, false
		}
		i += j
		if i == 0 || isSeparator(s.text[i-1]) {
			return s.upTo(i), s.from(i + len("bucket=")), true
		}
		i += len("bucket=")
	}
}

func groupHead(g *Group, head span) error {
	hasID, hasType := false, false
	err := each(head, func(it item) error {
		switch it.key.text {
		case "group_id":
			hasID = true
			n, err := number(it.value, maxGroup)
			g.ID = uint32(n)
			return err
		case "type":
			hasType = true
			return groupType(g, it.value)
		case "selection_method", "selection_method_param", "fields":
			return it.key.errorf("%s is not supported by this switch; select groups hash the connection", it.key.text)
		}
		return it.key.errorf("unknown group property %q; expected group_id, type or bucket", it.key.text)
	})
	switch {
	case err != nil:
		return err
	case !hasID:
		return head.trim().errorf("expected group_id=…")
	case !hasType:
		return head.trim().errorf("expected type=all, select, indirect or ff")
	}
	return nil
}

func groupType(g *Group, s span) error {
	name := s.text
	if name == "fast_failover" {
		name = "ff"
	}
	for i, n := range groupTypeNames {
		if n == name {
			g.Type = GroupType(i)
			return nil
		}
	}
	return s.errorf("unknown group type %q; expected %s", s.text, strings.Join(groupTypeNames[:], ", "))
}

// bucket reads one bucket: settings, then actions with or without actions=.
func (p *parser) bucket(g *Group, s span, index int) (Bucket, error) {
	b := Bucket{ID: uint32(index)}
	if g.Type == GroupSelect {
		b.Weight = 1
	}
	rest := s
	for {
		before := rest
		it, ok, err := next(&rest)
		if err != nil {
			return b, err
		}
		if !ok {
			return b, s.trim().errorf("expected actions in the bucket; drop is one")
		}
		if isActions(it) {
			return b, p.bucketActions(&b, s.from(it.value.at-s.at))
		}
		if known, err := p.bucketSetting(g, &b, it); err != nil {
			return b, err
		} else if !known {
			return b, p.bucketActions(&b, before)
		}
	}
}

// bucketSetting reads one setting, if it is one.
func (p *parser) bucketSetting(g *Group, b *Bucket, it item) (known bool, err error) {
	var n uint64
	switch it.key.text {
	case "bucket_id":
		n, err = number(it.value, maxGroup)
		b.ID = uint32(n)
	case "weight":
		if g.Type != GroupSelect {
			return true, it.key.errorf("only buckets of select groups have a weight")
		}
		n, err = number(it.value, 65535)
		b.Weight = uint16(n)
	case "watch_port":
		b.WatchPort, err = p.port(it.value)
	case "watch_group":
		err = it.key.errorf("watch_group is not supported by this switch")
	default:
		return false, nil
	}
	return true, err
}

func (p *parser) bucketActions(b *Bucket, s span) error {
	list, err := p.actions(s, 0)
	if err != nil {
		return err
	}
	b.Actions = list.actions
	if c := checkActions(b.Actions, nil, noTableKnown); c != nil {
		return list.at[c.action].errorf("%s", c.msg)
	}
	return nil
}

func checkGroup(g *Group, head span) error {
	if g.Type == GroupIndirect && len(g.Buckets) != 1 {
		return head.trim().errorf("an indirect group has exactly one bucket")
	}
	seen := make(map[uint32]bool)
	for _, b := range g.Buckets {
		if seen[b.ID] {
			return head.trim().errorf("bucket_id %d is given twice", b.ID)
		}
		if g.Type == GroupFastFailover && b.WatchPort == 0 {
			return head.trim().errorf("buckets of a fast-failover group need watch_port")
		}
		seen[b.ID] = true
	}
	return nil
}
