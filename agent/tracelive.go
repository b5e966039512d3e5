package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/trace"
)

// Live traces over the API: the answer to POST /trace/live is one JSON object a
// line (LiveLine), for as long as the trace lasts: until there are enough walks,
// its time is over, or whoever asked goes away.

// LiveTraceRequest says which packets to watch. Everything that is given has to
// hold.
type LiveTraceRequest struct {
	// Source and Destination are Pods, namespace/name. A packet from a Pod of this
	// Node is one that enters by its port, whatever its addresses say. A packet to a
	// Pod is addressed to it, or to a Service that it may serve; one that went to
	// another endpoint is left out.
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
	// Pod is either of both: packets from it and packets to it.
	Pod         string `json:"pod,omitempty"`
	Port        uint16 `json:"port,omitempty"`   // either one, of TCP, UDP or SCTP
	Filter      string `json:"filter,omitempty"` // a tcpdump expression
	DroppedOnly bool   `json:"droppedOnly,omitempty"`
	// Through is a port of the switch, by name or number, by which a packet enters or
	// leaves. Whether it leaves there is known at its end: every packet is watched
	// that Filter does not leave out.
	Through string `json:"through,omitempty"`
	// Tables are names or numbers of tables, one of which a packet enters; the walk has
	// the packet as it is there.
	Tables []string `json:"tables,omitempty"`
	Count  int      `json:"count,omitempty"` // walks until the end; 0 for no end
	// Begin is how many walks may begin at this Node; 0 for no end. Packets from other
	// Nodes with an id of the session are watched beyond it.
	Begin int `json:"begin,omitempty"`
	// WaitMS is how many milliseconds no walk begins at this Node, so that the others
	// watch by then what it begins; 0 for one Node.
	WaitMS int `json:"waitMS,omitempty"`
	// For is how long the trace lasts, in nanoseconds; 0 for no end.
	For time.Duration `json:"forNS,omitempty"`
	// FirstID numbers the walks, in hexadecimal. Of its 16 digits the first 8 name
	// the session: packets that come from another Node with an id of it are watched,
	// too, and ids leave through the tunnel. Empty: walks are this Node's alone.
	FirstID string `json:"firstID,omitempty"`
	Text    bool   `json:"text,omitempty"` // each walk also in the manner of ofproto/trace
	// Bytes is how many bytes of the packet a walk has at most, as it entered and at
	// each step that keeps it: 1 to MostBytes, or 0 for HeaderBytes. Where many packets
	// are watched, their payload is most of what a walk costs.
	Bytes int `json:"bytes,omitempty"`
}

const (
	// HeaderBytes is more than the headers of packets have that are not hostile.
	HeaderBytes = 256
	// MostBytes is as much as the switch keeps of a packet.
	MostBytes = dataplane.SnapLen
)

// bytes is Bytes, checked.
func (r *LiveTraceRequest) bytes() (int, error) {
	if r.Bytes < 0 || r.Bytes > MostBytes {
		return 0, fmt.Errorf("bytes: %d of a packet; want 1 to %d, or 0 for %d", r.Bytes, MostBytes, HeaderBytes)
	}
	return cmp.Or(r.Bytes, HeaderBytes), nil
}

// LiveLine is a line of the answer.
type LiveLine struct {
	// Armed comes first: from now on packets are watched. It is the tcpdump
	// expressions that they have to meet.
	Armed  *Armed                `json:"armed,omitempty"`
	Walk   *trace.Walk           `json:"walk,omitempty"`
	Counts *dataplane.LiveCounts `json:"counts,omitempty"` // with each walk, at least once a second, and last of all
	// Error says why walks end before the trace does: the switch does not answer any more.
	Error string `json:"error,omitempty"`
}

// Armed is what a live trace looks for.
type Armed struct {
	Node   string   `json:"node,omitempty"`
	InPort uint32   `json:"inPort,omitempty"` // 0 for any
	Filter []string `json:"filter"`           // all have to hold
	// Pod, Through and Tables are the request's.
	Pod     string   `json:"pod,omitempty"`
	Through string   `json:"through,omitempty"`
	Tables  []string `json:"tables,omitempty"`
}

// tellCounts is how often counts are told.
const tellCounts = time.Second

func (a *Agent) answerLive(w http.ResponseWriter, r *http.Request) {
	a.pipeline.answerLive(w, r, a.config.NodeName)
}

func (p *pipeline) answerLive(w http.ResponseWriter, r *http.Request, node string) {
	failed := p.beginAsking()
	var req LiveTraceRequest
	d := json.NewDecoder(io.LimitReader(r.Body, maxTraceRequest))
	d.DisallowUnknownFields()
	err := d.Decode(&req)
	var l door.Live
	a, most := &arming{p: p}, 0
	if err == nil {
		most, err = req.bytes()
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
	s := &liveStream{to: json.NewEncoder(w), flush: http.NewResponseController(w).Flush, live: l, walker: walker{p: p, node: node, text: req.Text, tables: a.want.Tables, most: most}}
	s.to.SetEscapeHTML(false)
	s.run(ctx, &a.armed)
}

// liveStream sends walks to who asked for them.
type liveStream struct {
	to     *json.Encoder
	flush  func() error
	live   door.Live
	walker walker
	told   time.Time // counts
}

// run sends lines until ctx ends, there are enough walks, or nobody reads them.
func (s *liveStream) run(ctx context.Context, armed *Armed) {
	if s.send(&LiveLine{Armed: armed}) != nil {
		return
	}
	for {
		t, err := s.next(ctx)
		switch {
		case err == io.EOF, ctx.Err() != nil:
			s.tell()
			return
		case err == nil:
			err = s.tellWalk(t)
		case errors.Is(err, context.DeadlineExceeded):
			err = nil
		default:
			s.send(&LiveLine{Error: withAdvice(err).Error()})
			return
		}
		if err == nil && time.Since(s.told) >= tellCounts {
			err = s.tell()
		}
		if err != nil {
			return
		}
	}
}

// next waits for a walk, but no longer than until counts are to be told.
func (s *liveStream) next(ctx context.Context) (*dataplane.Trace, error) {
	soon, cancel := context.WithDeadline(ctx, s.told.Add(tellCounts))
	defer cancel()
	return s.live.Next(soon)
}

func (s *liveStream) tell() error {
	return s.send(&LiveLine{})
}

func (s *liveStream) tellWalk(t *dataplane.Trace) error {
	w, err := s.walker.walk(t)
	if err != nil {
		return err
	}
	return s.send(&LiveLine{Walk: w})
}

// send sends a line, with what was counted until now.
func (s *liveStream) send(l *LiveLine) error {
	s.told = time.Now()
	c := s.live.Counts()
	l.Counts = &c
	return errors.Join(s.to.Encode(l), s.flush())
}
