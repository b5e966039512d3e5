package answer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/trace"
	"github.com/antrail/antrail/web"
)

// The page in a separate process, for agents whose sockets it may open. With several agents it
// shows one at a time, and packets on their way through all.

// PageServer serves the page of agents, or of files.
type PageServer struct {
	Agents []*api.Client
	// Address is a loopback IP address and a port; port 0 for any.
	Address string
	// Plots is a directory of antrail bench --save; "" for none.
	Plots string
	// Invite receives each URL that admits one browser.
	Invite func(url string) error
}

// Run serves until ctx ends.
func (s *PageServer) Run(ctx context.Context) error {
	a, err := netip.ParseAddrPort(s.Address)
	if err != nil || !a.Addr().IsLoopback() {
		return fmt.Errorf("%q is not a loopback IP address with a port", s.Address)
	}
	o := web.Options{Plots: s.Plots}
	for _, c := range s.Agents {
		n := web.Node{API: c.Proxy(), Counters: func(ctx context.Context) ([]byte, error) {
			return c.Get(ctx, "/counters", url.Values{"format": {"json"}})
		}}
		if n.Name = c.NodeName(ctx); n.Name == "" && len(s.Agents) > 1 {
			n.Name = c.Socket()
		}
		o.Nodes = append(o.Nodes, n)
	}
	if len(s.Agents) > 1 {
		o.Watch = http.HandlerFunc(s.answerWatch)
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return err
	}
	page, err := NewPage(o, ln.Addr().String(), s.Invite)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	return web.Serve(ctx, ln, page)
}

// WayLine is a line of the answer to POST /trace/live of several agents.
type WayLine struct {
	Armed  *api.Armed            `json:"armed,omitempty"`
	Way    trace.Joined          `json:"way,omitempty"`
	Counts *telemetry.LiveCounts `json:"counts,omitempty"` // in the last line
	Fault  string                `json:"fault,omitempty"`  // why the trace ended
}

// answerWatch answers like the live trace of one agent (tracelive.go), with joined walks in
// place of walks.
func (s *PageServer) answerWatch(w http.ResponseWriter, r *http.Request) {
	watch := api.Watch{Agents: s.Agents}
	d := json.NewDecoder(io.LimitReader(r.Body, pipeline.MaxTraceRequest))
	d.DisallowUnknownFields()
	if err := d.Decode(&watch.Request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e, flush, begun := json.NewEncoder(w), http.NewResponseController(w).Flush, false
	e.SetEscapeHTML(false)
	send := func(l *WayLine) error {
		if !begun {
			w.Header().Set("Content-Type", "application/x-ndjson")
			begun = true
		}
		return errors.Join(e.Encode(l), flush())
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	watch.Armed = func(a *api.Armed) {
		if send(&WayLine{Armed: a}) != nil {
			cancel()
		}
	}
	watch.Tell = func(way trace.Joined) error { return send(&WayLine{Way: way}) }
	counts, err := watch.Run(ctx)
	switch {
	case err == nil:
		send(&WayLine{Counts: &counts})
	case begun:
		send(&WayLine{Fault: err.Error()})
	default:
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}
