package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// How packets come to Open vSwitch's polling threads, and what those say that
// they cost.

// send sends n packets into the switch, and waits until they are through.
func (c *ovsConntrack) send(ctx context.Context, t tuples, n int) error {
	return c.bursts(ctx, t, n, ovsBurst, func(send func() error) error { return send() })
}

// sendAtOnce is send in bursts for which the switch is stopped until all of the
// packets lie in the rings. Its threads should be asleep when it is stopped: a
// stop while one looks into its ring would count as its work.
func (c *ovsConntrack) sendAtOnce(ctx context.Context, t tuples, n int) error {
	return c.bursts(ctx, t, n, ringBurst, func(send func() error) error {
		time.Sleep(ringPause)
		err := c.rests(true)
		if err == nil {
			err = send()
		}
		return errors.Join(err, c.rests(false))
	})
}

const (
	// ovsBurst is how many packets are made between two looks at the context. To
	// begin with them takes the kernel tens of milliseconds.
	ovsBurst = 1 << 17
	// ringBurst is how many packets lie in two rings of 2048 for certain.
	ringBurst = 3000
	// ringPause is enough for the threads to work off a burst, and to sleep.
	ringPause = 10 * time.Millisecond
)

// bursts makes n packets, burst by burst, each around the sending of it.
func (c *ovsConntrack) bursts(ctx context.Context, t tuples, n, burst int, around func(send func() error) error) error {
	counter, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return err
	}
	defer counter.Close()
	program, err := t.program(c.from, counter)
	if err != nil {
		return fmt.Errorf("generator: %w", err)
	}
	defer program.Close()
	for left := n; left > 0 && ctx.Err() == nil; left -= burst {
		err := around(func() error {
			_, err := program.Run(&ebpf.RunOptions{
				Data: newCTFrame(), Repeat: uint32(min(left, burst)), Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES,
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("generator: %w", err)
		}
	}
	time.Sleep(20 * time.Millisecond)
	return ctx.Err()
}

// threadStats is a polling thread's own account: packets, cycles, and packets that
// took the slow path.
type threadStats struct{ packets, idle, busy, upcalls float64 }

var (
	packetsLine = regexp.MustCompile(`packets received: (\d+)`)
	idleLine    = regexp.MustCompile(`idle cycles: (\d+)`)
	upcallLines = regexp.MustCompile(`miss with \w+ upcall: (\d+)`)
	busyLine    = regexp.MustCompile(`processing cycles: (\d+)`)
)

// parseThreads reads the answer to dpif-netdev/pmd-stats-show, in which there
// are n polling threads.
func parseThreads(text string, n int) (all []threadStats, err error) {
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

// errUnfinished is an account in which packets came and no cycles: those are
// counted at the end of a thread's turn, for which it may have to wait.
var errUnfinished = errors.New("pmd-stats-show tells not all of a polling thread")

// parseThread reads what pmd-stats-show says of one thread.
func parseThread(section string) (s threadStats, err error) {
	for _, f := range []struct {
		re *regexp.Regexp
		to *float64
	}{{packetsLine, &s.packets}, {idleLine, &s.idle}, {busyLine, &s.busy}} {
		m := f.re.FindStringSubmatch(section)
		if m == nil && s.packets == 0 && f.re != packetsLine {
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
		s.upcalls += n
	}
	return s, nil
}

// threadCycles is what a packet costs each of the threads.
type threadCycles []float64

// rate is how many million packets a second all threads together can do more
// to, by what that costs them above something barer.
func (c *ovsConntrack) rate(of, bare threadCycles) (sum float64) {
	for i := range of {
		if of[i] <= bare[i] {
			return math.NaN()
		}
		sum += c.hertz / 1e6 / (of[i] - bare[i])
	}
	return sum
}

// account runs something and returns the threads' accounts of that time.
func (c *ovsConntrack) account(ctx context.Context, f func() error) ([]threadStats, error) {
	if _, err := c.appctl(ctx, "dpif-netdev/pmd-stats-clear"); err != nil {
		return nil, err
	}
	if err := f(); err != nil {
		return nil, err
	}
	return c.stats(ctx)
}

// stats is the threads' accounts up to now, of whole turns.
func (c *ovsConntrack) stats(ctx context.Context) ([]threadStats, error) {
	for try := 1; ; try++ {
		out, err := c.appctl(ctx, "dpif-netdev/pmd-stats-show")
		if err != nil {
			return nil, err
		}
		all, err := parseThreads(out, c.threads)
		if !errors.Is(err, errUnfinished) || try == tries {
			return all, err
		}
		nap(settle)
	}
}

// calibrate finds out how many of the thread's cycles a second has.
func (c *ovsConntrack) calibrate(ctx context.Context) error {
	for range tries {
		first, err := c.stats(ctx)
		start := time.Now()
		time.Sleep(500 * time.Millisecond)
		last, err2 := c.stats(ctx)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		c.hertz = (last[0].idle + last[0].busy - first[0].idle - first[0].busy) / time.Since(start).Seconds()
		if c.hertz > 0 {
			return nil
		}
	}
	return errors.New("the polling thread does not run")
}

// cycles is what each of so many packets cost the threads, or of those of them
// that came through, a tenth for each thread at least.
func (c *ovsConntrack) cycles(ctx context.Context, t tuples, n int) (threadCycles, error) {
	least := float64(n) / 10 / float64(c.threads)
	for range tries {
		all, err := c.account(ctx, func() error { return c.give(ctx, t, n) })
		if err != nil {
			return nil, err
		}
		var each threadCycles
		for _, s := range all {
			if s.packets >= least {
				each = append(each, s.busy/s.packets)
			}
		}
		if len(each) == c.threads {
			return each, nil
		}
	}
	return nil, fmt.Errorf("of %d packets not a tenth came through", n)
}
