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

// streamNotes say how streams are measured.
var streamNotes = []string{
	"Streams use the socket defaults of a bulk transfer. The rows \"TCP_NODELAY\" repeat one stream with that option, which Go and most servers set: the sender then sends the end of each write at once, rather than with the next acknowledgement.",
	"A stream is measured after half a window, and with offload once the kernel has all streams.",
	"Sender and receiver are threads of their own in blocking calls. They run where the kernel puts them.",
	"Processor time is that of sender, receiver, switch and softirq threads, for each kB that arrived. Unlike the rate, it hardly changes while other programs take processors.",
	"Bare packet sockets: one thread for each direction reads a frame from one pod's packet socket and writes it to the other's. It has no pipeline, and rests while the rig measures others.",
}

// RunStream is profile stream: bulk TCP between two pods.
func (p *Profiles) RunStream(ctx context.Context, r *rig.Rig, c *report.Comparison) error {
	c.Notes = append(c.Notes, streamNotes...)
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
