package api

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/trace"
)

// Watch is a live trace at several agents at once. It joins the walks of one packet at several
// Nodes.
type Watch struct {
	Agents  []*Client
	Request LiveTraceRequest
	// Armed, if not nil, is called for each agent, once all of them watch.
	Armed func(*Armed)
	// Tell receives each joined walk, once it is complete or has waited for HalfWait. If Tell
	// returns an error, the trace ends.
	Tell func(trace.Joined) error
}

// armTime is how many milliseconds several agents have to be armed before any begins a walk.
const armTime = 300

// HalfWait is how long a walk waits for the walks of other Nodes. A busy Node's agent reports
// more than half a second after the packet. So a packet that was lost between Nodes is shown
// late.
const HalfWait = 2 * time.Second

// said is a line of one of the agents, or its end.
type said struct {
	agent int
	line  *LiveLine
	err   error // if line is nil: how the agent's trace ended
}

// Run watches until ctx ends, Tell has received Request.Count walks, or every agent's trace has
// ended. It returns the sum of all agents' counts.
func (w *Watch) Run(ctx context.Context) (total telemetry.LiveCounts, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan said)
	session := newSession()
	for i := range w.Agents {
		r := w.Request
		if len(w.Agents) > 1 {
			r.WaitMS = armTime
			r.Count, r.Begin, r.FirstID = 0, r.Count, fmt.Sprintf("%016x", session|uint64(i)<<24|1)
		}
		go w.runAgent(ctx, i, &r, lines)
	}
	g := gathering{watch: w, joiner: trace.Joiner{Wait: HalfWait, Alone: len(w.Agents) == 1}, counts: make([]telemetry.LiveCounts, len(w.Agents))}
	err = g.run(cancel, lines)
	for _, c := range g.counts {
		total.Matched, total.Told, total.Missed = total.Matched+c.Matched, total.Told+c.Told, total.Missed+c.Missed
	}
	return total, err
}

// newSession returns the upper half of ids, at random.
func newSession() uint64 {
	var b [4]byte
	rand.Read(b[:])
	return uint64(binary.BigEndian.Uint32(b[:])|1) << 32
}

// runAgent sends an agent's lines to lines, and then its end.
func (w *Watch) runAgent(ctx context.Context, i int, r *LiveTraceRequest, lines chan<- said) {
	err := w.Agents[i].TraceLive(ctx, r, func(l *LiveLine) error {
		lines <- said{agent: i, line: l}
		return nil
	})
	lines <- said{agent: i, err: err}
}

// gathering joins the lines of all agents.
type gathering struct {
	watch  *Watch
	joiner trace.Joiner
	counts []telemetry.LiveCounts
	told   int
	armed  []*Armed  // agents that Watch.Armed has not reported yet
	begin  time.Time // when all agents in armed watch
}

// errEnough ends a watch after Request.Count walks.
var errEnough = errors.New("the requested number of walks is complete")

// run receives lines until all agents have ended. The first error ends the others.
func (g *gathering) run(cancel func(), lines <-chan said) (err error) {
	tick := time.NewTicker(HalfWait / 20)
	defer tick.Stop()
	fail := func(e error) {
		if err == nil && e != nil {
			err = e
			cancel()
		}
	}
	for open := len(g.counts); open > 0; {
		select {
		case s := <-lines:
			if s.line == nil {
				open--
				fail(s.err)
			} else if err == nil {
				fail(g.takeLine(&s))
			}
		case now := <-tick.C:
			if err == nil {
				g.tellArmed(now)
				fail(g.giveWays(g.joiner.Expire(now, false)))
			}
		}
	}
	if err == nil {
		err = g.giveWays(g.joiner.Expire(time.Now(), true))
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return err
}

func (g *gathering) takeLine(s *said) error {
	l := s.line
	if l.Counts != nil {
		g.counts[s.agent] = *l.Counts
	}
	switch {
	case l.Armed != nil:
		g.hearArmed(l.Armed, time.Now())
	case l.Walk != nil:
		g.begin = time.Time{} // walks have begun, whatever this clock says
		g.tellArmed(time.Now())
		return g.giveWays(g.joiner.Add(l.Walk, time.Now()))
	}
	return nil
}

// hearArmed records that an agent is armed. A single agent begins at once.
func (g *gathering) hearArmed(a *Armed, now time.Time) {
	g.armed, g.begin = append(g.armed, a), now
	if len(g.counts) > 1 {
		g.begin = now.Add(armTime * time.Millisecond)
	}
	g.tellArmed(now)
}

// tellArmed reports the agents once all of them watch.
func (g *gathering) tellArmed(now time.Time) {
	if len(g.armed) < len(g.counts) || now.Before(g.begin) {
		return
	}
	for _, a := range g.armed {
		if g.watch.Armed != nil {
			g.watch.Armed(a)
		}
	}
	g.armed = nil
}

func (g *gathering) giveWays(ways []trace.Joined) error {
	for _, way := range ways {
		if err := g.watch.Tell(way); err != nil {
			return err
		}
		if g.told++; g.told == g.watch.Request.Count {
			return errEnough
		}
	}
	return nil
}
