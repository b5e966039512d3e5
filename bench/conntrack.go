package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"
)

// ConntrackOptions bounds a measurement of connection tracking; what is zero
// has a default.
type ConntrackOptions struct {
	// Rounds is how many times each side runs; 3.
	Rounds int
	// Entries is the connections of a large table; 1,000,000.
	Entries int
	// Packets is how many packets a figure is taken from; 200,000.
	Packets int
}

// Check says what is wrong with the options.
func (o ConntrackOptions) Check() error { return o.complete() }

func (o *ConntrackOptions) complete() error {
	if o.Rounds == 0 {
		o.Rounds = 3
	}
	if o.Entries == 0 {
		o.Entries = 1_000_000
	}
	if o.Packets == 0 {
		o.Packets = 200_000
	}
	if o.Rounds < 0 || o.Packets < 1000 || o.Packets > 10_000_000 || o.Entries < leastEntries || o.Entries > 10_000_000 {
		return fmt.Errorf("bench: %d rounds of %d packets with %d connections: rounds are positive, packets 1000 to 10000000, entries 10000 to 10000000",
			o.Rounds, o.Packets, o.Entries)
	}
	return nil
}

// sizes are how many connections there are while packets are tracked.
func (o *ConntrackOptions) sizes() [3]int { return [3]int{1, o.Entries / 10, o.Entries} }

// creations is how many new connections a rate is taken from: few enough that
// the table keeps its size.
func (o *ConntrackOptions) creations() int { return min(o.Packets, o.Entries/20) }

// figure names what is measured. Those by size have the size behind the name.
type figure string

const (
	lookupRate     figure = "known connections, packets a second"
	lookupRate2    figure = "known connections, two workers"
	creationRate   figure = "new connections a second"
	creationRate2  figure = "new connections a second, two workers"
	entrySize      figure = "memory of a connection"
	sweepTime      figure = "one round of the sweep"
	restoreTime    figure = "taking over from the process before"
	answeredFull   figure = "new one when the table is full of answered ones"
	evictionTime   figure = "new one in the place of an unanswered one"
	refusalPortNAT figure = "refused: the port range is exhausted"
)

// with is the figure at a number of connections.
func (f figure) with(n int) figure { return figure(fmt.Sprintf("%s, of %d", f, n)) }

// figures is what one round of one side brought.
type figures map[figure]float64

// millions is the unit of what is counted by the second.
const millions = "M/s"

// ctLine is a figure as it is shown.
type ctLine struct {
	figure
	name, unit string
	x          float64 // the connections that there are, 0 when it is one figure
}

// lines lists what is measured, in the order in which it is shown.
func (o *ConntrackOptions) lines() (lines []ctLine) {
	for _, f := range []figure{lookupRate, lookupRate2, creationRate, creationRate2} {
		for _, n := range o.sizes() {
			lines = append(lines, ctLine{f.with(n), string(f), millions, float64(n)})
		}
	}
	for _, l := range []struct {
		figure
		unit string
	}{{entrySize, "bytes"}, {sweepTime, "ms"}, {restoreTime, "ms"}, {answeredFull, "µs"}, {evictionTime, "µs"}, {refusalPortNAT, "µs"}} {
		lines = append(lines, ctLine{l.figure, string(l.figure), l.unit, 0})
	}
	return lines
}

// ctSide is one of those compared.
type ctSide struct {
	name    string
	measure func(context.Context, *ConntrackOptions) (figures, error)
}

