package tables

import "github.com/antrail/antrail/flow"

// PreRoutingClassifier sends a new connection through the Service tables one
// after the other. NodePortMark and SessionAffinity return here. ServiceLB
// continues to the rest of the pipeline.
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
