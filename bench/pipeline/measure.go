package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/workload"
)

// The cost of a packet in the pipeline alone is the difference of two costs: with the program, and with a
// single entry. Both are sampled in turn in many short windows. A disturbed sample is dropped. The median
// of the others counts.

// contender is a switch with a program and with a single entry.
type contender interface {
	// makeKnown makes the connections of packets known, and no others.
	makeKnown(context.Context, []*workload.Packets) error
	// takeSample sends packets for so long. If base is true, they take the single entry. If too few
	// come through, the error is errLost.
	takeSample(ctx context.Context, c *workload.Packets, base bool, long time.Duration) (sample, error)
	// installEntries installs entries, one to a line, in one bundle or each on its own. It returns how
	// long that took.
	installEntries(ctx context.Context, lines []string, bundle bool) (installTime, error)
	// removeInstalled removes what installEntries has installed.
	removeInstalled(context.Context) error
}

// measurement is a round of a contender.
type measurement struct {
	kinds []*workload.Packets
	// samples and base have an element for each kind: with the program, and with the single entry.
	samples, base []sampleSet
}

// alone is the cost of a packet in the pipeline alone. It is NaN if the single entry seems to cost as
// much, since it was disturbed more.
func (m *measurement) alone(i int) float64 {
	cost := m.samples[i].median(nanoseconds) - m.base[i].median(nanoseconds)
	if cost <= 0 {
		return math.NaN()
	}
	return cost
}

// aloneReadings are the figures that all contenders have: each kind's cost in the pipeline alone, and how
// many samples were disturbed.
func (m *measurement) aloneReadings() (list []rig.Reading) {
	dropped, tolerated := 0, 0
	for i, c := range m.kinds {
		list = append(list, rig.Reading{Name: c.Name, Unit: "ns", Value: m.alone(i)})
		dropped += m.samples[i].dropped + m.base[i].dropped
		tolerated += m.samples[i].tolerated + m.base[i].tolerated
	}
	return append(list,
		rig.Reading{Name: "windows thrown away", Unit: report.SamplesUnit, Value: float64(dropped)},
		rig.Reading{Name: "disturbed windows that were needed", Unit: report.SamplesUnit, Value: float64(tolerated)})
}

// samplePlan is how many samples of each kind are wanted.
type samplePlan struct {
	want int
	long time.Duration // of a sample
	// until is when dropped samples are no longer replaced.
	until time.Time
}

// another says whether a kind that lacks samples gets one more, after so many.
func (p *samplePlan) another(had int) bool {
	return had < p.want || had < mostSamples*p.want && time.Now().Before(p.until)
}

// measureKinds measures a round. It samples packets of known connections in turn, then those of new ones,
// and the single entry before each sample.
func measureKinds(ctx context.Context, s contender, kinds []*workload.Packets, p samplePlan) (*measurement, error) {
	var known []*workload.Packets
	for _, c := range kinds {
		if c.Connections > 0 {
			known = append(known, c)
		}
	}
	if err := s.makeKnown(ctx, known); err != nil {
		return nil, err
	}
	w := &sampler{contender: s, kinds: kinds, samplePlan: p, samples: make([][]sample, len(kinds)), base: make([][]sample, len(kinds))}
	for _, fresh := range []bool{false, true} {
		for i := 0; p.another(i) || i < mostSamplesInNeed*p.want && w.needsSample(fresh); i++ {
			if err := w.sampleKinds(ctx, fresh); err != nil {
				return nil, err
			}
		}
	}
	m := &measurement{kinds: kinds}
	for i := range kinds {
		m.samples, m.base = append(m.samples, selectSamples(w.samples[i], p.want)), append(m.base, selectSamples(w.base[i], p.want))
	}
	return m, nil
}

// sampler takes the samples of a round.
type sampler struct {
	samplePlan
	contender     contender
	kinds         []*workload.Packets
	samples, base [][]sample // by kind
}

// needsSample says whether a kind has no usable sample yet, or none of the single entry. It looks at
// packets of new connections if fresh is true, else at those of known ones.
func (w *sampler) needsSample(fresh bool) bool {
	for i, c := range w.kinds {
		if (c.Connections == 0) == fresh && (!slices.ContainsFunc(w.samples[i], isUsable) || !slices.ContainsFunc(w.base[i], isUsable)) {
			return true
		}
	}
	return false
}

// sampleKinds takes one sample of each kind that lacks undisturbed ones, and one of the single entry
// before each. fresh is that of needsSample.
func (w *sampler) sampleKinds(ctx context.Context, fresh bool) error {
	for i, c := range w.kinds {
		if (c.Connections == 0) != fresh || min(countUndisturbed(w.samples[i]), countUndisturbed(w.base[i])) >= w.want {
			continue
		}
		b, err := w.takeSample(ctx, c, true)
		if err != nil {
			return fmt.Errorf("a single entry: %w", err)
		}
		k, err := w.takeSample(ctx, c, false)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		w.base[i], w.samples[i] = append(w.base[i], b), append(w.samples[i], k)
	}
	return nil
}

// takeSample takes one sample. If its packets were lost, it is fully disturbed.
func (w *sampler) takeSample(ctx context.Context, c *workload.Packets, base bool) (sample, error) {
	k, err := w.contender.takeSample(ctx, c, base, w.long)
	if errors.Is(err, errLost) {
		k, err = sample{disturbed: 1}, nil
	}
	return k, errors.Join(err, ctx.Err())
}
