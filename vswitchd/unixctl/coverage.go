package unixctl

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Counter counts how often something happened. Several goroutines may use it.
type Counter struct{ n atomic.Uint64 }

// Add counts n more.
func (c *Counter) Add(n uint64) { c.n.Add(n) }

// Coverage has the counters of a daemon, and how they grew over the last hour.
type Coverage struct {
	mu       sync.Mutex
	counters map[string]*history
}

const (
	// coveragePeriod is how often counters are sampled.
	coveragePeriod = 5 * time.Second
	perMinute      = int(time.Minute / coveragePeriod)
	perHour        = int(time.Hour / coveragePeriod)
)

// history is a counter and its last samples.
type history struct {
	Counter
	last    uint64
	grown   [perHour]uint64 // a ring, by period
	current int
}

// NewCoverage makes a list without counters.
func NewCoverage() *Coverage { return &Coverage{counters: map[string]*history{}} }

// Counter returns the counter of a name, which is made if it is not there.
func (c *Coverage) Counter(name string) *Counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counters[name] == nil {
		c.counters[name] = &history{}
	}
	return &c.counters[name].Counter
}

// Run samples the counters until ctx ends. Without it, rates are zero.
func (c *Coverage) Run(ctx context.Context) error {
	t := time.NewTicker(coveragePeriod)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			c.Sample()
		}
	}
}

// Sample ends a period of five seconds.
func (c *Coverage) Sample() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.counters {
		now := h.n.Load()
		h.current = (h.current + 1) % perHour
		h.grown[h.current], h.last = now-h.last, now
	}
}

// rate is how often an event came per second, over some periods.
func (h *history) rate(periods int) float64 {
	sum := uint64(0)
	for i := range periods {
		sum += h.grown[(h.current-i+perHour)%perHour]
	}
	return float64(sum) / (float64(periods) * coveragePeriod.Seconds())
}

// Commands are coverage/show and coverage/read-counter.
func (c *Coverage) Commands() []Command {
	return []Command{
		{Name: "coverage/show", Run: c.show},
		{Name: "coverage/read-counter", Usage: "COUNTER", Min: 1, Max: 1, Run: c.readCounter},
	}
}

func (c *Coverage) show(context.Context, []string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines strings.Builder
	never := 0
	names := fnv.New32a()
	for _, name := range slices.Sorted(maps.Keys(c.counters)) {
		h := c.counters[name]
		n := h.n.Load()
		if n == 0 {
			never++
			continue
		}
		fmt.Fprint(names, name, "\n")
		fmt.Fprintf(&lines, "%-24s %5.1f/sec %9.3f/sec %13.4f/sec   total: %d\n", name, h.rate(1), h.rate(perMinute), h.rate(perHour), n)
	}
	return fmt.Sprintf("Event coverage, avg rate over last: 5 seconds, last minute, last hour,  hash=%08x:\n%s%d events never hit\n",
		names.Sum32(), lines.String(), never), nil
}

func (c *Coverage) readCounter(_ context.Context, args []string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.counters[args[0]]
	if h == nil {
		return "", errors.New("No such counter") //lint:ignore ST1005 as Open vSwitch words it
	}
	return fmt.Sprint(h.n.Load()), nil
}
