package program

import (
	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/flow"
)

// forEachBundleAction visits all actions of a bundle.
func forEachBundleAction(b *flow.Bundle, visit func(flow.Action)) {
	for _, e := range b.Add {
		forEachAction(e.Actions, visit)
	}
	for _, g := range b.Groups {
		for _, bucket := range g.Buckets {
			forEachAction(bucket.Actions, visit)
		}
	}
}

// forEachAction visits the actions that a packet may run, those inside clone included. A soft
// entry has none.
func forEachAction(actions []flow.Action, visit func(flow.Action)) {
	if lookup.IsSoft(actions) {
		return
	}
	for _, a := range actions {
		visit(a)
		if c, ok := a.(flow.Clone); ok {
			forEachAction(c.Actions, visit)
		}
	}
}
