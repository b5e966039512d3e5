package top

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Plain prints a view as lines: a line of sums and a table for each interval, forever if times
// is 0. The first comes after one interval, because a rate needs two readings. Plain returns
// nil if ctx ends, and an error if the agent does not answer.
func Plain(ctx context.Context, o Options, times int, w io.Writer) error {
	was, err := Read(ctx, o.From, o.View, o.Now)
	if err != nil {
		return err
	}
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for n := 0; times == 0 || n < times; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := Read(ctx, o.From, o.View, o.Now)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if err := writePlain(w, o.View, newRates(was, now)); err != nil {
			return err
		}
		was = now
	}
	return nil
}

// writePlain writes one table.
func writePlain(w io.Writer, view View, r *rates) error {
	columns, rows := views[view].columns, views[view].rows(r)
	by := sortedBy[view]
	sortRows(rows, by, columns[by].kind, false)
	fmt.Fprintf(w, "%s  %s\n", r.now.At.Format(time.RFC3339), classCounters(r))
	if r.now.Note != "" {
		fmt.Fprintln(w, r.now.Note)
	}
	heads := header(columns, -1, false)
	wide := widths(columns, heads, rows, 0)
	fmt.Fprintln(w, line(columns, heads, wide, 0))
	for _, x := range rows {
		fmt.Fprintln(w, line(columns, x.texts(), wide, 0))
	}
	_, err := fmt.Fprintln(w)
	return err
}
