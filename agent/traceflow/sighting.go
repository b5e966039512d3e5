package traceflow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
)

// One live trace waits for the packets of all Traceflows. When they change, the next trace
// begins before the last one ends. It filters by addresses and ports only, so that the kernel
// keeps other offloaded connections (package dataplane). Packets without a tag are skipped
// here.

// expression selects a Traceflow's packet, apart from the tag.
func (n *run) expression() string {
	p := chosen(n.of)
	_, text := protocol(&p)
	text += " and src host " + n.ends.Src.String()
	if hasPorts(&p) {
		text += fmt.Sprintf(" and src port %d", p.SrcPort)
	}
	return "(" + text + ")"
}

// rewatch watches for the packets of all active Traceflows. While there are any, it removes
// none: walks of the others would be lost.
func (r *Runner) rewatch(ctx context.Context) error {
	var all []string
	for _, k := range slices.SortedFunc(maps.Keys(r.runs), cluster.Key.Compare) {
		if n := r.runs[k]; n.active {
			all = append(all, n.expression())
		}
	}
	covered := !slices.ContainsFunc(all, func(text string) bool { return !slices.Contains(r.watch.filters, text) })
	if covered && (len(all) > 0 || len(r.watch.filters) == 0) {
		return nil
	}
	next := &watch{filters: all, end: func() {}}
	if len(all) > 0 {
		l, err := r.sw.TraceLive(&door.LiveRequest{Filters: []string{strings.Join(all, " or ")}})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		next.end = func() { cancel(); l.Close() }
		go r.runWatch(ctx, l, next)
	}
	time.AfterFunc(linger, r.watch.end)
	r.watch = next
	return nil
}

// linger is how long a live trace overlaps with the next one, so that no walk is lost.
const linger = time.Second

// runWatch sends walks of packets with a tag to the Runner until ctx ends.
func (r *Runner) runWatch(ctx context.Context, l door.Live, by *watch) {
	s := sighting{by: by}
	for s.err == nil {
		s.walk, s.err = l.Next(ctx)
		if s.err == nil && tagOf(s.walk) == 0 {
			continue
		}
		select {
		case r.seen <- s:
		case <-ctx.Done():
			return
		}
	}
}

// tagOf is the DSCP that a packet came with.
func tagOf(t *telemetry.Trace) uint8 { return uint8(flow.FieldByID(flow.IPDSCP).Get(&t.Start).Lo) }

// take handles what a watch saw.
func (r *Runner) take(s *sighting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.err != nil {
		if s.by == r.watch {
			r.Log.Warn("packets of Traceflows are no longer watched; starting again", "error", s.err)
			r.watch.end()
			r.watch = &watch{end: func() {}}
		}
		return
	}
	for _, n := range r.runs {
		if n.active && n.tag == tagOf(s.walk) && r.isOf(s.walk, n) {
			n.take(r, s.walk)
		}
	}
}

// isOf says whether a packet with a Traceflow's tag belongs to it. From inspection it may come
// back with other addresses.
func (r *Runner) isOf(t *telemetry.Trace, n *run) bool {
	src, _ := ends(&t.Start)
	return src == n.ends.Src || n.parts != nil
}

// take handles a walk. Two live traces may report the same one.
func (n *run) take(r *Runner, t *telemetry.Trace) {
	if n.result != nil || n.seenAt.Equal(t.Live.Time) {
		return
	}
	n.seenAt = t.Live.Time
	sender := n.parts == nil && t.Live.Port == n.ends.Port && n.ends.Port != 0
	seen := r.observe(t, sender, n.parts != nil)
	n.parts, n.note = append(n.parts, seen.all...), seen.note
	if !seen.further {
		n.result = &cluster.TraceflowResult{Node: r.Node, Timestamp: r.Clock().Unix(), Observations: n.parts}
	}
}