// CompareConntrack measures connection tracking alone, antrail's and that of
// Open vSwitch's userspace datapath in turn. Progress goes to w. Where Open
// vSwitch is not installed, or its ports cannot be had, the comparison has one
// side and says why. Its side needs root.
func CompareConntrack(ctx context.Context, o ConntrackOptions, w io.Writer) (*Comparison, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	c := &Comparison{
		Title: fmt.Sprintf("Connection tracking, %d rounds of %d packets a figure", o.Rounds, o.Packets), Machine: machine(), Axis: "connections",
		Notes: []string{
			"Both: UDP over IPv4, one ct(commit) a packet; the same packets without ct() are measured beside and taken off; where that leaves nothing, on a busy machine, a round has no figure. Connections are picked at random.",
			"When the table is full of answered connections, antrail removes the oldest of the port that holds the most, and Open vSwitch refuses the new one.",
			"antrail: calls of conntrack.Track. The table lies in a file of tmpfs for memory and restart; its memory is allocated at once, used or not.",
		},
	}
	sides := []ctSide{{"antrail", measureTable}}
	switch why := ovsMissing(); why {
	case nil:
		sides = append(sides, ctSide{ovsVersion(), measureOVS})
		c.Notes = append(c.Notes, ovsNote)
	default:
		c.Notes = append(c.Notes, fmt.Sprintf("Open vSwitch: not present (%v).", why))
	}
	rounds, err := o.run(ctx, sides, w)
	if err != nil {
		return nil, err
	}
	for _, s := range sides {
		c.Sides = append(c.Sides, s.name)
	}
	for _, l := range o.lines() {
		line := Line{Name: l.name, Unit: l.unit, X: l.x}
		for side := range sides {
			line.Reached = append(line.Reached, collect(rounds[side], l.figure).known().spread())
		}
		c.Lines = append(c.Lines, line)
	}
	return c, nil
}

// RunConntrack is CompareConntrack as a run of its own.
func RunConntrack(ctx context.Context, o ConntrackOptions, progress io.Writer) (*Result, error) {
	result := begin(Options{Profiles: []string{conntrackName}})
	c, err := CompareConntrack(ctx, o, progress)
	if err != nil {
		return nil, err
	}
	c.Profile = conntrackName
	result.Comparisons = append(result.Comparisons, c)
	result.end()
	return result, nil
}

// conntrackName is that of the profile.
const conntrackName = "conntrack"

// runConntrack is CompareConntrack as a profile.
func runConntrack(ctx context.Context, r *rig, c *Comparison) error {
	o := ConntrackOptions{Rounds: r.Rounds, Entries: max(min(1_000_000, 10*r.Largest), leastEntries)}
	found, err := CompareConntrack(ctx, o, r.progress)
	if err != nil {
		return err
	}
	c.Title, c.Axis, c.Sides, c.Lines, c.Notes = found.Title, found.Axis, found.Sides, found.Lines, append(c.Notes, found.Notes...)
	return nil
}

// leastEntries is the fewest connections of a large table.
const leastEntries = 10_000

// run measures the sides in turn, and returns the rounds of each.
func (o *ConntrackOptions) run(ctx context.Context, sides []ctSide, w io.Writer) ([][]figures, error) {
	rounds := make([][]figures, len(sides))
	for round := range o.Rounds {
		for i, s := range sides {
			start := time.Now()
			f, err := s.measure(ctx, o)
			if err := errors.Join(err, ctx.Err()); err != nil {
				return nil, fmt.Errorf("bench: round %d: %s: %w", round+1, s.name, err)
			}
			rounds[i] = append(rounds[i], f)
			fmt.Fprintf(w, "round %d of %d: %s: %v\n", round+1, o.Rounds, s.name, time.Since(start).Round(time.Millisecond))
		}
	}
	return rounds, nil
}

// collect is one figure of all rounds that have it.
func collect(rounds []figures, f figure) (s series) {
	for _, r := range rounds {
		if v, ok := r[f]; ok {
			s = append(s, v)
		}
	}
	return s
}

// rate is millions a second of n packets that took a time, which is a difference
// of two; NaN when that is not above 0.
func rate(n int, took time.Duration) float64 {
	if took <= 0 {
		return math.NaN()
	}
	return float64(n) / 1e6 / took.Seconds()
}

// micros is the microseconds of each of n packets that took a time.
func micros(n int, took time.Duration) float64 { return float64(took) / 1e3 / float64(n) }

// ovsMissing is why Open vSwitch cannot be measured, nil when it can.
func ovsMissing() error {
	if os.Geteuid() != 0 {
		return errors.New("its ports need root")
	}
	_, err := findOVS()
	return err
}
