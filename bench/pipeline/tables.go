package pipeline

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// The cost of each table is a comparison of its own. Its sides are the kinds of packets. The switch that
// is measured has no cache, so each packet walks. It times some walks (lookup.TableTimes).

// timeEvery is how many walks there are for one that is timed. They are so few that the clock's data
// stays in the processor's caches.
const timeEvery = 101

// tableTime is what a table costs a packet of a sample. A packet may visit a table several times.
type tableTime struct {
	name            string
	timed           uint64  // visits that were timed
	lookup, actions float64 // ns
}

// tableTimesOf returns the cost of all tables, in the pipeline's order, from their counters before and
// after so many packets.
func tableTimesOf(before, after []telemetry.TableStats, packets int) (list []tableTime) {
	for i, t := range after {
		lookups, timed := float64(t.Lookups-before[i].Lookups), t.Times.Timed-before[i].Times.Timed
		visits := lookups / float64(packets) / float64(max(timed, 1))
		list = append(list, tableTime{t.Name, timed,
			visits * float64(t.Times.Lookup-before[i].Times.Lookup), visits * float64(t.Times.Actions-before[i].Times.Actions)})
	}
	return list
}

// TablesName is the name of the comparison of tables.
const TablesName = "pipeline-tables"

// tableTimes is a switch without a cache, and what its tables cost so far.
type tableTimes struct {
	*antrailContender
	summary rig.Summary // its sides are kinds of packets
}

// openTableTimes makes the switch.
func openTableTimes(p *flow.Program) (*tableTimes, error) {
	w, err := openAntrail(p, testbed.SwitchOptions{Cache: -1, TimeEvery: timeEvery})
	if err != nil {
		return nil, err
	}
	w.program.timeTables, w.single.timeTables = true, true
	return &tableTimes{antrailContender: w}, nil
}

// The lines behind those of the tables.
const (
	allLookups = "all tables, lookups"
	allActions = "all tables, actions"
	allTables  = "all tables"
	wholeWalk  = "the walk by the clock, less a single entry's"
	allToWhole = "all tables less the single one, over the walk"
)

// totals are the lines that are made of others.
var totals = []string{allLookups, allActions, allTables, wholeWalk, allToWhole}

// measureRound measures the kinds once.
func (b *tableTimes) measureRound(ctx context.Context, kinds []*workload.Packets, p samplePlan) error {
	m, err := measureKinds(ctx, b, kinds, p)
	if err != nil {
		return err
	}
	for _, c := range kinds {
		b.summary.AddSide(c.ShortName())
	}
	for i, c := range kinds {
		b.summary.Add(c.ShortName(), 0, m.tableReadings(i))
	}
	return nil
}

// tableReadings are the figures of a kind in one round. They are the mean of its samples by table, the
// sums of those, and the cost of the whole walk by the clock.
func (m *measurement) tableReadings(i int) (list []rig.Reading) {
	lookups, actions := 0.0, 0.0
	for _, t := range meanOf(m.samples[i].kept) {
		cost := math.NaN()
		if t.timed > 0 {
			cost = t.lookup + t.actions
			lookups += t.lookup
			actions += t.actions
		}
		list = append(list, rig.Reading{Name: t.name, Unit: "ns", Value: cost})
	}
	single := 0.0
	for _, t := range meanOf(m.base[i].kept) {
		single += t.lookup + t.actions
	}
	if len(list) == 0 {
		lookups, actions = math.NaN(), math.NaN()
	}
	return append(list,
		rig.Reading{Name: allLookups, Unit: "ns", Value: lookups}, rig.Reading{Name: allActions, Unit: "ns", Value: actions}, rig.Reading{Name: allTables, Unit: "ns", Value: lookups + actions},
		rig.Reading{Name: wholeWalk, Unit: "ns", Value: m.alone(i)}, rig.Reading{Name: allToWhole, Unit: partUnit, Value: 100 * (lookups + actions - single) / m.alone(i)})
}

// partUnit is the unit of a part of a whole.
const partUnit = "%"

// meanOf returns the mean of samples by table, weighted by how many visits were timed.
func meanOf(samples []sample) (mean []tableTime) {
	for _, w := range samples {
		for i, t := range *w.tables {
			if i == len(mean) {
				mean = append(mean, tableTime{name: t.name})
			}
			mean[i].timed += t.timed
			mean[i].lookup += t.lookup * float64(t.timed)
			mean[i].actions += t.actions * float64(t.timed)
		}
	}
	for i := range mean {
		n := float64(max(mean[i].timed, 1))
		mean[i].lookup /= n
		mean[i].actions /= n
	}
	return mean
}

// comparison is what the rounds found; nil if there was none. A note names tables that no packet visits.
func (b *tableTimes) comparison(machine string) *report.Comparison {
	lines := b.summary.Lines()
	if len(lines) == 0 {
		return nil
	}
	c := &report.Comparison{Profile: TablesName, Title: "A packet's way through the pipeline, by table", Machine: machine, Grid: true, Sides: b.summary.Sides}
	var unvisited []string
	for _, l := range lines {
		l.Sum = slices.Contains(totals, l.Name)
		for _, s := range l.Reached {
			if s != nil {
				s.Ratio = 0 // kinds of packets do not compete
			}
		}
		if l.Empty() {
			unvisited = append(unvisited, l.Name+whyNoPacket[l.Name])
			continue
		}
		c.Lines = append(c.Lines, l)
	}
	for i := range c.Sides {
		if !slices.ContainsFunc(c.Lines, func(l report.Line) bool { return l.Reached[i] != nil }) {
			c.Notes = append(c.Notes, rig.MissingNote)
			break
		}
	}
	entries := len(b.program.sw.Flows())
	tables := slices.DeleteFunc(b.program.sw.Tables(), func(t telemetry.TableStats) bool { return t.Entries == 0 })
	c.Notes = append(append(c.Notes, tablesNotes...),
		fmt.Sprintf("%d entries in %d tables. None of these packets visits %s.", entries, len(tables), strings.Join(unvisited, ", ")),
		"No packet visits all other tables. The source is translated only for the tunnel, the gateway and hairpin connections, and those are exempt from ingress policies.",
		"All packets pass TrafficControl, which mirrors and redirects nothing here.")
	return c
}

// whyNoPacket says why no UDP packet between pods visits a table.
var whyNoPacket = map[string]string{
	"ARPSpoofGuard": " (ARP only)", "ARPResponder": " (ARP only)", "EgressMark": " (what leaves for the outside)",
}

// tablesNotes say how tables are measured.
var tablesNotes = []string{
	"antrail runs on ports in memory as in profile pipeline, but without exact-match cache and megaflows. Each packet walks every table of its path, so the figures are the costs of a cache miss.",
	"A table's time is the lookup and everything that the entry does until the next table, with ct() and groups. The cost of reading the clock is subtracted.",
	"The rig times one walk in 101. An agent times one in 1021 (dump-tables), so that timing costs nothing. Its figures are higher, because the timing code is less often in the processor's caches.",
}
