package door

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/antrail/antrail/conntrack/reassembly"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// A Client's requests about packets and about the switch itself.

// PacketCounters counts the outcomes of all packets.
func (c *Client) PacketCounters() *telemetry.SwitchPacketCounters {
	s := get[telemetry.SwitchPacketCounters](c, "/v1/counters", nil)
	return &s
}

// RunningPacketCounters are the same without stopping a worker.
func (c *Client) RunningPacketCounters() *telemetry.SwitchPacketCounters {
	s := get[telemetry.SwitchPacketCounters](c, "/v1/counters", url.Values{"running": {"1"}})
	return &s
}

// Answers counts packets that the switch answers in the controller's place.
func (c *Client) Answers() AnswerCounters { return get[AnswerCounters](c, "/v1/answers", nil) }

// Workers are all workers.
func (c *Client) Workers() []telemetry.WorkerStats {
	return get[[]telemetry.WorkerStats](c, "/v1/workers", nil)
}

// Sleeps counts how often workers slept.
func (c *Client) Sleeps() (n uint64) {
	for _, w := range c.Workers() {
		n += w.Sleeps
	}
	return n
}

// Cache has the counters of the caches.
func (c *Client) Cache() telemetry.CacheStats { return get[telemetry.CacheStats](c, "/v1/cache", nil) }

// CacheShapes are the masks of the megaflows.
func (c *Client) CacheShapes() []telemetry.CacheShape {
	return get[[]telemetry.CacheShape](c, "/v1/cache/shapes", nil)
}

// OffloadStats describes the kernel's offload.
func (c *Client) OffloadStats() telemetry.OffloadStats {
	return get[OffloadAnswer](c, "/v1/offload", nil).Stats
}

// OffloadOff is the reason why the kernel offloads nothing.
func (c *Client) OffloadOff() string { return get[OffloadAnswer](c, "/v1/offload", nil).Off }

// Fragments are the waiting fragments.
func (c *Client) Fragments() reassembly.Stats {
	return get[reassembly.Stats](c, "/v1/fragments", nil)
}

// errPick is the error for a function, which cannot be sent to another process.
var errPick = errors.New("a switch in another process chooses buckets by TraceRequest.Buckets only")

// Trace walks a made-up packet.
func (c *Client) Trace(r *telemetry.TraceRequest) (*telemetry.Trace, error) {
	if r.PickBucket != nil {
		return nil, errPick
	}
	var t telemetry.Trace
	if err := c.sendValue(http.MethodPost, "/v1/trace", r, &t); err != nil {
		return nil, err
	}
	return &t, nil
}

// PacketOut runs actions on a frame.
func (c *Client) PacketOut(inPort uint32, actions []flow.Action, frame []byte) error {
	return c.sendValue(http.MethodPost, "/v1/packet-out", PacketOut{inPort, flow.ActionsText(actions, flow.Format{Loads: true}), frame}, nil)
}

// Resume continues a paused packet.
func (c *Client) Resume(p *telemetry.Paused) error {
	return c.sendValue(http.MethodPost, "/v1/resume", p, nil)
}

// clientLive is a live trace of a Client.
type clientLive struct {
	c      *Client
	cancel context.CancelFunc
	lines  chan *LiveLine
	mu     sync.Mutex
	counts telemetry.LiveCounts
	err    error // of the stream, when lines is closed
}

// TraceLive watches the walks of real packets.
func (c *Client) TraceLive(r *LiveRequest) (Live, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	d, body, err := c.stream(ctx, "/v1/trace/live", nil, text)
	if err == nil {
		if err = d.Decode(&LiveLine{}); err != nil {
			err = errors.Join(c.unanswered(err), body.Close())
		}
	}
	if err != nil {
		cancel()
		return nil, err
	}
	l := &clientLive{c: c, cancel: cancel, lines: make(chan *LiveLine)}
	go l.runRead(ctx, d, body)
	return l, nil
}

// stream begins a request whose answer is lines. The caller closes the body.
func (c *Client) stream(ctx context.Context, path string, query url.Values, body []byte) (*json.Decoder, io.Closer, error) {
	resp, err := c.send(ctx, http.MethodPost, path, query, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	return json.NewDecoder(resp.Body), resp.Body, nil
}

// runRead reads lines until the stream ends. Between calls of Next it does not read, and the
// switch counts the lost walks.
func (l *clientLive) runRead(ctx context.Context, d *json.Decoder, body io.Closer) {
	defer body.Close()
	defer close(l.lines)
	for {
		line := &LiveLine{}
		if err := d.Decode(line); err != nil {
			l.err = l.ended(ctx, err)
			return
		}
		if line.Counts != nil {
			l.mu.Lock()
			l.counts = *line.Counts
			l.mu.Unlock()
		}
		if line.End {
			l.err = io.EOF
			return
		}
		if line.Trace == nil {
			continue
		}
		select {
		case l.lines <- line:
		case <-ctx.Done():
			l.err = ctx.Err()
			return
		}
	}
}

// ended is the error of a stream that ended before the switch sent its end. io.EOF would mean
// that there were as many walks as requested.
func (l *clientLive) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return l.c.unanswered(err)
}

// Next implements Live, as the methods below do.
func (l *clientLive) Next(ctx context.Context) (*telemetry.Trace, error) {
	select {
	case line, more := <-l.lines:
		if !more {
			return nil, l.err
		}
		return line.Trace, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Counts are the switch's latest.
func (l *clientLive) Counts() telemetry.LiveCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Close ends the trace.
func (l *clientLive) Close() { l.cancel() }

// remoteClasses are sums by class of a Client.
type remoteClasses struct {
	c          *Client
	class      func(*flow.Entry) int
	generation uint64
	id         string
}

// ClassCounters begins sums over the entries by a class.
func (c *Client) ClassCounters(class func(*flow.Entry) int) ClassCounters {
	r := &remoteClasses{c: c, class: class}
	q := ClassesRequest{Generation: c.Generation(), Classes: []int{}}
	for _, f := range c.Flows() {
		if !f.Learned {
			q.Classes = append(q.Classes, class(f.Entry))
		}
	}
	var a ClassesAnswer
	if err := c.sendValue(http.MethodPost, "/v1/classes", q, &a); err == nil {
		r.generation, r.id = q.Generation, a.ID
	}
	return r
}

// Generation implements ClassCounters.
func (r *remoteClasses) Generation() uint64 { return r.generation }

// Sum implements ClassCounters.
func (r *remoteClasses) Sum() (counters []dataplane.ClassSum, ok bool) {
	if r.id == "" {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	var a ClassCountersAnswer
	if err := r.c.do(ctx, http.MethodGet, "/v1/classes/"+r.id, nil, nil, &a); err != nil {
		return nil, false
	}
	for _, f := range a.Learned {
		class := r.class(f.Entry)
		for len(a.Counters) <= class {
			a.Counters = append(a.Counters, dataplane.ClassSum{})
		}
		a.Counters[class].Entries++
		a.Counters[class].Packets += f.Packets
	}
	return a.Counters, true
}
