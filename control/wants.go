package control

import (
	"fmt"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
)

// wants collects the results of the builders (pods.go, serviceentries.go …) for a new snapshot. For
// each object that changed, it has the parts and the state.
type wants struct {
	parts map[ledger.Part]*ledger.Desired // nil: remove the part
	notes map[cluster.Key]note            // the last state of each object
	order []ledger.Part
}

// note is the state of an object.
type note struct {
	state  ledger.State
	reason string
}

// want sets what a part wants; nil removes the part.
func (w *wants) want(p ledger.Part, d *ledger.Desired) {
	if _, seen := w.parts[p]; !seen {
		w.order = append(w.order, p)
	}
	w.parts[p] = d
}

// fine reports that an object can be installed.
func (w *wants) fine(k cluster.Key) { w.notes[k] = note{state: ledger.Installed} }

// ignore reports that an object rightly has nothing in the switch, with the reason.
func (w *wants) ignore(k cluster.Key, why string) { w.notes[k] = note{ledger.Installed, why} }

// hold reports that an object waits, with the reason.
func (w *wants) hold(k cluster.Key, format string, args ...any) {
	w.notes[k] = note{ledger.Pending, fmt.Sprintf(format, args...)}
}

// refuse reports that an object is refused, with the reason.
func (w *wants) refuse(k cluster.Key, format string, args ...any) {
	w.notes[k] = note{ledger.Refused, fmt.Sprintf(format, args...)}
}
