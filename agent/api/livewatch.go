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

// Watch is a live trace at several agents at once: what they see of one packet is
// one way.
type Watch struct {
	Agents  []*Client
	Request LiveTraceRequest
	// Armed, when not nil, is told of each agent, when all of them watch from then on.
	Armed func(*Armed)
	// Tell gets each way once it is whole, or has waited for HalfWait. An error of
	// its ends the trace.
	Tell func(trace.Joined) error
}

// armTime is how many milliseconds all of several agents have to be armed, before any
// begins.
const armTime = 300

// HalfWait is how long a walk waits for what other Nodes saw. On a busy Node an agent's
// line comes more than half a second after the packet. A packet that was lost between the
// Nodes is shown as late.
const HalfWait = 2 * time.Second

// said is a line of one of the agents, or the end of all of its.
type said struct {
	agent int
	line  *LiveLine
	err   error // of the end
}

// Run watches until ctx ends, there are as many ways as Request.Count, or every
// agent's trace has ended. It returns what was counted by all of them.
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

// newSession is the upper half of ids that no other trace is likely to have.
func newSession() uint64 {
	var b [4]byte
	rand.Read(b[:])
	return uint64(binary.BigEndian.Uint32(b[:])|1) << 32
}

// runAgent hands on what an agent says.
func (w *Watch) runAgent(ctx context.Context, i int, r *LiveTraceRequest, lines chan<- said) {
	err := w.Agents[i].TraceLive(ctx, r, func(l *LiveLine) error {
		lines <- said{agent: i, line: l}
		return nil
	})
	lines <- said{agent: i, err: err}
}

// gathering puts together what agents say.
type gathering struct {
	watch  *Watch
	joiner trace.Joiner
	counts []telemetry.LiveCounts
	told   int
	armed  []*Armed  // not told yet
	begin  time.Time // when all watch that are in armed
}

// errEnough ends a watch that has as many ways as were asked for.
var errEnough = errors.New("as many walks as were asked for")

// run takes lines until all agents have ended. The first error ends the others.
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
		g.begin = time.Time{} // it has, whatever the clock says here
		g.tellArmed(time.Now())
		return g.giveWays(g.joiner.Add(l.Walk, time.Now()))
	}
	return nil
}

// hearArmed takes down that one more agent is armed. A single one begins at once.
func (g *gathering) hearArmed(a *Armed, now time.Time) {
	g.armed, g.begin = append(g.armed, a), now
	if len(g.counts) > 1 {
		g.begin = now.Add(armTime * time.Millisecond)
	}
	g.tellArmed(now)
}

// tellArmed tells of the agents once all of them watch.
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
