package traceflow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// A Traceflow's phases. The agent of the source Pod's Node owns it:
//
//	(none) → Running: it checks both ends, and chooses a tag
//	Running: all Nodes watch; the owner sends the packet; each that sees it adds its result
//	Succeeded: somebody saw where the packet's way begins, and where it ends
//	Failed: an end is not there, or the time is over
//
// A status is written for the state of the object that it was decided on. If the object is
// another by then, the writer waits for that, and decides again.

const (
	// settling is how long an end may be missing: its object may come a little later.
	settling = 3 * time.Second
	// nearDelay and farDelay pass before the packet is sent, so that all Nodes watch.
	nearDelay = 100 * time.Millisecond
	farDelay  = 2 * time.Second
	// grace is how much longer others wait for the owner.
	grace = 5 * time.Second
	// rewrite is how long a written status may take to come back.
	rewrite = 2 * time.Second
)

// step advances a Traceflow, and says whether it is active.
func (r *Runner) step(ctx context.Context, n *run) bool {
	if n.written != "" && n.written == n.of.Version && r.Clock().Sub(n.at) < rewrite {
		return true
	}
	switch s := r.status(n); s.Phase {
	case "", "Pending":
		r.begin(ctx, n)
	case cluster.TraceflowRunning:
		r.follow(ctx, n, s)
	default:
		n.active = false
		return false
	}
	return true
}

// begin checks a new Traceflow and gives it a tag.
func (r *Runner) begin(ctx context.Context, n *run) {
	n.active = false
	waited := r.Clock().Sub(n.since)
	ends, err := r.Objects.TracedEnds(n.of)
	owner := r.API == nil || ends.Node == r.Node || ends.Node == "" && r.Objects.FirstNode() == r.Node
	switch {
	case err != nil && (owner && waited >= settling || waited >= n.of.Timeout+grace):
		r.fail(ctx, n, fmt.Sprintf("Node %s: %v", r.Node, err))
	case err != nil:
	case owner:
		if tag := r.freeTag(n.of); tag != 0 {
			now := r.Clock().UTC().Truncate(time.Second)
			n.claimed = tag
			r.set(ctx, n, cluster.TraceflowStatus{Phase: cluster.TraceflowRunning, StartTime: &now, Tag: tag})
		}
	case waited >= n.of.Timeout+grace:
		r.fail(ctx, n, fmt.Sprintf("Node %s, where the source Pod is, did not begin", ends.Node))
	}
}

// freeTag is a tag that no other active Traceflow has; 0 if it has to wait. Without an API, all
// Nodes must choose the same tag. They use the place of the name among the others.
func (r *Runner) freeTag(t *cluster.Traceflow) uint8 {
	const all = (tables.LastTag-tables.FirstTag)/tables.TagStep + 1
	taken, first := map[uint8]bool{}, hashOf(t)
	if r.API == nil {
		first = 0
	}
	for k, n := range r.runs {
		switch s := r.status(n); {
		case k == t.Key:
		case s.Phase == cluster.TraceflowRunning:
			taken[s.Tag] = true
		case s.Phase == "" && n.written != "" && n.written == n.of.Version:
			taken[n.claimed] = true
		}
		if r.API == nil && k.Compare(t.Key) < 0 {
			first++
		}
	}
	for i := range uint32(all) {
		tag := uint8(tables.FirstTag + tables.TagStep*((first+i)%all))
		if !taken[tag] {
			return tag
		}
		if r.API == nil {
			break
		}
	}
	return 0
}

