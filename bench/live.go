package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/filter"
)

// Profile trace: what live traces cost a loaded worker.

const traceNote = "antrail's switch with ports in memory, batches of 64, one thread, wall time, on the pipeline of examples/two-nodes: packets from db-a to client-a of a connection that is known, and of 100,000 in turn. " +
	"Contenders are the same switch while nobody watches, while a trace is armed that wants none of the packets (its filter is \"tcp port 80 and host 10.10.0.24\"), while 100 packets are watched out of each window, and while every packet is. " +
	"Whoever takes the walks drops them. Windows that somebody disturbed are thrown away as in profile pipeline."

// unwanted is a filter that none of the packets meets.
const unwanted = "tcp port 80 and host 10.10.0.24"

// watchedOfWindow is how many packets of a window are watched.
const watchedOfWindow = 100

func runTrace(ctx context.Context, r *rig, c *Comparison) error {
	program, err := exampleProgram("two-nodes/node-a")
	if err != nil {
		return err
	}
	w, err := newWalker(program, switchOptions{})
	if err != nil {
		return err
	}
	c.Notes = append(c.Notes, traceNote)
	none, err := filter.Compile(unwanted)
	if err != nil {
		return errors.Join(err, w.sw.Close())
	}
	wants := func(f *filter.Filter) func([]byte, uint32) bool {
		return func(b []byte, _ uint32) bool { return f.Match(b) }
	}
	all, err := filter.Compile("udp")
	if err != nil {
		return errors.Join(err, w.sw.Close())
	}
	sides := []*side{
		r.watchedSide("nobody watches", w, nil),
		r.watchedSide("a trace that wants none", w, &dataplane.LiveRequest{Match: wants(none)}),
		r.watchedSide(fmt.Sprintf("%d of a window watched", watchedOfWindow), w, &dataplane.LiveRequest{Match: wants(all), Count: watchedOfWindow}),
		r.watchedSide("all watched", w, &dataplane.LiveRequest{Match: wants(all)}),
	}
	return errors.Join(r.contest(ctx, c, sides), w.sw.Close())
}

// watchedSide measures a switch while a live trace is armed; none when req is nil.
func (r *rig) watchedSide(name string, w *walker, req *dataplane.LiveRequest) *side {
	return &side{name: name, measure: func(ctx context.Context) (list []reading, err error) {
		for i, c := range []*course{knownCourse(), manyCourse()} {
			of := []string{"a known connection", "100,000 connections"}[i]
			g, told, err := r.watched(ctx, w, c, req)
			if err != nil {
				return nil, err
			}
			list = append(list,
				reading{"a packet of " + of, "ns", g.median(nanoseconds)},
				reading{"allocations of a packet of " + of, "allocs", math.Round(1000*g.median(allocations)) / 1000},
				reading{"walks of a window of " + of, "walks", told},
				reading{"windows of " + of + " thrown away", windowsUnit, float64(g.thrown)})
		}
		return list, nil
	}}
}

// watched is windows of a course while a trace is armed, and how many walks one
// of them brought.
func (r *rig) watched(ctx context.Context, w *walker, c *course, req *dataplane.LiveRequest) (g gathered, told float64, err error) {
	w.ct.Flush()
	runtime.GC()
	if err := w.know(c); err != nil {
		return g, 0, err
	}
	var all []cost
	p := plan{windowsOfRound, r.Window / windowsOfRound, r.until}
	for undisturbed(all) < p.want && p.another(len(all)) {
		t := taker{sw: w.sw, req: req}
		w.began, w.passed = t.begin, t.take
		k, err := w.measure(c, p.long)
		w.began, w.passed = nil, nil
		if err := errors.Join(err, t.end(), ctx.Err()); err != nil {
			return g, 0, err
		}
		all, told = append(all, k), float64(t.taken)
	}
	return sift(all, p.want), told, nil
}

// taker takes the walks of a live trace, and drops them.
type taker struct {
	sw    *dataplane.Switch
	req   *dataplane.LiveRequest
	live  *dataplane.LiveTrace
	taken uint64
}

func (t *taker) begin() (err error) {
	if t.req != nil {
		t.live, err = t.sw.TraceLive(*t.req)
	}
	return err
}

// take takes what there is.
func (t *taker) take() error {
	if t.live == nil {
		return nil
	}
	for told := t.live.Counts().Told; t.taken < told; t.taken++ {
		if _, err := t.live.Next(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

// end ends the trace; packets that were not watched are an error.
func (t *taker) end() error {
	if t.live == nil {
		return nil
	}
	t.live.Close()
	if c := t.live.Counts(); c.Lost > 0 {
		return fmt.Errorf("%d packets were not watched", c.Lost)
	}
	return nil
}
