package control

import (
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/policy"
)

// TrafficControlRow is a TrafficControl as `get trafficcontrols` shows it.
type TrafficControlRow struct {
	Status
	Action    string                   `json:"action"` // Mirror or Redirect
	Direction cluster.TrafficDirection `json:"direction"`
	Target    string                   `json:"targetPort"`
	Return    string                   `json:"returnPort,omitempty"` // of a Redirect
	Pods      int                      `json:"pods"`                 // Pods of this Node that it applies to
	Packets   uint64                   `json:"packets"`
	Bytes     uint64                   `json:"bytes"`
}

// TrafficControls returns all TrafficControls, by key.
func (r *Reconciler) TrafficControls(count policy.Counter) []TrafficControlRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := []TrafficControlRow{}
	if r.view == nil {
		return rows
	}
	free := r.view.connected()
	for _, k := range sortedKeys(r.view.TrafficControls) {
		tc := r.view.TrafficControls[k]
		row := TrafficControlRow{Status: r.shown(k), Action: "Mirror", Direction: tc.Direction, Target: tc.TargetPort.String()}
		if tc.Redirect {
			row.Action = "Redirect"
		}
		if tc.ReturnPort != nil {
			row.Return = tc.ReturnPort.String()
		}
		if row.Entries > 0 { // one that waits leaves the Pods to others
			var chosen []*cluster.Pod
			chosen, free = r.view.takeChosen(tc.AppliedTo, free)
			row.Pods = len(chosen)
		}
		row.Packets, row.Bytes = r.count(k, count, "TrafficControl")
		rows = append(rows, row)
	}
	return rows
}
