package door

import (
	"errors"
	"fmt"
	"sync"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// Sums by class for callers in other processes. A caller registers the class of each entry once.
// Then it gets sums and not entries: a few hundred bytes instead of a hundred thousand entries.

// mostClasses is the number of callers whose classes are registered. The least recently used goes
// first.
const mostClasses = 8

// classes are all registered classes.
type classes struct {
	mu  sync.Mutex
	all []*classed // the most recently used comes last
	ids uint64
}

// classed are the classes of one caller.
type classed struct {
	id       string
	of       map[*flow.Entry]int
	learned  int // the class of learned entries, behind all others
	counters ClassCounters
}

// errClassesGone is the error for classes that are no longer valid. The caller registers its
// classes again.
var errClassesGone = errors.New("the entries have changed since these classes were registered, or too many callers have registered others")

// register registers the classes of the entries of a generation.
func (c *classes) register(sw Switch, q *ClassesRequest) (string, error) {
	one := &classed{of: map[*flow.Entry]int{}}
	i := 0
	for _, f := range sw.Flows() {
		if f.Learned {
			continue
		}
		if i == len(q.Classes) {
			return "", errClassesGone
		}
		if q.Classes[i] < 0 || q.Classes[i] > len(q.Classes) {
			return "", fmt.Errorf("classes[%d]: %d is not between 0 and the number of entries, %d", i, q.Classes[i], len(q.Classes))
		}
		one.of[f.Entry] = q.Classes[i]
		one.learned = max(one.learned, q.Classes[i]+1)
		i++
	}
	one.counters = sw.ClassCounters(one.class)
	if sw.Generation() != q.Generation || one.counters.Generation() != q.Generation || i != len(q.Classes) {
		return "", errClassesGone
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids++
	one.id = fmt.Sprint(c.ids)
	if len(c.all) == mostClasses {
		c.all = c.all[1:]
	}
	c.all = append(c.all, one)
	return one.id, nil
}

func (c *classed) class(e *flow.Entry) int {
	if class, known := c.of[e]; known {
		return class
	}
	return c.learned
}

// sum has the sums of one caller's classes.
func (c *classes) sum(sw Switch, id string) (*ClassCountersAnswer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, one := range c.all {
		if one.id != id {
			continue
		}
		counters, ok := one.counters.Sum()
		if !ok {
			return nil, errClassesGone
		}
		c.all = append(append(c.all[:i:i], c.all[i+1:]...), one)
		a := &ClassCountersAnswer{Counters: append([]dataplane.ClassSum(nil), counters[:min(len(counters), one.learned)]...), Learned: learnedOf(sw)}
		return a, nil
	}
	return nil, errClassesGone
}

// learnedOf are the entries that packets have learned, of tables that have any.
func learnedOf(sw Switch) (all []telemetry.FlowStats) {
	for _, t := range sw.Tables() {
		if t.Learned == 0 {
			continue
		}
		for _, f := range sw.FlowsIn(t.ID) {
			if f.Learned {
				all = append(all, f)
			}
		}
	}
	return all
}
