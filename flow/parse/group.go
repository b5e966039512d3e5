package parse

import (
	"strings"

	"github.com/antrail/antrail/flow"
)

// maxGroup is the largest group number (OpenFlow 1.3, OFPG_MAX).
const maxGroup uint32 = 0xffffff00

// Group reads one group as dump-groups prints it or add-group accepts it. The
// error is a *flow.Error with the column.
func Group(line string, n *flow.Names) (*flow.Group, error) {
	p := &parser{names: n}
	return p.group(span{line, 0})
}

// A group's text is group_id=…,type=… and then bucket=…,bucket=…. A bucket ends
// at the next one or at the end.
func (p *parser) group(line span) (*flow.Group, error) {
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
	g := &flow.Group{}
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
	if err := g.Check(); err != nil {
		return nil, head.trim().errorf("%s", err)
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

func groupHead(g *flow.Group, head span) error {
	hasID, hasType := false, false
	err := each(head, func(it item) (err error) {
		switch it.key.text {
		case "group_id":
			hasID = true
			g.ID, err = number(it.value, maxGroup)
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

func groupType(g *flow.Group, s span) error {
	name := s.text
	if name == "fast_failover" {
		name = "ff"
	}
	for t := flow.GroupAll; t <= flow.GroupFastFailover; t++ {
		if t.String() == name {
			g.Type = t
			return nil
		}
	}
	return s.errorf("unknown group type %q; expected all, select, indirect, ff", s.text)
}

// bucket reads one bucket: settings, then actions with or without actions=.
func (p *parser) bucket(g *flow.Group, s span, index int) (flow.Bucket, error) {
	b := flow.Bucket{ID: uint32(index)}
	if g.Type == flow.GroupSelect {
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

// bucketSetting reads one setting. It returns false for an item that is not one.
func (p *parser) bucketSetting(g *flow.Group, b *flow.Bucket, it item) (known bool, err error) {
	switch it.key.text {
	case "bucket_id":
		b.ID, err = number(it.value, maxGroup)
	case "weight":
		if g.Type != flow.GroupSelect {
			return true, it.key.errorf("only buckets of select groups have a weight")
		}
		err = number16(it, &b.Weight)
	case "watch_port":
		b.WatchPort, err = p.port(it.value)
	case "watch_group":
		err = it.key.errorf("watch_group is not supported by this switch")
	default:
		return false, nil
	}
	return true, err
}

func (p *parser) bucketActions(b *flow.Bucket, s span) error {
	list, err := p.actions(s, 0)
	if err != nil {
		return err
	}
	b.Actions = list.actions
	return list.located(flow.CheckActions(b.Actions))
}
