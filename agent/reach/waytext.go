package reach

import (
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/switchd/local"
)

// teller reads one walk.
type teller struct {
	*asking
	t      *telemetry.Trace
	chosen *telemetry.Step // the choice of a bucket; nil for none
}

// way tells where the packet went, and which entry decided.
func (r teller) way() api.WhyWay {
	w := api.WhyWay{What: r.what(), Endpoint: r.bucket(), Decisions: []api.WhyDecision{}}
	if st := r.deciding(); st != nil {
		w.Entry = &api.WhyEntry{Table: pipeline.TableName(r.t.Names, st.Table), Entry: *r.walker.Entry(r.t.Names, st)}
		w.Met = r.p.Met(st.Entry)
	}
	v := &r.t.Verdict
	open, advice := r.unknownMAC()
	switch {
	case open != "":
		w.Open, w.Advice = open, advice
	case len(v.Outputs) > 0:
		r.leaves(&w)
	case v.PacketIn && !v.Answered:
		w.Open, w.Advice = "the controller gets it, and decides the rest", "antrail trace --live shows what the controller does with such a packet"
	default:
		w.Denied, w.Advice = r.denial(&w)
	}
	return w
}

// what names the traffic: tcp 80 from 10.0.0.1 to 10.0.0.2.
func (r teller) what() string {
	name := strings.ToLower(packetin.ProtocolNames[r.proto])
	if r.to.l4 != 0 {
		name = fmt.Sprintf("%s %d", name, r.to.l4)
	}
	return fmt.Sprintf("%s from %s to %s", name, r.text(&r.from), r.text(&r.to))
}

// bucket is the bucket that was chosen, with the endpoint that it writes.
func (r teller) bucket() string {
	if r.chosen == nil {
		return ""
	}
	b := &r.chosen.Group.Buckets[r.chosen.Bucket]
	text := fmt.Sprintf("bucket %d of group %d", b.ID, r.chosen.Group.ID)
	if a, ok := local.EndpointOf(b); ok {
		text = fmt.Sprintf("%s (%s)", a, text)
	}
	return text
}

// deciding is the step with the entry that ended the walk: it sent the packet, or it was the last one.
// Nil if the last table has no entry for the packet.
func (r teller) deciding() *telemetry.Step {
	last := len(r.t.Steps) - 1
	at := func(s *telemetry.Step) bool { return true }
	if i := slices.IndexFunc(r.t.Steps, func(s telemetry.Step) bool { return s.Kind == telemetry.StepOutput && !s.Dropped }); i >= 0 {
		last = i
		sent := &r.t.Steps[i]
		at = func(s *telemetry.Step) bool { return s.Table == sent.Table && s.Depth == sent.Depth }
	}
	for i := last; i >= 0; i-- {
		if s := &r.t.Steps[i]; s.Kind == telemetry.StepEntry && at(s) {
			if s.Entry == nil {
				return nil
			}
			return s
		}
	}
	return nil
}

// leaves says by which ports the packet leaves.
func (r teller) leaves(w *api.WhyWay) {
	var ports []string
	for i := range r.t.Steps {
		s := &r.t.Steps[i]
		switch {
		case s.Kind != telemetry.StepOutput || s.Dropped:
		case s.Tunnel.Dst.IsValid():
			w.Ends = append(w.Ends, fmt.Sprintf("it leaves by %s to %s through the tunnel", r.senders.name(s.Port), s.Tunnel.Dst))
			w.Open, w.Advice = "the switch at the other end of the tunnel decides the rest", "ask that switch, too: antrail why --socket SOCKET"
		default:
			ports = append(ports, r.senders.name(s.Port))
		}
	}
	here := r.senders.name(r.to.port)
	switch {
	case len(ports) == 0:
	case r.to.port != 0 && slices.Contains(ports, here):
		w.Ends, w.Open, w.Advice = []string{"it leaves by " + here}, "", ""
	case r.floods():
		w.Ends = append(w.Ends, "NORMAL sends it to the port that has learned the MAC address of "+r.to.addr.String()+"; without one, it leaves by "+strings.Join(ports, ", "))
	default:
		w.Ends = append(w.Ends, "it leaves by "+strings.Join(ports, ", "))
		if r.to.port != 0 {
			w.Open, w.Advice = fmt.Sprintf("%s is at %s, so what is behind %s decides the rest", r.to.addr, here, strings.Join(ports, ", ")), ""
		}
	}
}

