package agent

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/halfopen"
)

// The API of an agent that waits for its switch. Without it a request would hang as long as the
// agent waits, and its caller would not know why.

// waitingTimeout is how long requests hang at first. A restarted switch answers earlier, so
// that no request fails.
const waitingTimeout = 3 * time.Second

// runWaiting serves the API of a waiting agent until ctx ends. The listener stays open for the
// full API.
func (a *Agent) runWaiting(ctx context.Context, c *door.Client) {
	ln, ok := a.api.(*net.UnixListener)
	if !ok {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(waitingTimeout):
	}
	s := halfopen.Server{Limits: apiLimits, Handler: waitingRoutes(c), Name: "API", Log: a.log}
	if err := s.Serve(ctx, lent{ln}); err != nil {
		a.log.Warn("requests do not learn that the agent waits for its switch", "error", err)
	}
	if err := ln.SetDeadline(time.Time{}); err != nil {
		a.log.Warn("the API's socket stays closed", "error", err)
	}
}

// waitingRoutes are the paths of that API. /healthz is ok, /readyz is not, and all other
// requests fail with the reason.
func waitingRoutes(c *door.Client) http.Handler {
	all := []condition{{switchCondition, func() error { return whyAway(c) }}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { writeConditions(w, r, nil, all) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { writeConditions(w, r, all, nil) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		text := "the agent has just found its switch: repeat the request"
		if err := whyAway(c); err != nil {
			text = fmt.Sprintf("the agent waits for its switch: %v", err)
		}
		http.Error(w, text, http.StatusBadGateway)
	})
	return mux
}

// whyAway says why a switch does not answer, and what to do.
func whyAway(c *door.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), switchTimeout)
	defer cancel()
	_, err := c.Info(ctx)
	return pipeline.WithAdvice(err)
}

// lent is a listener whose user cannot close it: Close only ends its Accept.
type lent struct{ *net.UnixListener }

// Close implements net.Listener.
func (l lent) Close() error { return l.SetDeadline(time.Unix(1, 0)) }
