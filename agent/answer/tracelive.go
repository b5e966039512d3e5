package answer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
)

// Live traces over the API. The answer to POST /trace/live is one JSON object a line
// (LiveLine). It ends after enough walks, after its time, or when the client disconnects.

// liveBytes checks Bytes of a request.
func liveBytes(r *api.LiveTraceRequest) (int, error) {
	if r.Bytes < 0 || r.Bytes > api.MostBytes {
		return 0, fmt.Errorf("bytes: %d of a packet; want 1 to %d, or 0 for %d", r.Bytes, api.MostBytes, api.HeaderBytes)
	}
	return cmp.Or(r.Bytes, api.HeaderBytes), nil
}

// tellCounts is the interval of lines with counts.
const tellCounts = time.Second

// AnswerLive answers POST /trace/live with a line of JSON (api.LiveLine) for each walk. It ends
// after enough walks, after its time, or when the client disconnects. node is the Node's name
// in the walks.
func (p *Answers) AnswerLive(w http.ResponseWriter, r *http.Request, node string) {
	failed := p.BeginAsking()
	var req api.LiveTraceRequest
	d := json.NewDecoder(io.LimitReader(r.Body, pipeline.MaxTraceRequest))
	d.DisallowUnknownFields()
	err := d.Decode(&req)
	var l door.Live
	a, most := &arming{p: p}, 0
	if err == nil {
		most, err = liveBytes(&req)
	}
	if err == nil {
		l, err = a.arm(&req)
	}
	if err != nil {
		refuse(w, failed, err)
		return
	}
	defer l.Close()
	a.armed.Node = node
	ctx := r.Context()
	if req.For > 0 {
		limited, cancel := context.WithTimeout(ctx, req.For)
		defer cancel()
		ctx = limited
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	s := &liveStream{to: json.NewEncoder(w), flush: http.NewResponseController(w).Flush, live: l, walker: pipeline.Walker{Pipeline: p.Pipeline, Node: node, Text: req.Text, Tables: a.want.Tables, Most: most}}
	s.to.SetEscapeHTML(false)
	s.run(ctx, &a.armed)
}

// liveStream sends walks to a client.
type liveStream struct {
	to     *json.Encoder
	flush  func() error
	live   door.Live
	walker pipeline.Walker
	told   time.Time // when counts were last sent
}

// run sends lines until ctx ends, there are enough walks, or the client has gone.
func (s *liveStream) run(ctx context.Context, armed *api.Armed) {
	if s.send(&api.LiveLine{Armed: armed}) != nil {
		return
	}
	for {
		t, err := s.next(ctx)
		switch {
		case err == io.EOF, ctx.Err() != nil:
			s.sendCounts()
			return
		case err == nil:
			err = s.tellWalk(t)
		case errors.Is(err, context.DeadlineExceeded):
			err = nil
		default:
			s.send(&api.LiveLine{Error: pipeline.WithAdvice(err).Error()})
			return
		}
		if err == nil && time.Since(s.told) >= tellCounts {
			err = s.sendCounts()
		}
		if err != nil {
			return
		}
	}
}

// next waits for a walk, at most until the next line with counts is due.
func (s *liveStream) next(ctx context.Context) (*telemetry.Trace, error) {
	soon, cancel := context.WithDeadline(ctx, s.told.Add(tellCounts))
	defer cancel()
	return s.live.Next(soon)
}

func (s *liveStream) sendCounts() error {
	return s.send(&api.LiveLine{})
}

func (s *liveStream) tellWalk(t *telemetry.Trace) error {
	w, err := s.walker.Walk(t)
	if err != nil {
		return err
	}
	return s.send(&api.LiveLine{Walk: w})
}

// send sends a line with the current counts.
func (s *liveStream) send(l *api.LiveLine) error {
	s.told = time.Now()
	c := s.live.Counts()
	l.Counts = &c
	return errors.Join(s.to.Encode(l), s.flush())
}