// follow watches an active Traceflow, and writes its results.
func (r *Runner) follow(ctx context.Context, n *run, s cluster.TraceflowStatus) {
	if n.tag != s.Tag {
		n.active, n.tag, n.begun, n.sent, n.parts, n.result, n.note = false, s.Tag, r.Clock(), false, nil, nil, ""
	}
	if err := r.activate(n); err != nil {
		r.fail(ctx, n, fmt.Sprintf("Node %s: %v", r.Node, err))
		return
	}
	mine := n.ends.Node == r.Node
	added := n.result != nil && !r.told(&s)
	if added {
		s.Results = append(slices.Clone(s.Results), *n.result)
		if n.note != "" {
			s.Reason = n.note
		}
	}
	waited := r.Clock().Sub(n.begun)
	switch {
	case r.complete(&s, mine):
		s.Phase, s.Tag = cluster.TraceflowSucceeded, 0
		r.set(ctx, n, s)
	case added:
		r.set(ctx, n, s)
	case r.API == nil && !mine && waited >= n.of.Timeout:
		s.Phase, s.Tag, s.Reason = cluster.TraceflowSucceeded, 0, "its packet did not come to this Node"
		r.set(ctx, n, s)
	case mine && waited >= n.of.Timeout, waited >= n.of.Timeout+grace:
		r.fail(ctx, n, timeout(n))
	}
}

// timeout is the reason of a Traceflow that timed out, in Antrea's words, with the note.
func timeout(n *run) string {
	if n.note != "" {
		return "Traceflow timeout: " + n.note
	}
	return "Traceflow timeout"
}

// told says whether a status has this Node's result.
func (r *Runner) told(s *cluster.TraceflowStatus) bool {
	return slices.ContainsFunc(s.Results, func(x cluster.TraceflowResult) bool { return x.Node == r.Node })
}

// activate makes a Traceflow active here. It tries again if an end is unknown.
func (r *Runner) activate(n *run) error {
	if n.active {
		return nil
	}
	if n.tag < tables.FirstTag || n.tag > tables.LastTag || (n.tag-tables.FirstTag)%tables.TagStep != 0 {
		return fmt.Errorf("%d is not a Traceflow's tag; want one of %d, %d to %d", n.tag, tables.FirstTag, tables.FirstTag+tables.TagStep, tables.LastTag)
	}
	var err error
	n.ends, err = r.Objects.TracedEnds(n.of)
	n.active = err == nil
	return nil
}

// complete says whether both ends of the packet's way were seen. Without an API, a Node sees
// only its own part.
func (r *Runner) complete(s *cluster.TraceflowStatus, mine bool) bool {
	first, last := false, false
	for _, result := range s.Results {
		for _, o := range result.Observations {
			first = first || o.Component == spoofGuard
			last = last || o.Action.Ends()
		}
	}
	if r.API == nil {
		return len(s.Results) > 0 && (first || !mine)
	}
	return first && last
}

// inject sends the packet of this Node's Traceflow once all Nodes watch.
func (r *Runner) inject(ctx context.Context, n *run) {
	s := r.status(n)
	if !n.active || n.sent || n.ends.Port == 0 || s.Phase != cluster.TraceflowRunning || r.told(&s) {
		return
	}
	delay := farDelay
	if n.ends.Near {
		delay = nearDelay
	}
	if r.Clock().Sub(n.begun) < delay {
		return
	}
	n.sent = true
	if r.shared(n) {
		r.set(ctx, n, cluster.TraceflowStatus{})
		return
	}
	frame, err := frameOf(n.of, n.tag, &n.ends)
	if err == nil {
		err = r.send(n.ends.Port, frame)
	}
	if err != nil {
		r.fail(ctx, n, fmt.Sprintf("Node %s: the packet is not sent: %v", r.Node, err))
	}
}

// shared says whether another active Traceflow has the same tag, because two owners chose it at
// the same time. The first by name keeps it.
func (r *Runner) shared(n *run) bool {
	for _, other := range r.runs {
		if s := r.status(other); s.Phase == cluster.TraceflowRunning && s.Tag == n.tag && other.of.Key.Compare(n.of.Key) < 0 {
			return true
		}
	}
	return false
}

// send sends a frame as if the Pod at a port sent it.
func (r *Runner) send(port uint32, frame []byte) error {
	name := tables.TableNames()[0]
	first, known := r.sw.Names().TableID(name)
	if !known {
		return fmt.Errorf("the switch has no table %s", name)
	}
	return r.sw.PacketOut(port, []flow.Action{flow.Resubmit{InPort: flow.PortInPort, Table: first}}, frame)
}
