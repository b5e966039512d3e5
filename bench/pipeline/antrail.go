package pipeline

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/flow"
)

// antrailContender is antrail as a contender: a switch with the program, and one with a single entry.
type antrailContender struct{ program, single *memorySwitch }

// openAntrail makes both switches.
func openAntrail(p *flow.Program, o testbed.SwitchOptions) (*antrailContender, error) {
	bare, err := workload.SingleEntryProgram()
	if err != nil {
		return nil, err
	}
	w := new(antrailContender)
	if w.single, err = newMemorySwitch(bare, o); err != nil {
		return nil, err
	}
	if w.program, err = newMemorySwitch(p, o); err != nil {
		return nil, errors.Join(err, w.single.sw.Close())
	}
	return w, nil
}

// close closes both switches.
func (w *antrailContender) close() error {
	return errors.Join(w.single.sw.Close(), w.program.sw.Close())
}

// makeKnown replaces the connections of the switch with the program.
func (w *antrailContender) makeKnown(_ context.Context, kinds []*workload.Packets) error {
	w.program.ct.Flush()
	runtime.GC() // samples make no garbage
	for _, c := range kinds {
		if err := w.program.makeKnown(c); err != nil {
			return err
		}
	}
	return nil
}

// takeSample samples one of the switches.
func (w *antrailContender) takeSample(_ context.Context, c *workload.Packets, base bool, long time.Duration) (sample, error) {
	if base {
		return w.single.takeSample(&workload.Packets{Frame: c.Frame, Connections: 1}, long)
	}
	if c.Connections == 0 {
		w.program.ct.Flush() // known connections, and new ones of the last sample
	}
	return w.program.takeSample(c, long)
}
