// Package upgrade measures how the traffic of a lab fares when an agent or its switch is
// killed or replaced.
//
//	upgrade.go    the run: traffic, then one event after another
//	upgradestreams.go TCP connections, each with a heartbeat
//	datagramstream.go numbered UDP packets, and the times at which they came
//	upgradereport.go the report
//
// All traffic passes the Node whose agent is killed. It goes between the Node's pods, to a
// Service, to and from the other Node's pods, and from the Node itself. The results come
// from the traffic, not from the agent. A connection is lost if its ends say so. A gap is
// the time between two packets by the kernel's time stamps. The report shows the agents'
// own figures beside them.
package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/lab"
)

// Options of Run. Each zero value has a default.
type Options struct {
	Connections int           // TCP connections; 0 is 1000
	Heartbeat   time.Duration // interval of each connection; 0 is 200 ms
	Rate        int           // UDP packets a second; 0 is 10,000
	// Window is how long traffic is observed after each event; 0 is 3 s.
	Window time.Duration
	// Kills is how often the agent is killed; 0 is 20.
	Kills int
	// Binary is the agent to start; "" is the running program.
	Binary   string
	Progress io.Writer // a line per step; nil for none
}

// node is the Node whose agent is killed or replaced.
const node = "node-a"

func (o *Options) complete() error {
	if o.Connections > sourcePorts {
		return fmt.Errorf("%d connections are too many: there are %d source ports", o.Connections, sourcePorts)
	}
	if o.Connections < 0 || o.Rate < 0 || o.Heartbeat < 0 || o.Window < 0 {
		return errors.New("connections, rate, heartbeat and window are not negative")
	}
	o.Connections = cmp.Or(o.Connections, 1000)
	o.Heartbeat = cmp.Or(o.Heartbeat, 200*time.Millisecond)
	o.Rate = cmp.Or(o.Rate, 10000)
	o.Kills = cmp.Or(o.Kills, 20)
	o.Window = cmp.Or(o.Window, 3*time.Second)
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return nil
}

// run is a lab and its traffic.
type run struct {
	Options
	lab       *lab.Lab
	streams   *streams
	datagrams []*datagrams
}

// Run sends traffic through a lab that is up. Meanwhile the agent of node-a and its switch
// are killed, and then replaced. The report has the results. The error says why there is no
// report, or which switch's packet counters do not add up.
func Run(ctx context.Context, l *lab.Lab, o Options) (*Report, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if len(l.Topology.Nodes) != len(lab.TwoNodes().Nodes) {
		return nil, fmt.Errorf("the lab has %d Nodes, expected %d", len(l.Topology.Nodes), len(lab.TwoNodes().Nodes))
	}
	r := &run{Options: o, lab: l}
	ctx, stop := context.WithCancel(ctx)
	ended, err := r.start(ctx)
	report := &Report{Node: node, Connections: o.Connections, Rate: o.Rate}
	if err == nil {
		err = r.events(ctx, report)
	}
	stop()
	ended()
	if err == nil {
		err = l.Accounted(context.WithoutCancel(ctx))
	}
	return report, err
}

// start sends traffic until ctx ends. ended returns when all goroutines have ended.
func (r *run) start(ctx context.Context) (ended func(), err error) {
	var closers []io.Closer
	var running []func()
	ended = func() {
		for _, c := range closers {
			c.Close()
		}
		for _, wait := range running {
			wait()
		}
	}
	r.streams = &streams{lab: r.lab, heartbeat: r.Heartbeat}
	wait, err := r.streams.start(ctx, r.Connections)
	closers, running = append(closers, r.streams), append(running, wait)
	if err != nil {
		return ended, err
	}
	for _, p := range datagramPaths {
		d := &datagrams{path: p, rate: r.Rate / len(datagramPaths)}
		wait, err := d.start(ctx, r.lab)
		if err != nil {
			return ended, err
		}
		r.datagrams = append(r.datagrams, d)
		closers, running = append(closers, d), append(running, wait)
	}
	return ended, nil
}

// event is something that happens to the agent.
type event struct {
	name string
	// do returns when the new agent is ready. started is when its start began. seen gets
	// other results.
	do func(ctx context.Context, seen *Event) (started time.Time, err error)
}

