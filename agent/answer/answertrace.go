package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/agent/reach"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/trace"
)

// Answers about one packet or one object: a made-up packet's walk, the objects behind an entry,
// and whether one end reaches another (package pipeline).

// answerTrace answers POST /trace.
func (p *Answers) answerTrace(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query())
	var req api.TraceRequest
	if err == nil {
		err = json.NewDecoder(io.LimitReader(r.Body, pipeline.MaxTraceRequest)).Decode(&req)
	}
	var t *telemetry.Trace
	if err == nil {
		t, err = p.Trace(&req)
	}
	if q.explain && !q.json && !p.HasOrigins() {
		err = pipeline.ErrNoObjects
	}
	var walk *trace.Walk
	if err == nil {
		walk, err = (&pipeline.Walker{Pipeline: p.Pipeline, Text: true}).Walk(t)
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case q.json:
		a := p.traceAnswer(t, walk.Text)
		walk.Text = "" // it is in the answer
		a.Walk = walk
		WriteJSON(w, a, nil)
	case q.explain:
		trace.WriteTree(w, trace.Joined{walk})
	default:
		io.WriteString(w, walk.Text)
	}
}

// traceAnswer converts a walk for clients.
func (p *Answers) traceAnswer(t *telemetry.Trace, text string) api.TraceAnswer {
	v := &t.Verdict
	a := api.TraceAnswer{Verdict: v.Text(t.Names), Outputs: v.Outputs, PacketIn: v.PacketIn, Waits: v.Waits, Text: text}
	if v.Waits {
		a.Table = p.TableName(v.Table)
	}
	if v.Reason != telemetry.NotDropped {
		a.Reason, a.Table = v.Reason.String(), p.TableName(v.Table)
	}
	for i := range t.Steps {
		st := &t.Steps[i]
		if st.Kind != telemetry.StepEntry {
			continue
		}
		e := api.TraceEntry{Table: pipeline.TableName(t.Names, st.Table)}
		if st.Entry != nil {
			e.Priority, e.Match, e.Actions = st.Entry.Priority, st.Entry.Match.Text(t.Names), flow.ActionsText(st.Entry.Actions, flow.Format{Names: t.Names})
			if p.HasOrigins() {
				e.Objects = p.OriginsOf(st.Entry)
			}
		}
		a.Entries = append(a.Entries, e)
	}
	return a
}

// answerExplain answers GET /explain.
func (p *Answers) answerExplain(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query())
	var v any
	if err == nil {
		v, err = p.Explain(strings.TrimSpace(r.URL.Query().Get("what")))
	}
	if err != nil || q.json {
		WriteJSON(w, v, err)
		return
	}
	var b bytes.Buffer
	writeExplained(&b, v)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write(b.Bytes())
}

// answerWhy answers POST /why.
func (p *Answers) answerWhy(w http.ResponseWriter, r *http.Request) {
	var req api.WhyRequest
	d := json.NewDecoder(io.LimitReader(r.Body, pipeline.MaxTraceRequest))
	d.DisallowUnknownFields()
	err := d.Decode(&req)
	var a *api.WhyAnswer
	switch {
	case err != nil:
	case p.Objects == nil:
		a, err = reach.Why(p.Pipeline, &req)
	default:
		a, err = p.Why(&req)
	}
	WriteJSON(w, a, err)
}

// writeExplained prints an explanation: each entry, and below it the objects that ask for it.
func writeExplained(w io.Writer, v any) {
	entries, _ := v.([]api.Explained)
	if o, ok := v.(*api.ObjectEntries); ok {
		fmt.Fprintf(w, "%s: %s, %d entries\n", o.Object, pipeline.State(control.Status{State: o.State, Reason: o.Reason, EditRefused: o.EditRefused}), len(o.Entries))
		for _, line := range slices.Concat(o.Groups, o.Meters) {
			fmt.Fprintln(w, line)
		}
		entries = o.Entries
	}
	for _, e := range entries {
		switch {
		case e.Entry != "":
			fmt.Fprintln(w, e.Entry)
		case e.Meter != 0:
			fmt.Fprintf(w, "meter=%d\n", e.Meter)
		default:
			fmt.Fprintf(w, "group_id=%d\n", e.Group)
		}
		if c := e.Counters; c != nil {
			fmt.Fprintf(w, "    n_packets=%d, n_bytes=%d\n", c.Packets, c.Bytes)
		}
		for _, o := range e.Origins {
			fmt.Fprintf(w, "    %s\n", o)
		}
	}
}
