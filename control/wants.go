package control

import (
	"fmt"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
)

// wants collects what changes while the objects of a new snapshot are looked
// at: each part that was looked at, and what is to be said of its object. It
// is how the builders (pods.go, serviceentries.go, policies.go …) speak to the
// reconciler.
type wants struct {
	parts map[ledger.Part]*ledger.Desired // nil: the part goes
	notes map[cluster.Key]note            // the last word on objects that were looked at
	order []ledger.Part
}

// note is what a builder says of an object besides its entries.
type note struct {
	state  ledger.State
	reason string
}

func newWants() *wants {
	return &wants{parts: map[ledger.Part]*ledger.Desired{}, notes: map[cluster.Key]note{}}
}

// want says what a part wants now; nil takes it away.
func (w *wants) want(p ledger.Part, d *ledger.Desired) {
	if _, seen := w.parts[p]; !seen {
		w.order = append(w.order, p)
	}
	w.parts[p] = d
}

// fine says that nothing keeps an object from being installed.
func (w *wants) fine(k cluster.Key) { w.notes[k] = note{state: ledger.Installed} }

// ignore says that an object has nothing in the switch, and why that is right.
func (w *wants) ignore(k cluster.Key, why string) { w.notes[k] = note{ledger.Installed, why} }

// hold says what an object is waiting for.
func (w *wants) hold(k cluster.Key, format string, args ...any) {
	w.notes[k] = note{ledger.Pending, fmt.Sprintf(format, args...)}
}

// refuse says why an object is not taken.
func (w *wants) refuse(k cluster.Key, format string, args ...any) {
	w.notes[k] = note{ledger.Refused, fmt.Sprintf(format, args...)}
}