// events runs one event after another, and reports the effects on traffic.
func (r *run) events(ctx context.Context, report *Report) error {
	all := []event{
		{"nothing", func(context.Context, *Event) (time.Time, error) { return time.Time{}, nil }},
		{fmt.Sprintf("agent: kill -9, %d times", r.Kills), r.killAgents},
		{"agent: planned", r.replaceAgent},
		{"switch: kill -9", r.killSwitch},
		{"switch: planned", r.replaceBoth},
	}
	for _, e := range all {
		if _, err := r.flows(ctx); err != nil {
			return fmt.Errorf("before %q: %w", e.name, err)
		}
		seen, err := r.watch(ctx, e)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		report.Events = append(report.Events, *seen)
	}
	return nil
}

// flowTime is how long packets may take until all paths flow. answerTime is how long
// connections may take to answer. TCP may retransmit 25 seconds after the last try, if the
// earlier tries failed.
const (
	flowTime   = 20 * time.Second
	answerTime = time.Minute
)

// flows returns when a packet has come on each path, and each connection that is not lost
// has answered. silent are the connections that have not answered within answerTime.
func (r *run) flows(ctx context.Context) (silent []*stream, err error) {
	all := slices.Clone(r.datagrams)
	since := time.Now()
	for ctx.Err() == nil {
		all = slices.DeleteFunc(all, func(d *datagrams) bool { return d.cameSince(since) })
		silent = r.streams.silent(since)
		switch waited := time.Since(since); {
		case len(all) > 0 && waited > flowTime:
			return nil, fmt.Errorf("no packet %s in %v", all[0].path, flowTime)
		case len(all) == 0 && (len(silent) == 0 || waited > answerTime):
			return silent, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil, ctx.Err()
}

// watch runs an event and observes the traffic until a window after it.
func (r *run) watch(ctx context.Context, e event) (*Event, error) {
	fmt.Fprintf(r.Progress, "%s\n", e.name)
	r.streams.beginWindow()
	for _, d := range r.datagrams {
		d.beginWindow(time.Now())
	}
	lostBefore := len(r.streams.lost())
	seen := &Event{Name: e.name}
	started, err := e.do(ctx, seen)
	if err != nil {
		return nil, err
	}
	if !started.IsZero() {
		seen.Ready = milliseconds(time.Since(started))
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(r.Window):
	}
	silent, err := r.flows(ctx)
	if err != nil {
		return nil, err
	}
	seen.connections(r.streams, lostBefore, silent)
	for _, d := range r.datagrams {
		d.end()
	}
	time.Sleep(straggling)
	for _, d := range r.datagrams {
		seen.Paths = append(seen.Paths, d.seen(started))
	}
	return seen, nil
}

// connections reports the lost, silent and slowest connections.
func (e *Event) connections(s *streams, lostBefore int, silent []*stream) {
	lost := s.lost()
	why := lost[min(lostBefore, len(lost)):]
	for _, one := range silent {
		why = append(why, one.unanswered())
	}
	e.Silent, e.Lost, e.Why, e.Slowest = len(silent), len(why), reasons(why), milliseconds(s.slowest())
}

// killAgents kills the agent and starts another, r.Kills times.
func (r *run) killAgents(ctx context.Context, seen *Event) (started time.Time, err error) {
	for range r.Kills {
		if started, err = r.kill(ctx, seen); err != nil {
			return started, err
		}
	}
	return started, nil
}

// replaceAgent starts an agent that takes over from the running one.
func (r *run) replaceAgent(ctx context.Context, _ *Event) (started time.Time, err error) {
	started = time.Now()
	return started, r.lab.ReplaceAgent(ctx, node, r.Binary)
}

// replaceBoth starts an agent that takes over from the running one. Its switch takes over
// from the running switch, too.
func (r *run) replaceBoth(ctx context.Context, seen *Event) (started time.Time, err error) {
	started = time.Now()
	if err := r.lab.ReplaceAgent(ctx, node, r.Binary, "--new-switch"); err != nil {
		return started, err
	}
	if err := r.lab.WaitAgent(ctx, node); err != nil {
		return started, err
	}
	info, err := door.Dial(r.lab.SwitchSocket(node)).Info(ctx)
	if err == nil {
		seen.Stopped = milliseconds(time.Duration(info.PauseNS))
	}
	return started, err
}

// killSwitch kills the switch. Its agent starts another.
func (r *run) killSwitch(ctx context.Context, _ *Event) (started time.Time, err error) {
	started = time.Now()
	if err := r.lab.KillSwitch(ctx, node); err != nil {
		return started, err
	}
	return started, r.lab.WaitAgent(ctx, node)
}

// kill kills the agent and starts another.
func (r *run) kill(ctx context.Context, _ *Event) (started time.Time, err error) {
	if err := r.lab.KillAgent(node); err != nil {
		return started, err
	}
	started = time.Now()
	return started, r.lab.RestartAgent(ctx, node, r.Binary)
}
