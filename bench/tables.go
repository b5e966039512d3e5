package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
)

// What each table costs a packet of each course of profile pipeline: a
// comparison of its own, whose sides are the courses. The switch that is measured
// remembers nothing, so that each packet walks; of the walks in it that are timed
// (dataplane.TableTimes) come the figures.

// timeEvery is of how many walks one is timed: so often that what timing needs is in
// the processor's caches.
const timeEvery = 101

// tableCost is what a table costs a packet of a window, in nanoseconds. A packet may
// be in a table several times.
type tableCost struct {
	name            string
	timed           uint64
	lookup, actions float64
}

// tableCosts are those of all tables, in the pipeline's order.
func tableCosts(before, after []dataplane.TableStats, packets int) (list []tableCost) {
	for i, t := range after {
		lookups, timed := float64(t.Lookups-before[i].Lookups), t.Times.Timed-before[i].Times.Timed
		visits := lookups / float64(packets) / float64(max(timed, 1))
		list = append(list, tableCost{t.Name, timed,
			visits * float64(t.Times.Lookup-before[i].Times.Lookup), visits * float64(t.Times.Actions-before[i].Times.Actions)})
	}
	return list
}

// tablesName is the name of the comparison.
const tablesName = "pipeline-tables"

// byTable is the switch that walks, and what it has told so far.
type byTable struct {
	*walk
	board board // its sides are courses
}

func newByTable(p *flow.Program) (*byTable, error) {
	w, err := newWalk(p, switchOptions{cache: -1, timeEvery: timeEvery})
	if err != nil {
		return nil, err
	}
	w.program.tables, w.single.tables = true, true
	return &byTable{walk: w}, nil
}

// The rows behind those of the tables.
const (
	allLookups = "all tables, lookups"
	allActions = "all tables, actions"
	allTables  = "all tables"
	wholeWalk  = "the walk by the clock, less a single entry's"
	allToWhole = "all tables less the single one, over the walk"
)

var sums = []string{allLookups, allActions, allTables, wholeWalk, allToWhole}

// round measures the courses once.
func (b *byTable) round(ctx context.Context, courses []*course, p plan) error {
	m, err := measure(ctx, b, courses, p)
	if err != nil {
		return err
	}
	for _, c := range courses {
		b.board.side(c.short())
	}
	for i, c := range courses {
		b.board.note([]finding{{side: c.short(), readings: m.tableReadings(i)}})
	}
	return nil
}

// tableReadings are a course's of one round: the mean of its windows by table, and
// what they come to beside what the clock says of the whole.
func (m *measured) tableReadings(i int) (list []reading) {
	lookups, actions := 0.0, 0.0
	for _, t := range meanOf(m.of[i].kept) {
		cost := math.NaN()
		if t.timed > 0 {
			cost = t.lookup + t.actions
			lookups += t.lookup
			actions += t.actions
		}
		list = append(list, reading{t.name, "ns", cost})
	}
	single := 0.0
	for _, t := range meanOf(m.base[i].kept) {
		single += t.lookup + t.actions
	}
	if len(list) == 0 {
		lookups, actions = math.NaN(), math.NaN()
	}
	return append(list,
		reading{allLookups, "ns", lookups}, reading{allActions, "ns", actions}, reading{allTables, "ns", lookups + actions},
		reading{wholeWalk, "ns", m.alone(i)}, reading{allToWhole, partUnit, 100 * (lookups + actions - single) / m.alone(i)})
}

// partUnit is that of a part of a whole.
const partUnit = "%"

// meanOf is the mean of windows, table by table, by how many walks were timed.
func meanOf(windows []cost) (mean []tableCost) {
	for _, w := range windows {
		for i, t := range *w.tables {
			if i == len(mean) {
				mean = append(mean, tableCost{name: t.name})
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

// comparison is what the rounds found; nil when there was none. Tables that no
// packet meets are left to a note.
func (b *byTable) comparison(machine string) *Comparison {
	if len(b.board.rows) == 0 {
		return nil
	}
	c := &Comparison{Profile: tablesName, Title: "A packet's way through the pipeline, by table", Machine: machine, Grid: true, Sides: b.board.sides}
	var unmet []string
	for _, l := range b.board.lines() {
		l.Sum = slices.Contains(sums, l.Name)
		for _, s := range l.Reached {
			if s != nil {
				s.Ratio = 0 // courses are no contenders
			}
		}
		if unknown(l) {
			unmet = append(unmet, l.Name+whyUnmet[l.Name])
			continue
		}
		c.Lines = append(c.Lines, l)
	}
	for i := range c.Sides {
		if !slices.ContainsFunc(c.Lines, func(l Line) bool { return l.Reached[i] != nil }) {
			c.Notes = append(c.Notes, missingNote)
			break
		}
	}
	entries := len(b.program.sw.Flows())
	tables := slices.DeleteFunc(b.program.sw.Tables(), func(t dataplane.TableStats) bool { return t.Entries == 0 })
	c.Notes = append(c.Notes, tablesNote, fmt.Sprintf("%d entries in %d tables. No packet of these is in %s. None meets all others: the source of a packet is translated only where it leaves by the tunnel or the gateway or is a hairpin, and these are exempt from policies of ingress. All pass TrafficControl, which mirrors and redirects nothing here.", entries, len(tables), strings.Join(unmet, ", ")))
	return c
}

// whyUnmet is why no UDP packet between pods can be in a table.
var whyUnmet = map[string]string{
	"ARPSpoofGuard": " (ARP only)", "ARPResponder": " (ARP only)", "EgressMark": " (what leaves for the outside)",
}

const tablesNote = "antrail on ports in memory as in profile pipeline, with connection cache and stretches off, so that each packet walks table after table: what a packet costs of which nothing is remembered, not what most packets cost. " +
	"A table's time is that of the lookup and of all that its entry does until the next one, ct() and groups included, less what it costs to read the clock. " +
	"One walk in 101 is timed; an agent times one in 1021 (dump-tables), so that it costs nothing, and finds less of what timing needs in its caches: its figures are higher."
