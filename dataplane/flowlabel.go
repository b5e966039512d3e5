package dataplane

import (
	"slices"

	"github.com/antrail/antrail/flow"
)

// IPv6's flow label differs from connection to connection, and may differ from packet to
// packet of one: Linux gives each connection one of its own (net.ipv6.auto_flowlabels)
// and another one when a segment had to be sent again. While no entry asks for it, the
// connection cache knows packets without it (signature.go), so that first packets are
// like others but for their ports, and known connections stay known.
//
// That is asked of a program as a whole, once: does an entry match on the label, or does
// an action read or write it? Then it is in signatures. It stays there for the programs
// that come after it, for entries that packets learned stay as well.

// labels says whether what a bundle brings asks for the flow label.
func (b *Bundle) labels() (found bool) {
	b.forEachAction(func(a flow.Action) { found = found || actionLabels(a) })
	return found || slices.ContainsFunc(b.Add, matchLabels)
}

// entryLabels says whether an entry asks for the flow label.
func entryLabels(e *flow.Entry) bool {
	return matchLabels(e) || slices.ContainsFunc(e.Actions, actionLabels)
}

// matchLabels says whether an entry matches on the flow label.
func matchLabels(e *flow.Entry) bool {
	return flow.FieldByID(flow.IPv6Label).Get(&e.Match.Mask) != flow.Value{}
}

// actionLabels says whether an action, but for those inside of it in clone(), reads or
// writes the flow label. Of one that it does not know it says so.
func actionLabels(a flow.Action) bool {
	is := func(fields ...flow.FieldID) bool { return slices.Contains(fields, flow.IPv6Label) }
	switch a := a.(type) {
	case flow.SetField:
		return is(a.Field)
	case flow.Load:
		return is(a.Dst.Field)
	case flow.Move:
		return is(a.Src.Field, a.Dst.Field)
	case flow.OutputReg:
		return is(a.Src.Field)
	case *flow.CT:
		return a.ZoneSrc != nil && is(a.ZoneSrc.Field) || slices.ContainsFunc(a.Exec, actionLabels)
	case *flow.Learn:
		return slices.ContainsFunc(a.Specs, func(s flow.LearnSpec) bool { return is(s.Src.Field, s.Dst.Field) })
	case flow.Output, flow.OutputInPort, flow.Normal, flow.Flood, flow.All, flow.Controller, flow.GotoTable, flow.Resubmit,
		flow.DecTTL, flow.PushVLAN, flow.PopVLAN, flow.CTClear, flow.GroupAction, flow.Conjunction, flow.MeterAction, flow.Clone, flow.Note:
		return false
	}
	return true
}
