package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/dataplane/telemetry"
)

// Health checks for Kubernetes:
//
//	/healthz  is the agent alive: do its workers move? If not, restart it
//	/readyz   does the agent do its work: is a pipeline installed, are the
//	          ports open, are the objects read?
//
// Both answer 200 or 503, with one line for each condition. ?exclude=NAME leaves a condition
// out. An agent that starts while the API is down forwards by the previous entries, and only
// fails "source".
//
// /readyz also has warnings: faults of one Pod or object. They are no reason to take the Node
// out of service, so the status stays 200.

// condition is one requirement.
type condition struct {
	name string
	why  func() error // nil: it holds
}

// writeConditions answers with the state of each condition, then of the warnings.
func writeConditions(w http.ResponseWriter, r *http.Request, all, warnings []condition) {
	status := http.StatusOK
	var text strings.Builder
	for i, c := range append(all, warnings...) {
		if slices.Contains(r.URL.Query()["exclude"], c.name) {
			continue
		}
		switch err := c.why(); {
		case err == nil:
			fmt.Fprintf(&text, "%s: ok\n", c.name)
		case i < len(all):
			status = http.StatusServiceUnavailable
			fmt.Fprintf(&text, "%s: %v\n", c.name, err)
		default:
			fmt.Fprintf(&text, "%s: warning: %v\n", c.name, err)
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	io.WriteString(w, text.String())
}

// switchCondition: the switch's process answers within switchTimeout.
const (
	switchCondition = "switch"
	switchTimeout   = 2 * time.Second
)

// readiness are the conditions of /readyz.
func (a *Agent) readiness() []condition {
	all := []condition{
		{"pipeline", a.pipelineInstalled},
		{"ports", func() error {
			if !a.ready.Load() {
				return fmt.Errorf("the ports are being opened")
			}
			return nil
		}},
		{api.SourceCondition, a.sourceRead},
	}
	if a.Remote != nil { // false in tests without a switch process
		all = append(all, condition{switchCondition, a.switchAnswers})
	}
	return all
}

// pipelineInstalled returns why the switch has no entries; nil if it has.
func (a *Agent) pipelineInstalled() error {
	failed := a.BeginAsking()
	none := a.Switch.Names() == nil
	if err := failed(); none && err != nil {
		return err
	}
	if none {
		return errors.New("no entries are installed")
	}
	return nil
}

// switchAnswers returns why the switch's process does not answer; nil if it does.
func (a *Agent) switchAnswers() error { return whyAway(a.Remote) }

// warnings are the warnings of /readyz.
func (a *Agent) warnings() []condition {
	return []condition{
		{"links", func() error {
			if faults := a.LinkFaults(); faults != nil {
				return errors.New(strings.Join(faults, "; "))
			}
			return nil
		}},
		{"edits", func() error {
			if text := a.RefusedEditsText(); text != "" {
				return errors.New(text)
			}
			return nil
		}},
	}
}

// sourceRead returns why the switch lacks the entries of the objects; nil if it has them.
func (a *Agent) sourceRead() error {
	if a.live == nil {
		return nil
	}
	select {
	case <-a.live.synced:
		return nil
	default:
		return errors.New(a.live.missing())
	}
}

// liveness are the conditions of /healthz.
func (a *Agent) liveness() []condition {
	return []condition{{"workers", a.beats.check}}
}

// addHealth adds both paths to an API.
func (a *Agent) addHealth(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { writeConditions(w, r, a.liveness(), nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { writeConditions(w, r, a.readiness(), a.warnings()) })
}

// stillTicks is how many ticks a worker's counters may stand still, together ten seconds. A
// healthy worker moves a batch or sleeps, and no sleep is longer than five seconds.
const (
	beatEvery  = 2 * time.Second
	stillTicks = 5
)

// beats detects workers that hang. It counts ticks and reads no clock, so a suspended machine
// does not look like a hanging worker.
type beats struct {
	mu    sync.Mutex
	seen  []uint64
	still []int // ticks without a change, by worker
}

// noteTick records the workers' counters at a tick.
func (b *beats) noteTick(all []telemetry.WorkerStats) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.seen) < len(all) {
		b.seen, b.still = append(b.seen, 0), append(b.still, 0)
	}
	for i, w := range all {
		if done := w.Batches + w.Sleeps; done != b.seen[i] {
			b.seen[i], b.still[i] = done, 0
		} else {
			b.still[i]++
		}
	}
}

// check returns an error that names the first hanging worker.
func (b *beats) check() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, n := range b.still {
		if n >= stillTicks {
			return fmt.Errorf("worker %d has neither moved a packet nor slept for %d seconds", i, n*int(beatEvery/time.Second))
		}
	}
	return nil
}

// runBeats samples the workers at each tick until ctx ends.
func (a *Agent) runBeats(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			failed := a.BeginAsking()
			if all := a.Switch.Workers(); failed() == nil {
				a.beats.noteTick(all)
			}
		}
	}
}
