package api

import (
	"context"

	"github.com/antrail/antrail/diagram"
	"github.com/antrail/antrail/trace"
)

// Map requests the pipeline as a map, with its counters.
func (c *Client) Map(ctx context.Context) (*diagram.Map, error) {
	var m diagram.Map
	return &m, c.JSON(ctx, "/pipeline", nil, &m)
}

// HopsOf converts a walk to hops between tables, for the map. dropped says whether it ended in
// a drop.
func HopsOf(w *trace.Walk) (hops []diagram.Hop, dropped bool) {
	from := -1 // the table whose action came last
	for i := range w.Steps {
		s := &w.Steps[i]
		if s.Kind == trace.StepEntry {
			if from < 0 {
				from = int(s.TableID)
			}
			hops = append(hops, diagram.Hop{From: uint8(from), To: s.TableID})
		}
		from = int(s.TableID)
	}
	return hops, w.Verdict.Reason != ""
}
