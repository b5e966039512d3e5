package traceflow

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
)

// beat is how often an active Traceflow is checked if nothing else happens.
const beat = 100 * time.Millisecond

// Run runs Traceflows until ctx ends.
func (r *Runner) Run(ctx context.Context) {
	defer r.stop()
	for ctx.Err() == nil {
		changed := r.Changed()
		var again <-chan time.Time
		if r.turn(ctx) {
			again = time.After(beat)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-again:
		case s := <-r.seen:
			r.take(&s)
		}
	}
}

// stop ends all watches, and removes the entries.
func (r *Runner) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.runs)
	r.watch.end()
	r.Objects.SetTraceflows(nil) // the next agent would do it, too
}

// turn checks all Traceflows, and says whether any is active.
func (r *Runner) turn(ctx context.Context) (busy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.Objects.Traceflows()
	there := map[cluster.Key]bool{}
	for _, t := range all {
		there[t.Key] = true
		r.runOf(t)
	}
	maps.DeleteFunc(r.runs, func(k cluster.Key, _ *run) bool { return !there[k] })
	for _, t := range all {
		busy = r.step(ctx, r.runs[t.Key]) || busy
	}
	err := r.rewatch(ctx)
	if err == nil {
		err = r.Objects.SetTraceflows(r.tags())
	}
	if err != nil {
		r.tellFault(err)
		return true
	}
	r.fault = ""
	for _, t := range all {
		r.inject(ctx, r.runs[t.Key])
	}
	r.tellRefused(ctx)
	return busy
}

// runOf returns the run of a Traceflow. An edited or replaced object gets a new run.
func (r *Runner) runOf(t *cluster.Traceflow) {
	n := r.runs[t.Key]
	if n != nil && (n.of == t || r.API != nil && n.of.UID == t.UID) {
		n.of = t
		return
	}
	r.runs[t.Key] = &run{of: t, since: r.Clock()}
}

// tags are the active Traceflows, by name.
func (r *Runner) tags() (all []control.TracedTag) {
	for _, k := range slices.SortedFunc(maps.Keys(r.runs), cluster.Key.Compare) {
		n := r.runs[k]
		if n.active && !slices.ContainsFunc(all, func(t control.TracedTag) bool { return t.Tag == n.tag }) {
			all = append(all, control.TracedTag{Traceflow: k, Tag: n.tag})
		}
	}
	return all
}

// tellFault logs once why packets of Traceflows are not sent. Until their time is over, the
// Runner tries again.
func (r *Runner) tellFault(err error) {
	if r.fault != err.Error() {
		r.fault = err.Error()
		r.Log.Warn("packets of Traceflows cannot be sent yet", "error", err)
	}
}

// tellRefused writes why Traceflows were refused, for their users. One Node does it for all.
func (r *Runner) tellRefused(ctx context.Context) {
	if r.API == nil || r.Refused == nil || r.Objects.FirstNode() != r.Node {
		return
	}
	now := r.Refused()
	for k, why := range now {
		if r.refusals[k] == why {
			continue
		}
		t := &cluster.Traceflow{Meta: cluster.Meta{Key: k}}
		if err := r.API.WriteTraceflow(ctx, t, &cluster.TraceflowStatus{Phase: cluster.TraceflowFailed, Reason: why}); err != nil && ctx.Err() == nil {
			r.Log.Warn("the status of a Traceflow cannot be written", "object", k.String(), "error", err)
		}
	}
	r.refusals = now
}
