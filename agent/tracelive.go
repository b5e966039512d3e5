package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/filter"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
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
	Port        uint16 `json:"port,omitempty"`   // either one, of TCP, UDP or SCTP
	Filter      string `json:"filter,omitempty"` // a tcpdump expression
	DroppedOnly bool   `json:"droppedOnly,omitempty"`
	Count       int    `json:"count,omitempty"` // walks until the end; 0 for no end
	// For is how long the trace lasts, in nanoseconds; 0 for no end.
	For time.Duration `json:"forNS,omitempty"`
	// FirstID numbers the walks, in hexadecimal. Of its 16 digits the first 8 name
	// the session: packets that come from another Node with an id of it are watched,
	// too, and ids leave through the tunnel. Empty: walks are this Node's alone.
	FirstID string `json:"firstID,omitempty"`
	Text    bool   `json:"text,omitempty"` // each walk also in the manner of ofproto/trace
}

// LiveLine is a line of the answer.
type LiveLine struct {
	// Armed comes first: from now on packets are watched. It is the tcpdump
	// expressions that they have to meet.
	Armed  *Armed                `json:"armed,omitempty"`
	Walk   *trace.Walk           `json:"walk,omitempty"`
	Counts *dataplane.LiveCounts `json:"counts,omitempty"` // with each walk, at least once a second, and last of all
}

// Armed is what a live trace looks for.
type Armed struct {
	Node   string   `json:"node,omitempty"`
	InPort uint32   `json:"inPort,omitempty"` // 0 for any
	Filter []string `json:"filter"`           // all have to hold
}

// tellCounts is how often counts are told.
const tellCounts = time.Second

func (a *Agent) answerLive(w http.ResponseWriter, r *http.Request) {
	a.pipeline.answerLive(w, r, a.config.NodeName)
}

func (p *pipeline) answerLive(w http.ResponseWriter, r *http.Request, node string) {
	var req LiveTraceRequest
	d := json.NewDecoder(io.LimitReader(r.Body, maxTraceRequest))
	d.DisallowUnknownFields()
	err := d.Decode(&req)
	var l *dataplane.LiveTrace
	var armed *Armed
	if err == nil {
		l, armed, err = p.armLive(&req)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	defer l.Close()
	armed.Node = node
	ctx := r.Context()
	if req.For > 0 {
		limited, cancel := context.WithTimeout(ctx, req.For)
		defer cancel()
		ctx = limited
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	s := &liveStream{to: json.NewEncoder(w), flush: http.NewResponseController(w).Flush, live: l, walker: walker{p: p, node: node, text: req.Text}}
	s.to.SetEscapeHTML(false)
	s.run(ctx, armed)
}

// liveStream sends walks to who asked for them.
type liveStream struct {
	to     *json.Encoder
	flush  func() error
	live   *dataplane.LiveTrace
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

// arming is a request on its way to the switch.
type arming struct {
	p     *pipeline
	armed Armed
	keep  []func(*dataplane.Trace) bool
}

// armLive begins the trace that a request asks for.
func (p *pipeline) armLive(r *LiveTraceRequest) (*dataplane.LiveTrace, *Armed, error) {
	a := &arming{p: p, armed: Armed{Filter: []string{}}}
	first, err := firstID(r.FirstID)
	if err = errors.Join(err, a.from(r.Source), a.to(r.Destination)); err != nil {
		return nil, nil, err
	}
	if r.Port != 0 {
		a.wants(fmt.Sprintf("port %d", r.Port))
	}
	if r.Filter != "" {
		a.wants(r.Filter)
	}
	if r.DroppedOnly {
		a.keep = append(a.keep, wasDropped)
	}
	f, err := filter.Compile(a.armed.Filter...)
	if err != nil {
		return nil, nil, err
	}
	inPort := a.armed.InPort
	match := func(b []byte, port uint32) bool { return (inPort == 0 || port == inPort) && f.Match(b) }
	l, err := p.sw.TraceLive(dataplane.LiveRequest{
		Match: match, Deep: f.Deep(), Keep: a.keepAll(), Count: max(0, r.Count), FirstID: first,
	})
	return l, &a.armed, err
}

// firstID reads the id that walks are numbered from; 0 for none.
func firstID(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseUint(text, 16, 64)
	if err != nil || id>>32 == 0 {
		return 0, fmt.Errorf("firstID=%q has no session in the first 8 of its 16 hexadecimal digits", text)
	}
	return id, nil
}

func (a *arming) wants(expression string) { a.armed.Filter = append(a.armed.Filter, expression) }

// from wants packets from a Pod.
func (a *arming) from(pod string) error {
	if pod == "" {
		return nil
	}
	ends, err := a.p.podEnds("source", pod)
	if err == nil && ends.Port == 0 {
		a.wants(hosts("src", ends.IPs))
	}
	a.armed.InPort = ends.Port
	return err
}

// to wants packets to a Pod.
func (a *arming) to(pod string) error {
	if pod == "" {
		return nil
	}
	ends, err := a.p.podEnds("destination", pod)
	if err != nil {
		return err
	}
	a.wants(hosts("dst", slices.Concat(ends.IPs, ends.Services)))
	a.keep = append(a.keep, func(t *dataplane.Trace) bool { return mayReach(t, ends.IPs) })
	return nil
}

// keepAll is that all conditions on walks hold; nil without any.
func (a *arming) keepAll() func(*dataplane.Trace) bool {
	if len(a.keep) == 0 {
		return nil
	}
	return func(t *dataplane.Trace) bool {
		return !slices.ContainsFunc(a.keep, func(k func(*dataplane.Trace) bool) bool { return !k(t) })
	}
}

// podEnds finds a Pod that a request names.
func (p *pipeline) podEnds(field, name string) (control.PodEnds, error) {
	if p.objects == nil {
		return control.PodEnds{}, fmt.Errorf("%s: this agent's pipeline comes from flow files, which know no Pods; use a filter", field)
	}
	namespace, pod, ok := strings.Cut(name, "/")
	if !ok || namespace == "" || pod == "" || strings.Contains(pod, "/") {
		return control.PodEnds{}, fmt.Errorf("%s=%q is not namespace/name of a Pod", field, name)
	}
	ends, err := p.objects.PodEnds(control.Name{Namespace: namespace, Name: pod})
	if err != nil {
		return ends, fmt.Errorf("%s: %w", field, err)
	}
	return ends, nil
}

// hosts is a tcpdump expression for packets with an end in a list.
func hosts(dir string, addrs []netip.Addr) string {
	var all []string
	for _, a := range addrs {
		all = append(all, a.String())
	}
	return dir + " host (" + strings.Join(all, " or ") + ")"
}

// wasDropped says whether nothing came of a packet.
func wasDropped(t *dataplane.Trace) bool { return t.Verdict.Reason != dataplane.NotDropped }

// mayReach says whether a packet went to some addresses, or nowhere, or is not
// done.
func mayReach(t *dataplane.Trace, addrs []netip.Addr) bool {
	if len(t.Verdict.Outputs) == 0 {
		return true
	}
	return slices.ContainsFunc(t.Steps, func(st dataplane.Step) bool {
		if st.Kind != dataplane.StepOutput {
			return false
		}
		dst := addrIn(&st.After, flow.IPDst, flow.IPv6Dst)
		return slices.Contains(addrs, dst) || flow.FieldByID(flow.EthType).Get(&st.After).Lo == packet.EtherTypeARP
	})
}
