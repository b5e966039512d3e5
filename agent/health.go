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

// Health, as Kubernetes asks for it:
//
//	/healthz  is the agent alive: do its workers turn? If not, it is to be
//	          started again
//	/readyz   does it do what it is there for: is a pipeline installed, are the
//	          ports open, is the source of objects read?
//
// Either answers 200, or 503 with what is wrong, a line for each condition. A
// condition can be left out with ?exclude=NAME: an agent that was started while
// its source is away forwards by the entries of the one before, and is ready but
// for "source".
//
// /readyz also has warnings. A warning is a fault of one Pod or object, which is no
// reason to take the Node out of service: the answer stays 200.

// condition is one thing that has to hold.
type condition struct {
	name string
	why  func() error // nil: it holds
}

// writeConditions answers with how each condition stands, and behind them the warnings.
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

// switchCondition is that a switch in a process of its own answers, within switchPatience.
const (
	switchCondition = "switch"
	switchTimeout   = 2 * time.Second
)

// readiness is what /readyz asks.
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
	if a.Remote != nil { // as in a running agent
		all = append(all, condition{switchCondition, a.switchAnswers})
	}
	return all
}

// pipelineInstalled says why the switch has no entries.
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

// switchAnswers says why a switch in a process of its own does not answer.
func (a *Agent) switchAnswers() error { return whyAway(a.Remote) }

// warnings are what /readyz warns of.
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

// sourceRead says why the switch has not what the source of objects says.
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

// liveness is what /healthz asks.
func (a *Agent) liveness() []condition {
	return []condition{{"workers", a.beats.check}}
}

// addHealth adds both questions to an API.
func (a *Agent) addHealth(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { writeConditions(w, r, a.liveness(), nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { writeConditions(w, r, a.readiness(), a.warnings()) })
}

// stillTicks is how many seconds a worker may show nothing. A healthy one moves a
// batch or sleeps, and no sleep is longer than one second.
const stillTicks = 10

// beats watches whether workers turn. It counts ticks and reads no clock, so that
// a machine that was suspended is not taken for a worker that hangs.
type beats struct {
	mu    sync.Mutex
	seen  []uint64
	still []int // ticks without a change, by worker
}

// noteTick takes down what workers have done up to a tick.
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

// check names the first worker that does not turn.
func (b *beats) check() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, n := range b.still {
		if n >= stillTicks {
			return fmt.Errorf("worker %d has neither moved a packet nor slept for %d seconds", i, n)
		}
	}
	return nil
}

// runBeats looks at the workers every second until ctx ends.
func (a *Agent) runBeats(ctx context.Context) {
	tick := time.NewTicker(time.Second)
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
