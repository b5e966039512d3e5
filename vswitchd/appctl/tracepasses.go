package appctl

import (
	"slices"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// readPasses reads the steps of a trace. It returns the first pass, which leads to the others.
func (t *tracer) readPasses(tr *telemetry.Trace) *pass {
	first := t.newPass(&tr.Start)
	t.frames = []frame{{node: &first.node, pass: first, root: true}}
	for i := range tr.Steps {
		st := &tr.Steps[i]
		t.endFrames(st)
		t.readStep(st)
		if p := t.top().pass; st.Kind != telemetry.StepCT || t.resume == nil {
			p.before, p.key = p.key, st.After
		}
	}
	for len(t.frames) > 1 && !t.top().root {
		t.popFrame()
	}
	return first
}

// passStates are the states that the ct() actions of the walk must return. The first passes in the
// order of printing then begin with the wanted states, and the others with a new connection.
func (t *tracer) passStates(first *pass, wanted []conntrack.State) []conntrack.State {
	all := slices.Repeat([]conntrack.State{conntrack.Tracked | conntrack.New}, t.answers)
	for i, p := range inOrder(first)[1:] {
		if p.given = i < len(wanted); p.given {
			all[p.answer] = wanted[i]
		}
	}
	return all
}

// endFrames ends the frames to which a step does not belong. When a bucket of an "all" group ends,
// it begins the next bucket.
func (t *tracer) endFrames(st *telemetry.Step) {
	for len(t.frames) > 1 && t.frameEnds(t.top(), st) {
		if f := t.popFrame(); f.group != nil && f.bucket+1 < len(f.group.Buckets) && f.group.Type == flow.GroupAll {
			t.enterBucket(f.group, f.bucket+1, f.depth)
		}
	}
}

// popFrame ends the innermost frame.
func (t *tracer) popFrame() frame {
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

// frameEnds reports whether a frame ends before a step.
func (t *tracer) frameEnds(f *frame, st *telemetry.Step) bool {
	if st.Depth < f.depth {
		return true
	}
	return f.apart && f.left == 0 && st.Depth == f.depth && st.Kind == telemetry.StepAction
}

func (t *tracer) readStep(st *telemetry.Step) {
	f := t.top()
	switch st.Kind {
	case telemetry.StepEntry:
		t.enterTable(st)
	case telemetry.StepAction:
		t.showAction(st)
	case telemetry.StepBucket:
		t.enterBucket(st.Group, st.Bucket, st.Depth)
	case telemetry.StepCT:
		t.beginCT(st)
	case telemetry.StepLearn:
		f.node.addLine(nodeWarning, "suppressing side effects, so learn action ignored")
	case telemetry.StepOutput:
		f.pass.addOutput(st, t.names)
	case telemetry.StepPacketIn:
		if a, ok := st.Action.(flow.Controller); ok {
			f.pass.addPacketIn(a, t.cookie())
		}
	case telemetry.StepWait:
		f.node.addLine(nodeWarning, "waits for the rest of its datagram: only that can be tracked")
	case telemetry.StepDrop:
		t.showDrop(st)
	}
}

// cookie is the cookie of the entry whose actions run.
func (t *tracer) cookie() uint64 {
	for i := len(t.frames) - 1; i >= 0; i-- {
		if e := t.frames[i].entry; e != nil {
			return e.Cookie
		}
	}
	return 0
}
