package pods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/dataplane/telemetry"
)

// traceLinkNotes say what profile trace-link measures.
var traceLinkNotes = []string{
	"One TCP stream goes between two pods of a Node through an agent with the entries of examples/two-nodes: on packet sockets, offloaded to the kernel, and on AF_XDP.",
	"All sides are the same agent under different live traces: no trace, a trace that matches no packet (\"" + unwantedOfStream + "\"), and a trace that records 100 packets (\"" + wantedOfStream + "\").",
	"A stream flows for two windows, then the rig measures five windows. A trace begins and ends with those five.",
	"Processor time is as in profile stream, with that of the trace's reader. The walks are made, sent and read as antrail trace --live does.",
	"Packets lost are those that matched and were not recorded.",
}

// The filters of both traces: the stream matches the second one only.
const (
	unwantedOfStream = "tcp port 80 and host 10.10.0.99"
	wantedOfStream   = "tcp port 80"
)

// watchedPackets is how many packets a trace watches.
const watchedPackets = 100

// traceWindows is how many windows a stream is measured for, so that 100 packets are those of a second.
const traceWindows = 5

// RunTraceLink is profile trace-link: what a live trace costs a stream between two pods, through an agent
// with real links. It has the conditions of profile trace, on connections that stay.
func RunTraceLink(ctx context.Context, r *rig.Rig, c *report.Comparison) (err error) {
	c.Notes = append(c.Notes, traceLinkNotes...)
	dir, err := writeExamples()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var points []rig.Point
	for _, o := range labOpeners(ctx, r, dir, labCarriers...) {
		r.Say("%s: %s starts", c.Profile, o.name)
		l, err2 := openWatchedStream(ctx, o)
		if err2 != nil {
			return fmt.Errorf("%s: %w", o.name, err2)
		}
		defer func() { err = errors.Join(err, l.close()) }()
		points = append(points, rig.Point{Sides: []*rig.Side{
			watchedSide(r, "nobody watches", l, nil),
			watchedSide(r, "a trace that wants none", l, &api.LiveTraceRequest{Filter: unwantedOfStream}),
			watchedSide(r, fmt.Sprintf("%d watched", watchedPackets), l, &api.LiveTraceRequest{Filter: wantedOfStream, Count: watchedPackets}),
		}})
	}
	return r.RunSweep(ctx, c, points)
}

// watchedStream is a lab with a stream that rests between measurements.
type watchedStream struct {
	*pair
	flows *flows
}

// openWatchedStream opens a lab and starts its stream. It rests.
func openWatchedStream(ctx context.Context, o opener) (*watchedStream, error) {
	p, err := o.open()
	if err != nil {
		return nil, err
	}
	list, err := p.connect(ctx, 1)
	if err != nil {
		for _, c := range list {
			c.close()
		}
		return nil, errors.Join(err, p.close())
	}
	l := &watchedStream{pair: p}
	if l.flows, err = startFlows(list); err != nil {
		return nil, errors.Join(err, l.close())
	}
	l.flows.resting.Store(true)
	return l, nil
}

// close ends the stream and closes the lab.
func (l *watchedStream) close() error { return errors.Join(l.flows.stop(), l.pair.close()) }

// watchedSide is a side that measures the stream while a trace is armed. If req is nil, none is armed.
func watchedSide(r *rig.Rig, name string, l *watchedStream, req *api.LiveTraceRequest) *rig.Side {
	return &rig.Side{Name: name, Measure: func(ctx context.Context) ([]rig.Reading, error) {
		l.flows.resting.Store(false)
		defer l.flows.resting.Store(true)
		sched.Wait(ctx, r.Window)
		if l.waitWarm != nil {
			if err := l.waitWarm(ctx, 1); err != nil {
				return nil, err
			}
		}
		sched.Wait(ctx, r.Window)
		t := startTrace(ctx, l.agent, req)
		rate, each, err := l.watchFlows(ctx, l.flows, traceWindows*r.Window)
		told, err2 := t.stop()
		of := "one stream, " + strings.TrimPrefix(l.name, "antrail ")
		return []rig.Reading{
			{Name: of, Unit: "Gbit/s", Value: rate},
			{Name: of + ", processor time of a kB", Unit: "ns", Value: each},
			{Name: of + ", packets watched", Unit: "packets", Value: float64(told.Told)},
			{Name: of + ", packets lost to the trace", Unit: "packets", Value: float64(told.Missed)},
		}, errors.Join(err, err2)
	}}
}

// liveTrace is a live trace under way.
type liveTrace struct {
	end  context.CancelFunc
	told chan telemetry.LiveCounts
	err  chan error
}

// startTrace begins a live trace at an agent. If req is nil, there is none.
func startTrace(ctx context.Context, a *api.Client, req *api.LiveTraceRequest) *liveTrace {
	ctx, cancel := context.WithCancel(ctx)
	t := &liveTrace{cancel, make(chan telemetry.LiveCounts, 1), make(chan error, 1)}
	if req == nil {
		t.told <- telemetry.LiveCounts{}
		t.err <- nil
		return t
	}
	go t.runReader(ctx, a, req)
	return t
}

// runReader reads the walks of a trace until it ends, and counts them.
func (t *liveTrace) runReader(ctx context.Context, c *api.Client, req *api.LiveTraceRequest) {
	var counts telemetry.LiveCounts
	err := c.TraceLive(ctx, req, func(l *api.LiveLine) error {
		if l.Walk != nil {
			counts.Told++
		}
		if l.Counts != nil {
			counts.Missed = l.Counts.Missed
		}
		return nil
	})
	if ctx.Err() != nil { // the window was over, perhaps before it had begun
		err = nil
	}
	t.told <- counts
	t.err <- err
}

// stop ends the trace, and returns how many walks it had, and how many were lost.
func (t *liveTrace) stop() (telemetry.LiveCounts, error) {
	t.end()
	return <-t.told, <-t.err
}
