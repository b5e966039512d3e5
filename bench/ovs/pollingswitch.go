package ovs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/bench/sched"
)

// PollingSwitch is a switch whose polling threads count what packets cost them.
type PollingSwitch struct {
	*Switch
	// Threads is how many polling threads it has.
	Threads int
	// Hertz is how many of the cycles that threads count a second has. Calibrate sets it.
	Hertz float64
}

// ThreadStats is what a polling thread has counted.
type ThreadStats struct {
	// Packets is how many packets it has received.
	Packets float64
	// Idle and Busy are cycles without and with packets.
	Idle, Busy float64
	// Upcalls is how many packets went through OpenFlow's tables, the slow path.
	Upcalls float64
}

// The lines of dpif-netdev/pmd-stats-show.
var (
	packetsLine = regexp.MustCompile(`packets received: (\d+)`)
	idleLine    = regexp.MustCompile(`idle cycles: (\d+)`)
	upcallLines = regexp.MustCompile(`miss with \w+ upcall: (\d+)`)
	busyLine    = regexp.MustCompile(`processing cycles: (\d+)`)
)

// parseThreads reads the answer to dpif-netdev/pmd-stats-show. Other than n polling threads are an error.
func parseThreads(text string, n int) (all []ThreadStats, err error) {
	polling, _, _ := strings.Cut(text, "main thread:") // it comes last
	sections := strings.Split(polling, "pmd thread ")[1:]
	if len(sections) != n {
		return nil, fmt.Errorf("pmd-stats-show has %d polling threads, want %d:\n%s", len(sections), n, text)
	}
	for _, section := range sections {
		s, err := parseThread(section)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// errUnfinished says that a thread has counted packets but no cycles yet. It counts cycles at the end of
// its turn.
var errUnfinished = errors.New("pmd-stats-show tells not all of a polling thread")

// parseThread reads what pmd-stats-show says of one thread.
func parseThread(section string) (s ThreadStats, err error) {
	for _, f := range []struct {
		re *regexp.Regexp
		to *float64
	}{{packetsLine, &s.Packets}, {idleLine, &s.Idle}, {busyLine, &s.Busy}} {
		m := f.re.FindStringSubmatch(section)
		if m == nil && s.Packets == 0 && f.re != packetsLine {
			continue // cycles are left out while there are none
		}
		if m == nil {
			return s, fmt.Errorf("%w: %q is missing:\n%s", errUnfinished, f.re, section)
		}
		if *f.to, err = strconv.ParseFloat(m[1], 64); err != nil {
			return s, err
		}
	}
	for _, m := range upcallLines.FindAllStringSubmatch(section, -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return s, err
		}
		s.Upcalls += n
	}
	return s, nil
}

// Account runs f and returns what each thread has counted meanwhile.
func (p *PollingSwitch) Account(ctx context.Context, f func() error) ([]ThreadStats, error) {
	if _, err := p.Appctl(ctx, "dpif-netdev/pmd-stats-clear"); err != nil {
		return nil, err
	}
	if err := f(); err != nil {
		return nil, err
	}
	return p.Stats(ctx)
}

// Stats returns what each thread has counted, of whole turns.
func (p *PollingSwitch) Stats(ctx context.Context) ([]ThreadStats, error) {
	for try := 1; ; try++ {
		out, err := p.Appctl(ctx, "dpif-netdev/pmd-stats-show")
		if err != nil {
			return nil, err
		}
		all, err := parseThreads(out, p.Threads)
		if !errors.Is(err, errUnfinished) || try == accountTries {
			return all, err
		}
		sched.Nap(turnTime)
	}
}

// Calibrate sets Hertz by the first thread. It takes half a second.
func (p *PollingSwitch) Calibrate(ctx context.Context) error {
	for range accountTries {
		first, err := p.Stats(ctx)
		start := time.Now()
		time.Sleep(500 * time.Millisecond)
		last, err2 := p.Stats(ctx)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		p.Hertz = (last[0].Idle + last[0].Busy - first[0].Idle - first[0].Busy) / time.Since(start).Seconds()
		if p.Hertz > 0 {
			return nil
		}
	}
	return errors.New("the polling thread does not run")
}

// accountTries is how often counts are read until they are of whole turns.
const accountTries = 20

// turnTime is how long a polling thread may take to end its turn.
const turnTime = 5 * time.Millisecond
