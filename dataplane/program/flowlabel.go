package program

import (
	"slices"

	"github.com/antrail/antrail/flow"
)

// IPv6's flow label differs between connections and may differ between packets of one. Linux
// gives each connection a label (net.ipv6.auto_flowlabels), and a new one after it resends a
// segment. While no entry reads the label, the flow cache leaves it out of its keys. Then first
// packets differ only in their ports, and a new label does not make a known connection unknown.
//
// Once an entry matches on the label, or an action reads or writes it, the keys include it. Later
// programs keep it, because learned entries remain too.

// usesFlowLabel reports whether a bundle reads the flow label.
func usesFlowLabel(b *flow.Bundle) (found bool) {
	forEachBundleAction(b, func(a flow.Action) { found = found || actionLabels(a) })
	return found || slices.ContainsFunc(b.Add, matchLabels)
}

// EntryUsesFlowLabel reports whether an entry reads the flow label.
func EntryUsesFlowLabel(e *flow.Entry) bool {
	return matchLabels(e) || slices.ContainsFunc(e.Actions, actionLabels)
}

// matchLabels reports whether an entry matches on the flow label.
func matchLabels(e *flow.Entry) bool {
	_, mask := e.Match.Get(flow.IPv6Label)
	return !mask.IsZero()
}

// actionLabels reports whether an action reads or writes the flow label. It leaves out actions
// inside clone(), and returns true for an action that it does not know.
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
