package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/antrail/antrail/flow"
)

// Profiles pipeline, policy and service: what the pipeline costs, without what
// moves the frames. Each contender's cost of the same packets with a single
// entry that outputs them is taken off.

const pipelineNote = "Packets from db-a to client-a on the pipeline of examples/two-nodes, whose 31 tables all have entries. " +
	"\"Pipeline alone\" is less the cost of the same packets with a single entry that outputs them, measured in windows in turn. " +
	"A window is thrown away in which the thread that is measured waited for a processor for more than 2 % of the time, or the machine for its host; where there is not half of what a round should have of others, windows disturbed for up to 10 % are used and told; without them, and where the difference is not above 0, the round has no figure. " +
	"antrail: ports in memory, batches of 64, one thread, wall time. " +
	"Open vSwitch: userspace datapath, packets in by AF_XDP and out by a port that counts them and throws them away, the polling thread's own count of cycles per packet, as time by the rate at which it counts; windows with packets that took the slow path, since the datapath forgot its flows while it rested, are thrown away."

const hairpinNote = "Hairpin: client-a reaches itself by the ClusterIP of a Service whose endpoints are all in it. Its packets pass both ct zones, that of all connections, where the destination is translated, and that of SNAT, and go out where they came in; each first one begins an entry in either."

// bareProgram is a single entry that forwards.
func bareProgram() (*flow.Program, error) {
	text := fmt.Sprintf("table=0,in_port=%d actions=output:%d", sender().OFPort, receiver().OFPort)
	return flow.ParseProgram(flow.Sources{Flows: flow.Text("one entry", text)})
}

func runPipeline(ctx context.Context, r *rig, c *Comparison) (err error) {
	program, err := serviceProgram(1)
	if err != nil {
		return err
	}
	batch, err := newInstallation(program.Names)
	if err != nil {
		return err
	}
	c.Notes = append(c.Notes, hairpinNote, installNote)
	t := &trial{program: program, courses: pipelineCourses(), install: batch}
	if r.wants(antrailName) {
		if t.tables, err = newByTable(program); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.tables.close()) }()
	}
	err = r.contestProgram(ctx, c, t)
	if t.tables != nil {
		r.beside(t.tables.comparison(c.Machine))
	}
	return err
}

// pipelineCourses are packets between two pods, to a ClusterIP, and of a pod to
// itself by a ClusterIP, which pass both ct zones.
func pipelineCourses() []*course {
	return []*course{knownCourse(), manyCourse(), freshCourse(), freshServiceCourse(), knownHairpinCourse(), freshHairpinCourse()}
}

// trial is a program, and what is measured of it.
type trial struct {
	x       float64 // how much there is of what a sweep varies, else 0
	program *flow.Program
	courses []*course
	install *installation // nil: the time of installing is not measured
	tables  *byTable      // nil: tables are not told apart
}

// contestProgram has antrail's switch and Open vSwitch's stand a trial.
func (r *rig) contestProgram(ctx context.Context, c *Comparison, t *trial) (err error) {
	c.Notes = append(c.Notes, pipelineNote)
	c.absentOVS(ovsWalkMissing())
	sides, err := r.openTrial(ctx, c, t)
	defer func() { err = errors.Join(err, closeAll(sides)) }()
	if err != nil {
		return err
	}
	return r.contest(ctx, c, sides)
}

// openTrial opens the sides of a trial that take part. Those that were opened are
// given back with an error as well.
func (r *rig) openTrial(ctx context.Context, c *Comparison, t *trial) (sides []*side, err error) {
	if r.wants(ovsVersion()) && ovsWalkMissing() == nil {
		r.say("%s: %s gets %d entries", c.Profile, ovsVersion(), len(t.program.Entries))
		w, err := openOVSWalk(ctx, t.program)
		if err != nil {
			return sides, fmt.Errorf("%s: %w", ovsVersion(), err)
		}
		sides = append(sides, r.ovsWalkSide(w, t))
	}
	if r.wants(antrailName) {
		r.say("%s: %s gets %d entries", c.Profile, antrailName, len(t.program.Entries))
		w, err := newWalk(t.program, switchOptions{})
		if err != nil {
			return sides, fmt.Errorf("%s: %w", antrailName, err)
		}
		w.program.counts = t.x == 0
		sides = append(sides, r.walkSide(w, t))
	}
	return sides, nil
}

// antrailName is that of antrail where it is one contender.
const antrailName = "antrail"

// ovsWalkMissing is why what Open vSwitch's pipeline costs cannot be measured, nil
// when it can.
func ovsWalkMissing() error {
	if runtime.NumCPU() < 2 {
		return errors.New("it takes two processors: one makes packets, one polls")
	}
	return ovsMissing()
}

// absentOVS notes that Open vSwitch is not there, if there is a reason.
func (c *Comparison) absentOVS(why error) {
	if why != nil {
		c.Notes = append(c.Notes, missingError{"Open vSwitch", why}.Error())
	}
}

// ovsWalkSide is Open vSwitch as a side, which rests while others are measured.
func (r *rig) ovsWalkSide(w *ovsWalk, t *trial) *side {
	return &side{name: ovsVersion(), close: w.close, measure: func(ctx context.Context) (list []reading, err error) {
		if err := w.rests(false); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, w.rests(true)) }()
		_, list, err = r.stand(ctx, w, t)
		return list, err
	}}
}

