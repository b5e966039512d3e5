package tables

import "github.com/antrail/antrail/flow"

// PreRoutingClassifier walks a new connection through the Service tables one
// after the other. Each of them is a call that returns, and the third goes on
// to the rest of the pipeline by itself.
//
// Reads:  nothing.
// Writes: nothing.
// Next:   NodePortMark, SessionAffinity, ServiceLB, by resubmit.

func (p *Pipeline) preRouting(f Family) []*flow.Entry {
	if !hasProxy(p) {
		return nil
	}
	var calls []flow.Action
	if hasProxyAll(p) {
		calls = append(calls, p.resubmit(tableNodePortMark))
	}
	calls = append(calls, p.resubmit(tableSessionAffinity), p.resubmit(tableServiceLB))
	return []*flow.Entry{p.entry(forServices, tablePreRoutingClassifier, priorityNormal, match(f.ip()), calls...)}
}
