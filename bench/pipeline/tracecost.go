package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/filter"
)

// traceNotes say what profile trace measures.
var traceNotes = []string{
	"antrail's switch has ports in memory, batches of 64 and one thread, and runs the pipeline of examples/two-nodes. The figures are wall time.",
	"Packets go from db-a to client-a: packets of one known connection, and of 100,000 known connections in turn.",
	"All sides are the same switch under different traces. \"nobody watches\": no trace is armed. \"a trace that wants none\": its filter, \"tcp port 80 and host 10.10.0.24\", matches no packet.",
	"\"100 of a window watched\": a trace records 100 packets of each window. \"all watched\": a trace records every packet.",
	"The reader of the walks drops them. Disturbed windows are discarded as in profile pipeline.",
}

// unwantedFilter is a filter that matches none of the packets.
const unwantedFilter = "tcp port 80 and host 10.10.0.24"

// watchedOfSample is how many packets of a sample are watched.
const watchedOfSample = 100

// RunTrace is profile trace: what live traces cost a loaded worker.
func RunTrace(ctx context.Context, r *rig.Rig, c *report.Comparison) error {
	program, err := workload.ExampleProgram("two-nodes/node-a")
	if err != nil {
		return err
	}
	w, err := newMemorySwitch(program, testbed.SwitchOptions{})
	if err != nil {
		return err
	}
	c.Notes = append(c.Notes, traceNotes...)
	none, err := filter.Compile(unwantedFilter)
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
	sides := []*rig.Side{
		watchedSide(r, "nobody watches", w, nil),
		watchedSide(r, "a trace that wants none", w, &dataplane.LiveRequest{Match: wants(none)}),
		watchedSide(r, fmt.Sprintf("%d of a window watched", watchedOfSample), w, &dataplane.LiveRequest{Match: wants(all), Count: watchedOfSample}),
		watchedSide(r, "all watched", w, &dataplane.LiveRequest{Match: wants(all)}),
	}
	return errors.Join(r.RunRounds(ctx, c, sides), w.sw.Close())
}

// watchedSide is a side that measures a switch while a live trace is armed. If req is nil, none is armed.
func watchedSide(r *rig.Rig, name string, w *memorySwitch, req *dataplane.LiveRequest) *rig.Side {
	return &rig.Side{Name: name, Measure: func(ctx context.Context) (list []rig.Reading, err error) {
		for i, c := range []*workload.Packets{workload.KnownConnection(), workload.ManyConnections()} {
			of := []string{"a known connection", "100,000 connections"}[i]
			g, told, err := watchKind(ctx, r, w, c, req)
			if err != nil {
				return nil, err
			}
			list = append(list,
				rig.Reading{Name: "a packet of " + of, Unit: "ns", Value: g.median(nanoseconds)},
				rig.Reading{Name: "allocations of a packet of " + of, Unit: "allocs", Value: math.Round(1000*g.median(allocations)) / 1000},
				rig.Reading{Name: "walks of a window of " + of, Unit: "walks", Value: told},
				rig.Reading{Name: "windows of " + of + " thrown away", Unit: report.SamplesUnit, Value: float64(g.dropped)})
		}
		return list, nil
	}}
}

// watchKind samples packets while a trace is armed. told is how many walks the last sample had.
func watchKind(ctx context.Context, r *rig.Rig, w *memorySwitch, c *workload.Packets, req *dataplane.LiveRequest) (g sampleSet, told float64, err error) {
	w.ct.Flush()
	runtime.GC()
	if err := w.makeKnown(c); err != nil {
		return g, 0, err
	}
	var all []sample
	p := samplePlan{samplesOfRound, r.Window / samplesOfRound, r.Until}
	for countUndisturbed(all) < p.want && p.another(len(all)) {
		t := walkReader{sw: w.sw, req: req}
		w.onBegin, w.onBatch = t.beginTrace, t.readWalks
		k, err := w.takeSample(c, p.long)
		w.onBegin, w.onBatch = nil, nil
		if err := errors.Join(err, t.endTrace(), ctx.Err()); err != nil {
			return g, 0, err
		}
		all, told = append(all, k), float64(t.read)
	}
	return selectSamples(all, p.want), told, nil
}

// walkReader reads the walks of a live trace, and drops them.
type walkReader struct {
	sw   *dataplane.Switch
	req  *dataplane.LiveRequest // nil: no trace
	live *dataplane.LiveTrace
	read uint64 // walks read so far
}

// beginTrace arms the trace.
func (t *walkReader) beginTrace() (err error) {
	if t.req != nil {
		t.live, err = t.sw.TraceLive(*t.req)
	}
	return err
}

// readWalks reads the walks that there are.
func (t *walkReader) readWalks() error {
	if t.live == nil {
		return nil
	}
	for told := t.live.Counts().Told; t.read < told; t.read++ {
		if _, err := t.live.Next(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

// endTrace ends the trace. It is an error if packets were not watched.
func (t *walkReader) endTrace() error {
	if t.live == nil {
		return nil
	}
	t.live.Close()
	if c := t.live.Counts(); c.Missed > 0 {
		return fmt.Errorf("%d packets were not watched", c.Missed)
	}
	return nil
}
