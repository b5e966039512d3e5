package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/dataplane"
)

// Profile trace-link: what a live trace costs a stream between two pods, through
// an agent with real links: trace's conditions (live.go) one after the other on
// connections that stay.

const traceLinkNote = "One TCP stream between two pods of a Node through an agent, on packet sockets, given to the kernel by it, and on AF_XDP, with the entries of examples/two-nodes. " +
	"Contenders are the same agent while nobody watches, while a live trace is armed that wants none of the packets (its filter is \"" + unwantedOfStream + "\"), and while 100 packets are watched (\"" + wantedOfStream + "\"). " +
	"A stream is measured for five windows after it has flowed for two; a trace begins and ends with that time. Processor time is as in profile stream, with that of who reads the walks, which are made, sent and read as antrail trace --live does. Packets lost are those that matched and were not recorded."

// The filters of both traces.
const (
	unwantedOfStream = "tcp port 80 and host 10.10.0.99"
	wantedOfStream   = "tcp port 80"
)

// linkWindows is how many windows a stream is watched for, so that 100 packets are
// those of a second.
const linkWindows = 5

func runTraceLink(ctx context.Context, r *rig, c *Comparison) (err error) {
	c.Notes = append(c.Notes, traceLinkNote)
	dir, err := writeExamples()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var points []point
	for _, o := range r.labOpeners(ctx, dir, carriers...) {
		r.say("%s: %s starts", c.Profile, o.name)
		l, err2 := openWatchedLink(ctx, o)
		if err2 != nil {
			return fmt.Errorf("%s: %w", o.name, err2)
		}
		defer func() { err = errors.Join(err, l.close()) }()
		points = append(points, point{sides: []*side{
			r.watchedLinkSide("nobody watches", l, nil),
			r.watchedLinkSide("a trace that wants none", l, &agent.LiveTraceRequest{Filter: unwantedOfStream}),
			r.watchedLinkSide(fmt.Sprintf("%d watched", watchedOfWindow), l, &agent.LiveTraceRequest{Filter: wantedOfStream, Count: watchedOfWindow}),
		}})
	}
	return r.contestAt(ctx, c, points)
}

// watchedLink is a lab and a stream in it, which rests between windows.
type watchedLink struct {
	*podPair
	stream *flows
}

func openWatchedLink(ctx context.Context, o opener) (*watchedLink, error) {
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
	l := &watchedLink{podPair: p}
	if l.stream, err = startFlows(list); err != nil {
		return nil, errors.Join(err, l.close())
	}
	l.stream.rest.Store(true)
	return l, nil
}

func (l *watchedLink) close() error { return errors.Join(l.stream.stop(), l.podPair.close()) }

// watchedLinkSide measures a link while a trace is armed; none when req is nil.
func (r *rig) watchedLinkSide(name string, l *watchedLink, req *agent.LiveTraceRequest) *side {
	return &side{name: name, measure: func(ctx context.Context) ([]reading, error) {
		l.stream.rest.Store(false)
		defer l.stream.rest.Store(true)
		wait(ctx, r.Window)
		if l.warm != nil {
			if err := l.warm(ctx, 1); err != nil {
				return nil, err
			}
		}
		wait(ctx, r.Window)
		t := startTrace(ctx, l.agent, req)
		rate, each, err := l.watch(ctx, l.stream, linkWindows*r.Window)
		told, err2 := t.stop()
		of := "one stream, " + strings.TrimPrefix(l.name, antrailName+" ")
		return []reading{
			{of, "Gbit/s", rate},
			{of + ", processor time of a kB", "ns", each},
			{of + ", packets watched", "packets", float64(told.Told)},
			{of + ", packets lost to the trace", "packets", float64(told.Lost)},
		}, errors.Join(err, err2)
	}}
}

// linkTrace is a live trace under way.
type linkTrace struct {
	end  context.CancelFunc
	told chan dataplane.LiveCounts
	err  chan error
}

// startTrace begins a live trace at an agent, none when req is nil.
func startTrace(ctx context.Context, a *agent.Client, req *agent.LiveTraceRequest) *linkTrace {
	ctx, cancel := context.WithCancel(ctx)
	t := &linkTrace{cancel, make(chan dataplane.LiveCounts, 1), make(chan error, 1)}
	if req == nil {
		t.told <- dataplane.LiveCounts{}
		t.err <- nil
		return t
	}
	go t.runReader(ctx, a, req)
	return t
}

// runReader reads the walks of a trace until it ends, and counts them.
func (t *linkTrace) runReader(ctx context.Context, c *agent.Client, req *agent.LiveTraceRequest) {
	var counts dataplane.LiveCounts
	err := c.TraceLive(ctx, req, func(l *agent.LiveLine) error {
		if l.Walk != nil {
			counts.Told++
		}
		if l.Counts != nil {
			counts.Lost = l.Counts.Lost
		}
		return nil
	})
	if ctx.Err() != nil { // the window was over, perhaps before it had begun
		err = nil
	}
	t.told <- counts
	t.err <- err
}

// stop ends the trace, and returns what it told.
func (t *linkTrace) stop() (dataplane.LiveCounts, error) {
	t.end()
	return <-t.told, <-t.err
}
