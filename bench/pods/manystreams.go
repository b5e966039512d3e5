package pods

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
)

// manyStreams is how many streams flow together.
const manyStreams = 8

// streamNote says how streams are measured.
const streamNote = "Streams are as bulk transfers are by default; of one it is told too what it is with TCP_NODELAY, which Go and most servers set: a sender then hands over the end of each write at once, in place of having it go with the next acknowledgement. A stream is measured after half a window, and with offload once the kernel has all of them. Sender and receiver are threads of their own in blocking calls, which run where the kernel puts them. " +
	"Processor time: all that sender, receiver, the switch and the kernel's threads for softirqs ran, by what arrived; unlike the rate it stays about the same while others take processors away. " +
	"Bare packet sockets: a thread each way that reads a frame from one pod's packet socket and writes it to the other's, without a pipeline, at rest while others are measured."

// RunStream is profile stream: bulk TCP between two pods.
func (p *Profiles) RunStream(ctx context.Context, r *rig.Rig, c *report.Comparison) error {
	c.Notes = append(c.Notes, streamNote)
	return p.runPairs(ctx, r, c, measureStreams)
}

// measureStreams measures one stream, with and without TCP_NODELAY, and many streams.
func measureStreams(ctx context.Context, p *pair, window time.Duration) ([]rig.Reading, error) {
	var all []rig.Reading
	for _, of := range []struct {
		name    string
		streams int
		noDelay bool
	}{{"one stream", 1, false}, {"one stream, TCP_NODELAY", 1, true}, {fmt.Sprintf("%d streams together", manyStreams), manyStreams, false}} {
		rate, each, err := p.measureStream(ctx, of.streams, of.noDelay, window)
		if err != nil {
			return nil, err
		}
		all = append(all, rig.Reading{Name: of.name, Unit: "Gbit/s", Value: rate}, rig.Reading{Name: of.name + ", processor time of a kB", Unit: "ns", Value: each})
	}
	return all, nil
}

// measureStream measures n connections after half a window. It returns the Gbit/s that arrive, and the
// nanoseconds of processor time of a kB.
func (p *pair) measureStream(ctx context.Context, n int, noDelay bool, window time.Duration) (rate, each float64, err error) {
	list, err := p.connect(ctx, n)
	for _, c := range list {
		err = errors.Join(err, c.client.SetNoDelay(noDelay))
	}
	if err != nil {
		for _, c := range list {
			c.close()
		}
		return 0, 0, err
	}
	f, err := startFlows(list)
	if err != nil {
		return 0, 0, errors.Join(err, f.stop())
	}
	sched.Wait(ctx, window/2)
	if p.waitWarm != nil {
		err = p.waitWarm(ctx, n)
	}
	if err == nil {
		rate, each, err = p.watchFlows(ctx, f, window)
	}
	return rate, each, errors.Join(err, f.stop(), ctx.Err())
}
