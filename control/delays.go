package control

import (
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
)

// delays measures the time of each part from its source to the switch. A part that waits or is
// tried again counts from the change that asked for it first.
type delays struct {
	requestedAt map[ledger.Part]time.Time
	observe     func(cluster.Kind, time.Duration) // nil: do not measure
}

// ObserveDelays makes the Reconciler call f for each part that is installed or removed, with the
// time since the source learned of the change. The kind is that of the object with the entries:
// Service for an EndpointSlice, Peers for addresses of Pods that policies name. f must not call
// the Reconciler. Only changes of later calls of UpdateSince count.
func (r *Reconciler) ObserveDelays(f func(cluster.Kind, time.Duration)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delays = delays{requestedAt: map[ledger.Part]time.Time{}, observe: f}
}

// noteWaiting records the time of the change for parts that begin to wait.
func (d *delays) noteWaiting(waiting map[ledger.Part]*ledger.Desired, since time.Time) {
	if d.observe == nil || since.IsZero() {
		return
	}
	for p := range waiting {
		if _, known := d.requestedAt[p]; !known {
			d.requestedAt[p] = since
		}
	}
}

// done reports the delay of a part that the switch has now.
func (d *delays) done(p ledger.Part, clock func() time.Time) {
	since, known := d.requestedAt[p]
	if !known {
		return
	}
	delete(d.requestedAt, p)
	d.observe(p.Object.Kind, clock().Sub(since))
}
