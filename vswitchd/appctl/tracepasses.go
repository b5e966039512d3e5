package appctl

import (
	"slices"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// passes reads the steps of a trace. The first pass leads to the others.
func (t *tracer) passes(tr *telemetry.Trace) *pass {
	first := t.newPass(&tr.Start)
	t.frames = []frame{{node: &first.node, pass: first, root: true}}
	for i := range tr.Steps {
		st := &tr.Steps[i]
		t.leave(st)
		t.step(st)
		if p := t.top().pass; st.Kind != telemetry.StepCT || t.resume == nil {
			p.before, p.key = p.key, st.After
		}
	}
	for len(t.frames) > 1 && !t.top().root {
		t.end()
	}
	return first
}

// states are what the ct() actions of the walk are to answer, so that the passes begin with the
// wanted states, in their order. Any other pass begins with a new connection.
func (t *tracer) states(first *pass, wanted []conntrack.State) []conntrack.State {
	all := slices.Repeat([]conntrack.State{conntrack.Tracked | conntrack.New}, t.answers)
	for i, p := range inOrder(first)[1:] {
		if p.given = i < len(wanted); p.given {
			all[p.answer] = wanted[i]
		}
	}
	return all
}

// leave ends the frames that a step does not belong to. The last step of a pass shows the packet
// of the pass to which the walk returns.
func (t *tracer) leave(st *telemetry.Step) {
	for len(t.frames) > 1 && t.over(t.top(), st) {
		if f := t.end(); f.group != nil && f.bucket+1 < len(f.group.Buckets) && f.group.Type == flow.GroupAll {
			t.enterBucket(f.group, f.bucket+1, f.depth)
		}
	}
}

// end ends the innermost frame.
func (t *tracer) end() frame {
	f := *t.top()
	t.frames = t.frames[:len(t.frames)-1]
	switch {
	case f.root:
		t.top().pass.key = f.pass.key
		f.pass.key = f.pass.before
	case f.apart:
		f.pass.key = f.saved
	}
	return f
}

// over reports whether a frame ends before a step.
func (t *tracer) over(f *frame, st *telemetry.Step) bool {
	if st.Depth < f.depth {
		return true
	}
	return f.apart && f.left == 0 && st.Depth == f.depth && st.Kind == telemetry.StepAction
}

func (t *tracer) step(st *telemetry.Step) {
	f := t.top()
	switch st.Kind {
	case telemetry.StepEntry:
		t.enterTable(st)
	case telemetry.StepAction:
		t.action(st)
	case telemetry.StepBucket:
		t.enterBucket(st.Group, st.Bucket, st.Depth)
	case telemetry.StepCT:
		t.track(st)
	case telemetry.StepLearn:
		f.node.add(nodeWarning, "suppressing side effects, so learn action ignored")
	case telemetry.StepOutput:
		f.pass.output(st, t.names)
	case telemetry.StepPacketIn:
		if a, ok := st.Action.(flow.Controller); ok {
			f.pass.packetIn(a, t.cookie())
		}
	case telemetry.StepWait:
		f.node.add(nodeWarning, "waits for the rest of its datagram: only that can be tracked")
	case telemetry.StepDrop:
		t.drop(st)
	}
}

// cookie is that of the entry whose actions run.
func (t *tracer) cookie() uint64 {
	for i := len(t.frames) - 1; i >= 0; i-- {
		if e := t.frames[i].entry; e != nil {
			return e.Cookie
		}
	}
	return 0
}
