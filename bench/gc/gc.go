package gc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/workload"
)

// The collector runs more than a hundred times a second, an agent's once in minutes. Beside it runs a
// worker whose port always has frames of all connections.
//
// How long a collection takes depends on the number of pointers. The connections have none. So it is
// measured once with little else on the heap, and once beside as many entries as an agent of a large
// cluster has.

const (
	// connections is how many connections the worker's switch has.
	connections = 1_000_000
	// rules is how many rules of policies the other switch has.
	rules = 10_000
	// rounds is how many rounds the profile's part of the time is divided into.
	rounds = 10
)

// longTurn is how long a turn may take at most beside collections.
const longTurn = time.Millisecond

// Run is profile gc: it measures a busy worker with a million connections, with garbage collections
// and without.
func Run(ctx context.Context, r *rig.Rig, c *report.Comparison) (err error) {
	program, err := workload.ExampleProgram("two-nodes/node-a")
	if err != nil {
		return err
	}
	asleep := config.KeepsAwake(config.KeepAwakeAuto)
	s, err := openTurns(program, turnOptions{connections: connections, rules: rules, keepAwake: asleep == nil})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	window := r.Window
	if r.Rounds == 0 {
		window = max(window, time.Until(r.Until)/(rounds*turnWindows))
	}
	c.Notes = append(c.Notes, fmt.Sprintf("%d UDP connections through the pipeline of examples/two-nodes, a packet of each in turn, ports in memory, a worker that never sleeps. "+
		"A turn is what the worker does from one batch to the next, with all that it has to wait for; the longest is that of a window of %v, which is of parts of %v. "+
		"A part is thrown away and measured again in which the host had a processor for more than %v of a millisecond, as a timer of the kernel tells that comes every %v on each, or another program took it from a thread that was not done: up to %d windows of parts, and if there is not half a window of others then, they are used and told as needed. What threads of Go's take from each other counts. "+
		"Collections are forced, %v after each other. Stop-the-world is Go's own count, by the upper bounds of its histogram, of parts thrown away, too. "+
		"With rules: another switch of the process, which has no packets, has %d rules of policies.", connections, window.Round(time.Millisecond), turnPart, sched.LeastStolen, sched.TimerPeriod, mostDropped, collectEvery, rules))
	if asleep != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("Idle processors sleep as they like, from which stops of the collector have to wake them: %v.", asleep))
	} else {
		c.Notes = append(c.Notes, "The worker has idle processors kept awake while the collector may be at work, as an agent's does that has keepAwake: auto.")
	}
	if strings.Contains(os.Getenv("GODEBUG"), "asyncpreemptoff=1") {
		c.Notes = append(c.Notes, "Go stops goroutines without signals, as in an agent.")
	} else {
		c.Notes = append(c.Notes, "Go stops goroutines by signals, too, which takes longer than in an agent: GODEBUG=asyncpreemptoff=1 leaves them out.")
	}
	if s.steal, err = sched.OpenStealMonitor(); err != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("No part is thrown away, for the kernel does not tell who has the processors: %v.", err))
	}
	measure := func(ctx context.Context) ([]rig.Reading, error) { return s.measure(ctx, window) }
	return r.RunRounds(ctx, c, []*rig.Side{{Name: "antrail", Measure: measure}})
}