// walkSide is antrail as a side; what only it can tell is told where nothing is
// swept.
func (r *rig) walkSide(w *walk, t *trial) *side {
	return &side{name: antrailName, close: w.close, measure: func(ctx context.Context) ([]reading, error) {
		m, list, err := r.stand(ctx, w, t)
		if err == nil && t.x == 0 {
			list = append(list, m.details()...)
		}
		if err == nil && t.tables != nil {
			err = t.tables.round(ctx, t.courses, plan{windowsOfTables, r.Window / windowsOfRound, r.until})
		}
		return list, err
	}}
}

// plan is that of the windows of a trial.
func (r *rig) plan(t *trial) plan {
	p := plan{windowsOfRound, r.Window / windowsOfRound, r.until}
	if t.x != 0 {
		p.want = windowsOfSweep
	}
	return p
}

// stand is a contender's round in a trial.
func (r *rig) stand(ctx context.Context, w contender, t *trial) (*measured, []reading, error) {
	m, err := measure(ctx, w, t.courses, r.plan(t))
	if err != nil {
		return nil, nil, err
	}
	list := m.readings()
	if t.install != nil {
		more, err := t.install.measure(ctx, w)
		return m, append(list, more...), err
	}
	return m, list, nil
}

// details are what only antrail can tell of its courses.
func (m *measured) details() (list []reading) {
	for i, c := range m.courses {
		name := c.short()
		n := m.of[i].median(entries)
		list = append(list,
			reading{name + ", with ports in memory", "ns", m.of[i].median(nanoseconds)},
			reading{name + ", entries taken", "entries", n},
			reading{name + ", each entry", "ns", m.alone(i) / max(n, 1)},
			// To a thousandth: what else the process does makes a few in all.
			reading{name + ", allocations of a packet", "allocs", math.Round(1000*m.of[i].median(allocations)) / 1000})
	}
	return list
}

// sweep measures programs with more and more of something: 10, 100 and so on up
// to largest. All of them are open at once, so that each round has all sizes; those
// that there is no time to open are left out, and it says so.
func (r *rig) sweep(ctx context.Context, c *Comparison, largest int, courses []*course, program func(int) (*flow.Program, error)) (err error) {
	c.Notes = append(c.Notes, pipelineNote)
	c.absentOVS(ovsWalkMissing())
	var points []point
	defer func() {
		var open []*side
		for _, p := range points {
			open = append(open, p.sides...)
		}
		err = errors.Join(err, closeAll(open))
	}()
	sizes := decadesTo(largest)
	var took []time.Duration // to open each
	for i, n := range sizes {
		if i > 0 && time.Now().Add(nextDecade(took)).After(r.until) {
			c.Notes = append(c.Notes, fmt.Sprintf("Left out, since to open the first of them would take longer than there is time for: %v. A longer --time has them.", sizes[i:]))
			break
		}
		start := time.Now()
		p, err := program(n)
		if err != nil {
			return err
		}
		sides, err := r.openTrial(ctx, c, &trial{x: float64(n), program: p, courses: courses})
		points = append(points, point{float64(n), sides})
		if err := errors.Join(err, ctx.Err()); err != nil {
			return fmt.Errorf("with %d: %w", n, err)
		}
		took = append(took, time.Since(start))
	}
	err = r.contestAt(ctx, c, points)
	slices.SortStableFunc(c.Lines, func(a, b Line) int { return cmp.Compare(a.X, b.X) })
	return err
}

// nextDecade is how long it will take to open what is ten times the last: as long as
// the last, and ten times what that took more than the one before. Most of the time of
// a small one is that of a switch that starts.
func nextDecade(took []time.Duration) (next time.Duration) {
	for i, t := range took {
		next = t
		if i > 0 {
			next += 10 * max(0, t-took[i-1])
		}
	}
	return next
}

// decadesTo are the powers of ten from 10 to largest.
func decadesTo(largest int) (sizes []int) {
	for n := 10; n <= largest; n *= 10 {
		sizes = append(sizes, n)
	}
	return sizes
}

const policyNote = "Each rule is one source address, one port and the pod that receives, as a conjunction of three; a hundred rules have one priority. None of them matches the packets, which pass them all."

func runPolicy(ctx context.Context, r *rig, c *Comparison) error {
	c.Notes, c.Axis = append(c.Notes, policyNote), "rules of policies"
	return r.sweep(ctx, c, r.Largest, []*course{knownCourse(), freshCourse()}, policyProgram)
}

const serviceNote = "Each Service has one UDP port and three endpoints; entries and groups are made as the agent makes them. Packets go to one of them, whose endpoints are all in client-a, and to one like it with session affinity, whose client has been learned before."

// mostServices is where the sweep over Services ends.
const mostServices = 10_000

func runService(ctx context.Context, r *rig, c *Comparison) error {
	c.Notes, c.Axis = append(c.Notes, serviceNote), "Services"
	return r.sweep(ctx, c, min(r.Largest, mostServices), []*course{knownServiceCourse(), freshServiceCourse(), freshAffinityCourse()}, serviceProgram)
}