// floods says whether NORMAL floods the packet for want of a MAC address.
func (r teller) floods() bool {
	return !r.to.hasMAC && slices.ContainsFunc(r.t.Steps, func(s telemetry.Step) bool {
		_, normal := s.Action.(flow.Normal)
		return normal && flow.FieldByID(flow.EthDst).Get(&s.After) == r.to.mac
	})
}

// denial says why the packet was dropped, and what to do.
func (r teller) denial(w *api.WhyWay) (why, advice string) {
	v := &r.t.Verdict
	if v.Reason == telemetry.NotDropped {
		return fmt.Sprintf("%s goes no further: %s", w.What, v.Text(r.t.Names)), ""
	}
	if !v.Reason.InTable() {
		return fmt.Sprintf("%s is dropped before the first table (%s): %s", w.What, v.Reason, v.Reason.Sentence()), ""
	}
	table := pipeline.TableName(r.t.Names, v.Table)
	why = fmt.Sprintf("%s ends in table %s (%s): %s", w.What, table, v.Reason, v.Reason.Sentence())
	if w.Entry != nil && w.Entry.Cookie != "" {
		return why, fmt.Sprintf("antrail explain %s lists all entries with this cookie; their controller knows what it stands for", w.Entry.Cookie)
	}
	return why, fmt.Sprintf("antrail dump-flows %s has what that table lets pass", table)
}

// unknownMAC says which table depends on an unknown MAC address, and what to do; "" if none
// does.
func (r teller) unknownMAC() (open, advice string) {
	for _, e := range []struct {
		*end
		field flow.FieldID
	}{{&r.from, flow.EthSrc}, {&r.to, flow.EthDst}} {
		if e.hasMAC {
			continue
		}
		if f := r.dependsOn(e.field, e.mac); f != nil {
			return fmt.Sprintf("table %s asks for the MAC address of %s (priority=%d,%s), which nothing here tells",
				pipeline.TableName(r.t.Names, f.Table), e.addr, f.Priority, f.Match.Text(r.t.Names)), fmt.Sprintf("say it: %s,MAC", e.addr)
		}
	}
	return "", ""
}

// dependsOn is an entry that would match differently with another value of a field; nil for
// none. A walk that has written the field no longer depends on its placeholder.
func (r teller) dependsOn(id flow.FieldID, placeholder flow.Value) *flow.Entry {
	field, before := flow.FieldByID(id), &r.t.Start
	for i := range r.t.Steps {
		st := &r.t.Steps[i]
		if st.Kind == telemetry.StepEntry && field.Get(before) == placeholder {
			for _, f := range r.senders.flows[st.Table] {
				if (st.Entry == nil || f.Priority >= st.Entry.Priority) && asksFor(f.Entry, field, before) {
					return f.Entry
				}
			}
		}
		before = &st.After
	}
	return nil
}

// groupBit is the bit of a MAC address that is set for groups. No end has one.
var groupBit = flow.Value{Lo: 1 << 40}

// asksFor says whether an entry matches a packet with some values of a field, but not with all.
func asksFor(e *flow.Entry, field *flow.Field, k *flow.Key) bool {
	value, mask := e.Match.Get(field.ID)
	if mask.AndNot(groupBit).IsZero() || !value.And(groupBit).IsZero() {
		return false
	}
	m := e.Match.Expand()
	field.Put(&m.Mask, flow.Value{}, flow.Ones(field.Bits))
	field.Put(&m.Value, flow.Value{}, flow.Ones(field.Bits))
	return m.Matches(k)
}
