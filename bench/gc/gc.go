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
	c.Notes = append(c.Notes,
		fmt.Sprintf("%d UDP connections pass through the pipeline of examples/two-nodes, a packet of each in turn. Ports are in memory, and the worker never sleeps.", connections),
		fmt.Sprintf("A turn is the time from one batch of the worker to the next, with all waits. The longest turn is that of a window of %v, measured in parts of %v.", window.Round(time.Millisecond), turnPart),
		fmt.Sprintf("A part is disturbed if a processor was stolen for %v of a millisecond: by the host, or by a program that preempted a thread of the rig. A kernel timer on each busy processor, every %v, shows the host's share.", sched.LeastStolen, sched.TimerPeriod),
		fmt.Sprintf("The rig discards disturbed parts and measures again, until the discarded parts fill %d windows. If less than half a window is undisturbed then, the disturbed parts count, and a row says how many.", mostDropped),
		"Go's threads may preempt each other: that does not disturb a part.",
		fmt.Sprintf("A collection is forced %v after the previous one. Stop-the-world is Go's own histogram of pauses, by upper bounds, with discarded parts.", collectEvery),
		fmt.Sprintf("With rules: another switch of the process has %d policy rules and no packets.", rules))
	if asleep != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("Idle processors may sleep, and a stop of the collector has to wake them: %v.", asleep))
	} else {
		c.Notes = append(c.Notes, "The worker keeps idle processors awake while the collector may run, like an agent with keepAwake: auto.")
	}
	if strings.Contains(os.Getenv("GODEBUG"), "asyncpreemptoff=1") {
		c.Notes = append(c.Notes, "Go stops goroutines without signals, as in an agent.")
	} else {
		c.Notes = append(c.Notes, "Go also stops goroutines by signals, which takes longer than in an agent. Set GODEBUG=asyncpreemptoff=1 to measure without signals.")
	}
	if s.steal, err = sched.OpenStealMonitor(); err != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("No part is discarded, because the kernel does not report steal time: %v.", err))
	}
	measure := func(ctx context.Context) ([]rig.Reading, error) { return s.measure(ctx, window) }
	return r.RunRounds(ctx, c, []*rig.Side{{Name: "antrail", Measure: measure}})
}
