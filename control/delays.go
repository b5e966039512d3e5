package control

import (
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
)

// delays measures how long what an object wants takes from its source to the
// switch, part by part: what waits for others or is tried again counts from the
// change that asked for it first.
type delays struct {
	requestedAt map[ledger.Part]time.Time
	observe     func(cluster.Kind, time.Duration) // nil: nobody asks
}

// ObserveDelays has f called for each part of an object that comes to be in the
// switch as it is wanted, or gone, with the time since the source learned of the
// change. The kind is that of the object that has the entries: those of an
// EndpointSlice are a Service's, and addresses of Pods that policies name are
// Peers'. f must not call the Reconciler. It is for changes that UpdateSince brings
// after the call.
func (r *Reconciler) ObserveDelays(f func(cluster.Kind, time.Duration)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delays = delays{requestedAt: map[ledger.Part]time.Time{}, observe: f}
}

// noteWaiting notes since when parts wait that did not before.
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

// forget takes note that a part asks for nothing any more.
func (d *delays) forget(p ledger.Part) { delete(d.requestedAt, p) }

// done takes note that the switch has what a part wants.
func (d *delays) done(p ledger.Part, clock func() time.Time) {
	since, known := d.requestedAt[p]
	if !known {
		return
	}
	delete(d.requestedAt, p)
	d.observe(p.Object.Kind, clock().Sub(since))
}
