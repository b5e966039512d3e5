// Package top is a live screen of an agent's switch: rates of ports, workers, tables, rules,
// connections and drops. It reads the counters over the agent's socket at an interval.
//
//	reading.go  the readings: what top asks the agent for, and how often
//	views.go    from two readings to the rows of a view
//	tell.go     the rows of each
//	rows.go     rows: sorted, filtered, and fitted to a width
//	model.go    the screen: keys, and drawing (bubbletea's model)
//	plain.go    the same as lines of text, without a terminal
//
// A rate is the difference of a counter over the time between its two readings. Only the view's
// data is read, and the ports, whose sums are in the first line.
package top

import (
	"context"
	"net/url"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/control"
)

// Asker answers for a path of the agent's API. *api.Client implements it.
type Asker interface {
	JSON(ctx context.Context, path string, query url.Values, v any) error
}

// Reading is the counters at one moment. Fields that were not read are nil.
type Reading struct {
	At          time.Time
	Ports       []api.PortRecord
	Workers     []api.WorkerRecord
	Tables      []api.Table
	Policies    []control.PolicyRow
	Cookies     []api.CookieRecord // in place of policies, if entries have no objects
	Connections []api.Counter
	Drops       []api.DroppedPacket // the last mostDrops dropped packets
	Reasons     []api.Drop
	// Note says why there is nothing to show.
	Note string
}

// mostDrops is how many of the last dropped packets are shown.
const mostDrops = 200

// Read reads what a view needs. The error says that the agent does not answer.
func Read(ctx context.Context, from Asker, view View, now func() time.Time) (*Reading, error) {
	r := &Reading{}
	if err := from.JSON(ctx, "/ports", nil, &r.Ports); err != nil {
		return nil, err
	}
	r.At = now()
	var err error
	switch view {
	case Workers:
		err = from.JSON(ctx, "/workers", nil, &r.Workers)
	case Tables:
		err = from.JSON(ctx, "/tables", nil, &r.Tables)
	case Rules:
		if err := from.JSON(ctx, "/policies", nil, &r.Policies); err != nil && from.JSON(ctx, "/cookies", nil, &r.Cookies) != nil {
			r.Note = err.Error()
		}
	case Connections:
		err = from.JSON(ctx, "/conntrack/stats", nil, &r.Connections)
	case Drops:
		var last api.DroppedPackets
		err = from.JSON(ctx, "/drops/last", (&api.DropQuery{Last: mostDrops}).Values(), &last)
		r.Drops = last.Packets
	case Reasons:
		err = from.JSON(ctx, "/drops", nil, &r.Reasons)
	}
	return r, err
}
